/* SPDX-License-Identifier: MIT */
/* Calls of the tools over sandboxes that are peers: results, failures, owners, and stopping. Every
 * payload is checked against its tool's output schema. */
#include "tools/tool.h"

#include "base/str.h"
#include "engine/image.h"
#include "tests/lib/fake-engine.h"
#include "tools/schema.h"
#include "tools/tool-internal.h"

#define UNKNOWN "00000000000000000000000000000000"

/* A world in which tools can make Python sessions. */
struct bench {
    struct world world;
    struct tool_context context;
    struct buf payload;
    yyjson_doc *doc; /* of the payload */
    bool success;
};

static void dir_make(const char *dir, const char *name, const char *below)
{
    char path[PATH_LEN];
    struct error err;

    snprintf(path, sizeof(path), "%s/%s/%s", dir, name, below);
    assert_ok(path_make_dirs(path, 0700, &err), err);
}

static void image_pretend(struct world *w)
{
    char path[PATH_LEN], digest[IMAGE_DIGEST + 1];
    struct image_store store;
    struct error err;

    dir_make(test_dir(), "images", "common");
    dir_make(test_dir(), "images", "python");
    snprintf(path, sizeof(path), "%s/images/python/packages", test_dir());
    world_file(path, "a\n");
    snprintf(path, sizeof(path), "%s/images/build", test_dir());
    world_file(path, "#!/bin/sh\n");
    assert_ok(image_store_init(&store, w->settings.image_dir, &err), err);
    assert_ok(image_digest(&store, "python", digest, &err), err);
    dir_make(w->settings.image_dir, "python", digest);
    snprintf(path, sizeof(path), "%s/python/%s/image.json", w->settings.image_dir, digest);
    world_file(path, "{}\n");
}

static void bench_begin(struct bench *b)
{
    world_init(&b->world);
    image_pretend(&b->world);
    buf_init(&b->payload, 64 * MIB);
    b->world.engine.ends_cells = true;
}

static void bench_start(struct bench *b)
{
    world_start(&b->world);
    b->context = (struct tool_context){.manager = b->world.m, .owner = "me"};
}

static void bench_end(struct bench *b)
{
    world_end(&b->world);
    buf_done(&b->payload);
    yyjson_doc_free(b->doc);
}

#define auto_bench __attribute__((cleanup(bench_end)))

/* ---- calls ---- */

