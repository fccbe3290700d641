/* SPDX-License-Identifier: MIT */
/* What the model calls: rounds, calls side by side, live output, and calls that are wrong in every
 * way (AGT-08). */
#include "tests/lib/agentbench.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
#define LIST CALL(0, "call_1", "list_sessions") ARGS(0, "{}") STOP("tool_calls")

TEST(a_round_of_tools_is_five_checkpoints)
{
    auto_bench struct bench b = {.turns = {SAY("Let me see.") LIST, ANSWER("none")}};

    bench_open(&b);
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_int_eq(bench_history(&b), 5);
    assert_str_eq(bench_story(&b), "checkpoint checkpoint values "
                                   "task start chunk end result update checkpoint values "
                                   "task tool tool-end message result update checkpoint values "
                                   "task start chunk end result update checkpoint values");
    assert_str_eq(bench_value(&b, "/messages/1/content"), "Let me see.");
    assert_str_eq(bench_value(&b, "/messages/1/tool_calls/0/id"), "call_1");
    assert_str_eq(bench_value(&b, "/messages/2/type"), "tool");
    assert_str_eq(bench_value(&b, "/messages/2/tool_call_id"), "call_1");
    assert_str_eq(bench_value(&b, "/messages/2/status"), "success");
    assert_str_eq(bench_value(&b, "/messages/3/content"), "none");
    assert_str_eq(bench_at(bench_told(&b, AGENT_TOOL_START, 0), ""), "{}");
    assert_str_has(b.asked, "\"tool_call_id\":\"call_1\"");
}

TEST(chunks_hold_one_call_at_a_time)
{
    /* The second call begins before the first is whole. */
    auto_bench struct bench b = {.turns = {SAY("a") CALL(0, "c0", "list_sessions")
                                               ARGS(0, "{\\\"x\\\":") CALL(1, "c1", "list_sessions")
                                                   ARGS(1, "{") ARGS(0, "1}") SAY("b") ARGS(1, "}")
                                                       STOP("tool_calls"),
                                           ANSWER("done")}};
    char story[512] = "";
    const char *id = NULL;

    bench_open(&b);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    for (size_t i = 0; i < b.count; i++) {
        const struct bench_event *e = &b.events[i];
        size_t len = strlen(story);

        if (e->e.type == AGENT_MODEL_END)
            break;
        if (e->e.type != AGENT_CHUNK)
            continue;
        id = id ? id : e->id;
        assert_str_eq(e->id, id);
        assert_str_eq(bench_at(e->json, "/type"), "AIMessageChunk");
        assert_str_eq(bench_at(e->json, "/id"), id);
        snprintf(story + len, sizeof(story) - len, "%s|%s|%s|%s;", bench_at(e->json, "/content"),
                 bench_at(e->json, "/tool_call_chunks/0/index"),
                 bench_at(e->json, "/tool_call_chunks/0/id"),
                 bench_at(e->json, "/tool_call_chunks/0/args"));
    }
    assert_str_eq(story, "a|(none)|(none)|(none);|0|c0|;|0|null|{\"x\":;|0|null|1};|1|c1|;"
                         "|1|null|{;|1|null|};b|(none)|(none)|(none);|(none)|(none)|(none);");
    assert_str_eq(bench_value(&b, "/messages/1/id"), id);
    assert_str_eq(bench_value(&b, "/messages/1/content"), "ab");
    assert_str_eq(bench_value(&b, "/messages/1/tool_calls/1/id"), "c1");
}

TEST(the_last_chunk_alone_tells_the_end)
{
    auto_bench struct bench b = {.turns = {ANSWER("x")}};
    const char *last = NULL;

    bench_open(&b);
    bench_run(&b, HI);
    for (size_t i = 0; i < b.count; i++) {
        if (b.events[i].e.type != AGENT_CHUNK)
            continue;
        if (last)
            assert_str_eq(bench_at(last, "/response_metadata"), "{}");
        last = b.events[i].json;
    }
    assert_not_null(last);
    assert_str_eq(bench_at(last, "/content"), "");
    assert_str_eq(bench_at(last, "/chunk_position"), "last");
    assert_str_eq(bench_at(last, "/response_metadata/finish_reason"), "stop");
    assert_str_eq(bench_at(last, "/response_metadata/model_provider"), "openai");
    assert_str_eq(bench_at(last, "/usage_metadata/total_tokens"), "13");
    assert_str_eq(bench_value(&b, "/messages/1/usage_metadata/input_tokens"), "9");
}

