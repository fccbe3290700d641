/* SPDX-License-Identifier: MIT */
/*
 * One question to a model: attempts until an answer is whole, or there is no sense in another one.
 * Whatever was given of an attempt that failed is taken back by LLM_DELTA_RETRY, so a receiver
 * never sees two halves as one answer. Without images is asked again only where the failure was
 * about them, and what that shows is kept only when it then works.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/client.h"
#include "llm/llm-internal.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>

enum {
    WAIT_FIRST_MS = 500,
    WAIT_MAX_MS = 30 * 1000,
    CALL_MS = 15 * 60 * 1000, /* all attempts together */
    URL_SIZE = 4096,
};

struct llm {
    struct http_client *client;
    pthread_mutex_t lock; /* of what follows */
    struct vision_table vision;
};

int llm_new(struct http_client *client, struct llm **ret, struct error *reterr)
{
    struct llm *l = calloc(1, sizeof(*l));

    if (!l)
        return error_no_memory(reterr);
    l->client = client;
    pthread_mutex_init(&l->lock, NULL);
    *ret = l;
    return 0;
}

void llm_free(struct llm *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

enum llm_vision llm_vision_get(struct llm *l, const struct llm_model *model)
{
    enum llm_vision vision;

    pthread_mutex_lock(&l->lock);
    vision = vision_get(&l->vision, model);
    pthread_mutex_unlock(&l->lock);
    return vision;
}

static void vision_keep(struct llm *l, const struct llm_model *model, enum llm_vision vision)
{
    pthread_mutex_lock(&l->lock);
    vision_learn(&l->vision, model, vision);
    pthread_mutex_unlock(&l->lock);
}

/* ---- one attempt ---- */

struct attempt {
    struct llm *l;
    const struct llm_request *request;
    const struct provider_entry *provider;
    const struct llm_sink *sink;
    struct arena *arena;
    int64_t deadline;
    struct buf refusal; /* the provider's own message, when its status was no success */
    unsigned status;
    int64_t retry_after_ms;
    bool started, again;
};

static void attempt_done(struct attempt *a)
{
    buf_done(&a->refusal);
}

static int url_make(const struct attempt *a, const char *path, char ret[URL_SIZE],
                    struct error *reterr)
{
    const char *base = a->request->model.base_url;
    size_t len;

    if (!base || !*base)
        base = a->provider->base_url;
    len = strlen(base);
    while (len && base[len - 1] == '/')
        len--;
    if (snprintf(ret, URL_SIZE, "%.*s%s", (int)MIN(len, (size_t)URL_SIZE), base, path) >= URL_SIZE)
        return error_set(reterr, ERR_INVALID, "the base URL of a model is too long");
    return 0;
}

static int attempt_data(void *user, const char *data, size_t len, struct error *reterr)
{
    return stream_feed(user, data, len, reterr);
}

static int attempt_refused(struct attempt *a, struct llm_stream *s, const struct http_reply *reply,
                           struct error *reterr)
{
    a->status = reply->status;
    a->retry_after_ms = reply->retry_after_ms;
    if (upstream_message(buf_str(&reply->body), reply->body.len, &a->refusal) < 0)
        return error_no_memory(reterr);
    return stream_fail(s, reply->status, buf_str(&a->refusal), reterr);
}

static void reply_done(struct http_reply *reply)
{
    buf_done(&reply->body);
}

static int attempt_send(struct attempt *a, struct llm_stream *s, struct error *reterr)
{
    auto_cleanup(reply_done) struct http_reply reply = {.retry_after_ms = -1};
    char url[URL_SIZE];
    int64_t left = a->deadline - clock_ms();
    int r = url_make(a, s->path, url, reterr);

    if (r < 0)
        return r;
    if (left <= 0)
        return error_set(reterr, ERR_TIMEOUT, "%s took too long", a->provider->title);
    r = http_client_call(a->l->client,
                         &(struct http_call){
                             .size = sizeof(struct http_call),
                             .public_only = a->request->model.public_only,
                             .method = "POST",
                             .url = url,
                             .headers = s->headers,
                             .body = s->body.data,
                             .len = s->body.len,
                             .cancel_fd = a->request->cancel_fd,
                             .total_timeout_ms = (unsigned)left,
                             .reply_max = LLM_REPLY_BYTES,
                             .on_data = attempt_data,
                             .user = s,
                         },
                         &reply, reterr);
    if (r < 0) {
        /* The client does not say whose failure it is; the stream knows its own. */
        s->again = s->failed ? s->again : r == -(int)ERR_UPSTREAM || r == -(int)ERR_PROTOCOL;
        return s->failed ? r : error_wrap(reterr, "%s", a->provider->title);
    }
    if (reply.status < 200 || reply.status >= 300)
        return attempt_refused(a, s, &reply, reterr);
    return stream_feed(s, NULL, 0, reterr);
}

static int attempt_ask(struct attempt *a, struct llm_stream *s, struct error *reterr)
{
    int r;

    if (a->provider->answer)
        return a->provider->answer(a->request, s, reterr);
    r = a->provider->build(a->request, s, reterr);
    if (r == 0)
        r = stream_header(s, reterr, "Content-Type: application/json");
    return r < 0 ? r : attempt_send(a, s, reterr);
}

static int attempt_make(struct attempt *a, struct llm_reply *ret, struct error *reterr)
{
    auto_stream struct llm_stream s;
    int r;

    stream_init(&s, a->request, a->provider, a->sink, a->arena);
    buf_clear(&a->refusal);
    a->status = 0;
    a->retry_after_ms = -1;
    r = attempt_ask(a, &s, reterr);
    if (r == 0)
        r = stream_reply(&s, ret, reterr);
    a->started = s.started;
    a->again = s.again;
    return r;
}

/* ---- attempts ---- */

static int64_t wait_ms(const struct attempt *a, unsigned attempts)
{
    int64_t wait = (int64_t)WAIT_FIRST_MS << (attempts - 1);
    unsigned jitter = 0;

    if (a->retry_after_ms >= 0)
        return MIN(a->retry_after_ms, (int64_t)WAIT_MAX_MS);
    if (getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK) < 0)
        jitter = 0;
    return wait + jitter % (wait / 2);
}

