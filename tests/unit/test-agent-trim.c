/* SPDX-License-Identifier: MIT */
/* Conversations that are longer than a window: what stays, and that it stays a conversation. */
#include "base/str.h"
#include "tests/lib/viewtest.h"

#include <stdio.h>

/* A conversation of `turns` turns with `steps` calls in each, whose results are of `size` bytes. */
static void talk(struct transcript *t, int turns, int steps, int size)
{
    auto_buf struct buf json, text;
    int r = 0;

    buf_init(&json, 64 * MIB);
    buf_init(&text, MIB);
    assert_int_eq(buf_reserve(&text, (size_t)size), 0);
    memset(text.data, 'r', (size_t)size);
    text.len = (size_t)size;
    for (int i = 0; i < turns; i++) {
        r |= buf_printf(&json, "%s{\"type\":\"human\",\"content\":\"question %d\"}", i ? "," : "[",
                        i);
        for (int n = 0; n < steps; n++)
            r |= buf_printf(&json,
                            ",{\"type\":\"ai\",\"content\":\"step %d.%d\",\"tool_calls\":[{"
                            "\"name\":\"f\",\"args\":{},\"id\":\"%d.%d\"}]},{\"type\":\"tool\","
                            "\"tool_call_id\":\"%d.%d\",\"content\":\"%.*s\"}",
                            i, n, i, n, i, n, (int)text.len, text.data);
        if (i + 1 < turns)
            r |= buf_printf(&json, ",{\"type\":\"ai\",\"content\":\"answer %d\"}", i);
    }
    r |= buf_append_byte(&json, ']');
    assert_int_eq(r, 0);
    viewtest_load(t, buf_str(&json));
}

/* Every result follows the message with its call, and every call has one. */
static void pairs_expect(const struct llm_message *m, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(m[i].role != LLM_TOOL);
        for (size_t n = 0, reply = i; n < m[reply].call_count; n++) {
            i++;
            assert_true(i < count && m[i].role == LLM_TOOL);
            assert_str_eq(m[i].tool_call_id, m[reply].calls[n].id);
        }
    }
}

static int64_t tokens_of(const struct llm_message *m, size_t count)
{
    int64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < m[i].part_count; n++)
            total += view_tokens(m[i].parts[n].text, strlen(m[i].parts[n].text));
    }
    return total;
}

struct seen {
    struct buf text;
    int64_t tokens;
};

static void seen_done(struct seen *s)
{
    buf_done(&s->text);
}

/* The view in a window; the invariants hold in every one. */
static void look(const struct transcript *t, int64_t window, struct seen *ret)
{
    const struct view_options options = {.window_tokens = window, .system = "be good"};
    auto_arena struct arena arena;
    struct llm_message *m = NULL;
    size_t count = 0;
    struct error err = {0};

    arena_init(&arena, 256 * MIB);
    buf_init(&ret->text, 64 * MIB);
    assert_ok(view_make(t, &options, &arena, &m, &count, &err), err);
    assert_true(count > 2 && m[0].role == LLM_SYSTEM && m[1].role == LLM_USER);
    assert_str_eq(m[1].parts[0].text, "question 0");
    pairs_expect(m, count);
    viewtest_render(&ret->text, m, count);
    ret->tokens = tokens_of(m, count);
}

#define auto_seen __attribute__((cleanup(seen_done)))

TEST(what_fits_stays_as_it_is)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};

    talk(&t, 3, 2, 4000);
    look(&t, 16000, &s);
    assert_null(strstr(buf_str(&s.text), "left out"));
}

TEST(older_results_are_cut_first)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};

    talk(&t, 3, 2, 4000);
    look(&t, 8000, &s);
    assert_str_has(buf_str(&s.text), "[... 2000 characters left out here ...]");
    for (int i = 0; i < 3; i++) {
        char question[20];

        snprintf(question, sizeof(question), "question %d", i);
        assert_str_has(buf_str(&s.text), question);
    }
    assert_null(strstr(strstr(buf_str(&s.text), "question 2"), "left out"));
    assert_true(s.tokens <= 6000);
}

