/* SPDX-License-Identifier: MIT */
/* Columns, breaks, tables: nothing is wider than it may be, and no style leaks over a line. */
#include "base/str.h"
#include "cli/term/highlight.h"
#include "cli/term/table.h"
#include "cli/term/text.h"
#include "tests/lib/test.h"

#define RED "\033[0;31m"
#define OFF "\033[0m"

TEST(widths_are_those_of_unicode)
{
    assert_uint_eq(text_width("abc", 3), 3);
    assert_uint_eq(text_width("日本", 6), 4);
    assert_uint_eq(text_width("e\xcc\x81", 3), 1);
    assert_uint_eq(text_width("🎉", 4), 2);
    assert_uint_eq(text_width(RED "ab" OFF, strlen(RED "ab" OFF)), 2);
    assert_uint_eq(text_width("│─", strlen("│─")), 2);
    assert_uint_eq(text_fit("日本", 6, 3), 3);
    assert_uint_eq(text_fit("ab" OFF "c", 7, 2), 6);
}

static const struct {
    const char *in;
    struct text_wrap wrap;
    const char *out;
} wraps[] = {
    {"one two three", {8, "", ""}, "one two\nthree\n"},
    {"one two", {20, "", ""}, "one two\n"},
    {"", {20, "> ", "  "}, ">\n"},
    {"aaaa bbbb", {8, "- ", "  "}, "- aaaa\n  bbbb\n"},
    {"abcdefghij", {4, "", ""}, "abcd\nefgh\nij\n"},
    {"日本語日本語", {5, "", ""}, "日本\n語日\n本語\n"},
    {"word 日本語日本語", {9, "", ""}, "word 日本\n語日本語\n"},
    {"a  b", {10, "", "", true}, "a  b\n"},
    {"a    b", {3, "", "", true}, "a  \n  b\n"},
    {RED "aa bb" OFF, {2, "", ""}, RED "aa" OFF "\n" RED "bb" OFF "\n"},
    {RED "a\nb" OFF, {9, "", ""}, RED "a" OFF "\n" RED "b" OFF "\n"},
    {"a\n\nb", {9, "", ""}, "a\n\nb\n"},
    {"wide 日", {1, "", ""}, "w\ni\nd\ne\n日\n"},
    {"very long text", {0, "", ""}, "very long text\n"},
};

TEST(lines_are_broken_where_they_may)
{
    for (size_t i = 0; i < ARRAY_LEN(wraps); i++) {
        auto_buf struct buf b;

        buf_init(&b, 4096);
        if (text_wrap(&b, wraps[i].in, strlen(wraps[i].in), &wraps[i].wrap) < 0)
            test_skip("no memory");
        assert_str_eq(buf_str(&b), wraps[i].out);
    }
}

TEST(fields_have_one_width)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    if (text_pad(&b, "ab", 2, 4) < 0 || text_pad(&b, "abcdef", 6, 4) < 0 ||
        text_pad(&b, "日本語", 9, 4) < 0 || text_expand(&b, "\ta\tb", 4) < 0)
        test_skip("no memory");
    assert_str_eq(buf_str(&b), "ab  abc…日… "
                               "        a       b");
}

static void table_draw(size_t width, struct buf *ret)
{
    static const char *const cells[] = {"Name", "Text", "a", "one two three four", "日本", "x\ny"};
    const struct table_layout layout = {.width = width, .color = TERM_COLOR_NONE, .before = ""};
    struct table t;
    int r = 0;

    table_init(&t, 2);
    t.align[0] = TABLE_RIGHT;
    for (size_t i = 0; i < ARRAY_LEN(cells) && r == 0; i++)
        r = table_add(&t, cells[i], strlen(cells[i]));
    buf_init(ret, 4096);
    if (r == 0)
        r = table_render(&t, &layout, ret);
    table_done(&t);
    if (r < 0) {
        buf_done(ret);
        test_skip("no memory");
    }
}

TEST(a_table_fits_its_width)
{
    auto_buf struct buf wide = {}, narrow = {}, none = {};

    table_draw(0, &wide);
    assert_str_eq(buf_str(&wide), "Name │ Text\n"
                                  "─────┼───────────────────\n"
                                  "   a │ one two three four\n"
                                  "日本 │ x\n"
                                  "     │ y\n");
    table_draw(16, &narrow);
    assert_str_eq(buf_str(&narrow), "Name │ Text\n"
                                    "─────┼──────────\n"
                                    "   a │ one two\n"
                                    "     │ three\n"
                                    "     │ four\n"
                                    "日本 │ x\n"
                                    "     │ y\n");
    table_draw(8, &none);
    assert_str_eq(buf_str(&none),
                  "Name: a\nText:\none two\nthree\nfour\n\nName: 日\n本\nText: x\ny\n");
}

