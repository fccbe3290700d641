/* SPDX-License-Identifier: MIT */
/* The reducer: replace by id, append, remove, remove all; all or nothing. */
#include "agent/message.h"

#include "tests/lib/test.h"

static int apply(struct transcript *t, const char *text, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;

    assert_ok(json_parse(text, strlen(text), &doc, reterr), *reterr);
    return transcript_apply(t, yyjson_doc_get_root(doc), reterr);
}

/* "id:text id:text ..." of what is in it. */
static void expect(const struct transcript *t, const char *want)
{
    auto_buf struct buf got;
    struct error err = {};

    buf_init(&got, KIB);
    for (size_t i = 0; i < t->count; i++) {
        assert_int_eq(buf_printf(&got, "%s%s:", i ? " " : "", t->items[i]->id), 0);
        assert_ok(message_text(t->items[i], &got, &err), err);
    }
    assert_str_eq(buf_str(&got), want);
}

#define H(id, text) "{\"type\":\"human\",\"id\":\"" id "\",\"content\":\"" text "\"}"
#define R(id) "{\"type\":\"remove\",\"id\":\"" id "\"}"

static void begin(struct transcript *t)
{
    struct error err = {};

    assert_ok(apply(t, "[" H("a", "1") "," H("b", "2") "," H("c", "3") "]", &err), err);
    expect(t, "a:1 b:2 c:3");
}

TEST(a_known_id_is_replaced_and_others_are_appended)
{
    auto_transcript struct transcript t = {};
    struct error err = {};

    begin(&t);
    assert_ok(apply(&t, "[" H("d", "4") "," H("b", "two") "," H("d", "four") "]", &err), err);
    expect(&t, "a:1 b:two c:3 d:four");
    assert_ok(apply(&t, H("e", "5"), &err), err);
    expect(&t, "a:1 b:two c:3 d:four e:5");
}

TEST(a_list_of_texts_is_a_list_of_messages)
{
    auto_transcript struct transcript t = {};
    struct error err = {};

    assert_ok(apply(&t, "[\"user\",\"hi\",[\"ai\",\"yes\"]]", &err), err);
    assert_uint_eq(t.count, 3);
    assert_int_eq(t.items[1]->type, MESSAGE_HUMAN);
    assert_int_eq(t.items[2]->type, MESSAGE_AI);
    assert_ok(apply(&t, "[]", &err), err);
    assert_ok(apply(&t, "\"more\"", &err), err);
    assert_uint_eq(t.count, 4);
}

TEST(removing)
{
    auto_transcript struct transcript t = {};
    struct error err = {};

    begin(&t);
    assert_ok(
        apply(&t, "[" R("b") "," H("x", "9") "," R("x") "," R("c") "," H("c", "new") "]", &err),
        err);
    expect(&t, "a:1 c:new");
    assert_int_eq(apply(&t, "[" H("y", "1") "," R("b") "]", &err), -ERR_INVALID);
    assert_str_has(err.text, "'b'");
    expect(&t, "a:1 c:new");
}

TEST(removing_all)
{
    auto_transcript struct transcript t = {};
    struct error err = {};

    begin(&t);
    assert_ok(apply(&t, "[" H("d", "4") "," R("nobody") "," R("__remove_all__") "," H("a", "A") "]",
                    &err),
              err);
    expect(&t, "a:A");
    assert_ok(apply(&t, R("__remove_all__"), &err), err);
    assert_uint_eq(t.count, 0);
}

TEST(one_bad_message_changes_nothing)
{
    auto_transcript struct transcript t = {};
    struct error err = {};

    begin(&t);
    assert_int_eq(apply(&t, "[" H("a", "x") ",{\"type\":\"ai\",\"tool_calls\":1}]", &err),
                  -ERR_INVALID);
    assert_str_has(err.text, "messages[1]: tool_calls");
    expect(&t, "a:1 b:2 c:3");
}

TEST(adding_a_message_shares_it)
{
    auto_transcript struct transcript t = {}, copy = {};
    struct error err = {};

    begin(&t);
    assert_ok(transcript_copy(&t, &copy, &err), err);
    assert_ok(transcript_add(&copy, t.items[1], &err), err);
    assert_uint_eq(copy.count, 3);
    assert_ptr_eq(copy.items[1], t.items[1]);
    assert_uint_eq(t.items[1]->refs, 2);
}

TEST(writing_gives_the_texts_of_the_messages)
{
    auto_transcript struct transcript t = {};
    auto_buf struct buf out, small;
    struct error err = {};

    buf_init(&out, KIB);
    buf_init(&small, 20);
    assert_ok(transcript_write(&t, &out, &err), err);
    assert_str_eq(buf_str(&out), "[]");
    assert_ok(apply(&t, "[" R("__remove_all__") "," H("a", "1") "," H("b", "2") "]", &err), err);
    buf_clear(&out);
    assert_ok(transcript_write(&t, &out, &err), err);
    assert_uint_eq(out.len, 3 + t.items[0]->len + t.items[1]->len);
    assert_str_has(buf_str(&out), "},{\"type\":\"human\",\"content\":\"2\",\"id\":\"b\"");
    assert_int_eq(transcript_write(&t, &small, &err), -ERR_LIMIT);
}

TEST(the_number_of_messages_is_limited)
{
    auto_transcript struct transcript t = {};
    struct error err = {};
    struct message *m;

    begin(&t);
    m = t.items[0];
    while (t.count < TRANSCRIPT_MAX)
        assert_ok(transcript_append(&t, m, &err), err);
    assert_int_eq(transcript_append(&t, m, &err), -ERR_LIMIT);
    assert_str_has(err.text, "100000");
}
