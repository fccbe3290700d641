/* SPDX-License-Identifier: MIT */
/* Runs of a session whose sandbox is a peer: order, cancelling, how each can end, and what of all
 * that comes into the result object. */
#include "session/run.h"

#include "base/json.h"
#include "base/str.h"
#include "tests/lib/fake-engine.h"

#include <signal.h>

#define PNG "{\"data\":{\"image/png\":\"AAAA\",\"text/plain\":\"<plot>\"},\"metadata\":{}}"

/* One started world with one session; the peer of its sandbox. */
static struct peer *world_begin(struct world *w, struct session_info *ret)
{
    world_init(w);
    world_start(w);
    *ret = world_session(w, NULL);
    return &w->engine.peers[0];
}

static char *result_text(struct run *run)
{
    struct buf json;
    struct error err;

    buf_init(&json, 64 * MIB);
    assert_ok(run_result_json(run, &json, &err), err);
    return buf_take(&json);
}

static int collect(struct world *w, const char *id)
{
    for (int i = 0; i < 500; i++) {
        struct session_info info;
        struct error err;

        assert_ok(session_get_info(w->m, id, NULL, &info, &err), err);
        if (info.status == SESSION_DEAD && __atomic_load_n(&w->engine.closed, __ATOMIC_RELAXED))
            return 0;
        usleep(20000);
    }
    return -1;
}

static int run_again(struct world *w, const char *id, struct error *reterr)
{
    struct run *run = NULL;
    int r = run_open(
        w->m, id, NULL,
        &(struct run_options){
            .size = sizeof(struct run_options), .kind = RUN_CODE, .text = "again", .len = 5},
        &run, reterr);

    run_unref(run);
    return r;
}

/* ---- results ---- */

TEST(what_a_cell_sends_becomes_its_result)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    auto_json yyjson_doc *doc = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct run_outcome outcome;
    struct peer_frame *exec;
    struct error err;

    run = world_run(&w, s.id, RUN_CODE, "1 + 1");
    exec = peer_take(p, FRAME_EXEC);
    assert_str_eq(peer_field(exec, "code"), "1 + 1");
    assert_str_eq(peer_field(exec, "timeout_ms"), "30000");
    assert_str_eq(peer_field(exec, "stdin"), "0");
    peer_send_text(p, FRAME_LATE_STDOUT, exec->stream, "too late");
    peer_send_text(p, FRAME_STDOUT, exec->stream, "out \xff");
    peer_send_text(p, FRAME_STDERR, exec->stream, "err");
    peer_send_text(p, FRAME_DISPLAY, exec->stream, PNG);
    peer_send_text(p, FRAME_DISPLAY, exec->stream, PNG);
    peer_send_text(p, FRAME_RESULT, exec->stream, "{\"data\":{\"text/plain\":\"2\"}}");
    peer_end_with(p, exec->stream, "status=ok", "state=kept", "duration_ms=1.5", "stdout_bytes=5",
                  "stderr_bytes=3");
    outcome = world_wait(run);
    assert_int_eq(outcome.status, RUN_OK);
    assert_true(outcome.state_kept);
    assert_str_eq(outcome.cause, "");
    json = result_text(run);
    assert_ok(json_parse(json, strlen(json), &doc, &err), err);
    assert_str_eq(
        json,
        "{\"success\":true,\"status\":\"ok\",\"state\":\"kept\",\"cause\":null,"
        "\"stdout\":\"out \xef\xbf\xbd\",\"stderr\":\"err\",\"result\":{\"text/plain\":\"2\"},"
        "\"error\":null,\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"AAAA\","
        "\"text\":\"<plot>\"},"
        "{\"type\":\"image/png\",\"data\":\"AAAA\",\"text\":\"<plot>\"}],"
        "\"late_output\":{\"stdout\":\"too late\",\"stderr\":\"\"},\"duration_ms\":1.500,"
        "\"output\":{\"stdout_bytes\":5,\"stderr_bytes\":3,\"truncated\":false}}");
    assert_uint_eq(peer_take(p, FRAME_ACK)->stream, exec->stream);
}

