/* SPDX-License-Identifier: MIT */
/*
 * A model is asked over a service that limits, fails, cuts and hangs. The service of these tests
 * answers each request with the next step of a script, and keeps what it was asked.
 */
#include "llm/llm.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/client.h"
#include "tests/lib/test.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { STEPS_MAX = 8, REQUEST_MAX = 65536, LATE_MS = 20000 };

/* What the service does once the reply is sent. */
enum then { THEN_CLOSE, THEN_HANG, THEN_REPEAT };

struct step {
    const char *reply;
    enum then then;
    const char *more; /* what is repeated until nobody takes it */
    bool cancels;     /* makes the caller's descriptor readable, once it is asked */
};

#define HEAD(status, headers) "HTTP/1.1 " status "\r\nConnection: close\r\n" headers "\r\n"
#define STREAM HEAD("200 OK", "Content-Type: text/event-stream\r\n")
#define TEXT(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define DONE "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
#define ANSWER STREAM TEXT("hello") DONE
#define REFUSAL(status, message) \
    HEAD(status, "retry-after-ms: 1\r\nContent-Type: application/json\r\n") \
    "{\"error\":{\"message\":\"" message "\"}}"

struct service {
    int fd, stop, cancel;
    uint16_t port;
    pthread_t thread;
    bool runs;
    const struct step *steps;
    atomic_uint asked;
    atomic_llong cancelled_at;
    char *requests[STEPS_MAX];
};

/* ---- the service ---- */

static bool service_waits(const struct service *s, int fd, short events)
{
    struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = s->stop, .events = POLLIN}};

    return poll(p, 2, LATE_MS) > 0 && !p[1].revents && !(p[0].revents & (POLLERR | POLLHUP));
}

static bool service_send(const struct service *s, int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n =
            service_waits(s, fd, POLLOUT) ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;

        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Whether a request is whole. */
static bool request_is_whole(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");
    int64_t want = 0;
    char digits[16];

    if (!end || !length)
        return end;
    length += strlen("content-length:");
    length += strspn(length, " ");
    snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(length, "\r"), length);
    return str_parse_int(digits, 0, REQUEST_MAX, &want) == 0 && (int64_t)strlen(end + 4) >= want;
}

static char *request_read(const struct service *s, int fd)
{
    char *text = calloc(1, REQUEST_MAX + 1);
    size_t len = 0;

    while (text && !request_is_whole(text) && len < REQUEST_MAX && service_waits(s, fd, POLLIN)) {
        ssize_t n = recv(fd, text + len, REQUEST_MAX - len, 0);

        if (n <= 0)
            break;
        len += (size_t)n;
    }
    return text;
}

static void step_take(struct service *s, int fd, const struct step *step)
{
    bool taken = service_send(s, fd, step->reply, strlen(step->reply));

    if (step->cancels) {
        atomic_store(&s->cancelled_at, clock_ms());
        if (eventfd_write(s->cancel, 1) < 0)
            return;
    }
    while (taken && step->then == THEN_REPEAT)
        taken = service_send(s, fd, step->more, strlen(step->more));
    if (taken && step->then == THEN_HANG && service_waits(s, fd, POLLIN))
        return; /* the client has left */
}

static void *service_run(void *arg)
{
    struct service *s = arg;

    for (unsigned i = 0; i < STEPS_MAX && service_waits(s, s->fd, POLLIN); i++) {
        auto_fd int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            break;
        s->requests[i] = request_read(s, fd);
        atomic_fetch_add(&s->asked, 1);
        if (!s->steps[i].reply)
            break;
        step_take(s, fd, &s->steps[i]);
    }
    return NULL;
}

/* ---- the caller ---- */

struct world {
    struct service service;
    struct http_client *client;
    struct llm *llm;
    struct arena arena;
    struct buf deltas;
    struct llm_reply reply;
    struct error err;
    bool refuse; /* deltas */
    char base[64];
};

static void service_end(struct service *s)
{
    if (s->runs && eventfd_write(s->stop, 1) == 0)
        pthread_join(s->thread, NULL);
    s->runs = false;
}

static void world_done(struct world *w)
{
    service_end(&w->service);
    for (size_t i = 0; i < STEPS_MAX; i++)
        free(w->service.requests[i]);
    fd_close_all((int[]){w->service.fd, w->service.stop, w->service.cancel}, 3);
    llm_free(w->llm);
    http_client_free(w->client);
    arena_done(&w->arena);
    buf_done(&w->deltas);
}
#define auto_world __attribute__((cleanup(world_done)))