TEST(reasoning_makes_blocks_of_all_that_follows)
{
    auto_bench struct bench b = {.turns = {CHOICE("{\"reasoning_content\":\"hm\"}") CHOICE(
                                     "{\"reasoning_content\":\"m\"}") SAY("so") ANSWER("!")}};

    bench_open(&b);
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_at(bench_told(&b, AGENT_CHUNK, 0), "/content"),
                  "[{\"type\":\"reasoning\",\"reasoning\":\"hm\",\"index\":0}]");
    assert_str_eq(bench_at(bench_told(&b, AGENT_CHUNK, 2), "/content"),
                  "[{\"type\":\"text\",\"text\":\"so\",\"index\":1}]");
    assert_str_eq(bench_at(bench_told(&b, AGENT_CHUNK, 4), "/content"), "[]");
    assert_str_eq(bench_value(&b, "/messages/1/content/0/reasoning"), "hmm");
    assert_str_eq(bench_value(&b, "/messages/1/content/1/text"), "so!");
}

TEST(calls_that_are_wrong_are_answered_to_the_model)
{
    auto_bench struct bench b = {
        .turns = {CALL(0, "c0", "list_sessions") ARGS(0, "{\\\"a") CALL(1, "c1", "rm_rf")
                      ARGS(1, "{}") CALL(2, "c1", "list_sessions") ARGS(2, "{}") CALL(
                          3, "", "execute_code") ARGS(3, "{}") SAY("text after") STOP("tool_calls"),
                  ANSWER("sorry")}};
    const char *all;

    bench_open(&b);
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/1/content"), "text after");
    assert_str_eq(bench_value(&b, "/messages/1/invalid_tool_calls/0/id"), "c0");
    all = buf_str(&b.outcome.values);
    assert_str_has(all, "there is no tool 'rm_rf'");
    assert_str_has(all, "INVALID_INPUT");
    assert_str_has(all, "write the arguments as a JSON object");
    assert_str_eq(bench_value(&b, "/messages/6/content"), "sorry");
    /* Each call has one answer, and two with one id were told apart. */
    for (int i = 2; i <= 5; i++) {
        char pointer[64];

        snprintf(pointer, sizeof(pointer), "/messages/%d/type", i);
        assert_str_eq(bench_value(&b, pointer), "tool");
    }
}

TEST(more_calls_than_are_run_are_answered_too)
{
    auto_bench struct bench b = {.turns = {NULL, ANSWER("ok")}};
    auto_buf struct buf turn;

    bench_open(&b);
    buf_init(&turn, MIB);
    for (int i = 0; i < 70; i++)
        assert_int_eq(buf_printf(&turn,
                                 CHOICE("{\"tool_calls\":[{\"index\":%d,\"id\":\"c%d\","
                                        "\"function\":{\"name\":\"list_sessions\","
                                        "\"arguments\":\"{}\"}}]}"),
                                 i, i),
                      0);
    assert_int_eq(buf_append_str(&turn, STOP("tool_calls")), 0);
    b.turns[0] = turn.data;
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/65/status"), "success");
    assert_str_has(bench_value(&b, "/messages/66/content"), "at most 64 calls");
    assert_str_eq(bench_value(&b, "/messages/71/tool_call_id"), "c69");
    assert_str_eq(bench_value(&b, "/messages/72/content"), "ok");
}

TEST(arguments_of_a_megabyte_are_no_accident)
{
    auto_bench struct bench b = {.turns = {NULL, ANSWER("ok")}};
    auto_buf struct buf turn;
    auto_free char *long_text = malloc(MIB + 1);

    bench_open(&b);
    assert_not_null(long_text);
    memset(long_text, 'a', MIB);
    long_text[MIB] = 0;
    buf_init(&turn, 4 * MIB);
    assert_int_eq(buf_printf(&turn,
                             CALL(0, "c", "stop_session") CHOICE(
                                 "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
                                 "\"{\\\"session_id\\\":\\\"%s\\\"}\"}}]}") STOP("tool_calls"),
                             long_text),
                  0);
    b.turns[0] = turn.data;
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/tool_call_id"), "c");
}

/* ---- cells ---- */

