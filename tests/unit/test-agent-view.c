/* SPDX-License-Identifier: MIT */
/* What a model is shown: blocks, pairs of calls and results, escapes, images. */
#include "base/str.h"
#include "tests/lib/viewtest.h"

#include <stdio.h>

static const struct view_options plain = {.images = true, .model = {.provider = "anthropic"}};

static void expect_with(const char *json, const struct view_options *options, const char *want)
{
    auto_transcript struct transcript t = {0};
    auto_arena struct arena arena;
    auto_buf struct buf got;
    struct llm_message *messages = NULL;
    size_t count = 0;
    struct error err = {0};

    arena_init(&arena, 64 * MIB);
    buf_init(&got, 64 * MIB);
    viewtest_load(&t, json);
    assert_ok(view_make(&t, options, &arena, &messages, &count, &err), err);
    viewtest_render(&got, messages, count);
    assert_str_eq(buf_str(&got), want);
}

static void expect(const char *json, const char *want)
{
    expect_with(json, &plain, want);
}

#define CALLS(ids) "{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[" ids "]}"
#define CALL(id) "{\"name\":\"f\",\"args\":{\"x\":1},\"id\":\"" id "\"}"
#define RESULT(id, text) "{\"type\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"
#define NO_RESULT "[(There is no result: the call was not carried out to its end.)]"

TEST(a_turn_with_a_call)
{
    expect("[\"hi\"," CALLS(CALL("1")) "," RESULT("1", "2") ",[\"ai\",\"done\"]]",
           "U[hi] A{1 f {\"x\":1}} T(1)[2] A[done]");
    expect("[]", "");
}

TEST(the_system_prompt_is_ours_unless_the_conversation_has_one)
{
    struct view_options options = plain;

    options.system = "be good";
    expect_with("[\"hi\"]", &options, "S[be good] U[hi]");
    expect_with("[[\"system\",\"own\"],[\"developer\",\"more\"],\"hi\",[\"system\",\"late\"]]",
                &options, "S[own][more] U[hi] U[[a message of the system:]][late]");
}

TEST(calls_and_results_are_pairs)
{
    /* In the order of the calls, also when a person spoke between. */
    expect("[\"hi\"," CALLS(CALL("1") "," CALL("2")) "," RESULT("2", "b") ",\"well?\"," RESULT(
               "1", "a") "]",
           "U[hi] A{1 f {\"x\":1}}{2 f {\"x\":1}} T(1)[a] T(2)[b] U[well?]");
    /* A call without a result, a result without a call, and one that comes too late. */
    expect("[" RESULT("9", "x") ",\"hi\"," CALLS(CALL("1")) "," CALLS(CALL("2")) "," RESULT(
               "1", "late") "," RESULT("2", "b") "," RESULT("2", "twice") "]",
           "U[hi] A{1 f {\"x\":1}} T!(1)" NO_RESULT " A{2 f {\"x\":1}} T(2)[b]");
}

TEST(invalid_calls_are_shown_as_they_came)
{
    expect("[\"hi\",{\"type\":\"ai\",\"content\":\"\",\"invalid_tool_calls\":[{\"name\":\"f\","
           "\"args\":\"{bad\",\"id\":\"1\",\"error\":\"no\"}]}]",
           "U[hi] A{1 f !{bad} T!(1)" NO_RESULT);
}

TEST(what_says_nothing_is_left_out_or_noted)
{
    expect("[[\"user\",\"\"],[\"ai\",\"\"]," CALLS(
               CALL("1")) ",{\"type\":\"tool\","
                          "\"tool_call_id\":\"1\",\"content\":\"\",\"status\":\"error\"}]",
           "U[(an empty message)] A{1 f {\"x\":1}} T!(1)[(no output)]");
}

TEST(reasoning_goes_back_to_its_own_provider_only)
{
#define THOUGHTS(provider) \
    "[\"hi\",{\"type\":\"ai\",\"response_metadata\":{\"model_provider\":\"" provider "\"}," \
    "\"content\":[{\"type\":\"reasoning\",\"reasoning\":\"hm\",\"extras\":{\"raw\":{\"s\":1}}}," \
    "{\"type\":\"thinking\",\"thinking\":\"so\",\"signature\":\"z\"},{\"type\":\"tool_use\"}," \
    "{\"type\":\"redacted_thinking\",\"data\":\"q\"}," \
    "{\"type\":\"text\",\"text\":\"yes\"}]}]"
    expect(THOUGHTS("anthropic"),
           "U[hi] A[thought hm raw {\"s\":1}][thought so raw "
           "{\"type\":\"thinking\",\"thinking\":\"so\",\"signature\":\"z\"}][thought  raw "
           "{\"type\":\"redacted_thinking\",\"data\":\"q\"}][yes]");
    expect(THOUGHTS("openai"), "U[hi] A[thought hm][thought so][yes]");
}

