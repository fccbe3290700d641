/* SPDX-License-Identifier: MIT */
/*
 * Control connections. A client gets the log of a run through a follower, which copies whole frames
 * into the client's queue as far as its credit and a bounded queue allow; a frame above 64 KiB is
 * sent from its log block. So a client that does not read costs no memory, whatever runs.
 */
#include "init/control.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "init/config.h"
#include "init/file.h"
#include "init/kernel.h"
#include "init/landlock.h"
#include "init/loop.h"
#include "init/proctab.h"
#include "init/runs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    CLIENT_IN_MAX = FRAME_HEADER + FRAME_PAYLOAD_MAX + 1024 * 1024,
    CLIENT_READ = 256 * 1024,
    CLIENT_OUT_MAX = 16 * 1024 * 1024,
    CLIENT_OUT_FULL = 1024 * 1024, /* answers that are not taken: nothing more is read */
    FILL_ROOM = 256 * 1024,
    FILL_SHARE = FRAME_BULK_MAX, /* of one follower in a round */
    PUMP_ROUNDS = 8,
    FILES_MAX = 32, /* operations of one client at once */
    ACCEPT_PAUSE_MS = 200,
    BOOT_BYTES = 16,
};

struct follower {
    struct follower *next;
    uint32_t stream;
    int64_t outstanding; /* payload that was sent and not credited */
    struct log_cursor cursor;
};

struct file_slot {
    struct file_slot *next;
    struct file_op *op;
};

struct client {
    struct watch watch;
    struct buf in;
    struct outq out;
    struct log_block *big; /* is sent behind `out`, or before it once it is begun */
    size_t big_pos;
    bool greeted;
    bool over; /* what is queued is sent, then the connection ends */
    struct follower *followers;
    struct file_op *files[FILES_MAX];
};

static struct {
    struct watch listener;
    struct client *clients[CONTROL_CLIENTS];
    struct lease *lease;
    char boot[2 * BOOT_BYTES + 1];
    uint32_t last_stream;
    int64_t begin_ms;
    int64_t accept_at; /* 0: accepting */
    bool shut_down;
} control = {.listener = {.fd = -1}};

/* ---- followers ---- */

static void follower_drop(struct client *c, struct follower *f)
{
    struct follower **p = &c->followers;

    while (*p != f)
        p = &(*p)->next;
    *p = f->next;
    log_detach(&f->cursor);
    free(f);
}

static struct follower *follower_find(struct client *c, uint32_t stream)
{
    struct follower *f = c->followers;

    while (f && f->stream != stream)
        f = f->next;
    return f;
}

static int follower_add(struct client *c, struct run *run, uint64_t offset, struct error *reterr)
{
    struct follower *old = follower_find(c, run->stream), *f = calloc(1, sizeof(*f));

    if (!f)
        return error_no_memory(reterr);
    f->stream = run->stream;
    if (log_attach(&run->log, &f->cursor, offset) < 0) {
        free(f);
        (void)error_set(reterr, ERR_INVALID, "no frame begins at offset %llu",
                        (unsigned long long)offset);
        reterr->sys = EINVAL;
        return -(int)ERR_INVALID;
    }
    if (old)
        follower_drop(c, old);
    f->next = c->followers;
    c->followers = f;
    return 0;
}

/*
 * Copies frames into the queue. A frame may begin while any credit is left, whatever its size: else
 * a display above the window could never be sent. False when a big one has to be sent first. */
static bool follower_fill(struct client *c, struct follower *f, bool *ret_progress)
{
    struct log_piece piece;
    size_t share = 0;

    while (share < FILL_SHARE && outq_len(&c->out) < FILL_ROOM && f->outstanding < FRAME_WINDOW &&
           log_next(&f->cursor, &piece)) {
        struct buf *b;

        *ret_progress = true;
        f->outstanding += (int64_t)(piece.len - FRAME_HEADER);
        share += piece.len;
        if (piece.len > LOG_BLOCK) {
            c->big = piece.block;
            c->big_pos = 0;
            log_block_ref(c->big);
            return false;
        }
        b = outq_room(&c->out, piece.len);
        if (!b || buf_append(b, piece.data, piece.len) < 0) {
            c->over = true;
            return false;
        }
    }
    return true;
}

/* ---- the life of a client ---- */

