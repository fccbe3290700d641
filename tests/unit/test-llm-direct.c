/* SPDX-License-Identifier: MIT */
/* Conversations with the provider that runs code without a model, played to their end. */
#include "llm/direct-internal.h"
#include "tests/lib/llm.h"

#include "base/str.h"

/* A conversation that is played: the provider's calls get the results of a script. */
enum { TURN_MAX = 128 };

struct play {
    struct arena arena; /* of the messages */
    struct llm_message messages[TURN_MAX];
    size_t count;
    const char *model;
};

static void play_done(struct play *p)
{
    arena_done(&p->arena);
}

#define auto_play __attribute__((cleanup(play_done)))

static struct llm_part *part_of(struct play *p, const char *text)
{
    struct llm_part *part = arena_alloc(&p->arena, sizeof(*part));

    assert_not_null(part);
    part->kind = LLM_TEXT;
    part->text = arena_strdup(&p->arena, text);
    assert_not_null(part->text);
    return part;
}

static void play_user(struct play *p, const char *text)
{
    if (p->count == 0)
        arena_init(&p->arena, 64 * MIB);
    p->messages[p->count++] =
        (struct llm_message){.role = LLM_USER, .parts = part_of(p, text), .part_count = 1};
}

/* What the provider answers: "NAME ARGUMENTS" of its call, which is added to the conversation, or
 * its text. In the play's arena. */
static const char *play_step(struct play *p)
{
    static const struct llm_tool tools[] = {{.name = "create_session"},
                                            {.name = "execute_code"},
                                            {.name = "execute_terminal"},
                                            {.name = "import_files"}};
    struct llm_request request = {.size = sizeof(request),
                                  .model = {.provider = "direct", .name = p->model},
                                  .messages = p->messages,
                                  .message_count = p->count,
                                  .tools = tools,
                                  .tool_count = ARRAY_LEN(tools),
                                  .cancel_fd = -1};
    auto_llm_test struct llm_test t = {};
    struct llm_tool_call *call;
    struct llm_reply reply;
    struct error err = {};

    llm_test_open(&t, &provider_direct, &request);
    assert_ok(provider_direct.answer(&request, &t.s, &err), err);
    assert_ok(stream_reply(&t.s, &reply, &err), err);
    assert_str_eq(reply.model_name, "direct");
    if (reply.call_count == 0) {
        assert_str_eq(reply.finish_reason, "stop");
        return reply.part_count ? arena_strdup(&p->arena, reply.parts[0].text) : "";
    }
    assert_str_eq(reply.finish_reason, "tool_calls");
    call = arena_alloc(&p->arena, sizeof(*call));
    assert_not_null(call);
    *call = (struct llm_tool_call){.id = arena_strdup(&p->arena, reply.calls[0].id),
                                   .name = arena_strdup(&p->arena, reply.calls[0].name),
                                   .arguments = arena_strdup(&p->arena, reply.calls[0].arguments),
                                   .valid = true};
    assert_true(p->count + 2 < TURN_MAX);
    p->messages[p->count++] =
        (struct llm_message){.role = LLM_ASSISTANT, .calls = call, .call_count = 1};
    return arena_printf(&p->arena, "%s %s", call->name, call->arguments);
}

static void play_result(struct play *p, const char *payload)
{
    const struct llm_tool_call *call = p->messages[p->count - 1].calls;

    p->messages[p->count++] = (struct llm_message){.role = LLM_TOOL,
                                                   .parts = part_of(p, payload),
                                                   .part_count = 1,
                                                   .tool_call_id = call->id,
                                                   .name = call->name};
}

#define CREATED(id, runtime) \
    "{\"success\":true,\"session_id\":\"" id "\",\"runtime\":\"" runtime \
    "\",\"status\":\"running\"}"