static void world_open(struct world *w, const struct step *steps)
{
    struct http_client_options options = {.size = sizeof(options)};
    struct sockaddr_in sa = {.sin_family = AF_INET};
    struct service *s = &w->service;
    socklen_t len = sizeof(sa);

    s->fd = s->stop = s->cancel = -1;
    if (test_is_torture())
        test_skip("a service that runs in a thread");
    arena_init(&w->arena, 256 * MIB);
    buf_init(&w->deltas, 64 * MIB);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->stop = eventfd(0, EFD_CLOEXEC);
    s->cancel = eventfd(0, EFD_CLOEXEC);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&sa, len) == 0 &&
                listen(s->fd, 8) == 0 && getsockname(s->fd, (struct sockaddr *)&sa, &len) == 0);
    snprintf(w->base, sizeof(w->base), "http://127.0.0.1:%u/v1/", ntohs(sa.sin_port));
    s->steps = steps;
    s->runs = pthread_create(&s->thread, NULL, service_run, s) == 0;
    assert_true(s->runs);
    assert_ok(http_client_new(&options, &w->client, &w->err), w->err);
    assert_ok(llm_new(w->client, &w->llm, &w->err), w->err);
}

static int delta_take(void *user, const struct llm_delta *d, struct error *reterr)
{
    static const char *const kinds[] = {[LLM_DELTA_TEXT] = "+",
                                        [LLM_DELTA_REASONING] = "~",
                                        [LLM_DELTA_CALL] = "@",
                                        [LLM_DELTA_ARGUMENTS] = "=",
                                        [LLM_DELTA_RETRY] = "!"};
    struct world *w = user;

    if (w->refuse)
        return error_set(reterr, ERR_DISK, "no room");
    if (buf_printf(&w->deltas, "%s%s", kinds[d->kind],
                   d->text   ? d->text
                   : d->name ? d->name
                             : "") < 0)
        return error_no_memory(reterr);
    return 0;
}

static int ask_parts(struct world *w, const struct llm_part *parts, size_t count)
{
    const struct llm_message message = {.role = LLM_USER, .parts = parts, .part_count = count};
    const struct llm_request request = {
        .size = sizeof(request),
        .model = {.provider = "openai-compatible",
                  .name = "m",
                  .base_url = w->base,
                  .api_key = "key-0123456789"},
        .messages = &message,
        .message_count = 1,
        .cancel_fd = w->service.cancel,
    };

    w->err = (struct error){0};
    return llm_call(w->llm, &request, delta_take, w, &w->arena, &w->reply, &w->err);
}

static int ask(struct world *w)
{
    return ask_parts(w, &(struct llm_part){.kind = LLM_TEXT, .text = "hi"}, 1);
}

static int ask_image(struct world *w)
{
    const struct llm_part parts[] = {{.kind = LLM_TEXT, .text = "what is this?"},
                                     {.kind = LLM_IMAGE, .mime = "image/png", .data = "QUJD"}};

    return ask_parts(w, parts, 2);
}

/* As learnt of the model that is asked. */
static enum llm_vision vision(struct world *w)
{
    return llm_vision_get(
        w->llm,
        &(struct llm_model){.provider = "openai-compatible", .name = "m", .base_url = w->base});
}

#define assert_asked(w, count) assert_uint_eq(atomic_load(&(w)->service.asked), count)

/* ---- answers ---- */

