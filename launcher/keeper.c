/* SPDX-License-Identifier: MIT */
/* The keeper's start, its poll loop and its end. */
#include "launcher/keeper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/build.h"
#include "launcher/client.h"
#include "launcher/egress-child.h"
#include "launcher/record.h"
#include "launcher/sandbox.h"
#include "launcher/slot.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { POLLS_MAX = 16384, LOCK_MS = 3000, LOCK_STEP_MS = 20, INIT_MAX = 16 << 20 };

struct poll_entry {
    poll_ready *ready;
    void *object;
};

struct poll_set {
    size_t count, room;
    struct pollfd *fds;
    struct poll_entry *entries;
    int64_t wake_ms;
};

void keeper_wake_at(struct keeper *k, int64_t time_ms)
{
    k->polls->wake_ms = MIN(k->polls->wake_ms, time_ms);
}

static bool polls_grow(struct poll_set *set)
{
    size_t room = set->room ? set->room * 2 : 64;
    struct pollfd *fds;
    struct poll_entry *entries;

    if (room > POLLS_MAX)
        return false;
    fds = realloc(set->fds, room * sizeof(*fds));
    if (!fds)
        return false;
    set->fds = fds;
    entries = realloc(set->entries, room * sizeof(*entries));
    if (!entries)
        return false;
    set->entries = entries;
    set->room = room;
    return true;
}

/* What finds no room is not lost: it is asked for again in the next round. */
void keeper_watch(struct keeper *k, int fd, short events, poll_ready *ready, void *object)
{
    struct poll_set *set = k->polls;

    if (set->count == set->room && !polls_grow(set)) {
        keeper_wake_at(k, clock_ms() + LOCK_STEP_MS);
        return;
    }
    set->fds[set->count] = (struct pollfd){.fd = fd, .events = events};
    set->entries[set->count++] = (struct poll_entry){ready, object};
}

/* ---- children and signals ---- */

/* Looked at before it is reaped, so that a pid we still name cannot be given to somebody else. */
static void children_reap(struct keeper *k)
{
    siginfo_t info;

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return;
        if (!sandbox_reaped(k, info.si_pid, &info) && !egress_reaped(k, info.si_pid))
            (void)build_reaped(k, info.si_pid, &info);
        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
}

static void signal_ready(struct keeper *k, void *object, short revents)
{
    struct signalfd_siginfo info;

    (void)object;
    (void)revents;
    while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD)
            k->stopping = true;
    }
    children_reap(k);
}

static int signals_take(struct keeper *k, struct error *reterr)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        sigaddset(&set, taken[i]);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return error_sys(reterr, errno, "cannot block signals");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signal_fd < 0)
        return error_sys(reterr, errno, "cannot take signals by descriptor");
    return 0;
}

/* ---- start ---- */

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000};

    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        continue;
}

/* A dying keeper's children hold copies of its lock until they exec, so it is tried for a while. */
static int lock_take(struct keeper *k, struct error *reterr)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int64_t deadline = clock_deadline(LOCK_MS);

    k->lock_fd = openat(k->dir_fd, "keeper.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0)
        return error_sys(reterr, errno, "cannot open the keeper's lock");
    while (fcntl(k->lock_fd, F_OFD_SETLK, &lock) < 0) {
        if (clock_ms() >= deadline)
            return error_set(reterr, ERR_BUSY, "another keeper owns '%s'", k->dir_path);
        pause_ms(LOCK_STEP_MS);
    }
    return 0;
}

