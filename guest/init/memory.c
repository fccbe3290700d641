/* SPDX-License-Identifier: MIT */
/*
 * Memory by polling. First what is cheap to read and too high, never too low: the resident pages of
 * each process, shared ones counted for each, and the files in the tmpfs mounts. Only where that
 * passes the limit every process is asked for its proportional share, for which the kernel walks
 * its page tables. A memfd that nobody maps is not seen by either.
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
#include <string.h>
#include <sys/vfs.h>

enum { MEMORY_TICK_MS = 200, PROC_TEXT = 4096 };

/* Bytes: private pages, and pages of shared memory and mapped tmpfs files. */
struct usage {
    uint64_t anon, shmem;
};

/* Adds the kB values of two lines of a file of /proc/PID; false when they are not there. */
static bool usage_add(pid_t pid, const char *file, const char *const names[2], struct usage *sum)
{
    unsigned long long kib[2];
    char path[48], text[PROC_TEXT];
    auto_fd int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    for (int i = 0; i < 2; i++) {
        const char *line = strstr(text, names[i]);

        if (!line || sscanf(line + strlen(names[i]), "%llu", &kib[i]) != 1)
            return false;
    }
    sum->anon += kib[0] * KIB;
    sum->shmem += kib[1] * KIB;
    return true;
}

static void resident_add(pid_t pid, struct usage *sum)
{
    static const char *const names[2] = {"\nRssAnon:", "\nRssShmem:"};

    (void)usage_add(pid, "status", names, sum);
}

/* A process that made itself undumpable does not show its share; then all that it maps is its. */
static void share_add(pid_t pid, struct usage *sum)
{
    static const char *const names[2] = {"\nPss_Anon:", "\nPss_Shmem:"};

    if (!usage_add(pid, "smaps_rollup", names, sum))
        resident_add(pid, sum);
}

static struct usage processes_add(void (*add)(pid_t pid, struct usage *sum))
{
    struct proctab table = {};
    struct usage sum = {};
    bool entered;

    if (proctab_read(&table) == 0) {
        entered = ids_enter(IDS_SANDBOX);
        for (size_t i = 0; i < table.count; i++)
            add(table.list[i].pid, &sum);
        if (entered)
            ids_leave();
    }
    proctab_done(&table);
    return sum;
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

static bool limit_is_passed(uint64_t limit)
{
    uint64_t files = file_bytes();
    struct usage sum = processes_add(resident_add);

    if (sum.anon + sum.shmem + files <= limit)
        return false;
    /* A mapped file of a tmpfs is in both figures. */
    sum = processes_add(share_add);
    return sum.anon + MAX(sum.shmem, files) > limit;
}

int64_t memory_tick(int64_t now)
{
    static int64_t next;

    if (!config.memory_mib)
        return CLOCK_FOREVER;
    if (now < next)
        return next;
    if (limit_is_passed((uint64_t)config.memory_mib * MIB))
        _exit(MEMORY_EXIT);
    next = clock_ms() + MEMORY_TICK_MS;
    return next;
}
