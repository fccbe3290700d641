/* SPDX-License-Identifier: MIT */
/*
 * Payloads to MCP results. The sandbox is a peer that plays the reducing program. Whatever goes in,
 * the message stays below its limit, holds no base64 outside of blocks, and no empty block.
 */
#include "base/base64.h"
#include "base/str.h"
#include "mcp/content.h"
#include "mcp/displays.h"
#include "tests/lib/fake-engine.h"

#include <stdio.h>

enum { MESSAGE_MAX = 1048576, MESSAGE_ROOM = 8192 };

/* A PNG by its structure; nobody here decodes it. */
static const unsigned char png_start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
static const unsigned char png_end[] = "\0\0\0\0IENDcrc.";

/* Out of the scope that would release it. */
static struct buf buf_move(struct buf *b)
{
    struct buf moved = *b;

    buf_init(b, 0);
    return moved;
}

static struct buf png_of(uint32_t width, uint32_t height, size_t data_len)
{
    unsigned char size[8], len[4];
    auto_buf struct buf b;
    int r;

    buf_init(&b, 64 * MIB);
    for (int i = 0; i < 4; i++) {
        size[i] = (unsigned char)(width >> (24 - 8 * i));
        size[4 + i] = (unsigned char)(height >> (24 - 8 * i));
        len[i] = (unsigned char)(data_len >> (24 - 8 * i));
    }
    r = buf_append(&b, png_start, sizeof(png_start) - 1) | buf_append(&b, size, 8) |
        buf_append(&b, "\x08\x02\0\0\0crc.", 9) | buf_append(&b, len, 4) |
        buf_append(&b, "IDAT", 4);
    for (size_t i = 0; i < data_len; i++)
        r |= buf_append_byte(&b, (unsigned char)(i * 7));
    r |= buf_append(&b, "crc.", 4) | buf_append(&b, png_end, sizeof(png_end) - 1);
    assert_int_eq(r, 0);
    return buf_move(&b);
}

/* ---- the setting ---- */

struct setting {
    struct world world;
    struct displays *displays;
    char session_id[ID_LEN + 1];
    struct content_limits limits;
    bool success;
};

static void setting_init(struct setting *s)
{
    struct error err;

    s->success = true;
    world_init(&s->world);
    world_start(&s->world);
    memcpy(s->session_id, world_session(&s->world, "me").id, sizeof(s->session_id));
    assert_ok(displays_new(DISPLAYS_BYTES, &s->displays, &err), err);
}

static void setting_done(struct setting *s)
{
    displays_free(s->displays);
    world_end(&s->world);
}

#define auto_setting __attribute__((cleanup(setting_done)))

/* The result as it is on the line, parsed again; and how long the line is. */
struct shown {
    yyjson_doc *doc;
    yyjson_val *content, *structured;
    const char *text;
    size_t len;
};

static void shown_done(struct shown *s)
{
    yyjson_doc_free(s->doc);
}

#define auto_shown __attribute__((cleanup(shown_done)))

static void blocks_check(const struct shown *s)
{
    size_t i, max;
    yyjson_val *block;

    yyjson_arr_foreach(s->content, i, max, block)
    {
        const char *type = json_get_str(block, "type", "");

        if (strcmp(type, "image") == 0 || strcmp(type, "audio") == 0)
            assert_true(json_get_str(block, "data", "")[0]);
        else if (strcmp(type, "resource_link") == 0)
            assert_true(str_starts(json_get_str(block, "uri", ""), "sandbox://"));
        else
            assert_int_eq(i, 0);
    }
}