TEST(events_come_in_the_order_of_the_frames_to_every_reader)
{
    static const enum run_event_type wanted[] = {RUN_EVENT_STDOUT, RUN_EVENT_DISPLAY,
                                                 RUN_EVENT_INPUT,  RUN_EVENT_ERROR,
                                                 RUN_EVENT_STDERR, RUN_EVENT_END};
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    uint32_t stream;

    run = world_run(&w, s.id, RUN_CODE, "x");
    stream = peer_take(p, FRAME_EXEC)->stream;
    peer_send_text(p, FRAME_STDOUT, stream, "a");
    peer_send_text(p, FRAME_DISPLAY, stream, PNG);
    peer_send_text(p, FRAME_INPUT_REQUEST, stream, "{\"prompt\":\"?\",\"extra\":[1]}");
    peer_send_text(p, FRAME_INPUT_REQUEST, stream, "no JSON");
    peer_send_text(p, FRAME_ERROR, stream,
                   "{\"type\":\"E\",\"message\":\"m\",\"traceback\":\"t\"}");
    peer_send_text(p, FRAME_STDERR, stream, "b");
    peer_end_with(p, stream, "status=error", "state=kept");
    for (int reader = 0; reader < 2; reader++) {
        struct run_cursor cursor = {};
        struct run_event event = {};
        struct error err;

        buf_init(&event.data, MIB);
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
            assert_int_eq(run_next(run, &cursor, clock_deadline(PEER_WAIT_MS), &event, &err), 1);
            assert_int_eq(event.type, wanted[i]);
            if (event.type == RUN_EVENT_INPUT)
                assert_str_eq(buf_str(&event.data), "{\"prompt\":\"?\",\"password\":false}");
        }
        assert_int_eq(run_next(run, &cursor, clock_deadline(PEER_WAIT_MS), &event, &err), 0);
        buf_done(&event.data);
    }
}

TEST(long_output_keeps_its_head_and_tail)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    uint32_t stream;
    char line[32];

    w.settings.max_stdout_chars = 100;
    run = world_run(&w, s.id, RUN_CODE, "x");
    stream = peer_take(p, FRAME_EXEC)->stream;
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof(line), "row %d\n", i);
        peer_send_text(p, FRAME_STDOUT, stream, line);
    }
    peer_end_with(p, stream, "status=ok", "state=kept");
    world_wait(run);
    json = result_text(run);
    assert_str_has(json, "\"stdout\":\"row 0\\nrow 1\\n");
    assert_str_has(json, "row 999\\n\"");
    assert_str_has(json, "characters left out");
    assert_str_has(json, "\"stdout_bytes\":7890");
    assert_str_has(json, "\"truncated\":true");
}

TEST(output_that_init_had_to_drop_is_told)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    auto_buf struct buf fields;
    uint32_t stream;

    run = world_run(&w, s.id, RUN_CODE, "x");
    stream = peer_take(p, FRAME_EXEC)->stream;
    buf_init(&fields, 256);
    assert_int_eq(fields_add_int(&fields, "stdout_bytes", 1234567), 0);
    peer_send(p, FRAME_DROPPED, stream, fields.data, fields.len);
    peer_end_with(p, stream, "status=ok", "state=kept");
    world_wait(run);
    json = result_text(run);
    assert_str_has(json, "1234567 bytes left out");
    assert_str_has(json, "\"truncated\":true");
}

TEST(what_a_kernel_says_is_not_believed)
{
    static const char *const displays[] = {
        "no JSON", "[]", "{\"data\":[]}", "{\"data\":{\"no mime\":1}}", "{\"data\":{}}",
    };
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    auto_json yyjson_doc *doc = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct error err;
    uint32_t stream;

    run = world_run(&w, s.id, RUN_CODE, "x");
    stream = peer_take(p, FRAME_EXEC)->stream;
    for (size_t i = 0; i < ARRAY_LEN(displays); i++)
        peer_send_text(p, FRAME_DISPLAY, stream, displays[i]);
    peer_send_text(p, FRAME_RESULT, stream, "{\"data\":");
    peer_send_text(p, FRAME_ERROR, stream, "\"error\"");
    peer_end_with(p, stream, "status=strange", "state=kept", "duration_ms=nan",
                  "cause=a cause that is longer than any that we know");
    assert_int_eq(world_wait(run).status, RUN_DIED);
    json = result_text(run);
    assert_ok(json_parse(json, strlen(json), &doc, &err), err);
    assert_str_has(json, "\"display_outputs\":[]");
    assert_str_has(json, "\"result\":null");
    assert_str_has(json, "\"duration_ms\":0.000");
    assert_str_has(json, "a display is left out: bad JSON");
}

