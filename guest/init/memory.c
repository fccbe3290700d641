/* SPDX-License-Identifier: MIT */
/*
 * Memory by polling. What counts is what a memory cgroup would count in the main: anonymous pages
 * of each process (pages shared by a fork are counted twice, so the limit is met early rather than
 * late) and the files in the tmpfs mounts.
 */
#include "init/memory.h"

#include "base/clock.h"
#include "base/macro.h"
#include "init/config.h"
#include "init/ids.h"
#include "init/proctab.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

enum { MEMORY_TICK_MS = 200 };

static uint64_t anonymous_pages(pid_t pid)
{
    unsigned long long resident, shared;
    char path[32], text[128];
    auto_fd int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = 0;
    if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared)
        return 0;
    return resident - shared;
}

static uint64_t process_bytes(void)
{
    struct proctab table = {};
    uint64_t pages = 0;
    bool entered;

    if (proctab_read(&table) == 0) {
        entered = ids_enter();
        for (size_t i = 0; i < table.count; i++)
            pages += anonymous_pages(table.list[i].pid);
        if (entered)
            ids_leave();
    }
    proctab_done(&table);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t file_bytes(void)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < config.writable_count; i++) {
        struct statfs st;

        if (statfs(config.writable[i], &st) == 0 && st.f_type == TMPFS_MAGIC)
            bytes += (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
    }
    return bytes;
}

int64_t memory_tick(int64_t now)
{
    static int64_t next;

    if (!config.memory_mib)
        return CLOCK_FOREVER;
    if (now < next)
        return next;
    if (process_bytes() + file_bytes() > (uint64_t)config.memory_mib * MIB)
        _exit(MEMORY_EXIT);
    next = clock_ms() + MEMORY_TICK_MS;
    return next;
}