static struct shown format(struct setting *s, const char *json, size_t len)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    const struct content_context context = {s->world.m, s->displays, "me", s->limits};
    const struct content_payload payload = {s->session_id, json, len, s->success};
    struct shown shown = {};
    auto_buf struct buf line;
    struct error err = {};
    yyjson_val *root;

    buf_init(&line, 64 * MIB);
    yyjson_mut_doc_set_root(doc, result);
    assert_ok(content_format(&context, &payload, doc, result, &err), err);
    assert_ok(json_mut_write(doc, &line, &err), err);
    assert_true(line.len + MESSAGE_ROOM < MESSAGE_MAX && !memchr(line.data, '\n', line.len));
    assert_ok(json_parse(line.data, line.len, &shown.doc, &err), err);
    root = yyjson_doc_get_root(shown.doc);
    shown.len = line.len;
    shown.content = yyjson_obj_get(root, "content");
    shown.structured = yyjson_obj_get(root, "structuredContent");
    shown.text = json_get_str(yyjson_arr_get_first(shown.content), "text", NULL);
    assert_not_null(shown.text);
    assert_true(yyjson_is_obj(shown.structured));
    assert_true(json_get_bool(root, "isError", s->success) == !s->success);
    blocks_check(&shown);
    return shown;
}

static struct shown format_text(struct setting *s, const char *json)
{
    return format(s, json, strlen(json));
}

/* The n-th block of a type, or NULL. */
static yyjson_val *block_of(const struct shown *s, const char *type, size_t n)
{
    size_t i, max;
    yyjson_val *block;

    yyjson_arr_foreach(s->content, i, max, block)
    {
        if (strcmp(json_get_str(block, "type", ""), type) == 0 && n-- == 0)
            return block;
    }
    return NULL;
}

static yyjson_val *display_of(const struct shown *s, size_t n)
{
    return yyjson_arr_get(yyjson_obj_get(s->structured, "display_outputs"), n);
}

static void append_base64(struct buf *to, const struct buf *bytes)
{
    assert_int_eq(base64_encode(to, bytes->data, bytes->len), 0);
}

static void append(struct buf *to, const char *text)
{
    assert_int_eq(buf_append_str(to, text), 0);
}

/* {"success":true,"stdout":"","display_outputs":[ the given pictures ]} */
static struct buf payload_of(const char *mime, const struct buf *pictures, size_t count)
{
    struct buf b;

    buf_init(&b, 64 * MIB);
    append(&b, "{\"success\":true,\"stdout\":\"hi\",\"result\":null,\"display_outputs\":[");
    for (size_t i = 0; i < count; i++) {
        assert_int_eq(buf_printf(&b, "%s{\"type\":\"%s\",\"data\":\"", i ? "," : "", mime), 0);
        append_base64(&b, &pictures[i]);
        append(&b, "\"}");
    }
    append(&b, "]}");
    return b;
}

/* ---- what stays ---- */

TEST(a_payload_without_displays_is_embedded_as_it_is)
{
    static const char *const payloads[] = {
        "{\"success\":true,\"stdout\":\"a\\n\\u001B\\\"\",\"result\":{\"text/plain\":\"1\"},"
        "\"display_outputs\":[],\"duration_ms\":0.125}",
        "{\"session_id\":\"x\",\"runtime\":\"python\"}",
        "{\"success\":true,\"result\":{\"text/plain\":\"df\",\"text/html\":\"<table>\"},"
        "\"display_outputs\":[{\"type\":\"text/markdown\",\"data\":\"# x\"}]}",
    };
    auto_setting struct setting s = {};

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        auto_shown struct shown shown = format_text(&s, payloads[i]);
        auto_buf struct buf again;

        buf_init(&again, 4096);
        assert_ok(json_write(shown.structured, &again, NULL), (struct error){});
        assert_str_eq(shown.text, payloads[i]);
        assert_str_eq(buf_str(&again), payloads[i]);
        assert_uint_eq(yyjson_arr_size(shown.content), 1);
    }
}

TEST(a_failure_is_an_error_for_the_client)
{
    auto_setting struct setting s = {};
    auto_shown struct shown shown = {};

    setting_init(&s);
    s.success = false;
    shown = format_text(&s, "{\"success\":false,\"error\":\"INVALID_INPUT\"}");
    assert_str_has(shown.text, "INVALID_INPUT");
}

TEST(what_is_no_object_is_said_to_be_left_out)
{
    static const char *const bad[] = {"[1]", "nonsense", "", "{\"a\":"};
    auto_setting struct setting s = {};

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_shown struct shown shown = format_text(&s, bad[i]);

        assert_str_has(shown.text, "left out");
    }
}