TEST(a_command_has_an_exit_code_or_a_signal)
{
    auto_world struct world w = {};
    auto_run struct run *failed = NULL, *killed = NULL;
    auto_free char *first = NULL, *second = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct peer_frame *spawn;

    failed = world_run(&w, s.id, RUN_COMMAND, "exit 3; 'quoted'");
    killed = world_run(&w, s.id, RUN_COMMAND, "kill -9 $$");
    spawn = peer_take(p, FRAME_SPAWN);
    assert_mem_eq(spawn->text,
                  "\4argv\7\0\0\0/bin/sh\4argv\2\0\0\0-c\4argv\20\0\0\0exit 3; 'quoted'", 52);
    peer_end_with(p, spawn->stream, "status=error", "cause=exit:3", "exit_code=3");
    world_wait(failed);
    first = result_text(failed);
    assert_str_has(first, "\"success\":false,\"status\":\"error\"");
    assert_str_has(first, "\"exit_code\":3,");
    spawn = peer_take(p, FRAME_SPAWN);
    peer_end_with(p, spawn->stream, "status=died", "cause=signal:15", "signal=15");
    world_wait(killed);
    second = result_text(killed);
    assert_str_has(second, "\"exit_code\":143,\"signal\":15,");
    assert_str_has(second, "SIGTERM");
}

/* ---- the queue ---- */

TEST(runs_of_a_session_go_one_after_another)
{
    auto_world struct world w = {};
    auto_run struct run *first = NULL, *second = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct peer_frame *one, *two;

    first = world_run(&w, s.id, RUN_CODE, "first");
    second = world_run(&w, s.id, RUN_CODE, "second");
    one = peer_take(p, FRAME_EXEC);
    assert_str_eq(peer_field(one, "code"), "first");
    assert_null(peer_take_within(p, FRAME_EXEC, 50));
    peer_send_text(p, FRAME_STDOUT, one->stream, "A");
    peer_end_with(p, one->stream, "status=ok", "state=kept");
    two = peer_take(p, FRAME_EXEC);
    assert_str_eq(peer_field(two, "code"), "second");
    peer_send_text(p, FRAME_STDOUT, two->stream, "B");
    peer_end_with(p, two->stream, "status=ok", "state=kept");
    world_wait(first);
    world_wait(second);
    json = result_text(second);
    assert_str_has(json, "\"stdout\":\"B\"");
}

TEST(a_waiting_run_can_be_cancelled_wherever_it_stands)
{
    auto_world struct world w = {};
    struct run *runs[5];
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    char code[8];

    for (int i = 0; i < 5; i++) {
        snprintf(code, sizeof(code), "%d", i);
        runs[i] = world_run(&w, s.id, RUN_CODE, code);
    }
    run_cancel(runs[2]);
    run_cancel(runs[4]);
    run_cancel(runs[1]);
    for (int i = 0; i < 5; i++) {
        if (i == 0 || i == 3) {
            struct peer_frame *exec = peer_take(p, FRAME_EXEC);

            snprintf(code, sizeof(code), "%d", i);
            assert_str_eq(peer_field(exec, "code"), code);
            peer_end_with(p, exec->stream, "status=ok", "state=kept");
        }
        if (i == 0 || i == 3) {
            assert_int_eq(world_wait(runs[i]).status, RUN_OK);
        } else {
            assert_int_eq(world_wait(runs[i]).status, RUN_INTERRUPTED);
            assert_str_eq(world_wait(runs[i]).cause, "user");
            assert_true(world_wait(runs[i]).state_kept);
        }
    }
    assert_null(peer_take_within(p, FRAME_INTERRUPT, 50));
    for (int i = 0; i < 5; i++) {
        run_cancel(runs[i]);
        run_unref(runs[i]);
    }
}

