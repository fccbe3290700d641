/* SPDX-License-Identifier: MIT */
/* The picture goes in as a sealed file, so there is nothing to write while we read. */
#include "cli/term/picture_child.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "engine/native/libexec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { PIECE = 64 * 1024, TIME_MS = 10 * 1000 };

static void child_end(const pid_t *pid)
{
    int status;

    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    (void)!spawn_wait(*pid, &status, NULL);
}

#define auto_child auto_cleanup(child_end)

static int child_start(const char *mode, unsigned side, int in, int out, pid_t *ret,
                       struct error *reterr)
{
    char name[] = "sandbox-picture", number[16], word[16];
    char *argv[] = {name, word, number, NULL};
    char *env[] = {NULL};

    snprintf(word, sizeof(word), "%s", mode);
    snprintf(number, sizeof(number), "%u", side);
    return libexec_start(argv, env, in, out, ret, reterr);
}

static int output_read(int fd, struct buf *ret, struct error *reterr)
{
    int64_t deadline = clock_deadline(TIME_MS);
    ssize_t n = 1;

    while (n) {
        int ready = fd_wait(fd, POLLIN, deadline);

        if (ready == 0)
            return error_set(reterr, ERR_TIMEOUT, "the picture takes too long to decode");
        if (ready < 0 || buf_reserve(ret, PIECE) < 0)
            return error_set(reterr, ERR_LIMIT, "the picture is too large");
        n = read(fd, ret->data + ret->len, PIECE);
        if (n < 0 && errno != EINTR)
            return error_sys(reterr, errno, "cannot read the picture");
        ret->len += (size_t)MAX(n, 0);
        n = n < 0 ? 1 : n;
    }
    return 0;
}

int picture_child_run(const char *mode, unsigned side, const void *data, size_t len,
                      struct buf *ret, struct error *reterr)
{
    auto_fd int in = fd_memfd_sealed("picture", data, len), out = -1, child_out = -1;
    auto_child pid_t pid = 0;
    int r, status = 0, ends[2];

    if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot hand over the picture");
    out = ends[0];
    child_out = ends[1];
    if ((r = child_start(mode, side, in, child_out, &pid, reterr)) < 0)
        return r;
    close(TAKE_FD(child_out));
    if ((r = output_read(out, ret, reterr)) < 0)
        return r;
    r = spawn_wait(pid, &status, reterr);
    pid = 0;
    if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        r = error_set(reterr, ERR_INVALID, "the picture cannot be decoded");
    return r;
}