/* ---- pictures ---- */

TEST(a_small_picture_is_shown_unchanged)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(640, 480, 5000), payload = payload_of("image/png", &png, 1);
    auto_buf struct buf data;
    auto_shown struct shown shown = {};
    auto_display struct display *kept = NULL;
    yyjson_val *block, *item;

    setting_init(&s);
    shown = format(&s, payload.data, payload.len);
    block = block_of(&shown, "image", 0);
    assert_not_null(block);
    assert_str_eq(json_get_str(block, "mimeType", ""), "image/png");
    buf_init(&data, 10000);
    assert_int_eq(base64_decode(&data, json_get_str(block, "data", ""),
                                strlen(json_get_str(block, "data", ""))),
                  0);
    assert_uint_eq(data.len, png.len);
    assert_mem_eq(data.data, png.data, png.len);
    assert_null(block_of(&shown, "resource_link", 0));
    item = display_of(&shown, 0);
    assert_str_eq(json_get_str(item, "type", ""), "image/png");
    assert_null(yyjson_obj_get(item, "data"));
    assert_uint_eq(yyjson_get_uint(yyjson_obj_get(item, "width")), 640);
    assert_uint_eq(yyjson_get_uint(yyjson_obj_get(item, "size")), png.len);
    kept = displays_get(s.displays, json_get_str(item, "uri", ""));
    assert_not_null(kept);
    assert_uint_eq(kept->len, png.len);
    assert_str_has(shown.text, json_get_str(item, "uri", "?"));
}

TEST(the_kind_is_what_the_bytes_are)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(64, 48, 50), payload = payload_of("image/jpeg", &png, 1);
    auto_shown struct shown shown = {};

    setting_init(&s);
    shown = format(&s, payload.data, payload.len);
    assert_str_eq(json_get_str(block_of(&shown, "image", 0), "mimeType", ""), "image/png");
    assert_str_eq(json_get_str(display_of(&shown, 0), "type", ""), "image/png");
    assert_true(str_ends(json_get_str(display_of(&shown, 0), "uri", ""), ".png"));
}

TEST(a_picture_in_the_result_map_is_shown_too)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(64, 48, 50), payload;
    auto_shown struct shown shown = {};
    yyjson_val *result;

    setting_init(&s);
    buf_init(&payload, MIB);
    append(&payload, "{\"success\":true,\"result\":{\"image/png\":\"");
    append_base64(&payload, &png);
    append(&payload, "\",\"text/plain\":\"<Figure>\"},\"display_outputs\":[]}");
    shown = format(&s, payload.data, payload.len);
    result = yyjson_obj_get(shown.structured, "result");
    assert_not_null(block_of(&shown, "image", 0));
    assert_str_eq(json_get_str(result, "text/plain", ""), "<Figure>");
    assert_uint_eq(yyjson_get_uint(yyjson_obj_get(yyjson_obj_get(result, "image/png"), "size")),
                   png.len);
}

/* Plays the program that reduces: answers the next SPAWN with `answer`. */
struct reducer {
    struct peer *peer;
    const struct buf *answer;
    const char *reason;
    char argv[3][64];
    size_t runs;
    pthread_t thread;
};

static void reducer_answer(struct reducer *r, const struct peer_frame *spawn)
{
    struct peer_frame *in;

    do
        in = peer_take_within(r->peer, FRAME_INPUT, PEER_WAIT_MS);
    while (in && in->len);
    for (size_t at = 0; r->answer && at < r->answer->len; at += FRAME_BULK_MAX)
        peer_send(r->peer, FRAME_STDOUT, spawn->stream, r->answer->data + at,
                  MIN(r->answer->len - at, (size_t)FRAME_BULK_MAX));
    if (r->reason)
        peer_send_text(r->peer, FRAME_STDERR, spawn->stream, r->reason);
    if (r->answer)
        peer_end_with(r->peer, spawn->stream, "status=ok");
    else
        peer_end_with(r->peer, spawn->stream, "status=error", "cause=exit:1");
    r->runs++;
}

