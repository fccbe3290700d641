/* SPDX-License-Identifier: MIT */
/*
 * Control group directories: making, limits, entering, killing, removing. Version 2 has the rule
 * that a group with processes cannot hand controllers down, so base_v2() looks for the lowest
 * directory from our own upwards that can.
 */
#include "launcher/cgroup.h"

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BASE_NAME "sandbox-agent"
#define LEAF_SUFFIX "-main"

enum { PIDS_TEXT = 64 * 1024, BASE_TRIES = 16 };

static int dir_open(const struct cgroup_dir *dir)
{
    return open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* One file of a directory; errno on failure. */
static int dir_write(const struct cgroup_dir *dir, const char *file, const char *text)
{
    auto_fd int fd = dir_open(dir);

    return fd < 0 ? -1 : sys_write_text(fd, file, text);
}

static ssize_t dir_read(const struct cgroup_dir *dir, const char *file, char *ret, size_t size)
{
    auto_fd int fd = dir_open(dir);

    return fd < 0 ? -1 : sys_read_text(fd, file, ret, size);
}

/* path := path/name; -1 when it does not fit. */
static int path_add(char path[JOB_PATH], const char *name)
{
    size_t len = strlen(path);
    int n = snprintf(path + len, JOB_PATH - len, "/%s", name);

    if (n < 0 || (size_t)n >= JOB_PATH - len) {
        path[len] = 0;
        return -1;
    }
    return 0;
}

static int dir_descend(struct cgroup_dir *dir, const char *name)
{
    if (path_add(dir->path, name) < 0)
        return -1;
    if (mkdir(dir->path, 0755) < 0 && errno != EEXIST)
        return -1;
    return 0;
}

/* sandbox-agent/INSTANCE below. Another keeper that ends may remove the first while it is empty. */
static int dir_descend_base(struct cgroup_dir *dir, const char *instance)
{
    size_t len = strlen(dir->path);

    for (int i = 0; i < BASE_TRIES; i++) {
        dir->path[len] = 0;
        if (dir_descend(dir, BASE_NAME) < 0)
            return -1;
        if (dir_descend(dir, instance) == 0)
            return 0;
        if (errno != ENOENT)
            return -1;
    }
    return -1;
}

/* Hands controllers down to the children of a version 2 directory; the mask of those that are. */
static uint8_t controllers_enable(const struct cgroup_dir *dir, uint8_t want)
{
    char text[256], word[32];
    uint8_t have = 0;

    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!(want & (1u << c)))
            continue;
        snprintf(word, sizeof(word), "+%s", cgroup_controller_name((enum cgroup_controller)c));
        (void)dir_write(dir, "cgroup.subtree_control", word);
    }
    if (dir_read(dir, "cgroup.subtree_control", text, sizeof(text)) < 0)
        return 0;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (cgroup_list_has(text, cgroup_controller_name((enum cgroup_controller)c)))
            have |= (uint8_t)(1u << c);
    }
    return have & want;
}

/* Whether only we and the daemon that started us are in a group. */
static bool group_is_ours(const struct cgroup_dir *dir)
{
    char text[256];
    char *p = text;

    if (dir_read(dir, "cgroup.procs", text, sizeof(text)) <= 0)
        return false;
    for (size_t n; *p; p += n + (p[n] == '\n')) {
        int64_t pid;
        char word[24];

        n = strcspn(p, "\n");
        if (n >= sizeof(word))
            return false;
        memcpy(word, p, n);
        word[n] = 0;
        if (str_parse_int(word, 1, INT32_MAX, &pid) < 0 || (pid != getpid() && pid != getppid()))
            return false;
    }
    return true;
}

static bool path_ascend(char path[JOB_PATH], const char *top)
{
    char *slash = strrchr(path, '/');

    if (strlen(path) <= strlen(top) || !slash)
        return false;
    *slash = 0;
    return true;
}