/* The name is for people; device and inode keep two state directories apart. */
static int directory_name(struct keeper *k, struct error *reterr)
{
    char link[64];
    struct stat st;
    const char *base;
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", k->dir_fd);
    n = readlink(link, k->dir_path, sizeof(k->dir_path) - 1);
    if (n <= 0 || fstat(k->dir_fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return error_set(reterr, ERR_INVALID, "descriptor 3 is not the instance directory");
    k->dir_path[n] = 0;
    base = strrchr(k->dir_path, '/');
    snprintf(k->name, sizeof(k->name), "%.32s-%llx-%llx", base ? base + 1 : "x",
             (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return 0;
}

static int directories_open(struct keeper *k, struct error *reterr)
{
    int r = directory_name(k, reterr);

    if (r < 0 || (r = lock_take(k, reterr)) < 0)
        return r;
    if (mkdirat(k->dir_fd, "sb", 0700) < 0 && errno != EEXIST)
        return error_sys(reterr, errno, "cannot make the directory of the sandboxes");
    k->sb_fd = openat(k->dir_fd, "sb", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (k->sb_fd < 0)
        return error_sys(reterr, errno, "cannot open the directory of the sandboxes");
    k->slot_fd = slot_dir_open(k->dir_fd, reterr);
    return k->slot_fd < 0 ? k->slot_fd : 0;
}

/* A sealed copy, so that nobody can change under a sandbox what it runs as pid 1. */
static int init_copy(struct keeper *k, struct error *reterr)
{
    auto_fd int to = memfd_create("sandbox-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    char chunk[16 * 1024];
    size_t total = 0;
    ssize_t n;
    int r;

    /* Kernels before 6.3 know no MFD_EXEC and need none. */
    if (to < 0)
        to = memfd_create("sandbox-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (to < 0)
        return error_sys(reterr, errno, "cannot make a memfd");
    while ((n = fd_read_full(KEEPER_FD_INIT, chunk, sizeof(chunk), reterr)) > 0) {
        total += (size_t)n;
        if (total > INIT_MAX)
            return error_set(reterr, ERR_INVALID, "sandbox-init is too large to be it");
        if ((r = fd_write_full(to, chunk, (size_t)n, reterr)) < 0)
            return r;
    }
    if (n < 0 || !total)
        return n < 0 ? (int)n : error_set(reterr, ERR_INVALID, "sandbox-init is empty");
    if (fcntl(to, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return error_sys(reterr, errno, "cannot seal the copy of sandbox-init");
    /* Executed by descriptor, which needs one that was opened for reading only. */
    snprintf(chunk, sizeof(chunk), "/proc/self/fd/%d", to);
    k->init_fd = open(chunk, O_RDONLY | O_CLOEXEC);
    if (k->init_fd < 0)
        return error_sys(reterr, errno, "cannot open the copy of sandbox-init");
    return 0;
}

static int filters_make(struct keeper *k, struct error *reterr)
{
    uint32_t flags = !k->ids.root && !k->ids.subordinate ? SECCOMP_ONE_UID : 0;
    struct seccomp_program program;
    int r;

    if ((r = seccomp_build(SECCOMP_INIT, flags, &k->init_filter, reterr)) < 0 ||
        (r = seccomp_build(SECCOMP_DEFAULT, flags, &program, reterr)) < 0)
        return r;
    k->filter_fd =
        fd_memfd_sealed("seccomp-default", program.insns, program.len * sizeof(program.insns[0]));
    if (k->filter_fd < 0)
        return error_sys(reterr, errno, "cannot keep the seccomp program");
    return 0;
}

static int host_read(struct keeper *k, struct error *reterr)
{
    struct cgroup_layout layout = {0};
    int r;

    features_read(&k->features);
    if ((r = id_pool_read(&k->ids, reterr)) < 0)
        return r;
    if (!k->features.subuid && k->ids.subordinate)
        k->ids = (struct id_pool){.slots = SLOT_MAX};
    if (k->features.cgroup && (r = cgroup_layout_read(&layout, reterr)) < 0)
        return r;
    cgroup_base_open(&layout, k->name, &k->groups);
    cgroup_base_try(&k->groups);
    if (!k->features.egress)
        k->egress_exe_fd = -1;
    return 0;
}

/* Many sandboxes are many descriptors; their own limits are set from the job. */
static void files_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The daemon's terminal and pipes are not ours to hold open. */
static int stdio_close(struct error *reterr)
{
    auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        return error_sys(reterr, errno, "cannot open /dev/null");
    return 0;
}

static int keeper_start(struct keeper *k, struct error *reterr)
{
    int r;

    for (int fd = KEEPER_FD_DIR; fd < KEEPER_FD_COUNT; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && fd <= KEEPER_FD_INIT)
            return error_set(reterr, ERR_INVALID, "descriptor %d is missing", fd);
    }
    k->egress_exe_fd = fcntl(KEEPER_FD_EGRESS, F_GETFD) < 0 ? -1 : KEEPER_FD_EGRESS;
    k->egress_config_fd = KEEPER_FD_EGRESS_CONFIG;
    (void)close_range(KEEPER_FD_COUNT, ~0u, 0);
    (void)setsid();
    umask(077);
    if (chdir("/") < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return error_sys(reterr, errno, "cannot become a subreaper");
    if ((r = signals_take(k, reterr)) < 0 || (r = directories_open(k, reterr)) < 0 ||
        (r = init_copy(k, reterr)) < 0 || (r = host_read(k, reterr)) < 0 ||
        (r = filters_make(k, reterr)) < 0 || (r = fd_set_nonblock(k->listen_fd, true)) < 0)
        return r;
    files_raise();
    record_clean_all(k->sb_fd, &k->groups);
    return stdio_close(reterr);
}

/* ---- loop ---- */

static void stop_step(struct keeper *k)
{
    if (!k->stopping)
        return;
    for (struct sandbox *s = k->sandboxes; s; s = s->next)
        sandbox_close(s);
    builds_stop(k);
}

/* True when nobody has needed this keeper for the linger time. */
static bool idle_step(struct keeper *k)
{
    if (k->clients || k->sandboxes || k->builds) {
        k->idle_ms = 0;
        return false;
    }
    if (!k->idle_ms)
        k->idle_ms = clock_ms();
    keeper_wake_at(k, k->idle_ms + k->linger_ms);
    return clock_ms() >= k->idle_ms + k->linger_ms;
}

static void polls_run(struct keeper *k)
{
    struct poll_set *set = k->polls;
    size_t count = set->count;

    if (poll(set->fds, count, clock_poll_ms(set->wake_ms)) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (set->fds[i].revents)
            set->entries[i].ready(k, set->entries[i].object, set->fds[i].revents);
    }
}

static void keeper_loop(struct keeper *k)
{
    for (;;) {
        k->polls->count = 0;
        k->polls->wake_ms = CLOCK_FOREVER;
        stop_step(k);
        sandboxes_step(k);
        clients_sweep(k);
        if ((k->stopping && !k->sandboxes && !k->builds) || idle_step(k))
            return;
        keeper_watch(k, k->signal_fd, POLLIN, signal_ready, NULL);
        egress_watch(k);
        sandboxes_watch(k);
        clients_watch(k);
        polls_run(k);
    }
}

/*
 * The owner of the instance removes its directory; where it has died, its lock is free and the
 * keeper does it. Who opened the lock meanwhile finds that it is gone and takes another.
 */
static void instance_remove(struct keeper *k)
{
    auto_fd int lock = openat(k->dir_fd, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char link[32], path[JOB_PATH];
    ssize_t len;

    if (lock < 0 || fcntl(lock, F_OFD_SETLK, &whole) < 0)
        return;
    (void)unlinkat(k->dir_fd, "keeper.lock", 0);
    (void)unlinkat(k->dir_fd, "lock", 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", k->dir_fd);
    len = readlink(link, path, sizeof(path) - 1);
    if (len > 0 && (size_t)len < sizeof(path) - 1) {
        path[len] = 0;
        (void)rmdir(path);
    }
}

/* The path goes away only if it still is ours: a next keeper may have bound its own. */
static void keeper_end(struct keeper *k, ino_t socket_ino)
{
    struct keeper_event done = client_event(KEEPER_DONE, "");
    struct stat st;

    egress_close(k);
    cgroup_base_close(&k->groups);
    if (fstatat(k->dir_fd, "keeper.sock", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == socket_ino)
        (void)unlinkat(k->dir_fd, "keeper.sock", 0);
    (void)unlinkat(k->dir_fd, "sb", AT_REMOVEDIR);
    instance_remove(k);
    clients_answer(k, KEEPER_STOP, "", &done);
}

int keeper_main(const struct keeper_options *options)
{
    struct poll_set polls = {0};
    static struct keeper k;
    struct error err = {0};
    struct stat st = {0};

    k = (struct keeper){.agent = options->agent,
                        .linger_ms = options->linger_ms,
                        .dir_fd = KEEPER_FD_DIR,
                        .listen_fd = KEEPER_FD_LISTEN,
                        .lock_fd = -1,
                        .sb_fd = -1,
                        .slot_fd = -1,
                        .signal_fd = -1,
                        .init_fd = -1,
                        .filter_fd = -1,
                        .egress = {.sock = -1},
                        .polls = &polls};
    if (keeper_start(&k, &err) < 0) {
        fprintf(stderr, "sandbox-launch: %s\n", err.text);
        return error_entry(err.code)->exit_status;
    }
    (void)fstatat(k.dir_fd, "keeper.sock", &st, AT_SYMLINK_NOFOLLOW);
    keeper_loop(&k);
    keeper_end(&k, st.st_ino);
    free(polls.fds);
    free(polls.entries);
    return 0;
}