static void *reducer_main(void *arg)
{
    struct reducer *r = arg;
    struct peer_frame *spawn;

    while ((spawn = peer_take_within(r->peer, FRAME_SPAWN, r->runs ? 300 : PEER_WAIT_MS))) {
        struct fields f = {.data = spawn->text, .len = MIN(spawn->len, (size_t)PEER_TEXT)};
        struct field field;
        size_t pos = 0, n = 0;

        while (n < 3 && fields_next(&f, &pos, &field, NULL) > 0) {
            if (field_is(&field, "argv"))
                snprintf(r->argv[n++], sizeof(r->argv[0]), "%.*s", (int)MIN(field.len, 60u),
                         field.value);
        }
        reducer_answer(r, spawn);
    }
    return NULL;
}

static struct shown format_reduced(struct setting *s, struct reducer *r, const struct buf *payload)
{
    struct shown shown;

    r->peer = fake_peer(&s->world.engine, 0);
    assert_int_eq(pthread_create(&r->thread, NULL, reducer_main, r), 0);
    shown = format(s, payload->data, payload->len);
    pthread_join(r->thread, NULL);
    return shown;
}

TEST(a_large_picture_is_reduced_in_the_sandbox)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(3000, 2000, 600000), small = png_of(1568, 1045, 3000);
    auto_buf struct buf payload = payload_of("image/png", &png, 1);
    struct reducer r = {.answer = &small};
    auto_shown struct shown shown = {};
    yyjson_val *link;

    setting_init(&s);
    shown = format_reduced(&s, &r, &payload);
    assert_uint_eq(r.runs, 1);
    assert_str_eq(r.argv[0], "/opt/sandbox-agent/kernel/shrink");
    assert_str_eq(r.argv[1], "1568");
    assert_str_eq(r.argv[2], "500000");
    assert_not_null(block_of(&shown, "image", 0));
    link = block_of(&shown, "resource_link", 0);
    assert_not_null(link);
    assert_uint_eq(yyjson_get_uint(yyjson_obj_get(link, "size")), png.len);
    assert_str_has(json_get_str(link, "name", ""), "display-1.png");
    assert_str_has(json_get_str(link, "description", ""), "3000 x 2000");
    assert_str_has(json_get_str(display_of(&shown, 0), "note", ""), "a copy of 1568 x 1045");
}

/* The program runs among hostile code: its answer and its words may be anything. */
TEST(an_answer_that_was_not_asked_for_is_not_shown)
{
    auto_buf struct buf png = png_of(3000, 2000, 60000);
    auto_buf struct buf wide = png_of(3000, 10, 30), huge = png_of(100000, 100000, 30);
    auto_buf struct buf cut = png_of(100, 100, 300), much = png_of(100, 100, 500001), junk, none;
    const struct buf *const answers[] = {&wide, &huge, &cut, &much, &junk, &none};
    auto_setting struct setting s = {};
    auto_buf struct buf payload = payload_of("image/png", &png, 1);

    cut.len -= 20;
    buf_init(&none, 1);
    buf_init(&junk, 100);
    append(&junk, "<svg onload=alert(1)>");
    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct reducer r = {.answer = answers[i]};
        auto_shown struct shown shown = format_reduced(&s, &r, &payload);

        assert_uint_eq(r.runs, 1);
        assert_null(block_of(&shown, "image", 0));
        assert_not_null(block_of(&shown, "resource_link", 0));
        assert_str_has(json_get_str(display_of(&shown, 0), "note", ""), "could not be reduced");
    }
}

TEST(the_reason_of_a_failure_may_be_any_bytes)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(3000, 2000, 60000);
    auto_buf struct buf payload = payload_of("image/png", &png, 1);
    struct reducer r = {.reason = "\xff\xfe\x01\"\\ no\nnext"};
    auto_shown struct shown shown = {};

    setting_init(&s);
    shown = format_reduced(&s, &r, &payload);
    assert_null(block_of(&shown, "image", 0));
    assert_str_has(json_get_str(display_of(&shown, 0), "note", ""), "\"\\ no)");
}

