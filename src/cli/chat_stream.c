/* SPDX-License-Identifier: MIT */
/*
 * Streams; see chat_stream.h. The thread waits while there are many events that nobody has taken:
 * the server keeps the rest for us, so a slow terminal costs no memory.
 */
#include "cli/chat_stream.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "wire/sse.h"
#include "wire/url.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum {
    EVENTS_MAX = 256,
    BYTES_MAX = 32 << 20,
    EVENT_BYTES = 64 << 20,
    CONNECT_MS = 3000,
    IDLE_MS = 20000, /* the server says something every five seconds */
    TOTAL_MS = 7 * 86400 * 1000,
    TRY_MS = 60000, /* so long a server may be away */
    AGAIN_MS = 250,
    AGAIN_MAX_MS = 2000,
    ID_MAX = 256,
};

static const char modes[] = "stream_mode=values&stream_mode=updates&stream_mode=messages-tuple&"
                            "stream_mode=custom";

struct item {
    struct chat_event event;
    struct item *next;
};

struct chat_stream {
    struct chat_api *api;
    char *thread_id, *body;
    int cancel_fd; /* readable: the thread ends */
    int ready_fd;  /* counts the events */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t taken;
    struct item *first, **last;
    size_t count, bytes;
    bool over;
    char run_id[64];

    /* Of the thread: */
    struct sse_parser parser;
    char last_id[ID_MAX];
    bool ended;    /* the server's own end has come */
    bool progress; /* something came over the connection at hand */
    bool trouble;  /* it has been told that the connection was cut */
};

/* ---- the queue ---- */

void chat_event_done(struct chat_event *event)
{
    free(event->data);
    event->data = NULL;
}

static void push(struct chat_stream *s, const struct chat_event *event)
{
    struct item *item = malloc(sizeof(*item));
    uint64_t one = 1;

    if (!item) {
        free(event->data);
        return;
    }
    *item = (struct item){.event = *event};
    pthread_mutex_lock(&s->lock);
    while (!s->over && s->count > 0 && (s->count >= EVENTS_MAX || s->bytes >= BYTES_MAX))
        pthread_cond_wait(&s->taken, &s->lock);
    *s->last = item;
    s->last = &item->next;
    s->count++;
    s->bytes += event->len;
    pthread_mutex_unlock(&s->lock);
    (void)!write(s->ready_fd, &one, sizeof(one));
}

static void push_kind(struct chat_stream *s, enum chat_event_kind kind, const struct error *error)
{
    struct chat_event event = {.kind = kind};

    if (error)
        event.error = *error;
    push(s, &event);
}

int chat_stream_fd(const struct chat_stream *s)
{
    return s->ready_fd;
}

int chat_stream_next(struct chat_stream *s, struct chat_event *ret)
{
    struct item *item;
    uint64_t one;

    pthread_mutex_lock(&s->lock);
    item = s->first;
    if (item) {
        s->first = item->next;
        if (!s->first)
            s->last = &s->first;
        s->count--;
        s->bytes -= item->event.len;
        pthread_cond_signal(&s->taken);
    }
    pthread_mutex_unlock(&s->lock);
    if (!item)
        return 0;
    (void)!read(s->ready_fd, &one, sizeof(one));
    *ret = item->event;
    free(item);
    return 1;
}

/* ---- the run's id ---- */

int chat_location_run(const char *location, char *ret, size_t size)
{
    const char *at = strstr(location, "/runs/");
    size_t len;

    if (!at)
        return -1;
    at += strlen("/runs/");
    len = strcspn(at, "/?#");
    if (len == 0 || len >= size || strspn(at, "0123456789abcdefABCDEF-") < len)
        return -1;
    memcpy(ret, at, len);
    ret[len] = 0;
    return 0;
}

static void run_set(struct chat_stream *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    if (!s->run_id[0] && str_copy(s->run_id, sizeof(s->run_id), id) < 0)
        s->run_id[0] = 0;
    pthread_mutex_unlock(&s->lock);
}