TEST(a_running_one_is_interrupted)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct run_outcome outcome;
    struct error err;
    uint32_t stream;

    assert_ok(session_interrupt(w.m, s.id, NULL, &err), err);
    run = world_run(&w, s.id, RUN_CODE, "while True: pass");
    stream = peer_take(p, FRAME_EXEC)->stream;
    run_cancel(run);
    assert_uint_eq(peer_take(p, FRAME_INTERRUPT)->stream, stream);
    assert_ok(session_interrupt(w.m, s.id, NULL, &err), err);
    assert_uint_eq(peer_take(p, FRAME_INTERRUPT)->stream, stream);
    peer_send_text(p, FRAME_STDOUT, stream, "partial");
    peer_send_text(p, FRAME_ERROR, stream,
                   "{\"type\":\"KeyboardInterrupt\",\"message\":\"\",\"traceback\":\"here\"}");
    peer_end_with(p, stream, "status=interrupted", "state=kept", "cause=user");
    outcome = world_wait(run);
    assert_int_eq(outcome.status, RUN_INTERRUPTED);
    assert_str_eq(outcome.message, "stopped on request");
    json = result_text(run);
    assert_str_has(json, "partial");
    assert_str_has(json, "\"type\":\"Interrupted\"");
    assert_str_has(json, "\"traceback\":\"here\"");
    run_cancel(run);
    assert_null(peer_take_within(p, FRAME_INTERRUPT, 50));
}

TEST(a_time_out_is_told_with_what_was_there)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    uint32_t stream;

    run = world_run(&w, s.id, RUN_CODE, "x");
    stream = peer_take(p, FRAME_EXEC)->stream;
    peer_send_text(p, FRAME_DISPLAY, stream, PNG);
    peer_end_with(p, stream, "status=timeout", "state=lost", "cause=timeout");
    assert_int_eq(world_wait(run).status, RUN_TIMEOUT);
    json = result_text(run);
    assert_str_has(json, "timed out after 30 s; the code could not be interrupted");
    assert_str_has(json, "\"type\":\"TimeoutError\"");
    assert_str_has(json, "image/png");
}

TEST(more_runs_than_may_wait_are_refused)
{
    auto_world struct world w = {};
    struct run *runs[100];
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    size_t count = 0;
    struct error err;

    while (
        count < 100 &&
        run_open(w.m, s.id, NULL,
                 &(struct run_options){
                     .size = sizeof(struct run_options), .kind = RUN_CODE, .text = "x", .len = 1},
                 &runs[count], &err) == 0)
        count++;
    assert_uint_eq(count, 65);
    assert_int_eq(err.code, ERR_LIMIT);
    run_cancel(runs[30]);
    assert_ok(run_again(&w, s.id, &err), err);
    peer_take(p, FRAME_EXEC);
    for (size_t i = 0; i < count; i++)
        run_unref(runs[i]);
}

TEST(arguments_are_checked_before_anything_is_sent)
{
    static const struct run_options bad[] = {
        {.kind = RUN_CODE, .text = "", .len = 0},
        {.kind = RUN_COMMAND, .text = "a\0b", .len = 3},
        {.kind = RUN_CODE, .text = "x", .len = 1, .timeout_ms = -1},
        {.kind = RUN_CODE, .text = "x", .len = 1, .timeout_ms = 86400001},
        {.kind = RUN_CODE, .text = "x", .len = 17 * 1024 * 1024},
        {.kind = RUN_COMMAND, .text = "x", .len = 129 * 1024},
    };
    auto_world struct world w = {};
    struct session_info s;
    struct run *run = NULL;
    struct error err;
    struct peer *p = world_begin(&w, &s);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_eq(run_open(w.m, s.id, NULL, &bad[i], &run, &err), -ERR_INVALID);
    assert_null(run);
    assert_null(peer_take_within(p, FRAME_EXEC, 20));
}

/* ---- input ---- */