static void payload_check(const struct tool_entry *tool, const struct buf *payload)
{
    auto_schema struct schema *s = NULL;
    auto_json yyjson_doc *doc = NULL, *checked = NULL;
    auto_buf struct buf details;
    struct error err;

    buf_init(&details, MIB);
    assert_ok(schema_new(tool->output_schema, strlen(tool->output_schema), &s, &err), err);
    assert_ok(json_parse(buf_str(payload), payload->len, &doc, &err), err);
    if (schema_check(s, yyjson_doc_get_root(doc), &checked, &details, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s does not fit: %s", tool->name, buf_str(payload),
                  buf_str(&details));
}

static void call_finish(struct bench *b, struct tool_call *call, const char *arguments)
{
    auto_json yyjson_doc *doc = NULL;
    struct error err;

    if (arguments)
        assert_ok(json_parse(arguments, strlen(arguments), &doc, &err), err);
    buf_clear(&b->payload);
    yyjson_doc_free(TAKE_PTR(b->doc));
    b->success = tool_call_run(call, yyjson_doc_get_root(doc), &b->payload);
    assert_ok(json_parse(buf_str(&b->payload), b->payload.len, &b->doc, &err), err);
}

/* `id` stands where `arguments` has %s. */
static void arguments_fill(const char *arguments, const char *id, char *ret, size_t size)
{
    const char *at = strstr(arguments, "%s");

    if (at)
        snprintf(ret, size, "%.*s%s%s", (int)(at - arguments), arguments, id, at + 2);
    else
        snprintf(ret, size, "%s", arguments);
}

/* The payload's root. */
static yyjson_val *tool_do(struct bench *b, const char *tool, const char *arguments, const char *id)
{
    auto_tool_call struct tool_call *call = NULL;
    const struct tool_entry *entry = tool_find(tool);
    char filled[8192];
    struct error err;

    arguments_fill(arguments, id, filled, sizeof(filled));
    assert_not_null(entry);
    assert_ok(tool_call_new(&b->context, entry, NULL, &call, &err), err);
    call_finish(b, call, filled);
    payload_check(entry, &b->payload);
    assert_int_eq(yyjson_get_bool(yyjson_obj_get(yyjson_doc_get_root(b->doc), "success")),
                  b->success);
    return yyjson_doc_get_root(b->doc);
}

static const char *text_at(yyjson_val *root, const char *pointer)
{
    const char *s = yyjson_get_str(yyjson_ptr_get(root, pointer));

    return s ? s : "(none)";
}

static void session_make(struct bench *b, char id[ID_LEN + 1])
{
    yyjson_val *root = tool_do(b, "create_session", "{}", "");

    if (!b->success)
        test_fail(__FILE__, __LINE__, "%s", buf_str(&b->payload));
    assert_int_eq(str_copy(id, ID_LEN + 1, text_at(root, "/session_id")), 0);
}

/* ---- making ---- */

TEST(create_session_tells_what_it_made)
{
    auto_bench struct bench b = {};
    yyjson_val *root;

    bench_begin(&b);
    bench_start(&b);
    root = tool_do(&b, "create_session",
                   "{\"language\":\"python\",\"dependencies\":{\"six\":null,\"rich\":13.7,\"tqdm\":"
                   "\"4.66\"},\"network\":\"none\",\"memory_limit\":\"256m\",\"pids_limit\":\"64\","
                   "\"extra\":1}",
                   "");
    assert_true(b.success);
    assert_true(id_check(text_at(root, "/session_id")));
    assert_str_eq(text_at(root, "/runtime"), "python");
    assert_str_eq(text_at(root, "/status"), "running");
    assert_str_eq(text_at(root, "/network"), "none");
    assert_str_eq(text_at(root, "/dependencies/six"), "");
    assert_str_eq(text_at(root, "/dependencies/rich"), "13.7");
    assert_str_eq(text_at(root, "/dependencies/tqdm"), "4.66");
    assert_null(yyjson_obj_get(root, "stderr"));
    assert_null(yyjson_obj_get(root, "degraded"));
}

struct threaded {
    struct bench *bench;
    struct tool_call *call;
    const char *arguments;
};

static void *thread_main(void *arg)
{
    struct threaded *t = arg;
    auto_json yyjson_doc *doc = NULL;

    if (t->arguments && json_parse(t->arguments, strlen(t->arguments), &doc, NULL) < 0)
        return NULL;
    t->bench->success = tool_call_run(t->call, yyjson_doc_get_root(doc), &t->bench->payload);
    return NULL;
}

static pthread_t thread_begin(struct threaded *t)
{
    pthread_t thread;

    buf_clear(&t->bench->payload);
    assert_int_eq(pthread_create(&thread, NULL, thread_main, t), 0);
    return thread;
}

static yyjson_val *thread_end(struct threaded *t, pthread_t thread)
{
    struct error err;

    pthread_join(thread, NULL);
    yyjson_doc_free(TAKE_PTR(t->bench->doc));
    assert_ok(json_parse(buf_str(&t->bench->payload), t->bench->payload.len, &t->bench->doc, &err),
              err);
    return yyjson_doc_get_root(t->bench->doc);
}

TEST(what_the_installer_wrote_to_stderr_is_told)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    struct threaded t = {.bench = &b, .arguments = "{\"dependencies\":{\"six\":\"\"}}"};
    struct peer_frame *spawn;
    struct error err;
    yyjson_val *root;
    struct peer *peer;
    pthread_t thread;

    bench_begin(&b);
    b.world.engine.ends_cells = false;
    bench_start(&b);
    assert_ok(tool_call_new(&b.context, tool_find("create_session"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    peer = fake_peer(&b.world.engine, 0);
    assert_not_null(peer);
    spawn = peer_take(peer, FRAME_SPAWN);
    peer_send_text(peer, FRAME_STDOUT, spawn->stream, "Installing\n");
    peer_send_text(peer, FRAME_STDERR, spawn->stream, "WARNING: old\n");
    peer_end_with(peer, spawn->stream, "status=ok");
    spawn = peer_take(peer, FRAME_SPAWN);
    peer_end_with(peer, spawn->stream, "status=ok");
    root = thread_end(&t, thread);
    assert_true(b.success);
    assert_str_eq(text_at(root, "/stderr"), "WARNING: old\n");
}

TEST(an_installer_that_ends_lines_has_said_nothing)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    struct threaded t = {.bench = &b, .arguments = "{\"dependencies\":{\"six\":\"\"}}"};
    struct peer_frame *spawn;
    struct error err;
    struct peer *peer;
    pthread_t thread;

    bench_begin(&b);
    b.world.engine.ends_cells = false;
    bench_start(&b);
    assert_ok(tool_call_new(&b.context, tool_find("create_session"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    peer = fake_peer(&b.world.engine, 0);
    assert_not_null(peer);
    spawn = peer_take(peer, FRAME_SPAWN);
    peer_send_text(peer, FRAME_STDERR, spawn->stream, " \r\n\n");
    peer_end_with(peer, spawn->stream, "status=ok");
    spawn = peer_take(peer, FRAME_SPAWN);
    peer_end_with(peer, spawn->stream, "status=ok");
    assert_null(yyjson_obj_get(thread_end(&t, thread), "stderr"));
    assert_true(b.success);
}

/* Neither another argument nor another session helps. */
TEST(a_missing_image_is_for_the_user_to_mend)
{
    auto_bench struct bench b = {};
    yyjson_val *root;

    bench_begin(&b);
    b.world.no_build = true;
    b.world.settings.image_dir = test_dir();
    bench_start(&b);
    root = tool_do(&b, "create_session", "{}", "");
    assert_false(b.success);
    assert_str_has(text_at(root, "/error"), "image is not built");
    assert_str_has(text_at(root, "/hint"), "tell the user");
}

TEST(a_failed_install_fails_the_create_with_its_last_lines)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    struct threaded t = {.bench = &b, .arguments = "{\"dependencies\":{\"six\":\"\"}}"};
    struct peer_frame *spawn;
    struct error err;
    yyjson_val *root;
    pthread_t thread;
    struct peer *peer;

    bench_begin(&b);
    b.world.engine.ends_cells = false;
    bench_start(&b);
    assert_ok(tool_call_new(&b.context, tool_find("create_session"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    peer = fake_peer(&b.world.engine, 0);
    spawn = peer_take(peer, FRAME_SPAWN);
    peer_send_text(peer, FRAME_STDERR, spawn->stream, "ERROR: no /tmp/x for you\n");
    peer_end_with(peer, spawn->stream, "status=error", "cause=exit:1");
    root = thread_end(&t, thread);
    assert_false(b.success);
    assert_str_has(text_at(root, "/error"), "cannot install the dependencies");
    assert_str_has(text_at(root, "/error"), "ERROR: no /tmp/x for you");
    assert_str_has(text_at(root, "/hint"), "go on without the package");
    assert_uint_eq(yyjson_arr_size(yyjson_obj_get(root, "active_sessions")), 0);
}

static void assert_fails(struct bench *b, const char *tool, const char *arguments, const char *id,
                         const char *error)
{
    yyjson_val *root = tool_do(b, tool, arguments, id);

    assert_false(b->success);
    assert_str_has(text_at(root, "/error"), error);
    assert_true(yyjson_is_str(yyjson_obj_get(root, "hint")));
    assert_true(yyjson_is_arr(yyjson_obj_get(root, "active_sessions")));
}

TEST(case_47_arguments_are_data)
{
    static const char *const dependencies[] = {
        "{\"dependencies\":{\"six; touch /tmp/p\":\"\"}}",
        "{\"dependencies\":{\"--index-url=http://evil\":\"\"}}",
        "{\"dependencies\":{\"../../etc\":\"\"}}",
        "{\"dependencies\":{\"-r/etc/passwd\":\"\"}}",
        "{\"dependencies\":{\"six\":\"1.0 --index-url=http://x\"}}",
        "{\"dependencies\":{\"six\":\"git+ssh://x\"}}",
        "{\"dependencies\":{\"six\":\"file:..\"}}",
        "{\"dependencies\":{\"six\\u0000x\":\"\"}}",
        "{\"dependencies\":{\"six\":\"1\\u0000x\"}}",
        "{\"env\":{\"A=B\":\"c\"}}",
        "{\"env\":{\"A\":\"c\\u0000d\"}}",
        "{\"memory_limit\":\"0b\\u0000\"}",
    };
    auto_bench struct bench b = {};

    bench_begin(&b);
    bench_start(&b);
    for (size_t i = 0; i < ARRAY_LEN(dependencies); i++) {
        tool_do(&b, "create_session", dependencies[i], "");
        assert_false(b.success);
    }
    assert_fails(&b, "execute_code", "{\"session_id\":\"%s\",\"code\":\"1\"}", "../x",
                 "ValueError: unknown session: '../x' not found");
    tool_do(&b, "create_session", "{\"language\":\"python --version\"}", "");
    assert_str_eq(text_at(yyjson_doc_get_root(b.doc), "/error"), "INVALID_INPUT");
    assert_uint_eq(b.world.engine.opened, 0);
}

TEST(a_session_may_ask_for_less_than_the_operator_allows_not_for_more)
{
    auto_bench struct bench b = {};

    bench_begin(&b);
    bench_start(&b);
    assert_fails(&b, "create_session", "{\"memory_limit\":\"64g\"}", "",
                 "ValueError: memory_limit is above CONTAINER_MEMORY_LIMIT, which is 2048 MiB");
    assert_fails(&b, "create_session", "{\"tmpfs_size\":\"1g\"}", "", "CONTAINER_TMPFS_SIZE");
    assert_fails(&b, "create_session", "{\"cpu_quota\":800000}", "", "CONTAINER_CPU_QUOTA");
    assert_fails(&b, "create_session", "{\"pids_limit\":5000}", "", "CONTAINER_PIDS_LIMIT");
    assert_fails(&b, "create_session", "{\"memory_limit\":\"1m\"}", "", "32 MiB");
    assert_uint_eq(b.world.engine.opened, 0);
}

TEST(case_41_limits_are_answers)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];

    bench_begin(&b);
    b.world.settings.max_sessions = 1;
    bench_start(&b);
    session_make(&b, id);
    assert_fails(&b, "create_session", "{}", "", "RuntimeError: limit_reached");
    assert_str_has(text_at(yyjson_doc_get_root(b.doc), "/error"), "CONTAINER_MAX_SESSIONS");
    assert_str_has(text_at(yyjson_doc_get_root(b.doc), "/error"), id);
    assert_str_has(text_at(yyjson_doc_get_root(b.doc), "/hint"), "stop_session");
    assert_str_eq(text_at(yyjson_doc_get_root(b.doc), "/active_sessions/0/session_id"), id);
    tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_true(b.success);
    session_make(&b, id);
}

/* ---- running ---- */

TEST(execute_code_returns_the_runs_result)
{
    auto_bench struct bench b = {};
    struct peer_frame *exec;
    yyjson_val *root;
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "execute_code", "{\"session_id\":\"%s\",\"code\":\"1+1\",\"timeout\":\"7\"}",
                   id);
    assert_true(b.success);
    assert_str_eq(text_at(root, "/status"), "ok");
    assert_str_eq(text_at(root, "/state"), "kept");
    assert_true(yyjson_is_arr(yyjson_obj_get(root, "display_outputs")));
    exec = peer_take(&b.world.engine.peers[0], FRAME_EXEC);
    assert_str_eq(peer_field(exec, "code"), "1+1");
    assert_str_eq(peer_field(exec, "timeout_ms"), "7000");
    assert_str_eq(peer_field(exec, "stdin"), "0");
}

/* Weakness 5 of the reference: its tools knew 30 seconds and nothing else. */
TEST(w05_the_configured_time_out_is_the_tools_default)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];

    bench_begin(&b);
    b.world.settings.execution_timeout_s = 77;
    bench_start(&b);
    session_make(&b, id);
    tool_do(&b, "execute_code", "{\"session_id\":\"%s\",\"code\":\"1\"}", id);
    assert_str_eq(peer_field(peer_take(&b.world.engine.peers[0], FRAME_EXEC), "timeout_ms"),
                  "77000");
    tool_do(&b, "execute_code", "{\"session_id\":\"%s\",\"code\":\"1\",\"timeout\":null}", id);
    assert_str_eq(peer_field(peer_take(&b.world.engine.peers[0], FRAME_EXEC), "timeout_ms"),
                  "77000");
    tool_do(&b, "execute_terminal", "{\"session_id\":\"%s\",\"command\":\"ls\"}", id);
    assert_str_eq(peer_field(peer_take(&b.world.engine.peers[0], FRAME_SPAWN), "timeout_ms"),
                  "77000");
    tool_do(&b, "execute_terminal", "{\"session_id\":\"%s\",\"command\":\"ls\",\"timeout\":300.0}",
            id);
    assert_str_eq(peer_field(peer_take(&b.world.engine.peers[0], FRAME_SPAWN), "timeout_ms"),
                  "300000");
}

TEST(w13_a_command_has_success_and_a_stop_its_session)
{
    auto_bench struct bench b = {};
    yyjson_val *root;
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "execute_terminal", "{\"session_id\":\"%s\",\"command\":\"ls -l\"}", id);
    assert_true(b.success);
    assert_int_eq(yyjson_get_sint(yyjson_obj_get(root, "exit_code")), 0);
    root = tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_true(b.success);
    assert_str_eq(text_at(root, "/session_id"), id);
    root = tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_false(b.success);
    assert_str_eq(text_at(root, "/session_id"), id);
    assert_null(yyjson_obj_get(root, "error"));
}

struct bad_row {
    const char *tool, *arguments, *details;
};

static const struct bad_row bad_rows[] = {
    {"create_session", "[]", "\"type\":\"dict_type\",\"loc\":[]"},
    {"create_session", "{\"language\":\"ruby\"}", "\"type\":\"enum\",\"loc\":[\"language\"]"},
    {"create_session", "{\"language\":null}", "\"loc\":[\"language\"]"},
    {"create_session", "{\"dependencies\":[\"six\"]}", "\"type\":\"dict_type\""},
    {"create_session", "{\"dependencies\":{\"six\":[]}}", "\"loc\":[\"dependencies\",\"six\"]"},
    {"create_session", "{\"network\":\"all\"}", "'none' or 'public'"},
    {"create_session", "{\"memory_limit\":512}", "\"type\":\"string_type\""},
    {"create_session", "{\"memory_limit\":\"lots\"}", "\"type\":\"string_pattern_mismatch\""},
    {"create_session", "{\"pids_limit\":1}", "\"ge\":8"},
    {"execute_code", "{}", "\"loc\":[\"code\"]"},
    {"execute_code", "{\"session_id\":\"\",\"code\":\"\"}", "\"type\":\"string_too_short\""},
    {"execute_code", "{\"session_id\":5,\"code\":\"x\"}", "\"type\":\"string_type\""},
    {"execute_code", "{\"session_id\":\"x\",\"code\":\"x\",\"timeout\":0}", "\"ge\":1"},
    {"execute_code", "{\"session_id\":\"x\",\"code\":\"x\",\"timeout\":301}", "\"le\":300"},
    {"execute_code", "{\"session_id\":\"x\",\"code\":\"x\",\"timeout\":1.5}", "int_from_float"},
    {"execute_terminal", "{\"session_id\":\"x\"}", "\"loc\":[\"command\"]"},
    {"execute_terminal", "{\"session_id\":\"x\",\"command\":\"x\",\"timeout\":301}", "\"le\":300"},
    {"import_files", "{\"session_id\":\"x\"}", "\"loc\":[\"files\"]"},
    {"import_files", "{\"session_id\":\"x\",\"files\":[]}", "\"type\":\"too_short\""},
    {"import_files", "{\"session_id\":\"x\",\"files\":[{\"source\":\"\"}]}",
     "\"loc\":[\"files\",0,\"source\"]"},
    {"export_files", "{\"session_id\":\"x\",\"files\":[{}]}",
     "\"loc\":[\"files\",0,\"source\"],\"msg\":\"Field required\""},
    {"export_files", "{\"session_id\":\"x\",\"files\":[{\"source\":\"\"}]}",
     "\"type\":\"string_too_short\""},
    {"stop_session", "{}", "\"loc\":[\"session_id\"]"},
    {"interrupt_session", "{\"session_id\":null}", "\"type\":\"string_type\""},
};

TEST(bad_arguments_are_told_field_by_field_before_anything_runs)
{
    auto_bench struct bench b = {};

    bench_begin(&b);
    bench_start(&b);
    for (size_t i = 0; i < ARRAY_LEN(bad_rows); i++) {
        yyjson_val *root = tool_do(&b, bad_rows[i].tool, bad_rows[i].arguments, "");

        assert_false(b.success);
        assert_str_eq(text_at(root, "/error"), "INVALID_INPUT");
        assert_str_has(buf_str(&b.payload), bad_rows[i].details);
        assert_null(yyjson_obj_get(root, "hint"));
    }
    assert_uint_eq(b.world.engine.opened, 0);
}

/* Weakness 6: the reference checked an entry only when it had a destination. */
TEST(w06_an_import_without_a_source_is_told_with_or_without_a_destination)
{
    static const char *const entries[] = {
        "{}",
        "{\"destination\":\"x\"}",
        "{\"session_id\":\"a\"}",
        "{\"path\":\"a\",\"destination\":\"b\"}",
        "{\"source\":null,\"session_id\":null,\"path\":null}",
    };
    auto_bench struct bench b = {};
    char files[256], id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        snprintf(files, sizeof(files), "{\"session_id\":\"%%s\",\"files\":[%s]}", entries[i]);
        assert_str_eq(text_at(tool_do(&b, "import_files", files, id), "/files/0/error"),
                      "give source, or session_id and path, or file_content and destination");
    }
}