static void client_free(struct client *c)
{
    for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
        if (control.clients[i] == c)
            control.clients[i] = NULL;
    }
    watch_close(&c->watch);
    while (c->followers)
        follower_drop(c, c->followers);
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (c->files[i])
            file_close(c->files[i]);
    }
    if (c->big)
        log_block_unref(c->big);
    outq_done(&c->out);
    buf_done(&c->in);
    free(c);
}

/*
 * 1 all is sent, 0 the rest has to wait, -1 the client is gone. A big frame that has begun comes
 * before the queue, in which answers may have been put meanwhile: frames never mix.
 */
static int client_flush(struct client *c)
{
    while (outq_len(&c->out) > 0 || c->big) {
        ssize_t n;

        if (!c->big || c->big_pos == 0) {
            int r = outq_flush(&c->out, c->watch.fd);

            if (r <= 0)
                return r;
            if (!c->big)
                return 1;
        }
        n = write(c->watch.fd, c->big->data + c->big_pos, c->big->size - c->big_pos);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        c->big_pos += (size_t)n;
        if (c->big_pos == c->big->size) {
            log_block_unref(c->big);
            c->big = NULL;
        }
    }
    return 1;
}

static bool files_step(struct client *c)
{
    bool progress = false;

    for (size_t i = 0; i < FILES_MAX; i++) {
        if (!c->files[i] || !file_is_ready(c->files[i], &c->out))
            continue;
        progress = true;
        if (file_step(c->files[i], &c->out)) {
            file_close(c->files[i]);
            c->files[i] = NULL;
        }
    }
    return progress;
}

/* The first follower goes to the end, so that none is always served last. */
static void followers_rotate(struct client *c)
{
    struct follower *first = c->followers, *last = first;

    if (!first || !first->next)
        return;
    while (last->next)
        last = last->next;
    c->followers = first->next;
    first->next = NULL;
    last->next = first;
}

/* Queues more; false when there is nothing that may be sent. */
static bool client_fill(struct client *c)
{
    struct follower *f = c->followers;
    bool progress = false;

    if (c->over)
        return false;
    while (f) {
        struct follower *next = f->next;

        if (!f->cursor.log)
            follower_drop(c, f); /* the run was acknowledged */
        else if (!follower_fill(c, f, &progress))
            return true;
        f = next;
    }
    followers_rotate(c);
    return files_step(c) || progress;
}

/*
 * Sends, fills and sends again, but not for ever: a fast reader of a long log must not keep others
 * waiting. True when there is more to do at once.
 */
static bool client_pump(struct client *c)
{
    bool more = true;
    int r = 1;

    /* An empty queue is filled, never the other way round: a full one takes nothing, which is not
     * to be taken for having nothing to send. */
    for (int i = 0; i < PUMP_ROUNDS && more; i++) {
        r = client_flush(c);
        more = r == 1 && client_fill(c);
    }
    if (r < 0 || (r == 1 && c->over)) {
        client_free(c);
        return false;
    }
    watch_set(&c->watch, (c->over || outq_len(&c->out) > CLIENT_OUT_FULL ? 0 : (uint32_t)EPOLLIN) |
                             (r == 0 ? (uint32_t)EPOLLOUT : 0));
    return more;
}

/* ---- answers ---- */

static void client_end(struct client *c, uint32_t stream, const struct error *why)
{
    if (reply_end(&c->out, stream, why) < 0)
        c->over = true;
}

static void client_report(struct client *c, uint8_t type, uint32_t stream, const struct buf *f)
{
    if (reply_fields(&c->out, type, stream, f) < 0)
        c->over = true;
}

/* ---- requests; <0: the client broke the protocol ---- */

static int welcome(struct client *c)
{
    auto_buf struct buf f;

    buf_init(&f, 64 * KIB);
    if (fields_add_str(&f, "version", PROTOCOL_VERSION) < 0 ||
        fields_add_str(&f, "boot", control.boot) < 0 ||
        fields_add_int(&f, "last_stream", control.last_stream) < 0 ||
        fields_add_int(&f, "lease_ms", control.lease->limit_ms) < 0 ||
        fields_add_str(&f, "kernel", kernel_state_name()) < 0 || runs_describe(&f) < 0) {
        c->over = true;
        return 0;
    }
    client_report(c, FRAME_WELCOME, 0, &f);
    return 0;
}