TEST(a_reply_is_read_back)
{
    const struct llm_part parts[] = {{.kind = LLM_REASONING, .text = "hm", .raw = "{\"s\":1}"},
                                     {.kind = LLM_TEXT, .text = "yes"}};
    const struct llm_tool_call calls[] = {
        {.id = "1", .name = "f", .arguments = "{\"x\":1}", .valid = true, .raw = "{\"t\":2}"}};
    const struct llm_reply reply = {
        .parts = parts, .part_count = 2, .calls = calls, .call_count = 1};
    auto_message struct message *m = NULL;
    auto_transcript struct transcript t = {0};
    auto_arena struct arena arena;
    struct llm_message *messages;
    size_t count;
    struct error err = {0};

    arena_init(&arena, MIB);
    assert_ok(view_reply(&reply, NULL, "anthropic", &m, &err), err);
    assert_ok(transcript_append(&t, m, &err), err);
    assert_ok(view_make(&t, &plain, &arena, &messages, &count, &err), err);
    assert_uint_eq(count, 2);
    assert_str_eq(messages[0].provider, "anthropic");
    assert_str_eq(messages[0].parts[0].raw, "{\"s\":1}");
    assert_str_eq(messages[0].parts[1].text, "yes");
    assert_str_eq(messages[0].calls[0].raw, "{\"t\":2}");
    assert_str_eq(messages[0].calls[0].arguments, "{\"x\":1}");
    assert_true(messages[0].calls[0].valid);
}

/* ---- texts of tools ---- */

TEST(hidden_characters_of_tools_are_written_out)
{
    expect("[\"a\\u202eb\"," CALLS(CALL("1")) "," RESULT(
               "1", "a\\u202eb\\u200b\\u001b[31m\\u0000\\u007f\\u0085\\udb40\\udc41\\ufeff"
                    "\\n\\tz\\r\\nx\\ry \\u00e9 \\u2714\\ufe0f\\ufe0f") "]",
           "U[a\xe2\x80\xae"
           "b] A{1 f {\"x\":1}} T(1)[a\\u202eb\\u200b\\u001b[31m\\u0000\\u007f\\u0085\\udb40\\udc41"
           "\\ufeff\n\tz\r\nx\\u000dy \xc3\xa9 \xe2\x9c\x94\xef\xb8\x8f\\ufe0f]");
}

TEST(a_nul_does_not_end_a_persons_text)
{
    expect("[\"a\\u0000b\"]", "U[ab]");
}

TEST(escapes_leave_a_payload_valid)
{
    expect("[\"hi\"," CALLS(CALL("1")) "," RESULT("1", "{\\\"stdout\\\":\\\"\\u202e\\\"}") "]",
           "U[hi] A{1 f {\"x\":1}} T(1)[{\"stdout\":\"\\u202e\"}]");
}

/* ---- displays ---- */

#define DISPLAYS(list) \
    "[\"hi\"," CALLS(CALL("1")) "," RESULT( \
        "1", "{\\\"success\\\":true,\\\"display_outputs\\\":[" list "],\\\"z\\\":1}") "]"
#define SHOWN(notes) \
    "U[hi] A{1 f {\"x\":1}} T(1)[{\"success\":true,\"display_outputs_summary\":[" notes \
    "],\"z\":1}]"
#define PIXEL \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg" \
    "gg=="

TEST(displays_become_notes)
{
    expect(DISPLAYS("{\\\"type\\\":\\\"text/html\\\",\\\"data\\\":\\\"<b>\\\"},"
                    "{\\\"type\\\":\\\"audio/wav\\\",\\\"data\\\":\\\"AAAA\\\"},"
                    "{\\\"type\\\":\\\"text/markdown\\\",\\\"data\\\":\\\"# x\\\"},"
                    "{\\\"type\\\":\\\"image/svg+xml\\\",\\\"data\\\":\\\"<svg>\\\",\\\"text\\\":"
                    "\\\"a plot\\\"}"),
           SHOWN("\"text/html, 3 bytes, shown to the user\","
                 "\"audio/wav, 3 bytes, shown to the user\","
                 "\"text/markdown, 3 bytes, shown to the user: # x\","
                 "\"image/svg+xml, 5 bytes, shown to the user: a plot\""));
}

