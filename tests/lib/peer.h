/* SPDX-License-Identifier: MIT */
/*
 * A peer that plays init: a thread that reads the frames of one control connection and keeps them,
 * so that a test can wait for one and answer it. HELLO, KERNEL and ACK need no test's hand. The
 * thread never asserts; it only records.
 */
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "tests/lib/test.h"
#include "wire/fields.h"
#include "wire/frame.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

enum { PEER_SEEN = 256, PEER_TEXT = 2048, PEER_WAIT_MS = 10000 };

struct peer_frame {
    uint8_t type;
    bool taken;
    uint32_t stream;
    size_t len;               /* of the whole payload */
    char text[PEER_TEXT + 1]; /* its start */
};

struct peer {
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct peer_frame *seen;
    size_t count;
    bool over;       /* the other side has closed */
    bool ends_cells; /* EXEC and SPAWN are answered at once */
    bool no_kernel;  /* KERNEL is answered with a failure */
    char welcome[512];
    size_t welcome_len;
};

/* Sends a frame as one packet. From any thread. */
static inline void peer_send(struct peer *p, uint8_t type, uint32_t stream, const void *data,
                             size_t len)
{
    auto_buf struct buf b;

    buf_init(&b, FRAME_PAYLOAD_MAX + 2 * FRAME_HEADER);
    if (frame_append(&b, type, stream, data, len) == 0)
        (void)!send(p->fd, b.data, b.len, MSG_NOSIGNAL);
}

static inline void peer_send_text(struct peer *p, uint8_t type, uint32_t stream, const char *text)
{
    peer_send(p, type, stream, text, strlen(text));
}

/* END with fields given as "name=value", up to NULL. */
static inline void peer_end(struct peer *p, uint32_t stream, const char *const *pairs)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    for (; *pairs; pairs++) {
        char key[FIELDS_KEY_MAX + 1] = "";
        size_t n = strcspn(*pairs, "=");

        memcpy(key, *pairs, MIN(n, sizeof(key) - 1));
        if (fields_add_str(&b, key, *pairs + n + 1) < 0)
            return;
    }
    peer_send(p, FRAME_END, stream, b.data, b.len);
}

#define peer_end_with(p, stream, ...) peer_end(p, stream, (const char *const[]){__VA_ARGS__, NULL})

static inline void peer_answer(struct peer *p, const struct frame *f)
{
    if (f->type == FRAME_HELLO)
        peer_send(p, FRAME_WELCOME, 0, p->welcome, p->welcome_len);
    else if (f->type == FRAME_KERNEL && p->no_kernel)
        peer_end_with(p, f->stream, "status=died", "cause=exit:1");
    else if (f->type == FRAME_KERNEL)
        peer_end_with(p, f->stream, "status=ok");
    else if ((f->type == FRAME_EXEC || f->type == FRAME_SPAWN) && p->ends_cells)
        peer_end_with(p, f->stream, "status=ok", "state=kept", "exit_code=0");
}

static inline void peer_keep(struct peer *p, const struct frame *f)
{
    struct peer_frame *kept;

    pthread_mutex_lock(&p->lock);
    if (p->count < PEER_SEEN) {
        kept = &p->seen[p->count++];
        *kept = (struct peer_frame){.type = f->type, .stream = f->stream, .len = f->len};
        memcpy(kept->text, f->payload, MIN(f->len, (size_t)PEER_TEXT));
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static inline void *peer_main(void *arg)
{
    struct peer *p = arg;
    auto_buf struct buf in;

    buf_init(&in, FRAME_PAYLOAD_MAX + 65536);
    for (;;) {
        struct frame f;
        ssize_t n = frame_next(buf_str(&in), in.len, FRAME_FROM_CLIENT, &f, NULL);

        if (n > 0) {
            peer_keep(p, &f);
            peer_answer(p, &f);
            buf_consume(&in, (size_t)n);
            continue;
        }
        if (n < 0 || buf_reserve(&in, 65536) < 0 ||
            (n = recv(p->fd, in.data + in.len, 65536, 0)) <= 0)
            break;
        in.len += (size_t)n;
    }
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* What WELCOME says; the defaults are those of a fresh sandbox. */
static inline void peer_welcome_add(struct peer *p, const char *key, const char *value)
{
    auto_buf struct buf b;

    buf_init(&b, sizeof(p->welcome));
    if (buf_append(&b, p->welcome, p->welcome_len) == 0 && fields_add_str(&b, key, value) == 0) {
        memcpy(p->welcome, b.data, b.len);
        p->welcome_len = b.len;
    }
}

/* Without WELCOME yet; returns the client's end of the connection. */
static inline int peer_init(struct peer *p)
{
    int ends[2];

    *p = (struct peer){.fd = -1};
    p->seen = calloc(PEER_SEEN, sizeof(*p->seen));
    if (!p->seen || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    p->fd = ends[1];
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return ends[0];
}

static inline void peer_start(struct peer *p)
{
    if (pthread_create(&p->thread, NULL, peer_main, p))
        abort();
}

/* The sandbox ends, as the other side sees it. */
static inline void peer_hang_up(struct peer *p)
{
    shutdown(p->fd, SHUT_RDWR);
}

static inline void peer_done(struct peer *p)
{
    if (p->fd < 0)
        return;
    peer_hang_up(p);
    pthread_join(p->thread, NULL);
    close(p->fd);
    free(p->seen);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    p->fd = -1;
}

/* The oldest frame of this type that was not taken yet, or NULL when none comes in time. */
static inline struct peer_frame *peer_take_within(struct peer *p, uint8_t type, int64_t ms)
{
    int64_t until = clock_wall_ms() + ms;
    struct timespec ts = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    struct peer_frame *found = NULL;
    size_t at = 0;
    int r = 0;

    pthread_mutex_lock(&p->lock);
    while (!found && r == 0) {
        for (; at < p->count && !found; at++) {
            if (p->seen[at].type == type && !p->seen[at].taken)
                found = &p->seen[at];
        }
        if (!found)
            r = p->over ? -1 : pthread_cond_timedwait(&p->changed, &p->lock, &ts);
    }
    if (found)
        found->taken = true;
    pthread_mutex_unlock(&p->lock);
    return found;
}

static inline struct peer_frame *peer_take(struct peer *p, uint8_t type)
{
    struct peer_frame *f = peer_take_within(p, type, PEER_WAIT_MS);

    if (!f)
        test_fail(__FILE__, __LINE__, "no frame of type 0x%02x came", type);
    return f;
}

/* Value of a field of a frame as a string in a static buffer; "" when absent. */
static inline const char *peer_field(const struct peer_frame *f, const char *key)
{
    static char value[PEER_TEXT + 1];
    struct fields fields = {.data = f->text, .len = MIN(f->len, (size_t)PEER_TEXT)};
    struct field field;

    value[0] = 0;
    if (fields_find(&fields, key, &field)) {
        memcpy(value, field.value, field.len);
        value[field.len] = 0;
    }
    return value;
}