/* Moves us, and the daemon if it is there too, into a leaf: what a delegated group is meant for. */
static void group_vacate(const struct cgroup_dir *dir)
{
    struct cgroup_dir leaf = *dir;
    char left[64], pid[16];

    if (!group_is_ours(dir) || dir_descend(&leaf, BASE_NAME LEAF_SUFFIX) < 0)
        return;
    (void)dir_write(&leaf, "cgroup.procs", "0");
    if (dir_read(dir, "cgroup.procs", left, sizeof(left)) <= 0)
        return;
    snprintf(pid, sizeof(pid), "%d", (int)getppid());
    (void)dir_write(&leaf, "cgroup.procs", pid);
}

/* The lowest directory from our own group upwards whose children can have memory and pids. */
static uint8_t base_v2(const struct cgroup_place *own, uint8_t want, struct cgroup_dir *dir)
{
    const uint8_t needed = want & ((1u << CGROUP_MEMORY) | (1u << CGROUP_PIDS));
    uint8_t have;

    if (!want)
        return 0;
    /* The leaf that an earlier keeper of this daemon has made. */
    if (str_ends(dir->path, "/" BASE_NAME LEAF_SUFFIX))
        (void)path_ascend(dir->path, own->mount);
    have = controllers_enable(dir, want);
    if ((have & needed) != needed) {
        group_vacate(dir);
        have = controllers_enable(dir, want);
    }
    while ((have & needed) != needed && path_ascend(dir->path, own->mount))
        have = controllers_enable(dir, want);
    if ((have & needed) != needed)
        memcpy(dir->path, own->path, sizeof(dir->path));
    return have;
}

static void base_add_v2(const struct cgroup_layout *layout, const char *instance,
                        struct cgroup_set *ret)
{
    struct cgroup_dir dir = {.version = 2}, base;
    uint8_t want = 0;

    if (!layout->v2.path[0] || str_copy(dir.path, sizeof(dir.path), layout->v2.path) < 0)
        return;
    for (int c = 0; c < CGROUP_FREEZER; c++) {
        if (!layout->v1[c].path[0])
            want |= (uint8_t)(1u << c);
    }
    want = base_v2(&layout->v2, want, &dir);
    base = dir;
    if (path_add(base.path, BASE_NAME) < 0 || dir_descend_base(&dir, instance) < 0 ||
        access(dir.path, W_OK) < 0)
        return;
    if (want)
        want = controllers_enable(&base, want);
    if (want)
        want = controllers_enable(&dir, want);
    dir.controllers = want;
    ret->dirs[ret->count++] = dir;
}

static struct cgroup_dir *set_find_path(struct cgroup_set *set, const char *path)
{
    for (size_t i = 0; i < set->count; i++) {
        if (str_eq(set->dirs[i].path, path))
            return &set->dirs[i];
    }
    return NULL;
}

/* Controllers that are mounted together share one directory. */
static void base_add_v1(const struct cgroup_place *place, enum cgroup_controller c,
                        const char *instance, struct cgroup_set *ret)
{
    struct cgroup_dir dir = {.version = 1, .controllers = (uint8_t)(1u << c)}, *same;

    if (!place->path[0] || str_copy(dir.path, sizeof(dir.path), place->path) < 0 ||
        dir_descend_base(&dir, instance) < 0 || access(dir.path, W_OK) < 0)
        return;
    same = set_find_path(ret, dir.path);
    if (same)
        same->controllers |= dir.controllers;
    else
        ret->dirs[ret->count++] = dir;
}

void cgroup_base_open(const struct cgroup_layout *layout, const char *instance,
                      struct cgroup_set *ret)
{
    ret->count = 0;
    base_add_v2(layout, instance, ret);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        /* The freezer is for killing, which version 2 does better. */
        if (c != CGROUP_FREEZER || ret->count == 0 || ret->dirs[0].version != 2)
            base_add_v1(&layout->v1[c], (enum cgroup_controller)c, instance, ret);
    }
}