TEST(a_picture_is_attached_where_the_model_has_eyes)
{
    static const char json[] =
        DISPLAYS("{\\\"type\\\":\\\"image/png\\\",\\\"data\\\":\\\"" PIXEL "\\\"}");
    struct view_options blind = plain;

    expect(json, SHOWN("\"image/png, 1x1, shown to the user\"") "[image image/png 96]");
    blind.images = false;
    expect_with(json, &blind, SHOWN("\"image/png, 1x1, shown to the user\""));
}

TEST(a_broken_picture_is_not_attached)
{
    expect(DISPLAYS("{\\\"type\\\":\\\"image/png\\\",\\\"data\\\":\\\"iVBORw0KGgo=\\\"}"),
           SHOWN("\"image/png, 9 bytes, shown to the user\""));
}

TEST(a_picture_that_was_cut_off_is_not_attached)
{
    auto_buf struct buf png, json;

    buf_init(&png, MIB);
    buf_init(&json, MIB);
    viewtest_png(&png, 4, 3, 300);
    png.data[png.len -= 40] = 0;
    assert_int_eq(
        buf_printf(&json,
                   "[\"hi\"," CALLS(CALL("1")) ",{\"type\":\"tool\",\"tool_call_id\":\"1\","
                                               "\"content\":\"{\\\"display_outputs\\\":[{"
                                               "\\\"type\\\":\\\"image/png\\\",\\\"data\\\":"
                                               "\\\"%s\\\"}]}\"}]",
                   buf_str(&png)),
        0);
    expect(buf_str(&json),
           "U[hi] A{1 f {\"x\":1}} T(1)[{\"display_outputs_summary\":[\"image/png, 4x3, shown to "
           "the user\"]}]");
}

TEST(what_only_looks_like_a_display_stays)
{
    expect("[\"hi\"," CALLS(CALL("1")) "," RESULT(
               "1", "{\\\"result\\\":{\\\"count\\\":3,\\\"application/json\\\":"
                    "{\\\"blob\\\":\\\"b\\\"}}}") "]",
           "U[hi] A{1 f {\"x\":1}} T(1)[{\"result\":{\"count\":3,\"application/json\":"
           "{\"blob\":\"b\"}}}]");
}

TEST(media_in_a_result_become_notes_too)
{
    expect("[\"hi\"," CALLS(CALL("1")) "," RESULT(
               "1", "{\\\"result\\\":{\\\"text/plain\\\":\\\"7\\\",\\\"image/png\\\":\\\"" PIXEL
                    "\\\"}}") "]",
           "U[hi] A{1 f {\"x\":1}} T(1)[{\"result\":{\"text/plain\":\"7\",\"image/png\":"
           "\"image/png, 1x1, shown to the user\"}}][image image/png 96]");
}

/* ---- blocks of people ---- */

TEST(images_of_people_in_all_their_spellings)
{
    expect("[{\"role\":\"user\",\"content\":["
           "{\"type\":\"text\",\"text\":\"look\"},"
           "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/jpeg;base64," PIXEL "\"}},"
           "{\"type\":\"image_url\",\"image_url\":\"https://x/a.png\"},"
           "{\"type\":\"image\",\"source_type\":\"base64\",\"mime_type\":\"image/png\",\"data\":"
           "\"" PIXEL "\"},"
           "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" PIXEL "\",\"metadata\":{"
           "\"name\":\"a\"}},"
           "{\"type\":\"image\",\"base64\":\"" PIXEL "\",\"mime_type\":\"image/png\"},"
           "{\"type\":\"image\",\"url\":\"http://x/\"},"
           "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\","
           "\"data\":\"" PIXEL "\"}}]}]",
           "U[look][image image/png 96][image  https://x/a.png][image image/png 96]"
           "[image image/png 96][image image/png 96][image  http://x/][image image/png 96]");
}