/* ---- code ---- */

#define MARK "\033[0;7m\\x1b\033[0m"

static void highlighted(struct highlight *h, const char *text, struct buf *ret)
{
    buf_init(ret, 4096);
    if (highlight_text(h, text, strlen(text), ret) < 0) {
        buf_done(ret);
        test_skip("no memory");
    }
}

TEST(code_has_its_colours)
{
    static const struct {
        enum highlight_language language;
        const char *in, *part;
    } cases[] = {
        {HIGHLIGHT_PYTHON, "def f(x): # no", "\033[0;35mdef\033[0m \033[0;34mf\033[0m("},
        {HIGHLIGHT_PYTHON, "x # it's", "\033[0;90m# it's\033[0m"},
        {HIGHLIGHT_PYTHON, "a = 'it\\'s' + b", "\033[0;32m'it\\'s'\033[0m + b"},
        {HIGHLIGHT_PYTHON, "defx", "defx"},
        {HIGHLIGHT_JAVASCRIPT, "const x = 1.5e-3;", "\033[0;36m1.5e-3\033[0m;"},
        {HIGHLIGHT_JAVASCRIPT, "x // y", "\033[0;90m// y\033[0m"},
        {HIGHLIGHT_R, "data.frame(x) <- TRUE", "\033[0;34mdata.frame\033[0m("},
        {HIGHLIGHT_BASH, "echo $# # c", "$# \033[0;90m# c\033[0m"},
        {HIGHLIGHT_JSON, "{\"a\": \"b\", \"c\": null}",
         "\033[0;34m\"a\"\033[0m: \033[0;32m\"b\"\033[0m"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct highlight h = {.language = cases[i].language, .color = TERM_COLOR_16};
        auto_buf struct buf b = {};

        highlighted(&h, cases[i].in, &b);
        assert_str_has(buf_str(&b), cases[i].part);
    }
}

TEST(a_string_goes_on_over_lines)
{
    struct highlight h = {.language = HIGHLIGHT_PYTHON, .color = TERM_COLOR_16};
    auto_buf struct buf b = {};

    highlighted(&h, "\"\"\"a\nif\n\"\"\" if", &b);
    assert_str_eq(buf_str(&b), "\033[0;32m\"\"\"a\033[0m\n\033[0;32mif\033[0m\n"
                               "\033[0;32m\"\"\"\033[0m \033[0;35mif\033[0m");
    assert_uint_eq(h.open, 0);
}

TEST(what_is_marked_keeps_its_looks_in_every_token)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a" MARK "(1)", "a" MARK "(\033[0;36m1\033[0m)"},
        {"'a" MARK "b'", "\033[0;32m'a\033[0m" MARK "\033[0;32mb'\033[0m"},
        {"'\\" MARK "' if", "\033[0;32m'\\\033[0m" MARK "\033[0;32m'\033[0m \033[0;35mif\033[0m"},
        {"# a" MARK, "\033[0;90m# a\033[0m" MARK},
        {MARK MARK "if", MARK MARK "\033[0;35mif\033[0m"},
        {"\033[0;7m", "\033[0;7m"},
        {"\033", "\033"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct highlight h = {.language = HIGHLIGHT_PYTHON, .color = TERM_COLOR_16};
        auto_buf struct buf b = {};

        highlighted(&h, cases[i].in, &b);
        assert_str_eq(buf_str(&b), cases[i].out);
    }
}

TEST(languages_are_found_by_their_names)
{
    assert_int_eq(highlight_find("py", 2), HIGHLIGHT_PYTHON);
    assert_int_eq(highlight_find("R", 1), HIGHLIGHT_R);
    assert_int_eq(highlight_find("node", 4), HIGHLIGHT_JAVASCRIPT);
    assert_int_eq(highlight_find("sh", 2), HIGHLIGHT_BASH);
    assert_int_eq(highlight_find("json", 4), HIGHLIGHT_JSON);
    assert_int_eq(highlight_find("cobol", 5), HIGHLIGHT_NONE);
    assert_int_eq(highlight_find("", 0), HIGHLIGHT_NONE);
    assert_int_eq(highlight_find("py js", 5), HIGHLIGHT_NONE);
}

TEST(without_colours_code_is_as_it_was)
{
    struct highlight h = {.language = HIGHLIGHT_PYTHON};
    auto_buf struct buf b = {};

    highlighted(&h, "def f(): pass", &b);
    assert_str_eq(buf_str(&b), "def f(): pass");
}