#define RAN(more) "{\"success\":true,\"status\":\"ok\",\"state\":\"kept\"" more "}"
#define UNKNOWN "{\"success\":false,\"error\":\"ValueError: unknown session: 's1' not found\"}"
#define DIED "{\"success\":false,\"error\":\"CONTAINER_DIED: its time was over (expired)\"}"

TEST(direct_runs_a_message_as_it_is)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "print(1)");
    assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
    play_result(&p, CREATED("s1", "python"));
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"print(1)\"}");
    play_result(&p, RAN(",\"stdout\":\"1\\n\",\"stderr\":\"\",\"result\":null,\"error\":null,"
                        "\"display_outputs\":[]"));
    assert_str_eq(play_step(&p), "```text\n1\n```\n");
    /* The session is used again. */
    play_user(&p, "2 + 2");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"2 + 2\"}");
    play_result(&p, RAN(",\"stdout\":\"\",\"result\":{\"text/plain\":\"4\"}"));
    assert_str_eq(play_step(&p), "Result:\n```text\n4\n```\n");
}

TEST(direct_knows_the_language_by_fence_and_name)
{
    static const struct {
        const char *model, *text, *language;
    } cases[] = {
        {"python", "x", "python"},
        {"node", "x", "node"},
        {"R", "x", "r"},
        {"anything", "x", "python"},
        {NULL, "x", "python"},
        {"python", "```js\n1\n```", "node"},
        {"python", "```{r, echo=FALSE}\n1\n```", "r"},
        {"node", "~~~Python\n1\n~~~~", "python"},
        {"node", "text\n\n  ```\n1\n  ```\n", "node"},
        {"node", "```bash\nls\n```", "python"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_play struct play p = {.model = cases[i].model};
        char want[80];

        play_user(&p, cases[i].text);
        snprintf(want, sizeof(want), "create_session {\"language\":\"%s\"}", cases[i].language);
        assert_str_eq(play_step(&p), want);
    }
}

TEST(direct_runs_blocks_in_order)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "First\n```python\na = 1\n```\nnot run: ```x``` and\n```json\n{}\n```\n"
                  "then ```js\n```js\n2\n```\n```sh\nls\n");
    assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
    play_result(&p, CREATED("s1", "python"));
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"a = 1\\n\"}");
    play_result(&p, RAN(""));
    assert_str_eq(play_step(&p), "create_session {\"language\":\"node\"}");
    play_result(&p, CREATED("s2", "node"));
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s2\",\"code\":\"2\\n\"}");
    play_result(&p, RAN(",\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"x\"},"
                        "{\"type\":\"text/html\"}]"));
    assert_str_eq(play_step(&p), "execute_terminal {\"session_id\":\"s2\",\"command\":\"ls\\n\"}");
    play_result(&p, "{\"success\":false,\"status\":\"error\",\"state\":\"kept\",\"stdout\":\"\","
                    "\"stderr\":\"gone\",\"exit_code\":2}");
    assert_str_eq(play_step(&p), "**1 of 3**\n\nDone, without output.\n\n**2 of 3**\n\n"
                                 "2 displays: `image/png`, `text/html`.\n\n**3 of 3**\n\n"
                                 "stderr:\n```text\ngone\n```\nExit code 2.\n");
}

TEST(direct_stops_at_a_failure)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "```py\n1/0\n```\n```py\n2\n```\n");
    play_step(&p);
    play_result(&p, CREATED("s1", "python"));
    play_step(&p);
    play_result(&p, "{\"success\":false,\"status\":\"timeout\",\"state\":\"lost\",\"cause\":"
                    "\"timeout\",\"stdout\":\"\",\"stderr\":\"\",\"result\":null,\"error\":{"
                    "\"type\":\"TimeoutError\",\"message\":\"30 s\",\"traceback\":[]}}");
    assert_str_eq(play_step(&p), "**1 of 2**\n\nError:\n```text\nTimeoutError: 30 s\n```\n"
                                 "The time-out has passed.\nThe variables are lost.\n\n"
                                 "1 more block was not run.\n");
}

