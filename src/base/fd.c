/* SPDX-License-Identifier: MIT */
/*
 * Descriptor helpers shared by the daemon and the static programs. Descriptors that come with a
 * message which is refused are closed here, so that a hostile peer cannot fill our table.
 */
#include "base/fd.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

ssize_t fd_read_full(int fd, void *data, size_t len, struct error *reterr)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(reterr, errno, "cannot read");
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int fd_write_full(int fd, const void *data, size_t len, struct error *reterr)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(fd, (const char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (fd_wait(fd, POLLOUT, CLOCK_FOREVER) < 0)
                return error_sys(reterr, errno, "cannot wait to write");
            continue;
        }
        if (n < 0)
            return error_sys(reterr, errno, "cannot write");
        done += (size_t)n;
    }
    return 0;
}

int fd_read_file(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len,
                 struct error *reterr)
{
    auto_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    auto_free char *data = NULL;
    size_t len = 0, cap = 0;

    if (fd < 0)
        return error_sys(reterr, errno, "cannot open '%s'", path);
    for (;;) {
        ssize_t n;

        if (cap - len < 2) {
            char *grown = realloc(data, cap = cap ? cap * 2 : 4096);

            if (!grown)
                return error_no_memory(reterr);
            data = grown;
        }
        n = fd_read_full(fd, data + len, cap - len - 1, reterr);
        if (n < 0)
            return error_wrap(reterr, "'%s'", path);
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return error_set(reterr, ERR_LIMIT, "'%s' is larger than %zu bytes", path, max);
    }
    data[len] = 0;
    *ret = TAKE_PTR(data);
    if (ret_len)
        *ret_len = len;
    return 0;
}

static int file_stage(int dirfd, const char *stage, const void *data, size_t len,
                      struct error *reterr)
{
    auto_fd int fd =
        openat(dirfd, stage, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_sys(reterr, errno, "cannot create '%s'", stage);
    if (fd_write_full(fd, data, len, reterr) < 0)
        return error_wrap(reterr, "'%s'", stage);
    if (fsync(fd) < 0)
        return error_sys(reterr, errno, "cannot sync '%s'", stage);
    return 0;
}

int fd_write_file_atomic(int dirfd, const char *path, const void *data, size_t len,
                         struct error *reterr)
{
    char stage[512];
    int r;

    if (snprintf(stage, sizeof(stage), "%s.%ld.new", path, (long)getpid()) >= (int)sizeof(stage))
        return error_set(reterr, ERR_INVALID, "path '%s' is too long", path);
    unlinkat(dirfd, stage, 0);
    r = file_stage(dirfd, stage, data, len, reterr);
    if (r == 0 && renameat(dirfd, stage, dirfd, path) < 0)
        r = error_sys(reterr, errno, "cannot rename to '%s'", path);
    if (r < 0)
        unlinkat(dirfd, stage, 0);
    return r;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags);
}

void fd_close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t fd_count)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    union {
        char room[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
        struct cmsghdr align;
    } control = {};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (fd_count > FD_PASS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (fd_count) {
        struct cmsghdr *c;

        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n != len) {
        errno = EMSGSIZE;
        return -1;
    }
    return n < 0 ? -1 : 0;
}

/* Moves what fits into `fds` and closes the rest. Returns false when something did not fit. */
static bool message_take_fds(struct msghdr *msg, int *fds, size_t room, size_t *ret_count)
{
    bool fits = true;
    size_t count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        size_t n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (count < room)
                fds[count++] = fd;
            else {
                close(fd);
                fits = false;
            }
        }
    }
    *ret_count = count;
    return fits;
}

ssize_t fd_recv(int sock, void *data, size_t len, int *fds, size_t *fd_count)
{
    struct iovec iov = {.iov_base = data, .iov_len = len};
    union {
        char room[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.room,
                         .msg_controllen = sizeof(control.room)};
    size_t room = fd_count ? *fd_count : 0, got = 0;
    ssize_t n;

    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    if (!message_take_fds(&msg, fds, room, &got) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        fd_close_all(fds, got);
        errno = EMSGSIZE;
        return -1;
    }
    if (fd_count)
        *fd_count = got;
    return n;
}

int fd_memfd_sealed(const char *name, const void *data, size_t len)
{
    auto_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || fd_write_full(fd, data, len, NULL) < 0)
        return -1;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -1;
    return TAKE_FD(fd);
}

int fd_wait(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;

    do
        n = poll(&p, 1, clock_poll_ms(deadline));
    while (n < 0 && errno == EINTR);
    return n;
}
