/* SPDX-License-Identifier: MIT */
/* Records and the removal of a dead keeper's remains. */
#include "launcher/record.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/disk.h"
#include "launcher/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>

#define RECORD_STAGE RECORD_FILE ".new"

enum { RECORD_MAX = 16 * 1024, CLEAN_MS = 5000, STEP_MS = 20 };

static void boot_id_read(char *ret, size_t size)
{
    if (sys_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", ret, size) <= 0)
        ret[0] = 0;
    ret[strcspn(ret, "\n")] = 0;
}

static int record_format(const struct record *record, const struct launch_job *job, struct buf *b)
{
    char boot[64];

    boot_id_read(boot, sizeof(boot));
    if (buf_printf(b, "boot %s\npid %d\nstart %llu\nslot %u\nloop %d\n", boot, (int)record->pid,
                   (unsigned long long)record->start_time, record->slot, (int)record->loop) < 0)
        return -1;
    for (size_t i = 0; i < record->groups.count; i++) {
        const struct cgroup_dir *dir = &record->groups.dirs[i];

        if (buf_printf(b, "cgroup %u %u %s\n", dir->version, dir->controllers, dir->path) < 0)
            return -1;
    }
    return buf_printf(b, "created_ms %lld\nmemory_bytes %llu\npids %u\nlease_ms %u\n",
                      (long long)job->created_ms, (unsigned long long)job->memory_bytes, job->pids,
                      job->lease_ms);
}

/* Staged and renamed, but not synced: after a crash of the host there is nothing left to clean. */
static int record_store(int dirfd, const struct buf *b, struct error *reterr)
{
    auto_fd int fd =
        openat(dirfd, RECORD_STAGE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return error_sys(reterr, errno, "cannot write the record of the sandbox");
    if ((r = fd_write_full(fd, b->data, b->len, reterr)) < 0)
        return r;
    if (renameat(dirfd, RECORD_STAGE, dirfd, RECORD_FILE) < 0)
        return error_sys(reterr, errno, "cannot write the record of the sandbox");
    return 0;
}

int record_write(int dirfd, const struct record *record, const struct launch_job *job,
                 struct error *reterr)
{
    auto_buf struct buf b;

    buf_init(&b, RECORD_MAX);
    if (record_format(record, job, &b) < 0)
        return error_no_memory(reterr);
    return record_store(dirfd, &b, reterr);
}

/* "VERSION CONTROLLERS /path": the path is one of ours by its form, or the line is skipped. */
static void record_parse_group(char *line, struct cgroup_set *ret)
{
    struct cgroup_dir dir = {0};
    char *second = strchr(line, ' '), *path;
    int64_t version, controllers;

    if (!second || ret->count == CGROUP_DIRS)
        return;
    *second++ = 0;
    path = strchr(second, ' ');
    if (!path)
        return;
    *path++ = 0;
    if (str_parse_int(line, 1, 2, &version) < 0 ||
        str_parse_int(second, 0, 255, &controllers) < 0 || path[0] != '/' ||
        !strstr(path, "/sandbox-agent/") || strstr(path, "/../") || str_ends(path, "/..") ||
        str_copy(dir.path, sizeof(dir.path), path) < 0)
        return;
    dir.version = (uint8_t)version;
    dir.controllers = (uint8_t)controllers;
    ret->dirs[ret->count++] = dir;
}

void record_parse(const char *text, const char *boot_id, struct record *ret)
{
    bool same_boot = false;

    *ret = (struct record){.loop = -1};
    while (*text) {
        size_t len = strcspn(text, "\n");
        char line[JOB_PATH + 64], *value;
        int64_t number = 0;

        if (!text[len])
            break; /* torn: the last line has no end */
        if (len < sizeof(line)) {
            memcpy(line, text, len);
            line[len] = 0;
            value = strchr(line, ' ');
            if (value)
                *value++ = 0;
            if (value && str_eq(line, "boot"))
                same_boot = str_eq(value, boot_id);
            else if (value && str_eq(line, "cgroup"))
                record_parse_group(value, &ret->groups);
            else if (value && str_eq(line, "pid") && !str_parse_int(value, 2, INT32_MAX, &number))
                ret->pid = (pid_t)number;
            else if (value && str_eq(line, "start") && !str_parse_int(value, 1, INT64_MAX, &number))
                ret->start_time = (uint64_t)number;
            else if (value && str_eq(line, "slot") && !str_parse_int(value, 0, INT32_MAX, &number))
                ret->slot = (uint32_t)number;
            else if (value && str_eq(line, "loop") && !str_parse_int(value, 0, 1 << 20, &number))
                ret->loop = (int32_t)number;
        }
        text += len + 1;
    }
    /* Numbers of another boot name other things. */
    if (!same_boot) {
        ret->pid = 0;
        ret->loop = -1;
    }
}

/* The descriptor is taken first: what it names cannot change under the look at its start time. */
static void process_end(pid_t pid, uint64_t start_time)
{
    auto_fd int pidfd = pid > 1 ? pidfd_open(pid, 0) : -1;

    if (pidfd < 0 || !start_time || sys_start_time(pid) != start_time)
        return;
    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0)
        (void)!fd_wait(pidfd, POLLIN, clock_deadline(CLEAN_MS));
}

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000};

    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        continue;
}

