/* SPDX-License-Identifier: MIT */
/* Control connections against a peer that plays init: greeting, calls, credit, and every way in
 * which a connection and its sinks can end. */
#include "engine/control.h"

#include "base/str.h"
#include "tests/lib/peer.h"

struct link {
    struct peer peer;
    struct control *control;
};

static void link_done(struct link *l)
{
    control_free(l->control);
    peer_done(&l->peer);
}

#define auto_link __attribute__((cleanup(link_done)))

/* Which call fails is a matter of chance among threads, and a lost one is waited for. */
static void torture_skip(void)
{
    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
}

static int link_begin(struct link *l, const char *version)
{
    int fd;

    torture_skip();
    fd = peer_init(&l->peer);
    assert_true(fd >= 0);
    peer_welcome_add(&l->peer, "version", version);
    peer_welcome_add(&l->peer, "last_stream", "41");
    peer_welcome_add(&l->peer, "kernel", "none");
    peer_start(&l->peer);
    return fd;
}

static void link_open(struct link *l)
{
    struct error err;
    int fd = link_begin(l, PROTOCOL_VERSION);

    assert_ok(control_new(fd, clock_deadline(PEER_WAIT_MS), &l->control, &err), err);
}

/* A sink that counts. */
struct counter {
    struct control_sink sink;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned frames, lost, slow_ms;
    bool one;             /* over after one frame */
    struct control *free; /* freed from within */
};

static void counter_tell(struct counter *c, unsigned *what)
{
    if (c->slow_ms)
        usleep(c->slow_ms * 1000);
    pthread_mutex_lock(&c->lock);
    *what += 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static bool counter_frame(struct control_sink *sink, const struct frame *f)
{
    struct counter *c = (struct counter *)sink;
    bool one = c->one;

    if (c->free)
        control_free(TAKE_PTR(c->free));
    counter_tell(c, &c->frames);
    return one;
}

static void counter_lost(struct control_sink *sink, const struct error *why)
{
    struct counter *c = (struct counter *)sink;

    counter_tell(c, &c->lost);
}

static struct counter counter_make(void)
{
    return (struct counter){.sink = {.frame = counter_frame, .lost = counter_lost},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
}

static void counter_await(struct counter *c, const unsigned *what, unsigned count)
{
    int64_t until = clock_wall_ms() + PEER_WAIT_MS;
    struct timespec ts = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    int r = 0;

    pthread_mutex_lock(&c->lock);
    while (*what < count && r == 0)
        r = pthread_cond_timedwait(&c->changed, &c->lock, &ts);
    r = *what >= count;
    pthread_mutex_unlock(&c->lock);
    assert_true(r);
}

static int status_call(struct control *c, struct error *reterr)
{
    return control_call(
        c,
        &(struct control_request){.type = FRAME_STATUS, .deadline = clock_deadline(PEER_WAIT_MS)},
        reterr);
}

/* ---- greeting ---- */

TEST(a_connection_knows_its_welcome_and_numbers_streams_above_it)
{
    auto_link struct link l = {};
    struct counter c = counter_make();
    struct fields welcome;
    struct field kernel;

    link_open(&l);
    assert_str_eq(peer_field(peer_take(&l.peer, FRAME_HELLO), "version"), PROTOCOL_VERSION);
    welcome = control_welcome(l.control);
    assert_true(fields_find(&welcome, "kernel", &kernel));
    assert_uint_eq(kernel.len, 4);
    control_attach_sink(l.control, &c.sink, 0);
    assert_uint_eq(c.sink.stream, 42);
    assert_false(control_is_lost(l.control));
    control_detach_sink(l.control, &c.sink);
}

TEST(another_version_is_refused_by_name)
{
    auto_link struct link l = {};
    struct error err;
    int fd = link_begin(&l, "77");

    assert_int_eq(control_new(fd, clock_deadline(PEER_WAIT_MS), &l.control, &err), -ERR_PROTOCOL);
    assert_str_has(err.text, "77");
}

TEST(a_peer_that_says_nothing_is_waited_for_until_the_deadline)
{
    struct control *c = NULL;
    struct error err;
    int ends[2];

    torture_skip();
    assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_eq(control_new(ends[0], clock_deadline(50), &c, &err), -ERR_TIMEOUT);
    close(ends[1]);
}

TEST(a_peer_that_ends_or_says_another_thing_is_no_sandbox)
{
    static const struct {
        uint8_t type;
        const char *payload;
        int code;
    } cases[] = {
        {0, "", ERR_DIED},
        {FRAME_STDOUT, "hello", ERR_PROTOCOL},
        {FRAME_EXEC, "", ERR_PROTOCOL},
        {FRAME_WELCOME, "\7garbage", ERR_PROTOCOL},
        {FRAME_WELCOME, "", ERR_PROTOCOL},
    };

    torture_skip();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct control *c = NULL;
        struct error err;
        int ends[2];

        assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        if (cases[i].type)
            peer_send_text(&(struct peer){.fd = ends[1]}, cases[i].type, 0, cases[i].payload);
        shutdown(ends[1], SHUT_WR);
        assert_int_eq(control_new(ends[0], clock_deadline(PEER_WAIT_MS), &c, &err), -cases[i].code);
        close(ends[1]);
    }
}

/* ---- calls ---- */

struct caller {
    struct control *control;
    pthread_t thread;
    int result;
    struct error error;
};

static void *caller_main(void *arg)
{
    struct caller *c = arg;

    c->result = status_call(c->control, &c->error);
    return NULL;
}

static void caller_start(struct caller *c, struct control *control)
{
    c->control = control;
    assert_int_eq(pthread_create(&c->thread, NULL, caller_main, c), 0);
}

TEST(the_end_of_a_call_is_its_result)
{
    static const struct {
        const char *pairs[4];
        int code;
        const char *text;
    } cases[] = {
        {{"status=ok"}, ERR_OK, ""},
        {{"status=error", "errno=2", "message=no such file"}, ERR_NOT_FOUND, "no such file"},
        {{"status=error", "errno=28", "message=no space"}, ERR_DISK, "no space"},
        {{"status=error", "errno=13", "message=not allowed"}, ERR_SYSTEM, "not allowed"},
        {{"status=died", "cause=exit:3"}, ERR_DIED, "died (exit:3)"},
        {{"status=error"}, ERR_SYSTEM, "error"},
        {{"status=error", "cause=exit:1"}, ERR_SYSTEM, "error (exit:1)"},
        {{"status=timeout", "cause=timeout"}, ERR_TIMEOUT, "timeout"},
        {{"status=interrupted", "cause=user"}, ERR_CANCELLED, "interrupted"},
        {{"errno=x"}, ERR_PROTOCOL, ""},
    };
    auto_link struct link l = {};

    link_open(&l);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct caller c = {};

        caller_start(&c, l.control);
        peer_end(&l.peer, peer_take(&l.peer, FRAME_STATUS)->stream, cases[i].pairs);
        pthread_join(c.thread, NULL);
        assert_int_eq(c.result, -cases[i].code);
        if (cases[i].code)
            assert_str_has(c.error.text, cases[i].text);
    }
}

