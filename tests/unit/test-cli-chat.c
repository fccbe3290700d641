/* SPDX-License-Identifier: MIT */
/* What the chat takes apart: words of commands, results of tools, ids, places, choices. */
#include "cli/chat_command.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/chat_result.h"
#include "cli/chat_stream.h"
#include "cli/chat_words.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- words ---- */

TEST(words_are_split_as_a_person_means_them)
{
    static const struct {
        const char *text, *words[4];
    } cases[] = {
        {"/upload a b", {"/upload", "a", "b"}},
        {"  a \t b\n", {"a", "b"}},
        {"a\\ b 'c d' \"e f\"", {"a b", "c d", "e f"}},
        {"x'y z'w", {"xy zw"}},
        {"'a\\b' \"a\\\"b\"", {"a\\b", "a\"b"}},
        {"'' x", {"", "x"}},
        {"a\\", {"a\\"}},
        {"", {NULL}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_chat_words struct chat_words w = {};
        struct error error;
        size_t n = 0;

        assert_int_eq(chat_words_split(cases[i].text, &w, &error), 0);
        for (; n < 4 && cases[i].words[n]; n++)
            assert_str_eq(n < w.count ? w.words[n] : "(none)", cases[i].words[n]);
        assert_int_eq(w.count, n);
    }
}

TEST(words_have_bounds)
{
    auto_chat_words struct chat_words open = {}, many = {};
    char text[2 * CHAT_WORDS_MAX + 4];
    struct error error;

    assert_int_eq(chat_words_split("a 'b", &open, &error), -ERR_INVALID);
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = i % 2 ? ' ' : 'x';
    text[sizeof(text) - 1] = 0;
    assert_int_eq(chat_words_split(text, &many, &error), -ERR_INVALID);
}

TEST(the_last_word_of_a_line_is_found_for_completion)
{
    static const struct {
        const char *line, *word;
        size_t from;
    } cases[] = {
        {"/upl", "/upl", 0},      {"/upload ", "", 8},         {"/upload fi", "fi", 8},
        {"/upload a b", "b", 10}, {"/upload a\\ b", "a b", 8}, {"/upload 'my f", "my f", 8},
    };
    char word[64], quoted[16];
    size_t from;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_eq(chat_words_last(cases[i].line, &from, word, sizeof(word)), 0);
        assert_str_eq(word, cases[i].word);
        assert_int_eq(from, cases[i].from);
    }
    assert_int_eq(chat_words_last("a-long-word", &from, word, 4), -1);
    assert_int_eq(chat_word_quote("my file's", quoted, sizeof(quoted)), 0);
    assert_str_eq(quoted, "my\\ file\\'s");
    assert_int_eq(chat_word_quote("a b", quoted, 4), -1);
}

TEST(a_command_has_a_form_of_its_own)
{
    static const char *const yes[] = {"/new", "/model x", "/nonsense", "exit", "quit", "q"};
    static const char *const no[] = {"/tmp/x is a file",  "/",    "// a comment",
                                     "quit it",           "/New", " /new",
                                     "what does /new do", ""};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(chat_is_command(yes[i]));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(chat_is_command(no[i]));
}

/* ---- results ---- */

static void result_of(const char *json, bool failed, yyjson_doc **doc, struct chat_result *ret)
{
    (void)!json_parse(json, strlen(json), doc, NULL);
    chat_result_read(*doc, json, failed, ret);
}

TEST(a_result_tells_how_it_ended)
{
    static const struct {
        const char *json, *note;
        enum panel_state state;
        bool failed;
    } cases[] = {
        {"{\"success\":true,\"status\":\"ok\",\"stdout\":\"x\",\"duration_ms\":304.9}",
         "ok · 0.30 s", PANEL_OK, false},
        {"{\"success\":false,\"status\":\"error\",\"state\":\"kept\",\"stdout\":\"\","
         "\"error\":{\"type\":\"NameError\"},\"duration_ms\":12000}",
         "error: NameError · 12.0 s", PANEL_ERROR, true},
        {"{\"success\":false,\"status\":\"died\",\"state\":\"lost\",\"cause\":\"exit:3\","
         "\"stdout\":\"\"}",
         "died · exit:3 · variables lost", PANEL_ERROR, true},
        {"{\"success\":false,\"status\":\"timeout\",\"stdout\":\"\"}", "timed out", PANEL_WARNING,
         true},
        {"{\"success\":false,\"status\":\"strange\",\"stdout\":\"\"}", "strange", PANEL_ERROR,
         true},
        {"{\"success\":true,\"session_id\":\"0123456789\",\"runtime\":\"r\"}",
         "ok · r · session 01234567", PANEL_OK, false},
        {"{\"success\":true,\"files\":[{},{}]}", "ok · 2 files", PANEL_OK, false},
        {"{\"success\":false,\"error\":\"no\"}", "error", PANEL_ERROR, false},
        {"no JSON", "error", PANEL_ERROR, true},
        {"[1]", "ok", PANEL_OK, false},
        {"{\"status\":3,\"stdout\":[],\"files\":7,\"error\":[]}", "ok", PANEL_OK, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_json yyjson_doc *doc = NULL;
        struct chat_result r;

        result_of(cases[i].json, cases[i].failed, &doc, &r);
        if (test_is_torture() && !doc)
            continue;
        assert_str_eq(r.note, cases[i].note);
        assert_int_eq(r.state, cases[i].state);
    }
}

TEST(times_and_sizes_are_short)
{
    char text[32];

    chat_time_format(4.2, text, sizeof(text));
    assert_str_eq(text, "0.00 s");
    chat_time_format(125000, text, sizeof(text));
    assert_str_eq(text, "2 min 5 s");
    chat_size_format(999, text, sizeof(text));
    assert_str_eq(text, "999 bytes");
    chat_size_format(12345, text, sizeof(text));
    assert_str_eq(text, "12 kB");
    chat_size_format(UINT64_MAX, text, sizeof(text));
    assert_str_has(text, "TB");
}

/* ---- memory ---- */

TEST(what_was_seen_is_known)
{
    auto_cleanup(chat_memory_done) struct chat_memory m = {};
    char id[32];

    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        if (chat_memory_see(&m, id) != 1) {
            assert_true(test_is_torture());
            return;
        }
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        assert_true(chat_memory_has(&m, id));
        assert_int_eq(chat_memory_see(&m, id), 0);
    }
    assert_false(chat_memory_has(&m, "id-2000"));
    assert_int_eq(chat_memory_see(&m, ""), 0);
    assert_int_eq(chat_memory_see(&m, NULL), 0);
}