/* What is wrong with one entry is told in it, and each of the others is looked at. */
TEST(a_content_without_a_destination_fails_by_itself)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];
    yyjson_val *root;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "import_files",
                   "{\"session_id\":\"%s\",\"files\":[{\"file_content\":\"no name\"},{\"source\":"
                   "\"/etc/passwd\"}]}",
                   id);
    assert_str_has(text_at(root, "/files/0/error"), "destination is missing");
    assert_str_has(text_at(root, "/files/1/error"), "(IMPORT_ALLOWED_DIRS)");
}

TEST(the_stop_of_an_unknown_session_names_those_that_there_are)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];
    yyjson_val *root;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", UNKNOWN);
    assert_false(b.success);
    assert_null(yyjson_obj_get(root, "error"));
    assert_str_eq(text_at(root, "/active_sessions/0/session_id"), id);
    assert_str_has(text_at(root, "/hint"), "nothing to stop");
    root = tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_true(b.success);
    assert_null(yyjson_obj_get(root, "hint"));
}

/* ---- owners ---- */

struct owned_row {
    const char *tool, *arguments;
};

static const struct owned_row owned_rows[] = {
    {"execute_code", "{\"session_id\":\"%s\",\"code\":\"1\"}"},
    {"execute_terminal", "{\"session_id\":\"%s\",\"command\":\"ls\"}"},
    {"import_files",
     "{\"session_id\":\"%s\",\"files\":[{\"file_content\":\"x\",\"destination\":\"y\"}]}"},
    {"export_files", "{\"session_id\":\"%s\",\"files\":[{\"source\":\"y\"}]}"},
    {"interrupt_session", "{\"session_id\":\"%s\"}"},
};