TEST(calls_from_many_threads_get_their_own_answers)
{
    enum { CALLERS = 8 };
    auto_link struct link l = {};
    struct caller callers[CALLERS] = {};
    uint32_t streams[CALLERS];
    int failed = 0;

    link_open(&l);
    for (size_t i = 0; i < CALLERS; i++)
        caller_start(&callers[i], l.control);
    for (size_t i = 0; i < CALLERS; i++)
        streams[i] = peer_take(&l.peer, FRAME_STATUS)->stream;
    for (size_t i = CALLERS; i-- > 0;) {
        for (size_t other = 0; other < i; other++)
            assert_true(streams[i] != streams[other]);
        if (i % 2)
            peer_end_with(&l.peer, streams[i], "status=ok");
        else
            peer_end_with(&l.peer, streams[i], "status=error", "message=odd one out");
    }
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        failed += callers[i].result < 0;
    }
    assert_int_eq(failed, CALLERS / 2);
}

TEST(a_call_without_an_answer_is_stopped_and_its_stream_forgotten)
{
    auto_link struct link l = {};
    struct peer_frame *call;
    struct error err;

    link_open(&l);
    assert_int_eq(control_call(l.control,
                               &(struct control_request){.type = FRAME_STATUS,
                                                         .deadline = clock_deadline(30)},
                               &err),
                  -ERR_TIMEOUT);
    call = peer_take(&l.peer, FRAME_STATUS);
    assert_uint_eq(peer_take(&l.peer, FRAME_KILL)->stream, call->stream);
    peer_end_with(&l.peer, call->stream, "status=ok");
    l.peer.ends_cells = true;
    assert_ok(control_call(l.control,
                           &(struct control_request){.type = FRAME_SPAWN,
                                                     .deadline = clock_deadline(PEER_WAIT_MS)},
                           &err),
              err);
}