TEST(languages_of_sessions_are_learnt)
{
    static const char json[] = "{\"session_id\":\"a\",\"runtime\":\"python\",\"active_sessions\":["
                               "{\"session_id\":\"b\",\"runtime\":\"node\"},{\"session_id\":3},7],"
                               "\"sessions\":[{\"session_id\":\"a\",\"runtime\":\"r\"}]}";
    auto_cleanup(chat_memory_done) struct chat_memory m = {};
    auto_json yyjson_doc *doc = NULL;

    if (json_parse(json, strlen(json), &doc, NULL) < 0)
        return;
    chat_memory_learn(&m, yyjson_doc_get_root(doc));
    assert_str_eq(chat_memory_runtime(&m, "a"), "r");
    assert_str_eq(chat_memory_runtime(&m, "b"), "node");
    assert_str_eq(chat_memory_runtime(&m, "c"), "");
    assert_int_eq(chat_memory_sessions(&m), 2);
    chat_memory_learn(&m, NULL);
}

/* ---- the run's id ---- */

TEST(a_runs_id_is_taken_from_its_location)
{
    char id[64];

    assert_int_eq(chat_location_run("/threads/t/runs/01a2-b3", id, sizeof(id)), 0);
    assert_str_eq(id, "01a2-b3");
    assert_int_eq(chat_location_run("http://h/threads/t/runs/01a2/stream?x", id, sizeof(id)), 0);
    assert_str_eq(id, "01a2");
    assert_int_eq(chat_location_run("/threads/t/runs/../x", id, sizeof(id)), -1);
    assert_int_eq(chat_location_run("/threads/t/runs/", id, sizeof(id)), -1);
    assert_int_eq(chat_location_run("", id, sizeof(id)), -1);
    assert_int_eq(chat_location_run("/runs/0123456789", id, 5), -1);
}

/* ---- places ---- */

TEST(the_thread_and_displays_are_kept)
{
    auto_cleanup(chat_place_done) struct chat_place p = {.dir = -1};
    char id[CHAT_THREAD_SIZE], path[PATH_LEN], other[PATH_LEN];
    auto_fd int first = -1, second = -1;
    struct error error;
    struct stat st;

    assert_true(str_copy(p.path, sizeof(p.path), test_dir()) == 0);
    p.dir = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    chat_place_thread_load(&p, id);
    assert_str_eq(id, "");
    if (p.dir < 0 || chat_place_thread_save(&p, "the-thread_1", &error) < 0) {
        assert_true(test_is_torture());
        return;
    }
    chat_place_thread_load(&p, id);
    if (!test_is_torture())
        assert_str_eq(id, "the-thread_1");
    assert_int_eq(chat_place_display_create(&p, "../up", "png", path, &error), -ERR_INVALID);
    first = chat_place_display_create(&p, "t", "png", path, &error);
    second = chat_place_display_create(&p, "t", "png", other, &error);
    if (first < 0 || second < 0 || fstat(first, &st) < 0) {
        assert_true(test_is_torture());
        return;
    }
    assert_true(str_ends(path, "/displays/t/001.png") && str_ends(other, "/displays/t/002.png"));
    assert_int_eq(st.st_mode & 0777, 0600);
}

/* ---- choices ---- */

TEST(choices_go_with_a_run_and_only_those)
{
    auto_cleanup(chat_config_done) struct chat_config c;
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *config;

    chat_config_init(&c);
    assert_null(chat_config_write(&c, doc));
    if (!doc || chat_config_set(&c.key, "k") < 0 || chat_config_set(&c.base_url, "http://x") < 0)
        return;
    c.vision = 0;
    config = yyjson_mut_obj_get(chat_config_write(&c, doc), "configurable");
    if (test_is_torture())
        return;
    assert_int_eq(yyjson_mut_obj_size(config), 3);
    assert_str_eq(yyjson_mut_get_str(yyjson_mut_obj_get(config, "chat_model_api_key")), "k");
    assert_true(yyjson_mut_is_false(yyjson_mut_obj_get(config, "chat_model_supports_vision")));
    assert_int_eq(chat_config_set(&c.key, NULL), 0);
    assert_null(c.key);
}
