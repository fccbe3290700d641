/* SPDX-License-Identifier: MIT */
/*
 * The picture goes in as a sealed file, so there is nothing to write while we read. One deadline
 * holds for the output and for the end of the child: it may close the one and never come to the
 * other.
 */
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
#include <sys/pidfd.h>
#include <sys/wait.h>

enum { PIECE = 64 * 1024 };

struct child {
    const struct picture_job *job;
    int64_t deadline;
    pid_t pid;
    int out, pidfd;
};

static void child_end(struct child *c)
{
    int status;

    if (c->out >= 0)
        close(c->out);
    if (c->pidfd >= 0)
        close(c->pidfd);
    if (c->pid <= 0)
        return;
    kill(c->pid, SIGKILL);
    (void)!spawn_wait(c->pid, &status, NULL);
}

#define auto_child auto_cleanup(child_end)

static int child_start(struct child *c, struct error *reterr)
{
    char name[] = "sandbox-picture", number[16], word[16];
    char *argv[] = {name, word, number, NULL};
    char *env[] = {NULL};
    auto_fd int in = fd_memfd_sealed("picture", c->job->data, c->job->len), theirs = -1;
    int r, ends[2];

    if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot hand over the picture");
    c->out = ends[0];
    theirs = ends[1];
    snprintf(word, sizeof(word), "%s", c->job->mode);
    snprintf(number, sizeof(number), "%u", c->job->side);
    if ((r = libexec_start(argv, env, in, theirs, &c->pid, reterr)) < 0)
        return r;
    c->pidfd = pidfd_open(c->pid, 0);
    return c->pidfd < 0 ? error_sys(reterr, errno, "cannot watch the decoder") : 0;
}

/* Until there is something to read, or an end. */
static int child_wait(const struct child *c, int fd, struct error *reterr)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = c->job->stop_fd, .events = POLLIN}};
    int n;

    do
        n = poll(fds, ARRAY_LEN(fds), clock_poll_ms(c->deadline));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_sys(reterr, errno, "cannot wait for the picture");
    if (fds[1].revents)
        return error_set(reterr, ERR_CANCELLED, "it was stopped");
    /* Output that trickles is always there. */
    if (n == 0 || clock_ms() >= c->deadline)
        return error_set(reterr, ERR_TIMEOUT, "the picture takes too long to decode");
    return 0;
}

static int output_read(const struct child *c, struct buf *ret, struct error *reterr)
{
    char piece[PIECE];
    ssize_t n = 1;
    int r;

    while (n) {
        if ((r = child_wait(c, c->out, reterr)) < 0)
            return r;
        n = read(c->out, piece, sizeof(piece));
        if (n < 0 && errno != EINTR)
            return error_sys(reterr, errno, "cannot read the picture");
        if (n > 0 && buf_append(ret, piece, (size_t)n) < 0)
            return error_set(reterr, ERR_LIMIT, "the picture is too large");
    }
    return 0;
}

int picture_child_run(const struct picture_job *job, struct buf *ret, struct error *reterr)
{
    auto_child struct child c = {
        .job = job, .deadline = clock_deadline(job->time_ms), .out = -1, .pidfd = -1};
    int r, status = 0;

    if ((r = child_start(&c, reterr)) < 0 || (r = output_read(&c, ret, reterr)) < 0 ||
        (r = child_wait(&c, c.pidfd, reterr)) < 0)
        return r;
    r = spawn_wait(c.pid, &status, reterr);
    c.pid = 0;
    if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        r = error_set(reterr, ERR_INVALID, "the picture cannot be decoded");
    return r;
}