TEST(a_process_of_a_call_is_acknowledged)
{
    auto_link struct link l = {};
    struct error err;

    link_open(&l);
    l.peer.ends_cells = true;
    assert_ok(control_call(l.control,
                           &(struct control_request){.type = FRAME_SPAWN,
                                                     .deadline = clock_deadline(PEER_WAIT_MS)},
                           &err),
              err);
    assert_uint_eq(peer_take(&l.peer, FRAME_ACK)->stream, peer_take(&l.peer, FRAME_SPAWN)->stream);
}

TEST(a_connection_that_is_lost_fails_the_call_and_all_later_ones)
{
    auto_link struct link l = {};
    struct caller c = {};
    struct error err;

    link_open(&l);
    caller_start(&c, l.control);
    peer_take(&l.peer, FRAME_STATUS);
    peer_hang_up(&l.peer);
    pthread_join(c.thread, NULL);
    assert_int_eq(c.result, -ERR_DIED);
    assert_int_eq(status_call(l.control, &err), -ERR_DIED);
    assert_true(control_is_lost(l.control));
    assert_int_eq(status_call(l.control, NULL), -ERR_DIED);
}

static bool two_taken(void *user, const struct frame *f)
{
    return ++*(int *)user < 2;
}

static void *data_main(void *arg)
{
    struct peer *p = arg;
    struct peer_frame *read = peer_take_within(p, FRAME_FILE_READ, PEER_WAIT_MS);

    for (int i = 0; read && i < 5; i++)
        peer_send_text(p, FRAME_DATA, read->stream, "piece");
    if (read && peer_take_within(p, FRAME_KILL, PEER_WAIT_MS))
        peer_end_with(p, read->stream, "status=interrupted", "cause=user");
    return NULL;
}

TEST(a_caller_that_has_enough_stops_the_rest)
{
    auto_link struct link l = {};
    struct error err;
    pthread_t thread;
    int taken = 0;

    link_open(&l);
    assert_int_eq(pthread_create(&thread, NULL, data_main, &l.peer), 0);
    assert_int_eq(control_call(l.control,
                               &(struct control_request){.type = FRAME_FILE_READ,
                                                         .on_frame = two_taken,
                                                         .user = &taken,
                                                         .deadline = clock_deadline(PEER_WAIT_MS)},
                               &err),
                  -ERR_CANCELLED);
    pthread_join(thread, NULL);
    assert_int_eq(taken, 2);
}

/* ---- sinks ---- */

TEST(credit_is_given_for_what_was_taken)
{
    static char chunk[FRAME_BULK_MAX];
    auto_link struct link l = {};
    struct counter c = counter_make();
    size_t frames = FRAME_WINDOW / FRAME_BULK_MAX;
    int64_t given = 0;

    link_open(&l);
    control_attach_sink(l.control, &c.sink, 7);
    for (size_t i = 0; i < frames; i++)
        peer_send(&l.peer, FRAME_STDOUT, 7, chunk, sizeof(chunk));
    while (given < FRAME_WINDOW) {
        struct peer_frame *credit = peer_take(&l.peer, FRAME_CREDIT);
        int64_t bytes;

        assert_uint_eq(credit->stream, 7);
        assert_int_eq(str_parse_int(peer_field(credit, "bytes"), 1, FRAME_WINDOW, &bytes), 0);
        given += bytes;
    }
    assert_int_eq(given, FRAME_WINDOW);
    counter_await(&c, &c.frames, (unsigned)frames);
    control_detach_sink(l.control, &c.sink);
}

TEST(a_sink_that_holds_its_credit_gives_it_itself)
{
    char chunk[FRAME_BULK_MAX] = "x";
    auto_link struct link l = {};
    struct counter c = counter_make();
    int64_t bytes;

    link_open(&l);
    c.sink.holds_credit = true;
    control_attach_sink(l.control, &c.sink, 7);
    for (size_t i = 0; i < FRAME_WINDOW / sizeof(chunk); i++)
        peer_send(&l.peer, FRAME_DATA, 7, chunk, sizeof(chunk));
    counter_await(&c, &c.frames, FRAME_WINDOW / sizeof(chunk));
    assert_null(peer_take_within(&l.peer, FRAME_CREDIT, 50));
    control_credit(l.control, &c.sink, 1000); /* not worth a frame */
    assert_null(peer_take_within(&l.peer, FRAME_CREDIT, 50));
    control_credit(l.control, &c.sink, FRAME_WINDOW / 4);
    assert_int_eq(str_parse_int(peer_field(peer_take(&l.peer, FRAME_CREDIT), "bytes"), 1,
                                FRAME_WINDOW, &bytes),
                  0);
    assert_int_eq(bytes, FRAME_WINDOW / 4 + 1000);
    control_detach_sink(l.control, &c.sink);
}