void chat_stream_run(struct chat_stream *s, char *ret, size_t size)
{
    pthread_mutex_lock(&s->lock);
    if (str_copy(ret, size, s->run_id) < 0)
        ret[0] = 0;
    pthread_mutex_unlock(&s->lock);
}

static void on_head(void *user, const struct http_reply *reply)
{
    struct chat_stream *s = user;
    char id[64];

    if (reply->status < 200 || reply->status > 299)
        return;
    if (chat_location_run(reply->kept, id, sizeof(id)) == 0)
        run_set(s, id);
    s->progress = true;
    if (s->trouble)
        push_kind(s, CHAT_RESUMED, NULL);
    s->trouble = false;
}

/* ---- what comes ---- */

static int on_event(void *user, const char *name, const char *data, size_t len,
                    struct error *reterr)
{
    struct chat_stream *s = user;
    struct chat_event event = {.kind = CHAT_EVENT, .len = len};

    if (s->parser.id[0] && str_copy(s->last_id, sizeof(s->last_id), s->parser.id) < 0)
        return error_set(reterr, ERR_PROTOCOL, "an event's id is too long");
    if (str_copy(event.name, sizeof(event.name), name) < 0)
        return 0;
    event.data = malloc(len + 1);
    if (!event.data)
        return error_no_memory(reterr);
    memcpy(event.data, data, len);
    event.data[len] = 0;
    s->ended |= str_eq(name, "end");
    push(s, &event);
    return 0;
}

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    struct chat_stream *s = user;

    return sse_parser_feed(&s->parser, data, len, on_event, s, reterr);
}

/* ---- one connection ---- */

static int path_fill(const struct chat_stream *s, bool create, struct buf *ret)
{
    if (buf_printf(ret, "%s/threads/", s->api->base) < 0 ||
        url_percent_append(ret, s->thread_id) < 0)
        return -1;
    if (create)
        return buf_append_str(ret, "/runs/stream");
    return buf_printf(ret, "/runs/%s/stream?%s", s->run_id, modes);
}

static int headers_fill(const struct chat_stream *s, bool create, struct chat_headers *ret)
{
    if (chat_headers_add(ret, "x-api-key", s->api->key) < 0)
        return -1;
    if (create)
        return chat_headers_add(ret, "Content-Type", "application/json");
    return chat_headers_add(ret, "Last-Event-ID", s->last_id[0] ? s->last_id : "-1");
}

/* Until it is over, one way or the other. */
static int connection_run(struct chat_stream *s, bool create, struct error *reterr)
{
    auto_cleanup(chat_headers_done) struct chat_headers headers = {};
    struct http_reply reply = {};
    auto_buf struct buf url;
    int r;

    s->progress = false;
    sse_parser_done(&s->parser);
    sse_parser_init(&s->parser, EVENT_BYTES);
    buf_init(&url, 8192);
    if (path_fill(s, create, &url) < 0 || headers_fill(s, create, &headers) < 0)
        return error_no_memory(reterr);
    r = http_client_call(s->api->client,
                         &(struct http_call){.size = sizeof(struct http_call),
                                             .method = create ? "POST" : "GET",
                                             .url = buf_str(&url),
                                             .headers = (const char *const *)headers.items,
                                             .body = create ? s->body : NULL,
                                             .len = create ? strlen(s->body) : 0,
                                             .cancel_fd = s->cancel_fd,
                                             .connect_timeout_ms = CONNECT_MS,
                                             .idle_timeout_ms = IDLE_MS,
                                             .total_timeout_ms = TOTAL_MS,
                                             .reply_max = UINT64_MAX,
                                             .on_data = on_data,
                                             .on_head = on_head,
                                             .user = s,
                                             .keep = "Content-Location"},
                         &reply, reterr);
    if (r == 0 && (reply.status < 200 || reply.status > 299))
        r = chat_status_fail(&reply, reterr);
    buf_done(&reply.body);
    return r;
}