TEST(input_goes_to_the_run_that_asks)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *waiting = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct peer_frame *input;
    struct error err;
    uint32_t stream;

    run = world_run(&w, s.id, RUN_CODE, "input()");
    waiting = world_run(&w, s.id, RUN_CODE, "later");
    stream = peer_take(p, FRAME_EXEC)->stream;
    assert_int_eq(run_input(waiting, "x", 1, &err), -ERR_INVALID);
    assert_ok(run_input(run, "line", 4, &err), err);
    input = peer_take(p, FRAME_INPUT);
    assert_uint_eq(input->stream, stream);
    assert_str_eq(input->text, "\1line");
    assert_ok(run_input(run, NULL, 0, &err), err);
    input = peer_take(p, FRAME_INPUT);
    assert_uint_eq(input->len, 1);
    assert_int_eq(input->text[0], 0);
    peer_end_with(p, stream, "status=ok", "state=kept");
    world_wait(run);
    assert_int_eq(run_input(run, "x", 1, &err), -ERR_INVALID);
}

/* ---- death ---- */

struct word {
    struct sandbox *sandbox;
    const char *cause;
    pthread_t thread;
};

static void *word_main(void *arg)
{
    struct word *word = arg;

    usleep(100000);
    sandbox_set_ended(word->sandbox, word->cause);
    return NULL;
}

/* The keeper's word, some time after what can be seen of it. */
static void word_start(struct word *word, struct world *w, const char *cause)
{
    *word = (struct word){.sandbox = w->engine.sandboxes[0], .cause = cause};
    assert_int_eq(pthread_create(&word->thread, NULL, word_main, word), 0);
}

TEST(a_sandbox_that_dies_takes_all_runs_with_it_and_tells_why)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *waiting = NULL;
    auto_free char *json = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct word word;
    struct error err;

    run = world_run(&w, s.id, RUN_CODE, "eat");
    waiting = world_run(&w, s.id, RUN_CODE, "wait");
    peer_send_text(p, FRAME_STDOUT, peer_take(p, FRAME_EXEC)->stream, "before");
    word_start(&word, &w, "oom");
    peer_hang_up(p);
    assert_int_eq(world_wait(run).status, RUN_DIED);
    assert_int_eq(run_again(&w, s.id, &err), -ERR_DIED);
    assert_str_has(err.text, "oom");
    pthread_join(word.thread, NULL);
    json = result_text(run);
    assert_str_has(json, "\"state\":\"lost\",\"cause\":\"oom\"");
    assert_str_has(json, "CONTAINER_MEMORY_LIMIT");
    assert_str_has(json, "before");
    assert_str_eq(world_wait(waiting).cause, "oom");
    assert_int_eq(collect(&w, s.id), 0);
}

TEST(a_killed_kernel_becomes_oom_by_the_keepers_word)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct word word;
    struct error err;

    run = world_run(&w, s.id, RUN_CODE, "eat");
    word_start(&word, &w, "oom");
    peer_end_with(p, peer_take(p, FRAME_EXEC)->stream, "status=died", "state=lost",
                  "cause=signal:9");
    assert_str_eq(world_wait(run).cause, "oom");
    pthread_join(word.thread, NULL);
    assert_int_eq(run_again(&w, s.id, &err), -ERR_DIED);
}

TEST(a_killed_kernel_without_that_word_is_started_again)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct run_outcome outcome;
    struct error err;

    run = world_run(&w, s.id, RUN_CODE, "os.kill(os.getpid(), 9)");
    peer_end_with(p, peer_take(p, FRAME_EXEC)->stream, "status=died", "state=lost",
                  "cause=signal:9");
    outcome = world_wait(run);
    assert_str_eq(outcome.cause, "signal:9");
    assert_str_has(outcome.message, "SIGKILL");
    assert_false(outcome.state_kept);
    assert_ok(run_again(&w, s.id, &err), err);
    assert_str_eq(peer_field(peer_take(p, FRAME_EXEC), "code"), "again");
}

TEST(a_connection_that_is_cut_without_a_word_is_lost)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);

    run = world_run(&w, s.id, RUN_CODE, "x");
    peer_take(p, FRAME_EXEC);
    peer_send(p, 0x7f, 0, "", 0);
    assert_str_eq(world_wait(run).cause, "lost");
    assert_int_eq(world_wait(run).status, RUN_DIED);
}

TEST(an_end_that_cannot_be_read_is_the_end_of_the_sandbox)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);

    run = world_run(&w, s.id, RUN_CODE, "x");
    peer_send_text(p, FRAME_END, peer_take(p, FRAME_EXEC)->stream, "\377garbage");
    assert_int_eq(world_wait(run).status, RUN_DIED);
    assert_int_eq(collect(&w, s.id), 0);
}