/* Weakness 28 among them: the reference let anybody stop a session. */
TEST(w28_a_foreign_session_looks_like_none_to_every_tool)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1], foreign[256];
    yyjson_val *root;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    b.context.owner = "somebody else";
    for (size_t i = 0; i < ARRAY_LEN(owned_rows); i++) {
        assert_fails(&b, owned_rows[i].tool, owned_rows[i].arguments, id, "ValueError: ");
        snprintf(foreign, sizeof(foreign), "%s", text_at(yyjson_doc_get_root(b.doc), "/error"));
        assert_str_has(foreign, "not found");
        root = yyjson_doc_get_root(b.doc);
        assert_uint_eq(yyjson_arr_size(yyjson_obj_get(root, "active_sessions")), 0);
        assert_str_has(text_at(root, "/hint"), "There is no session");
        tool_do(&b, owned_rows[i].tool, owned_rows[i].arguments, UNKNOWN);
        memcpy(strstr(foreign, id), UNKNOWN, ID_LEN);
        assert_str_eq(text_at(yyjson_doc_get_root(b.doc), "/error"), foreign);
    }
    tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_false(b.success);
    root = tool_do(&b, "list_sessions", "{}", "");
    assert_uint_eq(yyjson_arr_size(yyjson_obj_get(root, "sessions")), 0);
    b.context.owner = "me";
    root = tool_do(&b, "list_sessions", "{}", "");
    assert_str_eq(text_at(root, "/sessions/0/session_id"), id);
    assert_str_eq(text_at(root, "/sessions/0/status"), "running");
    assert_true(b.success);
}