static int lease_set(const struct fields *f, struct error *reterr)
{
    int64_t ms;

    if (fields_get_int(f, "lease_ms", control.lease->limit_ms, &ms, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    if (ms <= 0 || ms > CONFIG_LEASE_MAX_MS)
        return error_set(reterr, ERR_PROTOCOL, "a lease of %lld ms is out of range", (long long)ms);
    control.lease->limit_ms = ms;
    return 0;
}

static int on_hello(struct client *c, const struct frame *frame, const struct fields *f,
                    struct error *reterr)
{
    struct field version;

    if (!fields_find(f, "version", &version) || version.len != strlen(PROTOCOL_VERSION) ||
        memcmp(version.value, PROTOCOL_VERSION, version.len) != 0)
        return error_set(reterr, ERR_PROTOCOL,
                         "this sandbox speaks version " PROTOCOL_VERSION
                         " of the protocol and no other");
    if (lease_set(f, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    c->greeted = true;
    return welcome(c);
}

static int on_lease(struct client *c, const struct frame *frame, const struct fields *f,
                    struct error *reterr)
{
    failpoint("lease-renew");
    return lease_set(f, reterr);
}

static int on_shutdown(struct client *c, const struct frame *frame, const struct fields *f,
                       struct error *reterr)
{
    control.shut_down = true;
    return 0;
}

/*
 * A number of before may come back once its run is forgotten. Numbers are only asked to be free,
 * not to rise: two connections of one client are not in order with each other.
 */
static bool stream_is_used(uint32_t stream)
{
    if (run_find(stream))
        return true;
    for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
        const struct client *c = control.clients[i];

        for (size_t n = 0; c && n < FILES_MAX; n++) {
            if (c->files[n] && file_stream(c->files[n]) == stream)
                return true;
        }
    }
    return false;
}

static int stream_take(uint32_t stream, struct error *reterr)
{
    if (stream == 0 || stream_is_used(stream))
        return error_set(reterr, ERR_PROTOCOL, "stream %u is in use", stream);
    control.last_stream = MAX(control.last_stream, stream);
    return 0;
}

static enum run_kind run_kind_of(uint8_t type)
{
    static const enum run_kind kinds[] = {[FRAME_KERNEL] = RUN_KERNEL,
                                          [FRAME_EXEC] = RUN_EXEC,
                                          [FRAME_SPAWN] = RUN_SPAWN,
                                          [FRAME_SWEEP] = RUN_SWEEP};

    return kinds[type];
}

/* The follower comes first: whatever the start of the run says, its client gets it. */
static int on_run(struct client *c, const struct frame *frame, const struct fields *f,
                  struct error *reterr)
{
    struct error err = {};
    struct run *run;

    if (stream_take(frame->stream, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    run = run_open(run_kind_of(frame->type), frame->stream, f, &err);
    if (run && follower_add(c, run, 0, &err) < 0) {
        run_free(run);
        run = NULL;
    }
    if (run)
        runs_start(run, f);
    else
        client_end(c, frame->stream, &err);
    return 0;
}

static struct file_op **file_find(struct client *c, uint32_t stream)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (c->files[i] && file_stream(c->files[i]) == stream)
            return &c->files[i];
    }
    return NULL;
}

static void file_end(struct file_op **slot)
{
    file_close(*slot);
    *slot = NULL;
}

static int on_input(struct client *c, const struct frame *frame, const struct fields *f,
                    struct error *reterr)
{
    struct run *run = run_find(frame->stream);

    if (run)
        runs_input(run, frame->payload, frame->len);
    return 0;
}

/* INTERRUPT and KILL. A run or operation that is over already is no mistake of the client. */
static int on_stop(struct client *c, const struct frame *frame, const struct fields *f,
                   struct error *reterr)
{
    struct file_op **file = file_find(c, frame->stream);
    struct run *run = run_find(frame->stream);

    if (file) {
        file_abort(*file, &c->out);
        file_end(file);
    } else if (run && frame->type == FRAME_KILL) {
        runs_kill(run);
    } else if (run) {
        runs_interrupt(run);
    }
    return 0;
}

static int on_credit(struct client *c, const struct frame *frame, const struct fields *f,
                     struct error *reterr)
{
    struct follower *follower = follower_find(c, frame->stream);
    struct file_op **file = file_find(c, frame->stream);
    int64_t bytes;

    if (fields_get_int(f, "bytes", 0, &bytes, reterr) < 0 || bytes < 0)
        return error_set(reterr, ERR_PROTOCOL, "malformed CREDIT");
    if (file)
        file_credit(*file, bytes);
    if (follower)
        follower->outstanding = MAX(follower->outstanding - bytes, (int64_t)0);
    return 0;
}

static int on_attach(struct client *c, const struct frame *frame, const struct fields *f,
                     struct error *reterr)
{
    struct run *run = run_find(frame->stream);
    struct error err = {};
    int64_t offset;
    int r;

    if (fields_get_int(f, "offset", 0, &offset, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    if (run && offset >= 0) {
        r = follower_add(c, run, (uint64_t)offset, &err);
    } else {
        r = error_set(&err, ERR_NOT_FOUND, "there is no run %u", frame->stream);
        err.sys = ENOENT;
    }
    if (r < 0)
        client_end(c, frame->stream, &err);
    return 0;
}

/* Only what is over can be forgotten; an early ACK would lose the end. */
static int on_ack(struct client *c, const struct frame *frame, const struct fields *f,
                  struct error *reterr)
{
    struct run *run = run_find(frame->stream);

    if (run && run->state == RUN_DONE)
        run_free(run);
    return 0;
}

static int on_status(struct client *c, const struct frame *frame, const struct fields *f,
                     struct error *reterr)
{
    auto_buf struct buf report;

    if (stream_take(frame->stream, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    buf_init(&report, 1024);
    if (fields_add_str(&report, "kernel", kernel_state_name()) < 0 ||
        fields_add_int(&report, "kernel_pid", kernel_pid()) < 0 ||
        fields_add_int(&report, "processes", (int64_t)proctab_count()) < 0 ||
        fields_add_int(&report, "uptime_ms", clock_ms() - control.begin_ms) < 0 ||
        fields_add_int(&report, "generation", (int64_t)kernel_generation()) < 0 ||
        fields_add_int(&report, "tmpfs_full", config_is_full(&config)) < 0 ||
        fields_add_int(&report, "landlock", landlock_abi()) < 0 ||
        fields_add_int(&report, "seccomp", config.filter != NULL) < 0) {
        c->over = true;
        return 0;
    }
    client_report(c, FRAME_REPORT, frame->stream, &report);
    client_end(c, frame->stream, NULL);
    return 0;
}

static int on_file(struct client *c, const struct frame *frame, const struct fields *f,
                   struct error *reterr)
{
    struct error err = {};

    if (stream_take(frame->stream, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (!c->files[i]) {
            c->files[i] = file_open(frame, &c->out);
            return 0;
        }
    }
    (void)error_set(&err, ERR_LIMIT, "%d file operations are open already", FILES_MAX);
    err.sys = EAGAIN;
    client_end(c, frame->stream, &err);
    return 0;
}

/* What comes for an operation that has failed meanwhile is passed over. */
static int on_data(struct client *c, const struct frame *frame, const struct fields *f,
                   struct error *reterr)
{
    struct file_op **file = file_find(c, frame->stream);

    if (file && file_data(*file, frame->payload, frame->len, &c->out))
        file_end(file);
    return 0;
}

static const struct request {
    int (*handle)(struct client *c, const struct frame *frame, const struct fields *f,
                  struct error *reterr);
    bool has_fields;
} requests[] = {
    [FRAME_HELLO] = {on_hello, true},       [FRAME_KERNEL] = {on_run, true},
    [FRAME_EXEC] = {on_run, true},          [FRAME_SPAWN] = {on_run, true},
    [FRAME_INPUT] = {on_input, false},      [FRAME_INTERRUPT] = {on_stop, true},
    [FRAME_KILL] = {on_stop, true},         [FRAME_CREDIT] = {on_credit, true},
    [FRAME_ATTACH] = {on_attach, true},     [FRAME_ACK] = {on_ack, true},
    [FRAME_SWEEP] = {on_run, true},         [FRAME_LEASE] = {on_lease, true},
    [FRAME_SHUTDOWN] = {on_shutdown, true}, [FRAME_STATUS] = {on_status, true},
    [FRAME_FILE_READ] = {on_file, true},    [FRAME_FILE_WRITE] = {on_file, true},
    [FRAME_WRITE_DATA] = {on_data, false},  [FRAME_FILE_STAT] = {on_file, true},
    [FRAME_FILE_LIST] = {on_file, true},    [FRAME_FILE_REMOVE] = {on_file, true},
    [FRAME_FILE_MKDIR] = {on_file, true},   [FRAME_FILE_RENAME] = {on_file, true},
    [FRAME_FILE_LINK] = {on_file, true},
};

/* Every payload of fields is checked whole before anybody looks for a key in it. */
static int client_frame(struct client *c, const struct frame *frame, struct error *reterr)
{
    struct fields f = {.data = frame->payload, .len = frame->len};
    const struct request *request = &requests[frame->type];

    if (c->greeted == (frame->type == FRAME_HELLO))
        return error_set(reterr, ERR_PROTOCOL, c->greeted ? "a second HELLO" : "no HELLO");
    if (request->has_fields && fields_check(&f, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    return request->handle(c, frame, &f, reterr);
}

/* ---- reading ---- */

/* Frames are handled where they lie; what is left is moved to the front once, at the end. */
static void client_parse(struct client *c)
{
    struct error err = {};
    struct frame frame;
    size_t pos = 0;
    ssize_t n = 0;

    while (!c->over && !control.shut_down) {
        n = frame_next(c->in.data + pos, c->in.len - pos, FRAME_FROM_CLIENT, &frame, &err);
        if (n <= 0)
            break;
        pos += (size_t)n;
        n = client_frame(c, &frame, &err);
        if (n < 0)
            break;
    }
    if (n < 0) {
        client_end(c, 0, &err);
        c->over = true;
    }
    buf_consume(&c->in, pos);
    if (c->in.len == 0 && c->in.cap > MIB)
        buf_done(&c->in);
}

/* A client that is gone takes nothing with it: its runs go on and keep their logs. */
static void client_ready(struct watch *w, uint32_t events)
{
    struct client *c = watch_owner(w, struct client, watch);
    ssize_t n;

    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (buf_reserve(&c->in, CLIENT_READ) < 0) {
        client_free(c);
        return;
    }
    n = recv(w->fd, c->in.data + c->in.len, CLIENT_READ, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        client_free(c);
        return;
    }
    c->in.len += (size_t)n;
    client_parse(c);
}

/* ---- accepting ---- */

/* Beyond the maximum a connection is closed at once, so that it is not taken for one that hangs. */
static void client_add(int fd)
{
    struct client *c = NULL;
    size_t i = 0;

    while (i < CONTROL_CLIENTS && control.clients[i])
        i++;
    if (i < CONTROL_CLIENTS)
        c = calloc(1, sizeof(*c));
    if (!c || watch_open(&c->watch, fd, EPOLLIN, client_ready) < 0) {
        free(c);
        close(fd);
        return;
    }
    control.clients[i] = c;
    buf_init(&c->in, CLIENT_IN_MAX);
    outq_init(&c->out, CLIENT_OUT_MAX);
}

static void listener_ready(struct watch *w, uint32_t events)
{
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        client_add(fd);
        return;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
        return;
    /* The connection stays in the queue, so watching on would spin. */
    watch_set(w, 0);
    control.accept_at = clock_deadline(ACCEPT_PAUSE_MS);
}

int64_t control_tick(int64_t now)
{
    if (control.accept_at && now >= control.accept_at) {
        control.accept_at = 0;
        watch_set(&control.listener, EPOLLIN);
    }
    return control.accept_at ? control.accept_at : CLOCK_FOREVER;
}

int control_open(int fd, struct lease *lease, struct error *reterr)
{
    unsigned char random[BOOT_BYTES];

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return error_sys(reterr, errno, "cannot get random bytes");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(control.boot + 2 * i, 3, "%02x", random[i]);
    control.lease = lease;
    control.begin_ms = clock_ms();
    if (watch_open(&control.listener, fd, EPOLLIN, listener_ready) < 0)
        return error_sys(reterr, errno, "cannot watch the control socket");
    return 0;
}

bool control_is_held(void)
{
    for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
        if (control.clients[i])
            return true;
    }
    return false;
}

bool control_pump(void)
{
    bool more = false;

    for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
        if (control.clients[i])
            more |= client_pump(control.clients[i]);
    }
    return more;
}

bool control_is_shut_down(void)
{
    return control.shut_down;
}
