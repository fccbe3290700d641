/* SPDX-License-Identifier: MIT */
/*
 * Instance directories and their locks. The lock is an OFD lock: it belongs to the open file, so it
 * ends with the process however that ends, and a lock file that is left behind means nothing.
 */
#include "engine/native/instance.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { INSTANCE_MAX = 1000, KIND_MAX = 40, NAME_TRIES = 100 };

/* What taking a name may give, besides an error. */
enum { NAME_HELD, NAME_TAKEN, NAME_GONE };

static int lock_try(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock);
}

/*
 * What lies in it says which processes and groups to end and what to mount, as root as well. With a
 * sticky bit others can add to it, but not take the place of what is ours.
 */
static int owner_check(int dir, const char *state_dir, struct error *reterr)
{
    struct stat st;

    if (fstat(dir, &st) < 0)
        return error_sys(reterr, errno, "cannot look at '%s'", state_dir);
    if (st.st_uid != geteuid() || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
        return error_set(reterr, ERR_DENIED,
                         "the state directory '%s' (or 'run' in it) is not its user's alone: it "
                         "must belong to user %u, and nobody else may write to it",
                         state_dir, (unsigned)geteuid());
    return 0;
}

/* `ours`: to work in, which others must not be able to; else only to look. */
static int run_dir_open(const char *state_dir, bool ours, struct error *reterr)
{
    auto_fd int state = -1, run = -1;
    int r = path_make_dirs(state_dir, 0700, reterr);

    if (r < 0 || (r = state = path_open_dir(AT_FDCWD, state_dir, reterr)) < 0)
        return r;
    if (mkdirat(state, "run", 0700) < 0 && errno != EEXIST)
        return error_sys(reterr, errno, "cannot make '%s/run'", state_dir);
    run = openat(state, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (run < 0)
        return error_sys(reterr, errno, "cannot open '%s/run'", state_dir);
    if (ours && ((r = owner_check(state, state_dir, reterr)) < 0 ||
                 (r = owner_check(run, state_dir, reterr)) < 0))
        return r;
    return TAKE_FD(run);
}

/* Whether the file that was locked is still the one that others find. */
static bool lock_is_current(int run_dir, const char *name, int lock)
{
    char path[INSTANCE_NAME + 8];
    struct stat ours, theirs;

    snprintf(path, sizeof(path), "%s/lock", name);
    return fstat(lock, &ours) == 0 && fstatat(run_dir, path, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static int name_try(int run_dir, const char *name, struct instance *ret, struct error *reterr)
{
    auto_fd int dir = -1, lock = -1;
    char pid[24];

    if (mkdirat(run_dir, name, 0700) < 0 && errno != EEXIST)
        return error_sys(reterr, errno, "cannot make the run directory of '%s'", name);
    dir = openat(run_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir >= 0)
        lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return errno == ENOENT ? NAME_GONE
                               : error_sys(reterr, errno, "cannot open the lock of '%s'", name);
    if (lock_try(lock) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return error_sys(reterr, errno, "cannot lock '%s'", name);
        return NAME_HELD;
    }
    if (!lock_is_current(run_dir, name, lock))
        return NAME_GONE;
    snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (ftruncate(lock, 0) < 0 || pwrite(lock, pid, strlen(pid), 0) < 0)
        return error_sys(reterr, errno, "cannot write the lock of '%s'", name);
    if (str_copy(ret->name, sizeof(ret->name), name) < 0)
        return error_set(reterr, ERR_INVALID, "instance name '%s' is too long", name);
    ret->dir = TAKE_FD(dir);
    ret->lock = TAKE_FD(lock);
    return NAME_TAKEN;
}

/* The process that ends removes its files: between opening and locking them they may go away. */
static int name_take(int run_dir, const char *name, struct instance *ret, struct error *reterr)
{
    int r = NAME_GONE;

    for (int i = 0; i < NAME_TRIES && r == NAME_GONE; i++)
        r = name_try(run_dir, name, ret, reterr);
    return r == NAME_GONE ? NAME_HELD : r;
}

static int server_busy(int run_dir, const char *state_dir, const char *name, struct error *reterr)
{
    auto_free char *pid = NULL;
    char path[INSTANCE_NAME + 8];

    snprintf(path, sizeof(path), "%s/lock", name);
    if (fd_read_file(run_dir, path, 64, &pid, NULL, NULL) < 0)
        return error_set(reterr, ERR_BUSY, "another server uses '%s'", state_dir);
    pid[strcspn(pid, "\n")] = 0;
    return error_set(reterr, ERR_BUSY, "the server with process id %s uses '%s' already", pid,
                     state_dir);
}

int instance_take(const char *state_dir, const char *kind, struct instance *ret,
                  struct error *reterr)
{
    auto_fd int run_dir = -1;
    char name[INSTANCE_NAME];
    int r;

    if (!str_check_chars(kind, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
                         KIND_MAX))
        return error_set(reterr, ERR_INVALID,
                         "instance '%.80s' is no name of letters, digits, '-' and '_'", kind);
    run_dir = run_dir_open(state_dir, /* ours= */ true, reterr);
    if (run_dir < 0)
        return run_dir;
    if (str_eq(kind, "server")) {
        r = name_take(run_dir, kind, ret, reterr);
        return r == NAME_HELD ? server_busy(run_dir, state_dir, kind, reterr) : MIN(r, 0);
    }
    for (int n = 0; n < INSTANCE_MAX; n++) {
        snprintf(name, sizeof(name), "%s-%d", kind, n);
        r = name_take(run_dir, name, ret, reterr);
        if (r != NAME_HELD)
            return MIN(r, 0);
    }
    return error_set(reterr, ERR_LIMIT, "more than %d processes use '%s'", INSTANCE_MAX, state_dir);
}

void instance_release(struct instance *i, const char *state_dir)
{
    char path[PATH_LEN];

    /* With a keeper that still owns sandboxes these fail with ENOTEMPTY, which is right. */
    if (faccessat(i->dir, "keeper.sock", F_OK, 0) < 0) {
        unlinkat(i->dir, "sb", AT_REMOVEDIR);
        unlinkat(i->dir, "keeper.lock", 0);
        unlinkat(i->dir, "lock", 0);
        snprintf(path, sizeof(path), "%s/run/%s", state_dir, i->name);
        rmdir(path);
    }
    close(i->dir);
    close(i->lock);
    i->dir = i->lock = -1;
}

int instance_each(const char *state_dir, instance_each_fn *each, void *user, struct error *reterr)
{
    auto_fd int run_dir = run_dir_open(state_dir, /* ours= */ false, reterr);
    auto_fd int listed = -1;
    struct dirent *e;
    DIR *d;
    int r = 0;

    if (run_dir < 0)
        return run_dir;
    listed = fcntl(run_dir, F_DUPFD_CLOEXEC, 3);
    d = listed >= 0 ? fdopendir(listed) : NULL;
    if (!d)
        return error_sys(reterr, errno, "cannot list the run directory");
    TAKE_FD(listed); /* closed with the stream */
    while (r >= 0 && (e = readdir(d))) {
        auto_fd int dir = -1;

        if (e->d_name[0] == '.')
            continue;
        dir = path_open_dir(run_dir, e->d_name, NULL);
        if (dir >= 0)
            r = each(user, e->d_name, dir);
    }
    closedir(d);
    return r;
}

void instance_socket_address(int dir, const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir, name);
}

int instance_socket_connect(int dir, const char *name, int type)
{
    auto_fd int sock = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    instance_socket_address(dir, name, &address);
    if (sock < 0 || connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return TAKE_FD(sock);
}