TEST(direct_tells_why_there_is_no_session)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "1");
    play_step(&p);
    play_result(&p, "{\"success\":false,\"error\":\"RuntimeError: 3 sessions at once\"}");
    assert_str_eq(play_step(&p), "No session could be made.\n\nError:\n```text\n"
                                 "RuntimeError: 3 sessions at once\n```\n");
    assert_str_eq(play_step(&p), play_step(&p));
}

TEST(direct_makes_a_lost_session_anew_once)
{
    static const char *const lost[] = {UNKNOWN, DIED};

    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        auto_play struct play p = {.model = "python"};

        play_user(&p, "1");
        play_step(&p);
        play_result(&p, CREATED("s1", "python"));
        play_step(&p);
        play_result(&p, lost[i]);
        assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
        play_result(&p, CREATED("s2", "python"));
        assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s2\",\"code\":\"1\"}");
        play_result(&p, lost[i]);
        assert_str_has(play_step(&p), i ? "CONTAINER_DIED" : "unknown session");
        /* The next message starts afresh. */
        play_user(&p, "2");
        assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
    }
}

/* What killed its session has run, and is not run again. */
TEST(direct_does_not_repeat_what_killed_its_session)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "boom");
    play_step(&p);
    play_result(&p, CREATED("s1", "python"));
    play_step(&p);
    play_result(&p, "{\"success\":false,\"status\":\"died\",\"state\":\"lost\",\"cause\":\"oom\","
                    "\"message\":\"out of memory\",\"session_id\":\"s1\",\"active_sessions\":["
                    "{\"session_id\":\"s1\",\"runtime\":\"python\",\"status\":\"dead\"}]}");
    assert_str_eq(play_step(&p),
                  "Message:\n```text\nout of memory\n```\nThe variables are lost.\n");
    play_user(&p, "1");
    assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
}

TEST(direct_keeps_a_session_whose_kernel_was_restarted)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "exit()");
    play_step(&p);
    play_result(&p, CREATED("s1", "python"));
    play_step(&p);
    play_result(&p, "{\"success\":false,\"status\":\"died\",\"state\":\"lost\",\"session_id\":"
                    "\"s1\",\"active_sessions\":[{\"session_id\":\"s1\",\"status\":\"running\"}]}");
    play_step(&p);
    play_user(&p, "1");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"1\"}");
}

/* Whatever comes back, it ends. */
TEST(direct_always_ends)
{
    static const char *const answers[] = {
        "{}",
        "nonsense",
        "null",
        "[]",
        UNKNOWN,
        CREATED("s1", "python"),
        CREATED("", "python"),
        "{\"success\":true,\"session_id\":7}",
        "{\"success\":true,\"status\":\"died\"}",
    };

    for (size_t i = 0; i < ARRAY_LEN(answers) * ARRAY_LEN(answers); i++) {
        auto_play struct play p = {.model = "python"};
        size_t steps = 0;

        play_user(&p, "```py\n1\n```\n```js\n2\n```\n");
        while (play_step(&p), p.messages[p.count - 1].role == LLM_ASSISTANT) {
            assert_true(++steps < 20);
            play_result(&p, answers[steps % 2 ? i / ARRAY_LEN(answers) : i % ARRAY_LEN(answers)]);
        }
    }
}