TEST(a_session_that_is_gone_leaves_the_link)
{
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(3000, 2000, 60000);
    auto_buf struct buf payload = payload_of("image/png", &png, 1);
    auto_shown struct shown shown = {};

    setting_init(&s);
    assert_ok(session_stop(s.world.m, s.session_id, NULL, NULL), (struct error){});
    shown = format(&s, payload.data, payload.len);
    assert_null(block_of(&shown, "image", 0));
    assert_not_null(block_of(&shown, "resource_link", 0));
}

/* FIL-24: no program is started for them, and the model gets a link. */
TEST(a_bomb_is_only_a_link)
{
    static const char gif_frame[] = ",\0\0\0\0\1\0\1\0\0\2\1x\0";
    auto_setting struct setting s = {};
    auto_buf struct buf bomb = png_of(100000, 100000, 10000), cut = png_of(100, 100, 300), gif;
    const char *notes[] = {"too many to be shown", "cut off", "frames", "cannot be read"};
    struct buf all[4];

    buf_init(&gif, 4 * MIB);
    assert_int_eq(buf_append(&gif, "GIF89a\1\0\1\0\0\0\0", 13), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_eq(buf_append(&gif, gif_frame, sizeof(gif_frame) - 1), 0);
    append(&gif, ";");
    cut.len -= 12;
    all[0] = bomb;
    all[1] = cut;
    all[2] = gif;
    all[3] = (struct buf){.data = (char *)(uintptr_t)"junk", .len = 4};
    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        auto_buf struct buf payload = payload_of("image/png", &all[i], 1);
        auto_shown struct shown shown = format(&s, payload.data, payload.len);

        assert_null(block_of(&shown, "image", 0));
        assert_str_has(json_get_str(block_of(&shown, "resource_link", 0), "description", ""),
                       notes[i]);
    }
    assert_null(peer_take_within(fake_peer(&s.world.engine, 0), FRAME_SPAWN, 50));
}

TEST(many_pictures_share_the_room)
{
    auto_setting struct setting s = {};
    auto_buf struct buf small = png_of(100, 100, 20000), large = png_of(1000, 1000, 400000);
    auto_buf struct buf reduced = png_of(500, 500, 200000);
    struct buf two[] = {small, large}, three[] = {large, small, large}, many[40];
    auto_buf struct buf payload_2 = payload_of("image/png", two, 2);
    auto_buf struct buf payload_3 = payload_of("image/png", three, 3), payload_40;
    struct reducer r = {.answer = &reduced};
    auto_shown struct shown both = {}, shared = {}, crowd = {};

    setting_init(&s);
    both = format(&s, payload_2.data, payload_2.len);
    assert_not_null(block_of(&both, "image", 1));
    assert_null(block_of(&both, "resource_link", 0));
    shared = format_reduced(&s, &r, &payload_3);
    assert_uint_eq(r.runs, 2);
    assert_not_null(block_of(&shared, "image", 2));
    assert_not_null(block_of(&shared, "resource_link", 1));
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = small;
    payload_40 = payload_of("image/png", many, 40);
    crowd = format(&s, payload_40.data, payload_40.len);
    assert_not_null(block_of(&crowd, "image", 19));
    assert_null(block_of(&crowd, "image", 20));
    assert_not_null(block_of(&crowd, "resource_link", 19));
}

TEST(empty_data_gives_no_block)
{
    static const char *const payloads[] = {
        "{\"success\":true,\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"\"}]}",
        "{\"success\":true,\"display_outputs\":[{\"type\":\"audio/wav\",\"data\":\"\"}]}",
        "{\"success\":true,\"display_outputs\":[{\"type\":\"image/png\",\"data\":\"!!!\"}]}",
        "{\"success\":true,\"display_outputs\":[{\"type\":\"image/png\",\"data\":{}}]}",
        "{\"success\":true,\"display_outputs\":[{\"type\":\"image/png\"}]}",
        "{\"success\":true,\"display_outputs\":[{}, 1, null, \"x\"]}",
        "{\"success\":true,\"display_outputs\":[{\"type\":\"\\u0001\\ud83d\\ude00\",\"data\":1}]}",
        "{\"success\":true,\"display_outputs\":7,\"result\":[1]}",
        "{\"success\":true,\"result\":{\"image/png\":\"\",\"\":null}}",
    };
    auto_setting struct setting s = {};

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        auto_shown struct shown shown = format_text(&s, payloads[i]);

        assert_null(block_of(&shown, "image", 0));
        assert_null(block_of(&shown, "audio", 0));
    }
}