TEST(a_run_that_meets_a_lost_connection_ends_at_once)
{
    for (int i = 0; i < 10; i++) {
        auto_world struct world w = {};
        struct session_info s;
        struct peer *p = world_begin(&w, &s);
        struct error err;
        int r;

        peer_hang_up(p);
        sandbox_set_ended(w.engine.sandboxes[0], "oom");
        r = run_again(&w, s.id, &err);
        assert_true(r == 0 || r == -ERR_DIED);
        r = run_again(&w, s.id, &err);
        assert_true(r == 0 || r == -ERR_DIED);
        assert_int_eq(collect(&w, s.id), 0);
        assert_int_eq(run_again(&w, s.id, &err), -ERR_DIED);
    }
}

TEST(a_waiting_run_that_nobody_holds_may_meet_a_lost_connection)
{
    for (int i = 0; i < 10; i++) {
        auto_world struct world w = {};
        auto_run struct run *first = NULL;
        struct session_info s;
        struct peer *p = world_begin(&w, &s);
        struct error err;

        first = world_run(&w, s.id, RUN_CODE, "first");
        assert_ok(run_again(&w, s.id, &err), err);
        assert_ok(run_again(&w, s.id, &err), err);
        sandbox_set_ended(w.engine.sandboxes[0], "signal:9");
        peer_end_with(p, peer_take(p, FRAME_EXEC)->stream, "status=ok", "state=kept");
        peer_hang_up(p);
        world_wait(first);
        assert_int_eq(collect(&w, s.id), 0);
    }
}

TEST(a_limit_is_the_cause_of_a_failed_run_only)
{
    static const struct {
        const char *error, *pairs[5], *cause;
        bool refused;
    } cases[] = {
        {NULL, {"status=ok", "state=kept"}, "", true},
        {NULL, {"status=ok", "state=kept", "full=1"}, "", false},
        {"{\"type\":\"E\",\"message\":\"m\"}", {"status=error", "state=kept"}, "pids", true},
        {"{\"type\":\"E\",\"message\":\"m\"}",
         {"status=error", "state=kept", "full=1"},
         "disk",
         false},
        {"{\"type\":\"E\",\"message\":\"No space left on device\"}",
         {"status=error", "state=kept"},
         "disk",
         false},
        {"{\"type\":\"OSError\",\"message\":\"m\",\"errno\":28}",
         {"status=error", "state=kept"},
         "disk",
         false},
        {"{\"type\":\"E\",\"message\":\"m\"}", {"status=error", "state=kept"}, "", false},
    };
    auto_world struct world w = {};
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    char path[400], text[32];

    snprintf(path, sizeof(path), "%s/pids.events", test_dir());
    snprintf(w.engine.sandboxes[0]->pids_events, JOB_PATH, "%s", path);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_run struct run *run = NULL;
        uint32_t stream;

        world_file(path, "max 5\n");
        run = world_run(&w, s.id, RUN_CODE, "x");
        stream = peer_take(p, FRAME_EXEC)->stream;
        snprintf(text, sizeof(text), "max %d\n", cases[i].refused ? 7 : 5);
        world_file(path, text);
        if (cases[i].error)
            peer_send_text(p, FRAME_ERROR, stream, cases[i].error);
        peer_end(p, stream, cases[i].pairs);
        assert_str_eq(world_wait(run).cause, cases[i].cause);
    }
}