/* Sessions of turns by other models count, and what they have stopped does not. */
TEST(direct_uses_sessions_of_others)
{
    const struct llm_tool_call made = {
        .id = "a", .name = "create_session", .arguments = "{}", .valid = true};
    const struct llm_tool_call stopped = {
        .id = "b", .name = "stop_session", .arguments = "{\"session_id\":\"s9\"}", .valid = true};
    auto_play struct play p = {.model = "r"};

    play_user(&p, "please");
    p.messages[p.count++] =
        (struct llm_message){.role = LLM_ASSISTANT, .calls = &made, .call_count = 1};
    play_result(&p, CREATED("s9", "r"));
    play_user(&p, "1");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s9\",\"code\":\"1\"}");
    p.count -= 2;
    p.messages[p.count++] =
        (struct llm_message){.role = LLM_ASSISTANT, .calls = &stopped, .call_count = 1};
    play_result(&p, "{\"success\":true}");
    play_user(&p, "1");
    assert_str_eq(play_step(&p), "create_session {\"language\":\"r\"}");
}

TEST(direct_says_when_there_is_nothing_to_run)
{
    static const char *const texts[] = {"", "  \n", "```json\n{}\n```", "```py\n\n```"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_play struct play p = {.model = "python"};

        play_user(&p, texts[i]);
        assert_str_has(play_step(&p), "There is no code to run.");
    }
}

TEST(direct_needs_the_tools)
{
    const struct llm_part part = {.kind = LLM_TEXT, .text = "1"};
    const struct llm_message message = {.role = LLM_USER, .parts = &part, .part_count = 1};
    struct llm_request request = {.size = sizeof(request),
                                  .model = {.provider = "direct", .name = "python"},
                                  .messages = &message,
                                  .message_count = 1,
                                  .cancel_fd = -1};
    auto_llm_test struct llm_test t = {};
    struct llm_reply reply;
    struct error err = {};

    llm_test_open(&t, &provider_direct, &request);
    assert_ok(provider_direct.answer(&request, &t.s, &err), err);
    assert_ok(stream_reply(&t.s, &reply, &err), err);
    assert_int_eq((long long)reply.call_count, 0);
    assert_str_has(reply.parts[0].text, "not offered");
}

TEST(direct_runs_so_many_blocks_at_most)
{
    struct direct_blocks blocks;
    auto_buf struct buf text = {.max = MIB};

    for (int i = 0; i < 30; i++)
        assert_int_eq(buf_append_str(&text, "```r\n1\n```\n"), 0);
    direct_blocks_find(buf_str(&text), DIRECT_PYTHON, &blocks);
    assert_int_eq((long long)blocks.count, DIRECT_BLOCKS_MAX);
    assert_true(blocks.truncated);
}

static void report_is(const char *payload, const char *want)
{
    auto_json yyjson_doc *doc = NULL;
    auto_buf struct buf got = {.max = MIB};
    struct error err = {};

    assert_ok(json_parse(payload, strlen(payload), &doc, &err), err);
    assert_int_eq(direct_report(&got, yyjson_doc_get_root(doc), payload), 0);
    assert_str_eq(buf_str(&got), want);
}

/* Output stays in its fence, and nothing of it moves a cursor. */
TEST(direct_fences_what_code_prints)
{
    report_is("{\"success\":true,\"stdout\":\"```\\n![x](http://x.example/?d=1)\\n````\\n\"}",
              "`````text\n```\n![x](http://x.example/?d=1)\n````\n`````\n");
    report_is("{\"success\":true,\"stdout\":\"\\u001b[31mred\\u001b[0m\\u0007\\r\\n\"}",
              "```text\nred\n```\n");
    report_is("{\"success\":true,\"stdout\":\"a\\u001b[\"}", "```text\na\n```\n");
    report_is("{\"success\":true,\"display_outputs\":[7,{\"type\":\"a`b\"}]}",
              "2 displays: `?`, `a`.\n");
    report_is("{\"success\":true,\"display_outputs_summary\":[\"image/png, 9x9, shown\"]}",
              "1 display: `image/png`.\n");
}