TEST(then_whole_turns_go_but_not_the_first_question)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};

    talk(&t, 20, 2, 4000);
    look(&t, 8000, &s);
    assert_str_has(buf_str(&s.text), "messages that came after this one are left out here");
    assert_null(strstr(buf_str(&s.text), "question 1]"));
    assert_null(strstr(buf_str(&s.text), "answer 0"));
    assert_str_has(buf_str(&s.text), "question 19");
    assert_str_has(buf_str(&s.text), "step 19.0");
    assert_true(s.tokens <= 6000);
}

TEST(of_one_long_turn_the_newest_steps_stay)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};

    talk(&t, 1, 100, 4000);
    look(&t, 8000, &s);
    assert_null(strstr(buf_str(&s.text), "step 0.0"));
    assert_str_has(buf_str(&s.text), "step 0.99");
    assert_str_has(buf_str(&s.text), "messages that came after this one are left out here");
    assert_true(s.tokens <= 6000);
}

TEST(a_result_larger_than_the_window_is_cut)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};

    talk(&t, 1, 1, 200000);
    look(&t, 8000, &s);
    assert_str_has(buf_str(&s.text), "characters left out here");
    assert_true(s.tokens <= 6000);
}

/* "x" repeated. */
static void repeat(struct buf *ret, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_eq(buf_append_str(ret, text), 0);
}

TEST(a_result_of_many_small_texts_is_cut)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};
    auto_buf struct buf json;

    buf_init(&json, 16 * MIB);
    repeat(&json,
           "[\"question 0\",{\"type\":\"ai\",\"tool_calls\":[{\"name\":\"f\",\"id\":\"1\"}]},"
           "{\"type\":\"tool\",\"tool_call_id\":\"1\",\"content\":[\"first\"",
           1);
    repeat(&json, ",{\"type\":\"text\",\"text\":\"some words\"}", 20000);
    repeat(&json, "]}]", 1);
    viewtest_load(&t, buf_str(&json));
    look(&t, 8000, &s);
    assert_str_has(buf_str(&s.text), "[first\nsome words\n");
    assert_str_has(buf_str(&s.text), "characters left out here");
    assert_true(s.tokens <= 6000);
}

TEST(what_people_wrote_is_cut_when_nothing_else_is_left)
{
    auto_transcript struct transcript t = {0};
    auto_seen struct seen s = {0};
    auto_buf struct buf json;

    buf_init(&json, 16 * MIB);
    repeat(&json, "[[\"user\",[{\"type\":\"text\",\"text\":\"question 0\"},\"", 1);
    repeat(&json, "pasted ", 20000);
    repeat(&json, "\"]],[\"ai\",\"yes\"],\"question 1\"]", 1);
    viewtest_load(&t, buf_str(&json));
    look(&t, 8000, &s);
    assert_str_has(buf_str(&s.text), "U[question 0][pasted ");
    assert_str_has(buf_str(&s.text), "characters left out here");
    assert_true(str_ends(buf_str(&s.text), " U[question 1]"));
    assert_true(s.tokens <= 8000);
}

TEST(the_invariants_hold_in_every_window)
{
    for (int turns = 1; turns <= 7; turns += 3) {
        auto_transcript struct transcript t = {0};

        talk(&t, turns, 3, 3000);
        for (int64_t window = 1000; window < 40000; window += window / 3) {
            auto_seen struct seen s = {0}, again = {0};

            look(&t, window, &s);
            look(&t, window, &again);
            assert_str_eq(buf_str(&s.text), buf_str(&again.text));
            if (window > 2000 && s.tokens > window)
                test_fail(__FILE__, __LINE__, "%lld tokens in a window of %lld",
                          (long long)s.tokens, (long long)window);
        }
    }
}

/* What a provider has kept of the last call is worth money and time. */
TEST(the_beginning_stays_the_same_from_call_to_call)
{
    auto_buf struct buf last;
    int changes = 0;

    buf_init(&last, MIB);
    for (int steps = 20; steps < 60; steps++) {
        auto_transcript struct transcript t = {0};
        auto_seen struct seen s = {0};
        size_t shared = 0;

        talk(&t, 1, steps, 2000);
        look(&t, 8000, &s);
        while (shared < last.len && buf_str(&s.text)[shared] == buf_str(&last)[shared])
            shared++;
        changes += last.len > 0 && shared < 400;
        buf_clear(&last);
        assert_int_eq(buf_append(&last, s.text.data, s.text.len), 0);
    }
    test_note("the beginning changed in %d of 39 steps", changes);
    assert_true(changes < 25);
}