/* ---- other kinds ---- */

static struct buf sound_of(size_t len)
{
    struct buf b;

    buf_init(&b, MIB);
    for (size_t i = 0; i < len; i++)
        assert_int_eq(buf_append_byte(&b, 'x'), 0);
    return b;
}

TEST(sound_is_a_block_when_it_fits)
{
    auto_setting struct setting s = {};
    auto_buf struct buf small = sound_of(100000), large = sound_of(600000);
    auto_buf struct buf payload_small = payload_of("audio/wav", &small, 1);
    auto_buf struct buf payload_large = payload_of("audio/wav", &large, 1);
    auto_shown struct shown shown = {}, linked = {};

    setting_init(&s);
    shown = format(&s, payload_small.data, payload_small.len);
    assert_str_eq(json_get_str(block_of(&shown, "audio", 0), "mimeType", ""), "audio/wav");
    assert_null(block_of(&shown, "resource_link", 0));
    linked = format(&s, payload_large.data, payload_large.len);
    assert_null(block_of(&linked, "audio", 0));
    assert_str_has(json_get_str(block_of(&linked, "resource_link", 0), "name", ""), ".wav");
}

TEST(a_player_is_the_sound_in_it)
{
    static const char *const payloads[] = {
        "{\"success\":true,\"display_outputs\":[{\"type\":\"text/html\",\"data\":\"\\n<audio "
        "controls>"
        "<source src=\\\"data:audio/wav;base64,UklGRg==\\\" type=\\\"audio/wav\\\" /></audio>\"}]}",
        "{\"success\":true,\"result\":{\"text/html\":\"<audio "
        "src=\\\"data:audio/mpeg;base64,UklGRg==\\\">\",\"text/plain\":\"x\"}}",
        "{\"success\":true,\"result\":{\"text/html\":\"<audio "
        "src=\\\"data:audio/mpeg;base64,Ukl?Rg==\\\">\"}}",
        "{\"success\":true,\"result\":{\"text/html\":\"<audio "
        "src=\\\"data:audio/;<x>;base64,UklGRg==\\\">\"}}",
        "{\"success\":true,\"result\":{\"text/html\":\"<audio src=\\\"data:audio/x;base64,\"}}",
    };
    static const char *const kinds[] = {"audio/wav", "audio/mpeg", NULL, NULL, NULL};
    auto_setting struct setting s = {};

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        auto_shown struct shown shown = format_text(&s, payloads[i]);
        yyjson_val *block = block_of(&shown, "audio", 0);

        if (kinds[i]) {
            assert_str_eq(json_get_str(block, "mimeType", ""), kinds[i]);
            assert_str_eq(json_get_str(block, "data", ""), "UklGRg==");
        } else {
            assert_null(block);
            assert_not_null(block_of(&shown, "resource_link", 0));
        }
    }
}