TEST(direct_cuts_what_is_long)
{
    auto_buf struct buf payload = {.max = MIB}, got = {.max = MIB};
    auto_json yyjson_doc *doc = NULL;
    struct error err = {};

    assert_int_eq(buf_append_str(&payload, "{\"success\":true,\"stdout\":\""), 0);
    for (int i = 0; i < 5000; i++)
        assert_int_eq(buf_append_str(&payload, i % 2 ? "`" : "~"), 0);
    assert_int_eq(buf_append_str(&payload, "\"}"), 0);
    assert_ok(json_parse(payload.data, payload.len, &doc, &err), err);
    assert_int_eq(direct_report(&got, yyjson_doc_get_root(doc), ""), 0);
    assert_str_has(buf_str(&got), "(1000 more bytes)");
    assert_true(got.len < 4100);
}

#define NOTE(lines) "\n\n<attached-files>\n" lines "</attached-files>\n"
#define FILE_A "{\"name\":\"a.csv\",\"size\":3,\"path\":\"/up/a.csv\"}\n"
#define FILE_B "{\"name\":\"b\",\"size\":0,\"path\":\"/up/b \\\"x\\\"\"}\n"

TEST(direct_brings_files_into_the_session)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "print(1)" NOTE(FILE_A));
    assert_str_eq(play_step(&p), "create_session {\"language\":\"python\"}");
    play_result(&p, CREATED("s1", "python"));
    assert_str_eq(play_step(&p), "import_files {\"session_id\":\"s1\",\"files\":[{\"source\":"
                                 "\"/up/a.csv\"}]}");
    play_result(&p, "{\"success\":true,\"files\":[],\"error\":\"\"}");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"print(1)\"}");
    play_result(&p, RAN(""));
    assert_str_eq(play_step(&p), "Done, without output.\n");
    /* Only what is new is brought; into another session all of it. */
    play_user(&p, "```py\n1\n```\n```js\n2\n```" NOTE(FILE_B));
    assert_str_eq(play_step(&p), "import_files {\"session_id\":\"s1\",\"files\":[{\"source\":"
                                 "\"/up/b \\\"x\\\"\"}]}");
    play_result(&p, "{\"success\":true}");
    play_step(&p);
    play_result(&p, RAN(""));
    assert_str_eq(play_step(&p), "create_session {\"language\":\"node\"}");
    play_result(&p, CREATED("s2", "node"));
    assert_str_eq(play_step(&p), "import_files {\"session_id\":\"s2\",\"files\":[{\"source\":"
                                 "\"/up/a.csv\"},{\"source\":\"/up/b \\\"x\\\"\"}]}");
    play_result(&p, "{\"success\":true}");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s2\",\"code\":\"2\\n\"}");
}

TEST(direct_says_when_files_do_not_come)
{
    auto_play struct play p = {.model = "python"};

    play_user(&p, "1" NOTE(FILE_A));
    play_step(&p);
    play_result(&p, CREATED("s1", "python"));
    play_step(&p);
    play_result(&p, "{\"success\":false,\"error\":\"gone\"}");
    assert_str_eq(play_step(&p), "The files could not be brought into the session.\n\n"
                                 "Error:\n```text\ngone\n```\n");
    /* The next turn goes without them. */
    p.messages[p.count++] = (struct llm_message){.role = LLM_ASSISTANT};
    play_user(&p, "2");
    assert_str_eq(play_step(&p), "execute_code {\"session_id\":\"s1\",\"code\":\"2\"}");
}

TEST(direct_takes_what_is_no_note_as_code)
{
    static const char *const texts[] = {
        "x" NOTE(""),
        "x" NOTE("no JSON\n"),
        "x" NOTE("{\"name\":\"no path\"}\n"),
        "x" NOTE("[1]\n"),
        "x" NOTE(FILE_A "\n"),
        "x" NOTE(FILE_A) "y",
        "<attached-files>\n" FILE_A,
        "</attached-files>",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_play struct play p = {.model = "python"};

        play_user(&p, texts[i]);
        play_step(&p);
        play_result(&p, CREATED("s1", "python"));
        assert_true(str_starts(play_step(&p), "execute_code "));
    }
}