/* Nothing that was given counts any more. */
static int take_back(const struct attempt *a, struct error *reterr)
{
    struct llm_delta d = {.kind = LLM_DELTA_RETRY};

    return a->started && a->sink->delta ? a->sink->delta(a->sink->user, &d, reterr) : 0;
}

static int retry_wait(const struct attempt *a, unsigned attempts, struct error *reterr)
{
    int64_t deadline = clock_deadline(wait_ms(a, attempts));
    int r = take_back(a, reterr);

    if (r < 0)
        return r;
    if (fd_wait(a->request->cancel_fd, POLLIN, MIN(deadline, a->deadline)) > 0)
        return error_set(reterr, ERR_CANCELLED, "cancelled");
    return 0;
}

/* A service that wants more patience than all attempts have is not asked again. */
static bool is_worth_it(const struct attempt *a, unsigned attempts)
{
    return a->again && attempts <= LLM_RETRIES &&
           a->retry_after_ms <= (int64_t)LLM_RETRIES * WAIT_MAX_MS && clock_ms() < a->deadline;
}

static int attempts_make(struct attempt *a, unsigned *attempts, struct llm_reply *ret,
                         struct error *reterr)
{
    for (;;) {
        struct error failure = {0};
        int r = attempt_make(a, ret, &failure);

        ++*attempts;
        if (r < 0 && is_worth_it(a, *attempts)) {
            r = retry_wait(a, *attempts, reterr);
            if (r < 0)
                return r;
            continue;
        }
        if (r < 0 && reterr)
            *reterr = failure;
        return r;
    }
}

/* ---- images ---- */