static bool group_starts(const struct cgroup_dir *dir)
{
    auto_fd int group = dir_open(dir);
    struct clone_args args = {.flags = CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .cgroup = group < 0 ? 0 : (uint64_t)group};
    pid_t pid = group < 0 ? -1 : sys_clone3(&args);

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return false;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return true;
}

void cgroup_base_try(struct cgroup_set *base)
{
    for (size_t i = 0; i < base->count; i++) {
        struct cgroup_dir dir = base->dirs[i];
        bool starts;

        if (dir.version != 2 || dir_descend(&dir, "try") < 0)
            continue;
        starts = group_starts(&dir);
        (void)rmdir(dir.path);
        if (starts)
            continue;
        base->count--;
        memmove(&base->dirs[i], &base->dirs[i + 1], (base->count - i) * sizeof(dir));
        return;
    }
}

bool cgroup_is_delegated(const struct cgroup_place *own)
{
    struct cgroup_dir dir = {.version = 2};
    auto_fd int fd = -1;

    if (str_copy(dir.path, sizeof(dir.path), own->path) < 0 || (fd = dir_open(&dir)) < 0)
        return false;
    return faccessat(fd, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0 && group_is_ours(&dir);
}

void cgroup_base_close(const struct cgroup_set *base)
{
    for (size_t i = 0; i < base->count; i++) {
        char path[JOB_PATH];

        if (str_copy(path, sizeof(path), base->dirs[i].path) < 0 || rmdir(path) < 0)
            continue;
        if (path_ascend(path, "/"))
            (void)rmdir(path);
    }
}

const struct cgroup_dir *cgroup_find(const struct cgroup_set *set, enum cgroup_controller c)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->dirs[i].controllers & (1u << c))
            return &set->dirs[i];
    }
    return NULL;
}

int cgroup_create(const struct cgroup_set *base, const char *id, struct cgroup_set *ret,
                  struct error *reterr)
{
    ret->count = 0;
    for (size_t i = 0; i < base->count; i++) {
        struct cgroup_dir dir = base->dirs[i];
        int r = failpoint("cgroup-mkdir");

        if (r == 0 && dir_descend(&dir, id) < 0)
            r = -errno;
        if (r < 0)
            return error_sys(reterr, -r, "cannot make control group '%s'", dir.path);
        ret->dirs[ret->count++] = dir;
    }
    return 0;
}

/* A limit of a controller: its file on either version. NULL: has none there. */
struct limit {
    const char *v1, *v2;
    bool optional; /* the kernel may be built without it */
};

static int limit_write(const struct cgroup_dir *dir, const struct limit *limit, const char *value,
                       struct error *reterr)
{
    const char *file = dir->version == 1 ? limit->v1 : limit->v2;

    if (!file || dir_write(dir, file, value) == 0 || (limit->optional && errno == ENOENT))
        return 0;
    return error_sys(reterr, errno, "cannot set %s of '%s'", file, dir->path);
}

static int memory_limit(const struct cgroup_dir *dir, uint64_t bytes, struct error *reterr)
{
    static const struct limit memory = {"memory.limit_in_bytes", "memory.max", false};
    static const struct limit both = {"memory.memsw.limit_in_bytes", NULL, true};
    static const struct limit swap = {NULL, "memory.swap.max", true};
    static const struct limit together = {NULL, "memory.oom.group", true};
    char value[24];
    int r;

    snprintf(value, sizeof(value), "%llu", (unsigned long long)bytes);
    if ((r = limit_write(dir, &memory, value, reterr)) < 0 ||
        (r = limit_write(dir, &both, value, reterr)) < 0 ||
        (r = limit_write(dir, &swap, "0", reterr)) < 0)
        return r;
    return limit_write(dir, &together, "1", reterr);
}