static void groups_end(const struct cgroup_set *set)
{
    int64_t deadline = clock_deadline(CLEAN_MS);

    while ((!cgroup_kill(set) || cgroup_remove(set) < 0) && clock_ms() < deadline)
        pause_ms(STEP_MS);
}

/* What else may be in its place would be waited for without end, such as a FIFO. */
static bool record_is_file(int dirfd)
{
    struct stat st;

    return fstatat(dirfd, RECORD_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static void record_clean(int sb_fd, const char *id)
{
    auto_fd int dir = openat(sb_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    auto_free char *text = NULL;
    struct record record;
    char boot[64];
    int64_t deadline = clock_deadline(CLEAN_MS);

    if (dir < 0)
        return;
    boot_id_read(boot, sizeof(boot));
    if (record_is_file(dir) && fd_read_file(dir, RECORD_FILE, RECORD_MAX, &text, NULL, NULL) == 0) {
        record_parse(text, boot, &record);
        process_end(record.pid, record.start_time);
        groups_end(&record.groups);
        while (!disk_close(dir, record.loop) && clock_ms() < deadline)
            pause_ms(STEP_MS);
    }
    (void)sys_remove_files(dir);
    (void)unlinkat(sb_fd, id, AT_REMOVEDIR);
}

/* Calls `clean` for each name of an id's form in a directory. */
static void ids_walk(int dirfd, void (*clean)(int dirfd, const char *id, const void *arg),
                     const void *arg)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (strlen(e->d_name) == JOB_ID && str_check_chars(e->d_name, "0123456789abcdef", JOB_ID))
            clean(dirfd, e->d_name, arg);
    }
    closedir(dir);
}

static void clean_record(int dirfd, const char *id, const void *arg)
{
    (void)arg;
    record_clean(dirfd, id);
}

/* A group that was made but not recorded any more: the same directory name, one hierarchy. */
static void clean_group(int dirfd, const char *id, const void *arg)
{
    const struct cgroup_dir *base = arg;
    struct cgroup_set set = {.dirs = {*base}, .count = 1};
    size_t len = strlen(base->path);
    int n = snprintf(set.dirs[0].path + len, JOB_PATH - len, "/%s", id);

    (void)dirfd;
    if (n > 0 && (size_t)n < JOB_PATH - len)
        groups_end(&set);
}

void record_clean_all(int sb_fd, const struct cgroup_set *base)
{
    ids_walk(sb_fd, clean_record, NULL);
    for (size_t i = 0; i < base->count; i++) {
        auto_fd int dir = open(base->dirs[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (dir >= 0)
            ids_walk(dir, clean_group, &base->dirs[i]);
    }
}
