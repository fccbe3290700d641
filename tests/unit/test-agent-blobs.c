/* SPDX-License-Identifier: MIT */
/* Large displays: out of payloads into the store, and back for clients and models. */
#include "base/str.h"
#include "tests/lib/storetest.h"
#include "tests/lib/viewtest.h"

static const char thread_id[] = "6ba7b811-9dad-41d1-80b4-00c04fd430c8";

static void thread_open(struct storetest *t, const char *id)
{
    const struct store_thread thread = {.id = id, .owner = "ann", .metadata = "{}"};
    struct store_thread made;
    auto_arena struct arena arena;
    struct error err = {0};

    arena_init(&arena, MIB);
    if (!t->store)
        storetest_open(t);
    assert_ok(store_thread_create(t->store, &thread, true, &arena, &made, &err), err);
}

/* A payload with two pictures (one of them small), a page, a figure, and a result. */
static void payload_make(struct buf *ret)
{
    auto_buf struct buf png, small;
    char page[9001];

    buf_init(&png, MIB);
    buf_init(&small, MIB);
    viewtest_png(&png, 640, 480, 20000);
    viewtest_png(&small, 32, 16, 100);
    memset(page, 'p', sizeof(page) - 1);
    page[sizeof(page) - 1] = 0;
    assert_int_eq(
        buf_printf(ret,
                   "{\"success\":true,\"result\":{\"text/plain\":\"%s\",\"text/html\":\"%s\"},"
                   "\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"%s\",\"metadata\":{"
                   "\"k\":1.0}},{\"type\":\"image/png\",\"data\":\"%s\"},{\"type\":\"text/html\","
                   "\"data\":\"%s\",\"text\":\"a page\"},{\"type\":"
                   "\"application/vnd.plotly.v1+json\",\"data\":{\"data\":[1,\"%s\"]}}],"
                   "\"duration_ms\":1.5}",
                   page, page, buf_str(&png), buf_str(&small), page, page),
        0);
}

static void extract(struct storetest *t, struct buf *payload, struct buf *ret)
{
    struct error err = {0};

    buf_init(payload, MIB);
    buf_init(ret, MIB);
    thread_open(t, thread_id);
    payload_make(payload);
    assert_ok(view_extract(buf_str(payload), payload->len, t->store, thread_id, ret, &err), err);
}

static struct message *tool_message(const struct buf *content)
{
    const struct message_tool_result result = {.name = "execute_code",
                                               .tool_call_id = "1",
                                               .content = buf_str(content),
                                               .len = content->len};
    struct message *m = NULL;
    struct error err = {0};

    assert_ok(message_make_tool(&result, &m, &err), err);
    return m;
}

TEST(large_displays_become_references)
{
    auto_storetest struct storetest t = {0};
    auto_buf struct buf payload, kept;

    extract(&t, &payload, &kept);
    assert_true(kept.len < 12000);
    assert_str_has(buf_str(&kept), "\"size\":26744,\"width\":640,\"height\":480,\"metadata\":{");
    assert_str_has(buf_str(&kept), "{\"type\":\"text/html\",\"blob\":\"");
    assert_str_has(buf_str(&kept), "\"size\":9000,\"text\":\"a page\"}");
    assert_str_has(buf_str(&kept), ",\"json\":true}");
    assert_str_has(buf_str(&kept), "{\"success\":true,\"result\":{\"text/plain\":\"ppp");
    assert_str_has(buf_str(&kept), "],\"duration_ms\":1.5}");
}

TEST(what_is_small_or_no_payload_stays)
{
    static const char *const texts[] = {
        "",
        "{\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"AAAA\"}]}",
        "no JSON",
    };
    auto_storetest struct storetest t = {0};
    struct error err = {0};

    thread_open(&t, thread_id);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_buf struct buf kept;

        buf_init(&kept, MIB);
        assert_ok(view_extract(texts[i], strlen(texts[i]), t.store, thread_id, &kept, &err), err);
        assert_str_eq(buf_str(&kept), texts[i]);
    }
}

TEST(inlining_gives_the_payload_back)
{
    auto_storetest struct storetest t = {0};
    auto_buf struct buf payload, kept, text;
    auto_message struct message *m = NULL, *whole = NULL;
    struct error err = {0};

    extract(&t, &payload, &kept);
    m = tool_message(&kept);
    m->ref = 7;
    assert_ok(view_inline(m, t.store, thread_id, &whole, &err), err);
    buf_init(&text, MIB);
    assert_ok(message_text(whole, &text, &err), err);
    assert_str_eq(buf_str(&text), buf_str(&payload));
    assert_str_eq(whole->id, m->id);
    assert_int_eq(whole->ref, 7);
}

TEST(another_thread_gets_nothing)
{
    static const char other[] = "6ba7b811-9dad-41d1-80b4-00c04fd430c9";
    auto_storetest struct storetest t = {0};
    auto_buf struct buf payload, kept;
    auto_message struct message *m = NULL, *same = NULL;
    struct error err = {0};

    extract(&t, &payload, &kept);
    thread_open(&t, other);
    m = tool_message(&kept);
    assert_ok(view_inline(m, t.store, other, &same, &err), err);
    assert_ptr_eq(same, m);
}

TEST(a_message_without_references_is_itself)
{
    auto_buf struct buf text;
    auto_message struct message *m = NULL, *same = NULL;
    struct error err = {0};

    buf_init(&text, KIB);
    assert_int_eq(buf_append_str(&text, "{\"display_outputs\":[]}"), 0);
    m = tool_message(&text);
    assert_ok(view_inline(m, NULL, thread_id, &same, &err), err);
    assert_ptr_eq(same, m);
    assert_uint_eq(m->refs, 2);
}

static void seen(struct storetest *t, const struct buf *kept, const char *id, struct buf *ret)
{
    const struct view_options options = {.images = true, .store = t->store, .thread_id = id};
    auto_transcript struct transcript list = {0};
    auto_message struct message *m = tool_message(kept);
    auto_arena struct arena arena;
    struct llm_message *messages;
    size_t count;
    struct error err = {0};

    arena_init(&arena, 64 * MIB);
    buf_init(ret, MIB);
    viewtest_load(&list,
                  "[\"hi\",{\"type\":\"ai\",\"tool_calls\":[{\"name\":\"f\",\"id\":\"1\"}]}]");
    assert_ok(transcript_append(&list, m, &err), err);
    assert_ok(view_make(&list, &options, &arena, &messages, &count, &err), err);
    viewtest_render(ret, messages, count);
}

TEST(a_model_gets_the_pictures_and_notes_of_the_rest)
{
    auto_storetest struct storetest t = {0};
    auto_buf struct buf payload, kept, text, lost;

    extract(&t, &payload, &kept);
    seen(&t, &kept, thread_id, &text);
    assert_str_has(buf_str(&text),
                   "\"display_outputs_summary\":[\"image/png, 640x480, shown to the user\",\"image/"
                   "png, 32x16, shown to the user\",\"text/html, 9000 bytes, shown to the user: a "
                   "page\",\"application/vnd.plotly.v1+json, 9015 bytes, shown to the user\"]");
    assert_str_has(buf_str(&text), "\"text/html\":\"text/html, 9000 bytes, shown to the user\"}");
    assert_str_has(buf_str(&text), "1.5}][image image/png 26744][image image/png 212]");
    seen(&t, &kept, "6ba7b811-9dad-41d1-80b4-00c04fd430c9", &lost);
    assert_true(str_ends(buf_str(&lost), "1.5}][image image/png 212]"));
}