/* Whether a failure may be over soon. Without the run's id nobody knows whether it has begun, and
 * code must not run twice. */
static bool may_go_on(const struct chat_stream *s, const struct error *error)
{
    return s->run_id[0] && (error->code == ERR_UPSTREAM || error->code == ERR_TIMEOUT);
}

static void *stream_main(void *arg)
{
    struct chat_stream *s = arg;
    int64_t deadline = clock_deadline(TRY_MS), wait_ms = AGAIN_MS;
    bool create = s->body && !s->run_id[0];
    struct error error = {};

    for (;;) {
        int r = connection_run(s, create, &error);

        if (s->ended) {
            error = (struct error){};
            break;
        }
        if (r == 0)
            error_set(&error, ERR_UPSTREAM, "the server ended the stream before the run's end");
        if (s->progress) {
            deadline = clock_deadline(TRY_MS);
            wait_ms = AGAIN_MS;
        }
        if (!may_go_on(s, &error) || clock_ms() > deadline)
            break;
        create = false;
        push_kind(s, CHAT_TROUBLE, &error);
        s->trouble = true;
        if (fd_wait(s->cancel_fd, POLLIN, clock_deadline(wait_ms)) != 0)
            break;
        wait_ms = MIN(2 * wait_ms, AGAIN_MAX_MS);
    }
    push_kind(s, CHAT_FINISHED, &error);
    return NULL;
}

/* ---- life ---- */

static int stream_new(const struct chat_stream_options *o, struct chat_stream **ret,
                      struct error *reterr)
{
    struct chat_stream *s = calloc(1, sizeof(*s));

    if (!s)
        return error_no_memory(reterr);
    *ret = s;
    s->cancel_fd = s->ready_fd = -1;
    s->api = o->api;
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->taken, NULL);
    sse_parser_init(&s->parser, EVENT_BYTES);
    s->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (s->cancel_fd < 0 || s->ready_fd < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    s->thread_id = strdup(o->thread_id);
    s->body = o->body ? strdup(o->body) : NULL;
    if (!s->thread_id || (o->body && !s->body))
        return error_no_memory(reterr);
    if (o->run_id && str_copy(s->run_id, sizeof(s->run_id), o->run_id) < 0)
        return error_set(reterr, ERR_INVALID, "the run's id is too long");
    return 0;
}

int chat_stream_start(const struct chat_stream_options *options, struct chat_stream **ret,
                      struct error *reterr)
{
    auto_chat_stream struct chat_stream *s = NULL;
    int e, r = stream_new(options, &s, reterr);

    if (r < 0)
        return r;
    e = pthread_create(&s->thread, NULL, stream_main, s);
    if (e)
        return error_sys(reterr, e, "cannot start a thread");
    s->started = true;
    *ret = TAKE_PTR(s);
    return 0;
}

void chat_stream_free(struct chat_stream *s)
{
    struct chat_event event;
    uint64_t one = 1;

    if (!s)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->over = true;
        pthread_cond_signal(&s->taken);
        pthread_mutex_unlock(&s->lock);
        (void)!write(s->cancel_fd, &one, sizeof(one));
        pthread_join(s->thread, NULL);
    }
    while (s->ready_fd >= 0 && chat_stream_next(s, &event))
        chat_event_done(&event);
    if (s->cancel_fd >= 0)
        close(s->cancel_fd);
    if (s->ready_fd >= 0)
        close(s->ready_fd);
    sse_parser_done(&s->parser);
    pthread_cond_destroy(&s->taken);
    pthread_mutex_destroy(&s->lock);
    free(s->thread_id);
    if (s->body)
        explicit_bzero(s->body, strlen(s->body)); /* there may be a key in it */
    free(s->body);
    free(s);
}