TEST(a_nul_does_not_make_another_sessions_name)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    assert_fails(&b, "execute_code", "{\"session_id\":\"%s\\u0000x\",\"code\":\"1\"}", id,
                 "ValueError: session_id holds a NUL character");
    assert_fails(&b, "stop_session", "{\"session_id\":\"%s\\u0000\"}", id, "NUL");
    assert_fails(&b, "execute_terminal", "{\"session_id\":\"%s\",\"command\":\"a\\u0000b\"}", id,
                 "command holds a NUL");
}

/* Entries of a list fail by themselves, whatever is wrong with them. */
TEST(a_nul_in_an_entry_is_told_in_it)
{
    static const char *const entries[] = {
        "{\"source\":\"/a\\u0000b\"}",
        "{\"session_id\":\"x\\u0000\",\"path\":\"y\"}",
        "{\"session_id\":\"x\",\"path\":\"y\\u0000\"}",
        "{\"file_content\":\"x\",\"destination\":\"a\\u0000b\"}",
    };
    auto_bench struct bench b = {};
    char id[ID_LEN + 1], arguments[256];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%%s\",\"files\":[%s]}",
                 entries[i]);
        assert_str_has(text_at(tool_do(&b, "import_files", arguments, id), "/files/0/error"),
                       "holds a NUL character");
    }
}

