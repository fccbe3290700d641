/* SPDX-License-Identifier: MIT */
/*
 * The child is killed whenever it is no longer needed, never asked to end: it holds nothing that
 * could be lost. Its input is a socket where we write to it, because a pipe would raise SIGPIPE in
 * the threads of whoever uses the library.
 */
#include "session/archive.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "engine/native/libexec.h"
#include "session/records.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    PIECE = 64 * 1024,
    SILENCE_MS = 60 * 1000, /* the child computes that long without a single record */
    END_MS = 10 * 1000,     /* from the end of its output to the end of the child */
};

/* ---- the child ---- */

static int child_start(char *const *argv, int in, int out, pid_t *ret, struct error *reterr)
{
    static char zone[] = "TZ=UTC0"; /* zip files hold local time */
    char *env[] = {zone, NULL};

    return libexec_start(argv, env, in, out, ret, reterr);
}

static void child_kill(const pid_t *pid)
{
    int status;

    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    if (spawn_wait(*pid, &status, NULL) < 0)
        return;
}

#define auto_child __attribute__((cleanup(child_kill)))

/* Waits for the end of a child that has closed its output; one that lingers is killed. */
static int child_wait(pid_t *pid)
{
    auto_fd int pidfd = pidfd_open(*pid, 0);
    int status = 0;

    if (pidfd < 0 || fd_wait(pidfd, POLLIN, clock_deadline(END_MS)) <= 0)
        kill(*pid, SIGKILL);
    if (spawn_wait(*pid, &status, NULL) < 0)
        status = -1;
    *pid = 0;
    return status;
}

/* ---- unpacking ---- */

static int end_missing(pid_t *pid, struct error *reterr)
{
    int status = child_wait(pid);

    if (WIFSIGNALED(status))
        return error_set(reterr, ERR_INVALID,
                         "the archive cannot be read; its reader was ended by signal %d",
                         WTERMSIG(status));
    return error_set(reterr, ERR_UNAVAILABLE, "the reader of archives does not work here");
}

/* Returns 1 at the end of the tree. */
static int records_read(int fd, pid_t *pid, struct tree_records *t, struct error *reterr)
{
    char piece[PIECE];
    int ready = fd_wait(fd, POLLIN, clock_deadline(SILENCE_MS));
    ssize_t n;

    if (ready < 0)
        return error_sys(reterr, errno, "cannot wait for the archive's content");
    if (ready == 0)
        return error_set(reterr, ERR_TIMEOUT, "the archive takes too long to unpack");
    n = read(fd, piece, sizeof(piece));
    if (n < 0)
        return errno == EINTR ? 0 : error_sys(reterr, errno, "cannot read the archive's content");
    if (n == 0)
        return end_missing(pid, reterr);
    return tree_records_feed(t, piece, (size_t)n, reterr);
}

int archive_extract(int fd, struct tree_sink *sink, struct error *reterr)
{
    static char name[] = "sandbox-archive", mode[] = "unpack";
    char *argv[] = {name, mode, NULL};
    auto_fd int out = -1, child_out = -1;
    auto_child pid_t pid = 0;
    struct tree_records records;
    int r, ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    out = ends[0];
    child_out = ends[1];
    if ((r = child_start(argv, fd, child_out, &pid, reterr)) < 0)
        return r;
    close(TAKE_FD(child_out));
    tree_records_init(&records, sink);
    do
        r = records_read(out, &pid, &records, reterr);
    while (r == 0);
    tree_records_done(&records);
    return r < 0 ? r : 0;
}

/* ---- packing ---- */

struct packer {
    struct archive_packer public; /* first */

    /* of the source */
    struct tree_budget budget;
    uint64_t missing; /* of the last file */
    struct buf waiting;
    int in;

    /* of the reader */
    int out;

    pthread_mutex_t lock;
    pid_t pid; /* 0: it was waited for */
    int status;
    bool finished;
    atomic_bool cancelled;
    struct error why; /* the source's error */
};

static int waiting_send(struct packer *p, struct error *reterr)
{
    for (size_t done = 0; done < p->waiting.len;) {
        ssize_t n = send(p->in, p->waiting.data + done, p->waiting.len - done, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (atomic_load(&p->cancelled))
            return error_set(reterr, ERR_CANCELLED, "nobody wants the archive any more");
        if (n < 0)
            return error_sys(reterr, errno, "the writer of archives has ended");
        done += (size_t)n;
    }
    buf_clear(&p->waiting);
    return 0;
}

static int packer_put(struct packer *p, const struct record *r, struct error *reterr)
{
    if (record_append(&p->waiting, r) < 0)
        return error_no_memory(reterr);
    return p->waiting.len >= PIECE || r->kind == RECORD_END ? waiting_send(p, reterr) : 0;
}

static int whole_check(const struct packer *p, struct error *reterr)
{
    return p->missing ? error_set(reterr, ERR_INTERNAL, "less data than the file's size") : 0;
}

static int packer_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct packer *p = (struct packer *)sink;
    const bool link = e->type == TREE_LINK;
    const struct record record = {.kind = (enum record_kind)e->type,
                                  .executable = e->type == TREE_FILE && e->executable,
                                  .path = e->path,
                                  .size = e->type == TREE_FILE ? e->size : 0,
                                  .mtime_ms = e->mtime_ms,
                                  .body = link ? e->target : NULL,
                                  .len = link ? strlen(e->target) + 1 : 0};
    int r;

    if ((r = whole_check(p, reterr)) < 0 || (r = tree_check(&p->budget, e, reterr)) < 0)
        return r;
    p->missing = record.size;
    return packer_put(p, &record, reterr);
}