TEST(a_large_frame_comes_whole_and_its_buffer_is_given_back)
{
    size_t size = 40 * 1024 * 1024;
    auto_free char *data = calloc(1, size);
    auto_link struct link l = {};
    struct counter c = counter_make();

    link_open(&l);
    assert_not_null(data);
    control_attach_sink(l.control, &c.sink, 7);
    peer_send(&l.peer, FRAME_DISPLAY, 7, data, size);
    peer_send_text(&l.peer, FRAME_STDOUT, 7, "after");
    counter_await(&c, &c.frames, 2);
    control_detach_sink(l.control, &c.sink);
}

TEST(frames_of_no_sink_are_passed_over)
{
    auto_link struct link l = {};
    struct counter c = counter_make();

    link_open(&l);
    control_attach_sink(l.control, &c.sink, 7);
    peer_send_text(&l.peer, FRAME_STDOUT, 8, "whose?");
    peer_send_text(&l.peer, FRAME_STDOUT, 7, "mine");
    counter_await(&c, &c.frames, 1);
    control_detach_sink(l.control, &c.sink);
    assert_int_eq(c.lost, 0);
}

TEST(a_peer_that_breaks_the_protocol_is_cut_off)
{
    static const char bad[][FRAME_HEADER + 1] = {
        "\0\0\0\0\x7f\1\0\0\0",         /* no such type */
        "\0\0\0\0\1\1\0\0\0",           /* HELLO, from the wrong side */
        "\xff\xff\xff\xff\x41\1\0\0\0", /* too long */
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_link struct link l = {};
        struct counter c = counter_make();

        link_open(&l);
        control_attach_sink(l.control, &c.sink, 1);
        assert_int_eq(send(l.peer.fd, bad[i], FRAME_HEADER, MSG_NOSIGNAL), FRAME_HEADER);
        counter_await(&c, &c.lost, 1);
        assert_int_eq(c.frames, 0);
    }
}

TEST(every_sink_is_told_once_that_the_connection_is_lost)
{
    enum { SINKS = 5 };
    auto_link struct link l = {};
    struct counter counters[SINKS], late = counter_make();

    link_open(&l);
    for (size_t i = 0; i < SINKS; i++) {
        counters[i] = counter_make();
        control_attach_sink(l.control, &counters[i].sink, 0);
    }
    control_detach_sink(l.control, &counters[2].sink);
    peer_hang_up(&l.peer);
    control_cut(l.control);
    for (size_t i = 0; i < SINKS; i++)
        assert_uint_eq(counters[i].lost, i != 2);
    control_attach_sink(l.control, &late.sink, 0);
    assert_uint_eq(late.lost, 1);
    control_cut(l.control);
    assert_uint_eq(late.lost, 1);
}

TEST(detaching_waits_for_the_call_that_is_going_on)
{
    auto_link struct link l = {};
    struct counter c = counter_make();

    link_open(&l);
    c.slow_ms = 50;
    control_attach_sink(l.control, &c.sink, 3);
    for (int i = 0; i < 4; i++)
        peer_send_text(&l.peer, FRAME_STDOUT, 3, "slow");
    counter_await(&c, &c.frames, 1);
    control_detach_sink(l.control, &c.sink);
    /* From here on the counter is this thread's alone. */
    c.slow_ms = c.frames;
    usleep(100000);
    assert_uint_eq(c.frames, c.slow_ms);
    assert_uint_eq(c.lost, 0);
}

TEST(a_connection_may_be_freed_by_its_own_sink)
{
    for (int i = 0; i < 20; i++) {
        auto_link struct link l = {};
        struct counter c = counter_make(), other = counter_make();

        link_open(&l);
        c.one = true;
        control_attach_sink(l.control, &other.sink, 2);
        control_attach_sink(l.control, &c.sink, 1);
        c.free = TAKE_PTR(l.control);
        peer_send_text(&l.peer, FRAME_STDOUT, 1, "last");
        counter_await(&c, &c.frames, 1);
        counter_await(&other, &other.lost, 1);
        assert_uint_eq(c.lost, 0);
    }
}

TEST(sinks_come_and_go_while_the_connection_is_lost)
{
    for (int round = 0; round < 20; round++) {
        auto_link struct link l = {};
        struct counter counters[16];

        link_open(&l);
        for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
            counters[i] = counter_make();
            control_attach_sink(l.control, &counters[i].sink, 0);
            if (i == 8)
                peer_hang_up(&l.peer);
        }
        control_cut(l.control);
        for (size_t i = 0; i < ARRAY_LEN(counters); i++)
            assert_uint_eq(counters[i].lost, 1);
    }
}