/* An answer does not grow with what was wrong in the question, nor does it lose a member. */
TEST(what_the_caller_wrote_is_repeated_but_cut)
{
    static const struct {
        const char *tool, *before, *behind, *where;
    } rows[] = {
        {"import_files", "{\"session_id\":\"%s\",\"files\":[{\"source\":\"/", "\"}]}",
         "/files/0/source"},
        {"import_files", "{\"session_id\":\"%s\",\"files\":[{\"path\":\"x\",\"session_id\":\"",
         "\"}]}", "/files/0/source"},
        {"import_files",
         "{\"session_id\":\"%s\",\"files\":[{\"file_content\":\"x\",\"destination\":\"", "\"}]}",
         "/files/0/destination"},
        {"export_files", "{\"session_id\":\"%s\",\"files\":[{\"source\":\"", "\"}]}",
         "/files/0/path"},
        {"stop_session", "{\"session_id\":\"", "%s\"}", "/session_id"},
    };
    auto_bench struct bench b = {};
    auto_buf struct buf arguments;
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    buf_init(&arguments, 2 * TREE_PATH_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *told;

        buf_clear(&arguments);
        assert_int_eq(buf_append_str(&arguments, rows[i].before), 0);
        while (arguments.len < 3 * TREE_PATH_MAX / 2)
            assert_int_eq(buf_append_str(&arguments, "\xe6\x97\xa5"), 0);
        assert_int_eq(buf_append_str(&arguments, rows[i].behind), 0);
        told = text_at(tool_do(&b, rows[i].tool, buf_str(&arguments), id), rows[i].where);
        assert_false(b.success);
        assert_true(strlen(told) > 20 && strlen(told) <= TREE_PATH_MAX);
    }
}

/* ---- death ---- */

TEST(a_session_that_dies_under_a_call_is_told_in_its_result)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    char id[ID_LEN + 1], arguments[200];
    struct threaded t = {.bench = &b, .arguments = arguments};
    struct error err;
    yyjson_val *root;
    pthread_t thread;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    b.world.engine.peers[0].ends_cells = false;
    snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%s\",\"code\":\"x\"}", id);
    assert_ok(tool_call_new(&b.context, tool_find("execute_code"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    peer_take(&b.world.engine.peers[0], FRAME_EXEC);
    sandbox_set_ended(b.world.engine.sandboxes[0], "oom");
    peer_hang_up(&b.world.engine.peers[0]);
    root = thread_end(&t, thread);
    payload_check(tool_find("execute_code"), &b.payload);
    assert_false(b.success);
    assert_str_eq(text_at(root, "/status"), "died");
    assert_str_eq(text_at(root, "/cause"), "oom");
    assert_str_eq(text_at(root, "/state"), "lost");
    assert_str_eq(text_at(root, "/error/type"), "Died");
    assert_str_eq(text_at(root, "/session_id"), id);
    assert_str_has(text_at(root, "/hint"), "create_session for a fresh one");
    assert_str_eq(text_at(root, "/active_sessions/0/status"), "dead");
    /* And so is every later call. */
    for (size_t i = 0; i < ARRAY_LEN(owned_rows); i++) {
        root = tool_do(&b, owned_rows[i].tool, owned_rows[i].arguments, id);
        assert_false(b.success);
        assert_str_eq(text_at(root, "/error"),
                      "CONTAINER_DIED: the memory limit is exhausted (oom)");
        assert_str_eq(text_at(root, "/session_id"), id);
        assert_str_has(text_at(root, "/hint"), "stop_session");
    }
    root = tool_do(&b, "list_sessions", "{}", "");
    assert_str_eq(text_at(root, "/sessions/0/cause"), "oom");
    tool_do(&b, "stop_session", "{\"session_id\":\"%s\"}", id);
    assert_true(b.success);
}

TEST(a_kernel_that_dies_leaves_its_session_to_go_on_with)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    char id[ID_LEN + 1], arguments[200];
    struct threaded t = {.bench = &b, .arguments = arguments};
    struct peer_frame *exec;
    struct error err;
    yyjson_val *root;
    pthread_t thread;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    b.world.engine.peers[0].ends_cells = false;
    snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%s\",\"code\":\"x\"}", id);
    assert_ok(tool_call_new(&b.context, tool_find("execute_code"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    exec = peer_take(&b.world.engine.peers[0], FRAME_EXEC);
    peer_end_with(&b.world.engine.peers[0], exec->stream, "status=died", "state=lost",
                  "cause=exit:5");
    root = thread_end(&t, thread);
    assert_false(b.success);
    assert_str_eq(text_at(root, "/cause"), "exit:5");
    assert_str_has(text_at(root, "/hint"), "still there");
    assert_str_eq(text_at(root, "/active_sessions/0/status"), "running");
}

/* ---- stopping ---- */

TEST(a_cancelled_call_interrupts_its_cell)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    char id[ID_LEN + 1], arguments[200];
    struct threaded t = {.bench = &b, .arguments = arguments};
    struct peer_frame *exec;
    struct error err;
    yyjson_val *root;
    pthread_t thread;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    b.world.engine.peers[0].ends_cells = false;
    snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%s\",\"code\":\"x\"}", id);
    assert_ok(tool_call_new(&b.context, tool_find("execute_code"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    exec = peer_take(&b.world.engine.peers[0], FRAME_EXEC);
    tool_call_cancel(call);
    assert_true(tool_call_is_cancelled(call));
    peer_take(&b.world.engine.peers[0], FRAME_INTERRUPT);
    peer_end_with(&b.world.engine.peers[0], exec->stream, "status=interrupted", "state=kept",
                  "cause=user");
    root = thread_end(&t, thread);
    assert_false(b.success);
    assert_str_eq(text_at(root, "/status"), "interrupted");
    assert_str_eq(text_at(root, "/state"), "kept");
}

static struct tool_call *cell_begin(struct bench *b, const char *id, const char *code)
{
    auto_json yyjson_doc *doc = NULL;
    struct tool_call *call = NULL;
    char arguments[200];
    struct error err;

    snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%s\",\"code\":\"%s\"}", id, code);
    assert_ok(json_parse(arguments, strlen(arguments), &doc, &err), err);
    assert_ok(tool_call_new(&b->context, tool_find("execute_code"), NULL, &call, &err), err);
    tool_call_begin(call, yyjson_doc_get_root(doc));
    return call;
}

/* Their threads may come in any order. */
TEST(calls_keep_the_order_in_which_they_were_begun)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *first = NULL, *second = NULL, *third = NULL;
    struct threaded t = {.bench = &b};
    struct peer *peer = &b.world.engine.peers[0];
    struct peer_frame *exec;
    char id[ID_LEN + 1];
    pthread_t thread;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    peer->ends_cells = false;
    first = cell_begin(&b, id, "first");
    second = cell_begin(&b, id, "second");
    third = cell_begin(&b, id, "third");
    tool_call_cancel(second);
    t.call = third;
    thread = thread_begin(&t);
    exec = peer_take(peer, FRAME_EXEC);
    assert_str_eq(peer_field(exec, "code"), "first");
    peer_end_with(peer, exec->stream, "status=ok", "state=kept");
    exec = peer_take(peer, FRAME_EXEC);
    assert_str_eq(peer_field(exec, "code"), "third");
    peer_end_with(peer, exec->stream, "status=ok", "state=kept");
    thread_end(&t, thread);
    assert_true(b.success);
    call_finish(&b, second, NULL);
    assert_false(b.success);
    assert_str_eq(text_at(yyjson_doc_get_root(b.doc), "/status"), "interrupted");
    call_finish(&b, first, NULL);
    assert_true(b.success);
}

TEST(a_call_that_was_begun_and_never_run_is_stopped)
{
    auto_bench struct bench b = {};
    struct peer *peer = &b.world.engine.peers[0];
    struct tool_call *call;
    struct peer_frame *exec;
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    peer->ends_cells = false;
    call = cell_begin(&b, id, "x");
    exec = peer_take(peer, FRAME_EXEC);
    tool_call_free(call);
    peer_take(peer, FRAME_INTERRUPT);
    peer_end_with(peer, exec->stream, "status=interrupted", "state=kept");
}

TEST(what_failed_at_the_beginning_is_told_at_the_end)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *unknown = NULL, *empty = NULL;

    bench_begin(&b);
    bench_start(&b);
    unknown = cell_begin(&b, UNKNOWN, "x");
    empty = cell_begin(&b, "", "x");
    call_finish(&b, unknown, NULL);
    assert_str_has(text_at(yyjson_doc_get_root(b.doc), "/error"), "ValueError: unknown session");
    call_finish(&b, empty, NULL);
    assert_str_eq(text_at(yyjson_doc_get_root(b.doc), "/error"), "INVALID_INPUT");
}

TEST(a_call_that_was_cancelled_before_it_ran_does_nothing)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    struct error err;

    bench_begin(&b);
    bench_start(&b);
    assert_ok(tool_call_new(&b.context, tool_find("create_session"), NULL, &call, &err), err);
    tool_call_cancel(call);
    call_finish(&b, call, NULL);
    assert_false(b.success);
    assert_str_has(text_at(yyjson_doc_get_root(b.doc), "/error"), "CancelledError: ");
    assert_uint_eq(b.world.engine.opened, 0);
}