TEST(what_a_fork_bomb_leaves_is_swept_before_its_run_ends)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *next = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    char events[400], current[400];
    struct run_outcome outcome;
    struct peer_frame *sweep;

    snprintf(events, sizeof(events), "%s/pids.events", test_dir());
    snprintf(current, sizeof(current), "%s/pids.current", test_dir());
    snprintf(w.engine.sandboxes[0]->pids_events, JOB_PATH, "%s", events);
    snprintf(w.engine.sandboxes[0]->pids_current, JOB_PATH, "%s", current);
    world_file(events, "max 0\n");
    world_file(current, "500\n");
    run = world_run(&w, s.id, RUN_COMMAND, ":(){ :|:& };:");
    next = world_run(&w, s.id, RUN_CODE, "1");
    world_file(events, "max 99\n");
    peer_end_with(p, peer_take(p, FRAME_SPAWN)->stream, "status=ok", "exit_code=0");
    sweep = peer_take(p, FRAME_SWEEP);
    assert_null(peer_take_within(p, FRAME_EXEC, 50));
    peer_end_with(p, sweep->stream, "status=ok");
    outcome = world_wait(run);
    assert_int_eq(outcome.status, RUN_ERROR);
    assert_str_eq(outcome.cause, "pids");
    peer_take(p, FRAME_EXEC);
    peer_hang_up(p);
    assert_int_eq(world_wait(next).status, RUN_DIED);
}

TEST(a_sandbox_that_dies_while_it_is_swept_ends_the_run)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    char events[400], current[400];

    snprintf(events, sizeof(events), "%s/pids.events", test_dir());
    snprintf(current, sizeof(current), "%s/pids.current", test_dir());
    snprintf(w.engine.sandboxes[0]->pids_events, JOB_PATH, "%s", events);
    snprintf(w.engine.sandboxes[0]->pids_current, JOB_PATH, "%s", current);
    world_file(events, "max 0\n");
    world_file(current, "500\n");
    run = world_run(&w, s.id, RUN_COMMAND, "bomb");
    world_file(events, "max 1\n");
    peer_end_with(p, peer_take(p, FRAME_SPAWN)->stream, "status=ok", "exit_code=0");
    peer_take(p, FRAME_SWEEP);
    sandbox_set_ended(w.engine.sandboxes[0], "oom");
    peer_hang_up(p);
    assert_int_eq(world_wait(run).status, RUN_DIED);
    assert_str_eq(world_wait(run).cause, "oom");
}

/* ---- stopping under a run ---- */

TEST(stopping_the_session_ends_its_runs)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *waiting = NULL;
    struct session_info s;
    struct peer *p = world_begin(&w, &s);
    struct error err;

    run = world_run(&w, s.id, RUN_CODE, "x");
    waiting = world_run(&w, s.id, RUN_CODE, "y");
    peer_take(p, FRAME_EXEC);
    assert_ok(session_stop(w.m, s.id, NULL, &err), err);
    assert_str_eq(world_wait(run).cause, "user");
    assert_str_eq(world_wait(waiting).cause, "user");
    assert_int_eq(world_wait(run).status, RUN_DIED);
    run_cancel(run);
    run_cancel(waiting);
    assert_int_eq(run_again(&w, s.id, &err), -ERR_NOT_FOUND);
}

TEST(runs_may_be_held_longer_than_the_manager)
{
    for (int keep = 0; keep < 2; keep++) {
        auto_run struct run *run = NULL, *waiting = NULL;
        auto_free char *json = NULL;
        auto_world struct world w = {.keep_sessions = keep};
        struct session_info s;
        struct peer *p = world_begin(&w, &s);
        struct error err;

        run = world_run(&w, s.id, RUN_CODE, "x");
        waiting = world_run(&w, s.id, RUN_CODE, "y");
        peer_send_text(p, FRAME_STDOUT, peer_take(p, FRAME_EXEC)->stream, "some");
        session_manager_free(TAKE_PTR(w.m));
        assert_int_eq(w.engine.freed_all, !keep);
        assert_str_eq(world_wait(run).cause, keep ? "lost" : "user");
        assert_int_eq(world_wait(waiting).status, RUN_DIED);
        run_cancel(run);
        assert_int_eq(run_input(run, "x", 1, &err), -ERR_INVALID);
        json = result_text(run);
        assert_str_has(json, "\"status\":\"died\"");
        assert_null(peer_take_within(p, FRAME_ACK, 20));
    }
}

TEST(runs_that_nobody_holds_end_with_the_manager)
{
    for (int i = 0; i < 10; i++) {
        auto_world struct world w = {};
        struct session_info s;
        struct error err;

        world_begin(&w, &s);
        for (int n = 0; n < 3; n++)
            assert_ok(run_again(&w, s.id, &err), err);
        session_manager_free(TAKE_PTR(w.m));
    }
}