TEST(call_gives_deltas_and_the_reply)
{
    static const struct step steps[] = {{STREAM TEXT("hel") TEXT("lo") DONE}, {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_ok(ask(&w), w.err);
    assert_str_eq(buf_str(&w.deltas), "+hel+lo");
    assert_uint_eq(w.reply.part_count, 1);
    assert_str_eq(w.reply.parts[0].text, "hello");
    assert_str_eq(w.reply.finish_reason, "stop");
    assert_uint_eq(w.reply.attempts, 1);
    service_end(&w.service);
    assert_true(str_starts(w.service.requests[0], "POST /v1/chat/completions HTTP/1.1\r\n"));
    assert_str_has(w.service.requests[0], "Authorization: Bearer key-0123456789\r\n");
    assert_str_has(w.service.requests[0], "Content-Type: application/json\r\n");
}

TEST(call_mends_text_that_is_no_utf8)
{
    static const struct step steps[] = {{STREAM TEXT("a\xff") TEXT("\\ud83d") DONE}, {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_ok(ask(&w), w.err);
    assert_str_eq(w.reply.parts[0].text, "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(call_waits_as_long_as_it_is_told)
{
    static const struct step steps[] = {
        {HEAD("429 Too Many Requests", "Retry-After: 1\r\nContent-Length: 0\r\n")},
        {ANSWER},
        {NULL}};
    auto_world struct world w = {};
    int64_t from = clock_ms();

    world_open(&w, steps);
    assert_ok(ask(&w), w.err);
    assert_uint_eq(w.reply.attempts, 2);
    assert_true(clock_ms() - from >= 1000);
    assert_str_eq(buf_str(&w.deltas), "+hello");
}

TEST(call_gives_up_after_some_attempts)
{
    static const struct step step = {REFUSAL("500 Oops", "it broke")};
    const struct step steps[STEPS_MAX] = {step, step, step, step, step};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_true(ask(&w) < 0);
    assert_int_eq(w.err.code, ERR_UPSTREAM);
    assert_str_eq(w.err.text, "OpenAI answered 500: it broke");
    assert_asked(&w, 1 + LLM_RETRIES);
}

TEST(call_does_not_wait_for_hours)
{
    static const struct step steps[] = {
        {HEAD("429 Too Many Requests", "Retry-After: 3000\r\nContent-Length: 0\r\n")}, {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_true(ask(&w) < 0);
    assert_int_eq(w.err.code, ERR_LIMIT);
    assert_asked(&w, 1);
}

TEST(call_takes_back_what_an_answer_that_was_cut_gave)
{
    static const struct step steps[] = {
        {STREAM TEXT("hal")},
        {HEAD("200 OK", "Transfer-Encoding: chunked\r\n") "3e8\r\n" TEXT("half")},
        {ANSWER},
        {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_ok(ask(&w), w.err);
    assert_str_eq(buf_str(&w.deltas), "+hal!+half!+hello");
    assert_uint_eq(w.reply.attempts, 3);
    assert_uint_eq(w.reply.part_count, 1);
    assert_str_eq(w.reply.parts[0].text, "hello");
}

TEST(call_ends_with_the_failure_of_who_takes_the_deltas)
{
    static const struct step steps[] = {{ANSWER}, {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    w.refuse = true;
    assert_true(ask(&w) < 0);
    assert_int_eq(w.err.code, ERR_DISK);
    assert_asked(&w, 1);
}

TEST(call_tells_refusals_apart_and_never_the_key)
{
    static const struct {
        const char *reply;
        enum error_code code;
        const char *text;
    } cases[] = {
        {REFUSAL("401 Unauthorized", "Incorrect API key provided: key-0123456789."), ERR_DENIED,
         "OpenAI answered 401: Incorrect API key provided: ***."},
        {REFUSAL("403 Forbidden", "not key-**89 either"), ERR_DENIED,
         "OpenAI answered 403: not *** either"},
        {REFUSAL("400 Bad Request", "two\\nlines"), ERR_INVALID, "OpenAI answered 400: two lines"},
        {HEAD("404 Not Found", "") "<html>key-0123456789</html>", ERR_INVALID,
         "OpenAI answered 404"},
        {HEAD("302 Found", "Location: http://127.0.0.1:1/\r\n"), ERR_UPSTREAM,
         "OpenAI answered 302"},
        {HEAD("418 Teapot", "") "short and stout", ERR_UPSTREAM,
         "OpenAI answered 418: short and stout"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct step steps[] = {{cases[i].reply}, {NULL}};
        auto_world struct world w = {};

        world_open(&w, steps);
        assert_true(ask(&w) < 0);
        assert_str_eq(w.err.text, cases[i].text);
        assert_int_eq(w.err.code, cases[i].code);
        assert_asked(&w, 1);
    }
}

/* AGT-09: whatever a service sends, it is bounded. */
TEST(call_bounds_what_a_service_sends)
{
    static char line[256 * KIB + 1], event[256 * KIB + 1], comment[256 * KIB + 1];
    const struct step text[] = {{STREAM, THEN_REPEAT, event}, {NULL}};
    const struct step endless[] = {{STREAM "data: ", THEN_REPEAT, line}, {NULL}};
    const struct step comments[] = {{STREAM, THEN_REPEAT, comment}, {NULL}};
    const struct step *const all[] = {text, endless, comments};

    memset(line, 'x', sizeof(line) - 1);
    memset(event, 'x', sizeof(event) - 1);
    memset(comment, 'x', sizeof(comment) - 1);
    comment[0] = ':';
    comment[sizeof(comment) - 2] = '\n';
    memcpy(event, TEXT(""), strlen("data: {\"choices\":[{\"delta\":{\"content\":\""));
    memcpy(event + sizeof(event) - 1 - strlen("\"}}]}\n\n"), "\"}}]}\n\n", strlen("\"}}]}\n\n"));
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        auto_world struct world w = {};

        world_open(&w, all[i]);
        assert_true(ask(&w) < 0);
        assert_int_eq(w.err.code, ERR_LIMIT);
        assert_asked(&w, 1);
    }
}

/* ---- cancelling ---- */

static void ends_at_once(const struct step *steps, unsigned asked)
{
    auto_world struct world w = {};
    int64_t late;

    world_open(&w, steps);
    assert_true(ask(&w) < 0);
    late = clock_ms() - atomic_load(&w.service.cancelled_at);
    assert_int_eq(w.err.code, ERR_CANCELLED);
    assert_asked(&w, asked);
    if (late >= 100)
        test_fail(__FILE__, __LINE__, "cancelled %lld ms late", (long long)late);
}

TEST(call_is_cancelled_before_the_first_byte)
{
    ends_at_once((struct step[]){{"", THEN_HANG, .cancels = true}, {NULL}}, 1);
}

TEST(call_is_cancelled_in_the_middle)
{
    ends_at_once((struct step[]){{STREAM TEXT("x"), THEN_HANG, .cancels = true}, {NULL}}, 1);
}

TEST(call_is_cancelled_while_it_waits_for_another_attempt)
{
    ends_at_once((struct step[]){{HEAD("503 Busy", "Retry-After: 20\r\nContent-Length: 0\r\n"),
                                  THEN_CLOSE, .cancels = true},
                                 {NULL}},
                 1);
}

/* ---- images ---- */

TEST(call_learns_that_a_model_takes_images)
{
    static const struct step steps[] = {{ANSWER}, {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_int_eq(vision(&w), LLM_VISION_UNKNOWN);
    assert_ok(ask_image(&w), w.err);
    assert_int_eq(vision(&w), LLM_VISION_YES);
    assert_false(w.reply.without_images);
}

TEST(call_learns_that_a_model_takes_none)
{
    static const struct step steps[] = {
        {REFUSAL("400 Bad Request", "this model does not support image_url content")},
        {ANSWER},
        {ANSWER},
        {NULL}};
    auto_world struct world w = {};

    world_open(&w, steps);
    assert_ok(ask_image(&w), w.err);
    assert_true(w.reply.without_images);
    assert_uint_eq(w.reply.attempts, 2);
    assert_int_eq(vision(&w), LLM_VISION_NO);
    assert_ok(ask_image(&w), w.err);
    assert_true(w.reply.without_images);
    assert_uint_eq(w.reply.attempts, 1);
    /* Of this model at this place only. */
    assert_int_eq(llm_vision_get(w.llm, &(struct llm_model){"openai-compatible", "m", NULL, NULL}),
                  LLM_VISION_UNKNOWN);
    service_end(&w.service);
    assert_str_has(w.service.requests[0], "QUJD");
    for (int i = 1; i < 3; i++) {
        assert_null(strstr(w.service.requests[i], "QUJD"));
        assert_str_has(w.service.requests[i], "An image was here");
    }
}

/* AGT-10: a limit, a broken server or a picture that is too large says nothing about the model. */
TEST(call_learns_nothing_from_failures_that_pass)
{
    static const struct step limit = {REFUSAL("429 Slow", "too many image requests")};
    static const struct step broken = {REFUSAL("500 Oops", "image worker crashed")};
    static const struct {
        struct step steps[STEPS_MAX];
        bool fails;
        unsigned asked;
    } cases[] = {
        {{limit, limit, limit, limit}, true, 4},
        {{broken, broken, broken, broken}, true, 4},
        {{{REFUSAL("400 Bad Request", "no such parameter")}}, true, 1},
        {{{REFUSAL("400 Bad Request", "image exceeds 5 MB")}, {ANSWER}}, false, 2},
        {{{REFUSAL("400 Bad Request", "images are not supported")},
          {REFUSAL("400 Bad Request", "images are not supported")}},
         true,
         2},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_world struct world w = {};

        world_open(&w, cases[i].steps);
        assert_true((ask_image(&w) < 0) == cases[i].fails);
        assert_asked(&w, cases[i].asked);
        assert_int_eq(vision(&w), LLM_VISION_UNKNOWN);
    }
}

/* ---- without a service ---- */

TEST(call_refuses_what_it_does_not_know)
{
    auto_arena struct arena arena = {.max = MIB};
    struct llm_request request = {.size = sizeof(request), .cancel_fd = -1};
    struct llm_reply reply;
    struct error err = {};

    request.model.provider = "nobody";
    assert_true(llm_call(NULL, &request, NULL, NULL, &arena, &reply, &err) < 0);
    assert_str_eq(err.text, "there is no model provider 'nobody'");
    request.model.provider = "Claude";
    assert_true(llm_call(NULL, &request, NULL, NULL, &arena, &reply, &err) < 0);
    assert_str_eq(err.text, "no model is named");
}