static int cpu_limit(const struct cgroup_dir *dir, const struct launch_job *job,
                     struct error *reterr)
{
    static const struct limit period = {"cpu.cfs_period_us", NULL, false};
    static const struct limit quota = {"cpu.cfs_quota_us", NULL, false};
    static const struct limit both = {NULL, "cpu.max", false};
    char value[48];
    int r;

    snprintf(value, sizeof(value), "%u", job->cpu_period_us);
    if ((r = limit_write(dir, &period, value, reterr)) < 0)
        return r;
    snprintf(value, sizeof(value), "%u", job->cpu_quota_us);
    if ((r = limit_write(dir, &quota, value, reterr)) < 0)
        return r;
    snprintf(value, sizeof(value), "%u %u", job->cpu_quota_us, job->cpu_period_us);
    return limit_write(dir, &both, value, reterr);
}

int cgroup_limit(const struct cgroup_set *set, const struct launch_job *job, struct error *reterr)
{
    static const struct limit pids = {"pids.max", "pids.max", false};
    const struct cgroup_dir *dir;
    char value[24];
    int r = failpoint("cgroup-limit");

    if (r < 0)
        return error_sys(reterr, -r, "cannot set the limits of a control group");
    if ((dir = cgroup_find(set, CGROUP_MEMORY)) &&
        (r = memory_limit(dir, job->memory_bytes, reterr)) < 0)
        return r;
    snprintf(value, sizeof(value), "%u", job->pids);
    if ((dir = cgroup_find(set, CGROUP_PIDS)) && (r = limit_write(dir, &pids, value, reterr)) < 0)
        return r;
    if (job->cpu_quota_us && (dir = cgroup_find(set, CGROUP_CPU)))
        r = cpu_limit(dir, job, reterr);
    return r;
}

int cgroup_clone_fd(const struct cgroup_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->dirs[i].version == 2)
            return dir_open(&set->dirs[i]);
    }
    errno = ENOENT;
    return -1;
}

int cgroup_attach(const struct cgroup_set *set, pid_t pid, struct error *reterr)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)pid);
    for (size_t i = 0; i < set->count; i++) {
        if (set->dirs[i].version == 1 && dir_write(&set->dirs[i], "cgroup.procs", text) < 0)
            return error_sys(reterr, errno, "cannot enter control group '%s'", set->dirs[i].path);
    }
    return 0;
}

/* Where the last `parts` components of a path begin. */
static const char *path_tail(const char *path, int parts)
{
    const char *tail = path + strlen(path);

    while (parts > 0 && tail > path) {
        tail--;
        parts -= *tail == '/';
    }
    return tail;
}

/*
 * The pid was read from a list, and may be another process by now: the descriptor holds on to
 * whatever it is, and only then its group is looked at.
 */