TEST(pages_and_drawings_are_links)
{
    auto_setting struct setting s = {};
    auto_shown struct shown shown = {}, large = {};
    auto_buf struct buf page;
    yyjson_val *item;

    setting_init(&s);
    shown = format_text(
        &s, "{\"success\":true,\"display_outputs\":["
            "{\"type\":\"text/html\",\"data\":\"<title>Caf\\u00e9 & co</title><p>x\",\"text\":\"1 "
            "2\"},"
            "{\"type\":\"image/svg+xml\",\"data\":\"<svg><script>alert(1)</script></svg>\"},"
            "{\"type\":\"application/vnd.plotly.v1+json\",\"data\":{\"data\":[1]},\"text\":7},"
            "{\"type\":\"application/pdf\",\"data\":\"JVBERi0=\"},"
            "{\"type\":\"text/plain\",\"data\":\"plain\"}]}");
    assert_null(block_of(&shown, "image", 0));
    assert_str_has(json_get_str(block_of(&shown, "resource_link", 0), "description", ""),
                   "title 'Caf\xc3\xa9 & co'");
    assert_str_eq(json_get_str(block_of(&shown, "resource_link", 1), "mimeType", ""),
                  "image/svg+xml");
    assert_str_has(json_get_str(block_of(&shown, "resource_link", 2), "uri", ""), ".json");
    assert_str_has(json_get_str(block_of(&shown, "resource_link", 2), "description", ""),
                   "Plotly figure of 1 trace (scatter)");
    assert_null(yyjson_obj_get(display_of(&shown, 2), "text"));
    assert_str_eq(json_get_str(display_of(&shown, 0), "text", ""), "1 2");
    assert_null(yyjson_obj_get(display_of(&shown, 2), "data"));
    assert_str_has(json_get_str(block_of(&shown, "resource_link", 3), "uri", ""), ".pdf");
    assert_null(block_of(&shown, "resource_link", 4));
    /* Small texts can be read at once; binary data cannot. */
    assert_str_has(json_get_str(display_of(&shown, 0), "data", ""), "<p>x");
    assert_null(yyjson_obj_get(display_of(&shown, 3), "data"));
    assert_str_eq(json_get_str(display_of(&shown, 4), "data", ""), "plain");
    buf_init(&page, MIB);
    append(&page, "{\"success\":true,\"display_outputs\":[{\"type\":\"text/html\",\"data\":\"");
    for (int i = 0; i < 10000; i++)
        append(&page, "<td>");
    append(&page, "\"}]}");
    large = format(&s, page.data, page.len);
    item = display_of(&large, 0);
    assert_null(yyjson_obj_get(item, "data"));
    assert_uint_eq(yyjson_get_uint(yyjson_obj_get(item, "size")), 40000);
    assert_str_has(json_get_str(item, "note", ""), "text/html, 40000 bytes");
}

TEST(base64_in_texts_is_left_out)
{
    auto_setting struct setting s = {};
    auto_shown struct shown shown = {};
    auto_buf struct buf b;
    const char *out;

    setting_init(&s);
    buf_init(&b, MIB);
    append(&b, "{\"success\":true,\"stdout\":\"before data:image/png;base64,");
    for (int i = 0; i < 3000; i++)
        append(&b, "AAAA");
    append(&b, "\\n... [77 characters left out] ...\\n");
    for (int i = 0; i < 3000; i++)
        append(&b, "BBBB");
    append(&b, " after data:text/plain;base64,c2hvcnQ= end\",\"result\":{\"text/plain\":\"'"
               "data:audio/wav;base64,");
    for (int i = 0; i < 3000; i++)
        append(&b, "CCCC");
    append(&b, "'\"}}");
    shown = format(&s, b.data, b.len);
    out = json_get_str(shown.structured, "stdout", "");
    assert_str_has(out, "before data:image/png;base64,[24034 characters of base64 left out] after");
    assert_str_has(out, ";base64,c2hvcnQ= end");
    assert_str_eq(json_get_str(yyjson_obj_get(shown.structured, "result"), "text/plain", ""),
                  "'data:audio/wav;base64,[12000 characters of base64 left out]'");
    assert_true(shown.len < 2000);
}

/* ---- the size ---- */

static void append_times(struct buf *b, const char *text, size_t bytes)
{
    for (size_t n = 0; n < bytes; n += strlen(text))
        append(b, text);
}