static size_t images_count(const struct llm_request *request)
{
    size_t count = 0;

    for (size_t i = 0; i < request->message_count; i++) {
        for (size_t k = 0; k < request->messages[i].part_count; k++)
            count += request->messages[i].parts[k].kind == LLM_IMAGE;
    }
    return count;
}

static bool parts_strip(const struct llm_message *from, struct arena *arena, struct llm_message *to)
{
    struct llm_part *parts = arena_alloc(arena, from->part_count * sizeof(*parts));

    if (!parts)
        return false;
    for (size_t i = 0; i < from->part_count; i++) {
        parts[i] = from->parts[i];
        if (parts[i].kind == LLM_IMAGE)
            parts[i] = (struct llm_part){
                .kind = LLM_TEXT,
                .text = "[An image was here; this model cannot see images.]\n",
            };
    }
    to->parts = parts;
    return true;
}

/* The request with a note in the place of each image. */
static int images_strip(const struct llm_request *from, struct arena *arena,
                        struct llm_request *ret, struct error *reterr)
{
    struct llm_message *messages = arena_alloc(arena, from->message_count * sizeof(*messages));

    if (!messages)
        return error_no_memory(reterr);
    for (size_t i = 0; i < from->message_count; i++) {
        messages[i] = from->messages[i];
        if (messages[i].part_count && !parts_strip(&from->messages[i], arena, &messages[i]))
            return error_no_memory(reterr);
    }
    *ret = *from;
    ret->messages = messages;
    return 0;
}

static int ask_blind(struct attempt *a, unsigned *attempts, struct llm_reply *ret,
                     struct error *reterr)
{
    const struct llm_request *seeing = a->request;
    struct llm_request blind;
    int r = images_strip(seeing, a->arena, &blind, reterr);

    if (r < 0)
        return r;
    a->request = &blind;
    r = attempts_make(a, attempts, ret, reterr);
    a->request = seeing;
    ret->without_images = r == 0;
    return r;
}

static int ask_seeing(struct attempt *a, unsigned *attempts, struct llm_reply *ret,
                      struct error *reterr)
{
    const struct llm_model *model = &a->request->model;
    struct error failure = {0};
    bool about_picture;
    int r = attempts_make(a, attempts, ret, &failure);

    if (r == 0) {
        vision_keep(a->l, model, LLM_VISION_YES);
        return 0;
    }
    if (!vision_is_refusal(a->status, buf_str(&a->refusal))) {
        if (reterr)
            *reterr = failure;
        return r;
    }
    about_picture = vision_is_about_picture(buf_str(&a->refusal));
    r = ask_blind(a, attempts, ret, reterr);
    if (r == 0 && !about_picture)
        vision_keep(a->l, model, LLM_VISION_NO);
    return r;
}

int llm_call(struct llm *l, const struct llm_request *request, llm_delta_fn *delta, void *user,
             struct arena *arena, struct llm_reply *ret, struct error *reterr)
{
    const char *provider = request->model.provider ? request->model.provider : "";
    auto_cleanup(attempt_done) struct attempt a = {
        .l = l,
        .request = request,
        .provider = provider_find(provider),
        .sink = &(struct llm_sink){delta, user},
        .arena = arena,
        .deadline = clock_deadline(CALL_MS),
        .refusal = {.max = 64 * KIB},
    };
    struct llm_reply reply = {0};
    unsigned attempts = 0;
    int r;

    if (!a.provider)
        return error_set(reterr, ERR_INVALID, "there is no model provider '%.60s'", provider);
    if (!a.provider->answer && (!request->model.name || !*request->model.name))
        return error_set(reterr, ERR_INVALID, "no model is named");
    if (a.provider->answer || !images_count(request))
        r = attempts_make(&a, &attempts, &reply, reterr);
    else if (llm_vision_get(l, &request->model) == LLM_VISION_NO)
        r = ask_blind(&a, &attempts, &reply, reterr);
    else
        r = ask_seeing(&a, &attempts, &reply, reterr);
    if (r < 0)
        return r;
    reply.attempts = attempts;
    *ret = reply;
    return 0;
}