TEST(a_session_that_is_being_made_is_ended_by_a_cancel)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    struct threaded t = {.bench = &b};
    struct error err;
    yyjson_val *root;
    pthread_t thread;

    bench_begin(&b);
    b.world.engine.open_ms = 300;
    bench_start(&b);
    assert_ok(tool_call_new(&b.context, tool_find("create_session"), NULL, &t.call, &err), err);
    call = t.call;
    thread = thread_begin(&t);
    while (__atomic_load_n(&b.world.engine.opened, __ATOMIC_RELAXED) == 0)
        usleep(1000);
    tool_call_cancel(call);
    root = thread_end(&t, thread);
    assert_false(b.success);
    assert_str_has(text_at(root, "/error"), "CancelledError: stopped before the session was ready");
    assert_uint_eq(yyjson_arr_size(yyjson_obj_get(root, "active_sessions")), 0);
    assert_uint_eq(b.world.engine.closed, 1);
}

TEST(interrupt_session_tells_whether_something_ran)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];
    auto_run struct run *run = NULL;
    struct peer_frame *exec;
    yyjson_val *root;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "interrupt_session", "{\"session_id\":\"%s\"}", id);
    assert_true(b.success);
    assert_true(yyjson_is_false(yyjson_obj_get(root, "interrupted")));
    b.world.engine.peers[0].ends_cells = false;
    run = world_run(&b.world, id, RUN_CODE, "x");
    exec = peer_take(&b.world.engine.peers[0], FRAME_EXEC);
    root = tool_do(&b, "interrupt_session", "{\"session_id\":\"%s\"}", id);
    assert_true(yyjson_is_true(yyjson_obj_get(root, "interrupted")));
    peer_take(&b.world.engine.peers[0], FRAME_INTERRUPT);
    peer_end_with(&b.world.engine.peers[0], exec->stream, "status=interrupted", "state=kept");
    assert_int_eq(world_wait(run).status, RUN_INTERRUPTED);
}