TEST(long_texts_are_cut_with_a_note)
{
    auto_setting struct setting s = {};
    auto_shown struct shown mirror = {}, both = {};
    auto_buf struct buf b;

    setting_init(&s);
    buf_init(&b, 64 * MIB);
    append(&b, "{\"success\":true,\"stdout\":\"");
    append_times(&b, "x", 700000);
    append(&b, "\"}");
    mirror = format(&s, b.data, b.len);
    assert_uint_eq(yyjson_get_len(yyjson_obj_get(mirror.structured, "stdout")), 700000);
    assert_str_has(mirror.text, "characters left out");
    buf_clear(&b);
    append(&b, "{\"success\":true,\"stdout\":\"");
    append_times(&b, "x", 3000000);
    append(&b, "\"}");
    both = format(&s, b.data, b.len);
    assert_str_has(json_get_str(both.structured, "stdout", ""), "characters left out");
    assert_true(yyjson_get_len(yyjson_obj_get(both.structured, "stdout")) > 100000);
}

/* Worst cases: every character of the text mirror takes 2 bytes, or 12 of a control character. */
TEST(no_payload_passes_the_limit)
{
    static const char *const units[] = {
        "\\u0001",          "\\\"",     "\\\\",           "\\n",
        "\xf0\x9f\x98\x80", "\xc3\xa9", "data:x;base64,", ";base64,AAAA "};
    static const size_t sizes[] = {60000, 180000, 350000};
    auto_setting struct setting s = {};
    auto_buf struct buf png = png_of(1000, 1000, 499000);

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            auto_shown struct shown plain = {}, full = {};
            auto_buf struct buf b;

            buf_init(&b, 64 * MIB);
            append(&b, "{\"success\":true,\"stdout\":\"");
            append_times(&b, units[i], sizes[k]);
            append(&b, "\",\"stderr\":\"");
            append_times(&b, units[i], sizes[k]);
            append(&b, "\",\"result\":{\"text/plain\":\"");
            append_times(&b, units[i], sizes[k]);
            append(&b, "\"},\"display_outputs\":[");
            plain = format(&s, b.data, b.len + (size_t)buf_append_str(&b, "]}") + 2);
            b.len -= 2;
            append(&b, "{\"type\":\"image/png\",\"data\":\"");
            append_base64(&b, &png);
            append(&b, "\"},{\"type\":\"text/html\",\"data\":\"");
            append_times(&b, units[i], 7000);
            append(&b, "\"}]}");
            full = format(&s, b.data, b.len);
            assert_not_null(block_of(&full, "image", 0));
        }
    }
}

TEST(many_small_things_do_not_pass_the_limit)
{
    static const char *const things[] = {
        "{\"type\":\"text/plain\",\"data\":\"\\u0001\\u0001\\u0001\\u0001\"}",
        "{\"type\":\"text/html\",\"data\":\"<title>\\\"\\\"\\\"\\\"\\\"\\\"\\\"</title>\"}",
        "{\"type\":\"image/png\",\"data\":\"AAAA\",\"metadata\":{\"a\":[1,2,3]}}",
        "{\"type\":\"application/json\",\"data\":[1,2,[3,{\"k\":null}]]}",
        "7",
    };
    auto_setting struct setting s = {};

    setting_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(things); i++) {
        auto_shown struct shown displays = {}, numbers = {}, keys = {};
        auto_buf struct buf b;

        buf_init(&b, 64 * MIB);
        append(&b, "{\"success\":true,\"display_outputs\":[1");
        for (int n = 0; n < 10000; n++)
            assert_int_eq(buf_printf(&b, ",%s", things[i]), 0);
        append(&b, "]}");
        displays = format(&s, b.data, b.len);
        assert_true(yyjson_arr_size(yyjson_obj_get(displays.structured, "display_outputs")) <= 200);
        assert_true(yyjson_get_uint(yyjson_obj_get(displays.structured, "omitted")) >= 9800);
        buf_clear(&b);
        append(&b, "{\"success\":true,\"error\":[1");
        append_times(&b, ",1234567", 2000000);
        append(&b, "]}");
        numbers = format(&s, b.data, b.len);
        assert_str_has(numbers.text, "left out");
        buf_clear(&b);
        append(&b, "{\"success\":true,\"result\":{\"text/plain\":\"\"");
        for (int n = 0; n < 20000; n++)
            assert_int_eq(buf_printf(&b, ",\"text/x%d\":%s", n, things[i]), 0);
        append(&b, "}}");
        keys = format(&s, b.data, b.len);
    }
}