static int packer_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    struct packer *p = (struct packer *)sink;
    int r = 0;

    if (len > p->missing)
        return error_set(reterr, ERR_INTERNAL, "more data than the file's size");
    p->missing -= len;
    while (r == 0 && len > 0) {
        size_t part = MIN(len, (size_t)RECORD_DATA_MAX);

        r = packer_put(p, &(struct record){.kind = RECORD_DATA, .body = data, .len = part}, reterr);
        data = (const char *)data + part;
        len -= part;
    }
    return r;
}

static int packer_start(struct packer *p, enum archive_format format, struct error *reterr)
{
    static char name[] = "sandbox-archive", mode[] = "pack", gz[] = "tar.gz", zip[] = "zip";
    char *argv[] = {name, mode, format == ARCHIVE_ZIP ? zip : gz, NULL};
    auto_fd int child_in = -1, child_out = -1;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_sys(reterr, errno, "cannot make a socket");
    p->in = ends[0];
    child_in = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    p->out = ends[0];
    child_out = ends[1];
    return child_start(argv, child_in, child_out, &p->pid, reterr);
}

int archive_packer_new(enum archive_format format, struct archive_packer **ret,
                       struct error *reterr)
{
    struct packer *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return error_no_memory(reterr);
    p->public.sink = (struct tree_sink){.entry = packer_entry, .data = packer_data};
    p->in = p->out = -1;
    buf_init(&p->waiting, 2 * RECORD_MAX);
    pthread_mutex_init(&p->lock, NULL);
    r = packer_start(p, format, reterr);
    if (r < 0) {
        archive_packer_free(&p->public);
        return r;
    }
    *ret = &p->public;
    return 0;
}

int archive_packer_finish(struct archive_packer *packer, struct error *reterr)
{
    struct packer *p = (struct packer *)packer;
    int r = whole_check(p, reterr);

    if (r < 0)
        return r;
    pthread_mutex_lock(&p->lock);
    p->finished = true;
    pthread_mutex_unlock(&p->lock);
    return packer_put(p, &(struct record){.kind = RECORD_END}, reterr);
}

/* The child's end is the end of the stream. */
static void packer_kill(struct packer *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->pid > 0)
        kill(p->pid, SIGKILL);
    pthread_mutex_unlock(&p->lock);
}

void archive_packer_fail(struct archive_packer *packer, const struct error *why)
{
    struct packer *p = (struct packer *)packer;

    pthread_mutex_lock(&p->lock);
    p->finished = false;
    p->why = *why;
    pthread_mutex_unlock(&p->lock);
    packer_kill(p);
}

/* The output has ended: whether that was the archive's end. */
static int packer_verdict(struct packer *p, struct error *reterr)
{
    int r;

    pthread_mutex_lock(&p->lock);
    if (p->pid > 0)
        p->status = child_wait(&p->pid);
    if (p->why.code != ERR_OK)
        r = error_set(reterr, p->why.code, "%s", p->why.text);
    else if (atomic_load(&p->cancelled))
        r = error_set(reterr, ERR_CANCELLED, "the archive was cancelled");
    else if (p->finished && p->status == 0)
        r = 0;
    else
        r = error_set(reterr, ERR_INTERNAL, "the writer of archives ended with status 0x%x",
                      (unsigned)p->status);
    pthread_mutex_unlock(&p->lock);
    return r;
}

ssize_t archive_packer_read(struct archive_packer *packer, void *data, size_t len,
                            struct error *reterr)
{
    struct packer *p = (struct packer *)packer;
    ssize_t n;

    do
        n = read(p->out, data, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_sys(reterr, errno, "cannot read the archive");
    return n > 0 ? n : packer_verdict(p, reterr);
}

void archive_packer_cancel(struct archive_packer *packer)
{
    struct packer *p = (struct packer *)packer;

    atomic_store(&p->cancelled, true);
    packer_kill(p);
}

void archive_packer_free(struct archive_packer *packer)
{
    struct packer *p = (struct packer *)packer;

    if (!p)
        return;
    child_kill(&p->pid);
    if (p->in >= 0)
        close(p->in);
    if (p->out >= 0)
        close(p->out);
    buf_done(&p->waiting);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