/* ---- watching ---- */

struct watcher {
    struct tool_call *call;
    char seen[512];
};

static void watch_event(void *user, const struct run_event *e)
{
    struct watcher *w = user;
    size_t used = strlen(w->seen);

    snprintf(w->seen + used, sizeof(w->seen) - used, "%d:%s;", (int)e->type, buf_str(&e->data));
    if (e->type == RUN_EVENT_INPUT && tool_call_input(w->call, "Ada", 3, NULL) < 0)
        w->seen[0] = 0;
}

TEST(an_observer_sees_the_run_and_answers_it)
{
    auto_bench struct bench b = {};
    auto_tool_call struct tool_call *call = NULL;
    char id[ID_LEN + 1], arguments[200];
    struct threaded t = {.bench = &b, .arguments = arguments};
    struct watcher watcher = {};
    struct peer *peer = &b.world.engine.peers[0];
    struct peer_frame *frame;
    struct error err;
    pthread_t thread;

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    peer->ends_cells = false;
    snprintf(arguments, sizeof(arguments), "{\"session_id\":\"%s\",\"code\":\"x\"}", id);
    assert_ok(tool_call_new(&b.context, tool_find("execute_code"),
                            &(struct tool_observer){
                                .event = watch_event, .user = &watcher, .answers_input = true},
                            &t.call, &err),
              err);
    call = watcher.call = t.call;
    assert_int_eq(tool_call_input(call, "early", 5, &err), -ERR_INVALID);
    thread = thread_begin(&t);
    frame = peer_take(peer, FRAME_EXEC);
    assert_str_eq(peer_field(frame, "stdin"), "1");
    peer_send_text(peer, FRAME_STDOUT, frame->stream, "hello");
    peer_send_text(peer, FRAME_INPUT_REQUEST, frame->stream, "{\"prompt\":\"name? \"}");
    assert_true(peer_take(peer, FRAME_INPUT)->len == 4);
    peer_end_with(peer, frame->stream, "status=ok", "state=kept");
    thread_end(&t, thread);
    assert_true(b.success);
    assert_str_eq(watcher.seen, "1:hello;8:{\"prompt\":\"name? \",\"password\":false};10:;");
}

/* ---- what is told ---- */

TEST(w31_no_path_of_the_host_is_in_an_error)
{
    auto_bench struct bench b = {};
    char path[PATH_LEN];

    bench_begin(&b);
    bench_start(&b);
    /* Without its kernel's description a session cannot start, and the error names the file. */
    snprintf(path, sizeof(path), "%s/kernels/python/argv", test_dir());
    assert_int_eq(unlink(path), 0);
    assert_fails(&b, "create_session", "{}", "", "[path]");
    assert_null(strstr(buf_str(&b.payload), test_dir()));
    assert_null(strstr(buf_str(&b.payload), b.world.settings.state_dir));
}

/* An archive's names are its owner's, and are told whole; what is around them is not. */
TEST(w31_the_name_of_an_entry_is_no_path_of_the_host)
{
    static const char *const rows[][2] = {
        {"entry 'C:/x' leaves", "entry 'C:/x' leaves"},
        {"entry '/etc/passwd' has an absolute name", "entry '/etc/passwd' has an absolute name"},
        {"entry 'a b:/c (/d' at /srv/data", "entry 'a b:/c (/d' at [path]"},
        {"entry 'a', '/srv/data'", "entry 'a', '[path]'"},
        {"entry /srv/data", "entry [path]"},
        {"entry '/srv/data", "entry '[path]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        struct error err;

        error_set(&err, ERR_INVALID, "%s", rows[i][0]);
        assert_str_eq(yyjson_mut_get_str(payload_text(doc, &err, NULL, NULL)), rows[i][1]);
    }
}

TEST(case_48_host_paths_are_refused_by_default)
{
    auto_bench struct bench b = {};
    yyjson_val *root;
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    root = tool_do(&b, "import_files",
                   "{\"session_id\":\"%s\",\"files\":[{\"source\":\"/etc/passwd\"},{\"source\":"
                   "\"relative\"},{\"session_id\":\"" UNKNOWN "\",\"path\":\"x\"}]}",
                   id);
    assert_false(b.success);
    assert_str_eq(text_at(root, "/error"), "");
    for (int i = 0; i < 3; i++) {
        yyjson_val *file = yyjson_arr_get(yyjson_obj_get(root, "files"), (size_t)i);

        assert_true(yyjson_is_false(yyjson_obj_get(file, "success")));
        assert_true(strlen(text_at(file, "/error")) > 10);
    }
    assert_str_eq(text_at(root, "/files/0/source"), "/etc/passwd");
    assert_str_eq(text_at(root, "/files/2/source"), UNKNOWN ":x");
}

/* A payload that does not fit its buffer is still one. */
TEST(a_payload_above_the_callers_limit_is_told)
{
    auto_bench struct bench b = {};
    char id[ID_LEN + 1];

    bench_begin(&b);
    bench_start(&b);
    session_make(&b, id);
    b.payload.max = 100;
    tool_do(&b, "execute_code", "{\"session_id\":\"%s\",\"code\":\"1\"}", id);
    assert_false(b.success);
    assert_str_has(buf_str(&b.payload), "MemoryError");
}