TEST(what_cannot_be_shown_is_a_note)
{
    struct view_options blind = plain;

    expect("[{\"role\":\"user\",\"content\":["
           "{\"type\":\"image\",\"mime_type\":\"image/bmp\",\"base64\":\"Qk0=\"},"
           "{\"type\":\"image_url\",\"image_url\":{\"url\":\"file:///etc/passwd\"}},"
           "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}},"
           "{\"type\":\"image\",\"data\":\"\"}]}]",
           "U[[an image (image/bmp, 4 bytes of base64) that cannot be shown: its kind or size is "
           "not one that models take]][[an image (of an unknown kind, 0 bytes of base64) that "
           "cannot be shown: it has neither data nor an address]][[a part of the kind "
           "'input_audio' that is not shown]][[an image (of an unknown kind, 0 bytes of base64) "
           "that cannot be shown: its kind or size is not one that models take]]");
    blind.images = false;
    expect_with("[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\","
                "\"data\":\"AAAA\"}]}]",
                &blind,
                "U[[an image (image/png, 4 bytes of base64) that is not shown: this model sees no "
                "images]]");
}

TEST(files_of_people)
{
    expect("[{\"role\":\"user\",\"content\":["
           "{\"type\":\"file\",\"mimeType\":\"application/pdf\",\"data\":\"JVBERg==\",\"metadata\":"
           "{\"filename\":\"a.pdf\"}},"
           "{\"type\":\"file\",\"mime_type\":\"text/csv\",\"base64\":\"YSxiCg==\",\"filename\":"
           "\"a.csv\"},"
           "{\"type\":\"file\",\"file\":{\"filename\":\"b.pdf\",\"file_data\":"
           "\"data:application/pdf;base64,JVBERg==\"}},"
           "{\"type\":\"file\",\"mime_type\":\"application/zip\",\"data\":\"AAAA\"},"
           "{\"type\":\"file\",\"source_type\":\"text\",\"text\":\"plain\"},"
           "{\"type\":\"file\",\"file_id\":\"f\"}]}]",
           "U[file application/pdf][[the file a.csv (text/csv):]][a,b\n][file application/pdf]"
           "[[the file without a name (application/zip, 4 bytes of base64) is not shown]]"
           "[plain][[a file without content: without a name]]");
}

TEST(only_the_newest_images_are_shown)
{
    auto_buf struct buf json, want;
    int r = 0;

    buf_init(&json, MIB);
    buf_init(&want, MIB);
    for (int i = 0; i < 10; i++) {
        r |= buf_printf(&json,
                        "%s{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"" PIXEL
                        "\"}]}",
                        i ? "," : "[");
        r |= buf_append_str(&want, i == 0  ? "U[[an older image]]"
                                   : i < 2 ? " U[[an older image]]"
                                           : " U[image image/png 96]");
    }
    r |= buf_append_str(&json, "]");
    assert_int_eq(r, 0);
    expect(buf_str(&json), buf_str(&want));
}

TEST(an_image_above_the_limit_is_a_note)
{
    auto_buf struct buf json, png;
    char want[200];

    buf_init(&json, 16 * MIB);
    buf_init(&png, 16 * MIB);
    viewtest_png(&png, 4, 4, 4 * MIB);
    assert_int_eq(buf_printf(&json,
                             "[{\"role\":\"user\",\"content\":[{\"type\":\"image\","
                             "\"mime_type\":\"image/png\",\"data\":\"%s\"}]}]",
                             buf_str(&png)),
                  0);
    snprintf(want, sizeof(want),
             "U[[an image (image/png, %zu bytes of base64) that is too large to be shown]]",
             png.len);
    expect(buf_str(&json), want);
}

/* ---- numbers ---- */

TEST(tokens_are_counted_by_guess)
{
    assert_int_eq(view_tokens("", 0), 0);
    assert_int_eq(view_tokens("abcde", 5), 2);
    assert_int_eq(view_tokens("\xc3\xa9\xe2\x82\xac", 5), 2);
}

TEST(windows_of_models_by_their_names)
{
    assert_int_eq(view_window("gpt-4o-mini"), 128000);
    assert_int_eq(view_window("gpt-4"), 8192);
    assert_int_eq(view_window("claude-sonnet-4-5"), 200000);
    assert_int_eq(view_window("models/gemini-2.5-flash"), 1048576);
    assert_int_eq(view_window("openai/o3"), 200000);
    assert_int_eq(view_window("foo3"), 0);
    assert_int_eq(view_window(NULL), 0);
}