/* While the run waits for the cell: prints, and ends it. */
static void *cell_play(void *arg)
{
    struct bench *b = arg;
    struct peer *p = &b->world.engine.peers[0];
    struct peer_frame *f = peer_take_within(p, FRAME_EXEC, PEER_WAIT_MS);

    if (!f)
        return NULL;
    for (int i = 0; i < 500; i++)
        peer_send_text(p, FRAME_STDOUT, f->stream, "line\n");
    peer_send_text(p, FRAME_STDERR, f->stream, "oops \xff\n");
    peer_send_text(p, FRAME_DISPLAY, f->stream, "{\"data\":{\"text/html\":\"<b>\"}}");
    peer_end_with(p, f->stream, "status=ok", "state=kept", "exit_code=0");
    return NULL;
}

TEST(output_of_a_cell_is_told_live_in_few_pieces)
{
    auto_bench struct bench b = {.turns = {NULL, ANSWER("ok")}};
    size_t events = 0, bytes = 0, displays = 0, errors = 0;
    int64_t begun = clock_ms();
    pthread_t player;

    bench_open(&b);
    b.turns[0] = bench_turn_cell(&b, bench_session(&b), "go()");
    assert_int_eq(pthread_create(&player, NULL, cell_play, &b), 0);
    bench_run(&b, HI);
    pthread_join(player, NULL);
    assert_str_eq(b.outcome.error.text, "");
    for (size_t i = 0; i < b.count; i++) {
        const char *json = b.events[i].json;

        if (b.events[i].e.type != AGENT_TOOL_EVENT)
            continue;
        events++;
        assert_str_eq(b.events[i].id, "call_1");
        displays += str_eq(bench_at(json, "/type"), "display");
        errors += str_eq(bench_at(json, "/type"), "stderr");
        if (str_eq(bench_at(json, "/type"), "stdout"))
            bytes += strlen(bench_at(json, "/data"));
        assert_int_eq(b.events[i + 1].e.type, AGENT_CUSTOM);
        assert_str_eq(bench_at(b.events[i + 1].json, "/type"), "tool_output");
        assert_str_eq(bench_at(b.events[i + 1].json, "/stream"), bench_at(json, "/type"));
    }
    assert_int_eq(bytes, 2500);
    assert_int_eq(displays, 1);
    assert_int_eq(errors, 1);
    /* The first piece comes at once, one each 100 ms after it, and what is left with the end. */
    assert_true(events >= 3 && events <= 4 + (size_t)(clock_ms() - begun) / 100);
    assert_str_has(bench_value(&b, "/messages/2/content"), "oops");
}

TEST(another_thread_s_session_is_not_found)
{
    auto_bench struct bench b = {.turns = {NULL, ANSWER("ok")}};
    struct session_info other;

    bench_open(&b);
    other = world_session(&b.world, "somebody-else");
    b.turns[0] = bench_turn_cell(&b, other.id, "go()");
    bench_run(&b, HI);
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/2/status"), "error");
    assert_str_has(bench_value(&b, "/messages/2/content"), "not found");
}

/* ---- stopping ---- */

static void *cell_cancel(void *arg)
{
    struct bench *b = arg;
    struct peer *p = &b->world.engine.peers[0];
    struct peer_frame *f = peer_take_within(p, FRAME_EXEC, PEER_WAIT_MS);
    uint64_t one = 1;

    if (!f || write(b->cancel_fd, &one, sizeof(one)) < 0)
        return NULL;
    if (peer_take_within(p, FRAME_INTERRUPT, PEER_WAIT_MS))
        peer_end_with(p, f->stream, "status=interrupted", "state=kept");
    return NULL;
}

TEST(a_cancelled_step_leaves_what_was_before_it)
{
    auto_bench struct bench b = {.turns = {NULL, ANSWER("later")}};
    pthread_t player;

    bench_open(&b);
    b.cancel_fd = eventfd(0, EFD_CLOEXEC);
    b.turns[0] = bench_turn_cell(&b, bench_session(&b), "loop()");
    assert_int_eq(pthread_create(&player, NULL, cell_cancel, &b), 0);
    bench_run(&b, HI);
    pthread_join(player, NULL);
    assert_int_eq(b.outcome.end, AGENT_CANCELLED);
    assert_true(b.outcome.waits);
    assert_int_eq(bench_history(&b), 3);
    assert_str_eq(bench_value(&b, "/messages/2"), "(none)");
    /* The next run begins with an unanswered call, which the model is told of. */
    close(b.cancel_fd);
    b.cancel_fd = -1;
    bench_run(&b, HI);
    assert_str_eq(b.outcome.error.text, "");
    assert_int_eq(b.outcome.end, AGENT_SUCCESS);
    assert_str_eq(bench_value(&b, "/messages/3/content"), "later");
    assert_str_has(b.asked, "\"role\":\"tool\"");
}
