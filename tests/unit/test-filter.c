/* SPDX-License-Identifier: MIT */
/* Filters in a session: what is sent, what comes back, and each way in which it can fail. */
#include "session/filter.h"
#include "tests/lib/fake-engine.h"

/* What the peer does with the program; on its own thread, because the call waits. */
struct script {
    struct peer *peer;
    const char *out, *err;
    size_t repeat; /* of `out` */
    bool fails;
    char argv0[64], input[64];
    size_t input_len;
    pthread_t thread;
};

static void *script_main(void *arg)
{
    struct script *s = arg;
    struct peer_frame *spawn = peer_take_within(s->peer, FRAME_SPAWN, PEER_WAIT_MS), *in;

    if (!spawn)
        return NULL;
    snprintf(s->argv0, sizeof(s->argv0), "%.60s", peer_field(spawn, "argv"));
    while ((in = peer_take_within(s->peer, FRAME_INPUT, PEER_WAIT_MS)) && in->len) {
        if (s->input_len == 0)
            snprintf(s->input, sizeof(s->input), "%.60s", in->text);
        s->input_len += in->len;
    }
    for (size_t i = 0; i < s->repeat; i++)
        peer_send_text(s->peer, FRAME_STDOUT, spawn->stream, s->out);
    if (s->err)
        peer_send_text(s->peer, FRAME_STDERR, spawn->stream, s->err);
    if (s->fails)
        peer_end_with(s->peer, spawn->stream, "status=error", "cause=exit:1");
    else
        peer_end_with(s->peer, spawn->stream, "status=ok");
    return NULL;
}

static int filter_with(struct world *w, const char *id, struct script *s, struct buf *ret,
                       struct error *reterr)
{
    static const char *const argv[] = {"/opt/x", "12", NULL};
    auto_free char *in = malloc(100000);
    int r;

    assert_not_null(in);
    memset(in, 'i', 100000);
    s->peer = fake_peer(&w->engine, 0);
    assert_int_eq(pthread_create(&s->thread, NULL, script_main, s), 0);
    r = session_filter(w->m,
                       &(struct session_filter){
                           .id = id, .argv = argv, .in = in, .in_len = 100000, .timeout_ms = 5000},
                       ret, reterr);
    pthread_join(s->thread, NULL);
    return r;
}

TEST(bytes_go_in_and_come_out)
{
    auto_world struct world w = {};
    struct script s = {.out = "abc", .repeat = 2};
    struct session_info info;
    auto_buf struct buf out;
    struct error err;

    world_init(&w);
    world_start(&w);
    info = world_session(&w, NULL);
    buf_init(&out, 100);
    assert_ok(filter_with(&w, info.id, &s, &out, &err), err);
    assert_str_eq(buf_str(&out), "abcabc");
    assert_str_eq(s.argv0, "/opt/x");
    assert_uint_eq(s.input_len, 100000);
    assert_true(s.input[0] == 'i');
    /* Init keeps the run until it is told that somebody has it. */
    assert_not_null(peer_take(s.peer, FRAME_ACK));
}

TEST(a_failure_has_the_programs_own_reason)
{
    auto_world struct world w = {};
    struct script s = {.out = "", .err = "x: no picture\nmore\n", .fails = true};
    struct session_info info;
    auto_buf struct buf out;
    struct error err;

    world_init(&w);
    world_start(&w);
    info = world_session(&w, NULL);
    buf_init(&out, 100);
    assert_true(filter_with(&w, info.id, &s, &out, &err) < 0);
    assert_str_eq(err.text, "x: no picture");
}

TEST(too_much_output_stops_it)
{
    auto_world struct world w = {};
    struct script s = {.out = "0123456789", .repeat = 20};
    struct session_info info;
    auto_buf struct buf out;
    struct error err;

    world_init(&w);
    world_start(&w);
    info = world_session(&w, NULL);
    buf_init(&out, 100);
    assert_int_eq(filter_with(&w, info.id, &s, &out, &err), -ERR_LIMIT);
    assert_true(out.len <= 100);
    assert_not_null(peer_take(s.peer, FRAME_KILL));
}

TEST(the_owner_is_checked)
{
    static const char *const argv[] = {"/opt/x", NULL};
    auto_world struct world w = {};
    struct session_info info;
    auto_buf struct buf out;
    struct error err;

    world_init(&w);
    world_start(&w);
    info = world_session(&w, "me");
    buf_init(&out, 100);
    assert_int_eq(session_filter(w.m,
                                 &(struct session_filter){
                                     .id = info.id, .owner = "you", .argv = argv, .timeout_ms = 1},
                                 &out, &err),
                  -ERR_NOT_FOUND);
}