static void pid_kill_inside(const struct cgroup_dir *dir, pid_t pid)
{
    auto_fd int pidfd = pidfd_open(pid, 0);
    char path[64], text[2048];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (pidfd < 0 || sys_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
        !strstr(text, path_tail(dir->path, 3)))
        return;
    (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

/* Signals every process of a directory; the number found, 0 also when the directory is gone. */
static size_t procs_kill(const struct cgroup_dir *dir)
{
    auto_free char *text = malloc(PIDS_TEXT);
    size_t count = 0;

    if (!text || dir_read(dir, "cgroup.procs", text, PIDS_TEXT) <= 0)
        return 0;
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        int64_t pid;

        *end = 0;
        /* 0 is a process that this pid namespace cannot name. */
        if (str_parse_int(p, 1, INT32_MAX, &pid) < 0)
            continue;
        count++;
        pid_kill_inside(dir, (pid_t)pid);
    }
    return count;
}

/* Frozen processes cannot fork away from the walk; they are always thawed again, to die. */
static void freezer_set(const struct cgroup_set *set, const char *state)
{
    const struct cgroup_dir *dir = cgroup_find(set, CGROUP_FREEZER);

    if (dir)
        (void)dir_write(dir, "freezer.state", state);
}

bool cgroup_kill(const struct cgroup_set *set)
{
    size_t left = 0;

    for (size_t i = 0; i < set->count; i++) {
        if (set->dirs[i].version == 2)
            (void)dir_write(&set->dirs[i], "cgroup.kill", "1");
    }
    for (size_t i = 0; i < set->count; i++)
        left += procs_kill(&set->dirs[i]);
    if (!left)
        return true;
    freezer_set(set, "FROZEN");
    for (size_t i = 0; i < set->count; i++)
        (void)procs_kill(&set->dirs[i]);
    freezer_set(set, "THAWED");
    return false;
}

int cgroup_remove(const struct cgroup_set *set)
{
    int r = 0;

    for (size_t i = 0; i < set->count; i++) {
        if (rmdir(set->dirs[i].path) < 0 && errno != ENOENT)
            r = -1;
    }
    return r;
}

/* Version 1: an eventfd that the kernel counts up; it is registered by two descriptor numbers. */
static int oom_open_v1(const struct cgroup_dir *dir)
{
    auto_fd int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auto_fd int directory = dir_open(dir);
    auto_fd int control = -1;
    char text[48];

    if (event < 0 || directory < 0)
        return -1;
    control = openat(directory, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return -1;
    snprintf(text, sizeof(text), "%d %d", event, control);
    if (sys_write_text(directory, "cgroup.event_control", text) < 0)
        return -1;
    return TAKE_FD(event);
}

int cgroup_oom_open(const struct cgroup_set *set, short *ret_events)
{
    const struct cgroup_dir *dir = cgroup_find(set, CGROUP_MEMORY);
    auto_fd int directory = -1;

    if (!dir)
        return -1;
    *ret_events = dir->version == 1 ? POLLIN : POLLPRI;
    if (dir->version == 1)
        return oom_open_v1(dir);
    directory = dir_open(dir);
    return directory < 0 ? -1 : openat(directory, "memory.events", O_RDONLY | O_CLOEXEC);
}

/* The number behind "oom_kill ", which both versions write in their own file. */
uint64_t cgroup_oom_count(const struct cgroup_set *set)
{
    const struct cgroup_dir *dir = cgroup_find(set, CGROUP_MEMORY);
    const char *file = dir && dir->version == 1 ? "memory.oom_control" : "memory.events";
    char text[512], *p;
    uint64_t count = 0;

    if (!dir || dir_read(dir, file, text, sizeof(text)) <= 0)
        return 0;
    p = strstr(text, "oom_kill ");
    if (!p)
        return 0;
    for (p += strlen("oom_kill "); *p >= '0' && *p <= '9'; p++)
        count = count * 10 + (uint64_t)(*p - '0');
    return count;
}

static void event_path(const struct cgroup_set *set, enum cgroup_controller c, const char *files[2],
                       char ret[JOB_PATH])
{
    const struct cgroup_dir *dir = cgroup_find(set, c);

    ret[0] = 0;
    if (!dir)
        return;
    if (str_copy(ret, JOB_PATH, dir->path) < 0 || path_add(ret, files[dir->version - 1]) < 0)
        ret[0] = 0;
}

void cgroup_event_paths(const struct cgroup_set *set, struct keeper_event *event)
{
    static const char *pids_events[2] = {"pids.events", "pids.events"};
    static const char *pids_current[2] = {"pids.current", "pids.current"};
    static const char *memory_current[2] = {"memory.usage_in_bytes", "memory.current"};
    static const char *memory_events[2] = {"memory.oom_control", "memory.events"};

    event_path(set, CGROUP_PIDS, pids_events, event->pids_events);
    event_path(set, CGROUP_PIDS, pids_current, event->pids_current);
    event_path(set, CGROUP_MEMORY, memory_current, event->memory_current);
    event_path(set, CGROUP_MEMORY, memory_events, event->memory_events);
}
