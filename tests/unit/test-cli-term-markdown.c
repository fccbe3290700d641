/* SPDX-License-Identifier: MIT */
/* Markdown as lines: its layout, hostile texts, and a text that grows piece by piece. */
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/markdown.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <sys/mman.h>

static void rendered(const char *text, unsigned width, enum term_color color, struct buf *ret)
{
    const struct markdown_layout layout = {.width = width, .color = color};
    struct error err;

    buf_init(ret, 16 << 20);
    if (markdown_render(text, strlen(text), &layout, ret, &err) < 0) {
        buf_done(ret);
        test_skip("no memory");
    }
}

static const struct {
    const char *in, *out;
} plain[] = {
    {"# A\n\ntext", "# A\n\ntext\n"},
    {"a\nb  \nc", "a b\nc\n"},
    {"- a\n- b\n  - c\n\nd", "• a\n• b\n  ◦ c\n\nd\n"},
    {"3. a\n4. b", "3. a\n4. b\n"},
    {"- a\n\n  b\n- c", "• a\n\n  b\n\n• c\n"},
    {"- [ ] a\n- [x] b", "☐ a\n☑ b\n"},
    {"> a\n> > b", "│ a\n│ │\n│ │ b\n"},
    {"- > a\n  > b", "• │ a b\n"},
    {"-\n- a", "•\n• a\n"},
    {"```py\nx = 1\n\ty\n```", "  x = 1\n      y\n"},
    {"- a\n  ```\n  b\n  ```", "• a\n    b\n"},
    {"    x\n    y", "  x\n  y\n"},
    {"[t](http://a/b)", "t (http://a/b)\n"},
    {"<http://a/b> and http://c.d", "http://a/b and http://c.d\n"},
    {"![alt](http://a/x.png)", "[image: alt (http://a/x.png)]\n"},
    {"*a* **b** ~~c~~ `d`", "a b c `d`\n"},
    {"$x^2$ and $$y_1$$", "$x^2$ and $$y_1$$\n"},
    {"a &amp; b &lt; &#65; &#x42; &bogus;", "a & b < A B &bogus;\n"},
    {"<b>x</b><br>y", "<b>x</b>\ny\n"},
    {"<script>\nalert(1)\n</script>", "<script> alert(1) </script>\n"},
    {"| a | b |\n|---|--:|\n| 1 | 2 |", "a │ b\n──┼──\n1 │ 2\n"},
    {"- | a |\n  |---|\n  | 1 |", "•\n  a\n  ─\n  1\n"},
    {"", ""},
};

TEST(markdown_has_its_layout)
{
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        auto_buf struct buf b = {};

        rendered(plain[i].in, 0, TERM_COLOR_NONE, &b);
        assert_str_eq(buf_str(&b), plain[i].out);
    }
}

TEST(styles_do_not_leave_their_line)
{
    auto_buf struct buf b = {};

    rendered("**aaa bbb ccc** d `e`", 8, TERM_COLOR_16, &b);
    assert_str_eq(buf_str(&b), "\033[0;1maaa bbb\033[0m\n\033[0;1mccc\033[0m d "
                               "\033[0;33me\033[0m\n");
}

TEST(no_control_character_is_left_in_any_spelling)
{
    static const char *const texts[] = {
        "a\033[31mb\033]0;t\007",
        "&#27;[31m &#x1b;]0;x&#7; &#155;31m &#x9d; &#8238;",
        "[a](http://x/&#27;[2J) ![&#27;](&#27;)",
        "```&#27;\n\033[2J\n```",
        "`\033[2J`",
        "<\033[2J>",
        "| \033[2J |\n|--|\n| &#27; |",
        "\xc2\x9b"
        "2J \xe2\x80\xae",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_buf struct buf b = {};

        rendered(texts[i], 40, TERM_COLOR_NONE, &b);
        assert_null(memchr(buf_str(&b), 033, b.len));
        assert_null(memchr(buf_str(&b), 007, b.len));
        assert_null(strstr(buf_str(&b), "\xc2\x9b"));
        assert_null(strstr(buf_str(&b), "\xc2\x9d"));
        assert_null(strstr(buf_str(&b), "\xe2\x80\xae"));
    }
}

TEST(what_grows_beyond_measure_is_shown_as_it_stands)
{
    auto_buf struct buf in, out = {};

    buf_init(&in, 1 << 20);
    for (int i = 0; i < 200; i++)
        if (buf_append_str(&in, "|a") < 0)
            test_skip("no memory");
    if (buf_append_str(&in, "|\n") < 0)
        test_skip("no memory");
    for (int i = 0; i < 200; i++)
        if (buf_append_str(&in, "|-") < 0)
            test_skip("no memory");
    if (buf_append_str(&in, "|\n|x|\n|y|\n") < 0)
        test_skip("no memory");
    rendered(buf_str(&in), 0, TERM_COLOR_NONE, &out);
    assert_str_has(buf_str(&out), "|a|a|a");
    assert_str_has(buf_str(&out), "|y|");
}

TEST(deep_nesting_is_bounded)
{
    auto_buf struct buf in, out = {};

    buf_init(&in, 1 << 20);
    for (int i = 0; i < 2000; i++)
        if (buf_append_str(&in, i % 2 ? "- " : "> ") < 0)
            test_skip("no memory");
    if (buf_append_str(&in, "deep") < 0)
        test_skip("no memory");
    rendered(buf_str(&in), 40, TERM_COLOR_NONE, &out);
    assert_str_has(buf_str(&out), "deep");
}

/* ---- streams ---- */

static const char story[] =
    "# Title\n\nOne *two*\nthree.\n\n- a\n- b\n\n- c\n\n  d\nend of it\n```python\ndef f():\n\n"
    "    pass\n```\nAfter `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n    indented\n\n    "
    "more\n\n"
    "1. x\n\n   y\n2. z\n\n> q\n\nLast [r] line\n\n[r]: http://a/b\n\nand [r] again\n";

/* What a pipe gets of the text in pieces of a size. */
static void streamed(const char *text, size_t len, size_t step, struct buf *ret)
{
    auto_fd int fd = memfd_create("out", MFD_CLOEXEC);
    auto_term struct term *t = NULL;
    auto_markdown_stream struct markdown_stream *m = NULL;
    char piece[4096];
    struct error err;
    ssize_t n;
    int r = fd < 0 || term_open(fd, fd, &t, &err) < 0 || markdown_stream_new(t, &m, &err) < 0;

    for (size_t at = 0; at < len && r == 0; at += step)
        r = markdown_stream_feed(m, text + at, MIN(step, len - at), &err);
    if (r || markdown_stream_end(m, &err) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        test_skip("no memory");
    buf_init(ret, 1 << 20);
    while ((n = fd_read_full(fd, piece, sizeof(piece), NULL)) > 0 &&
           buf_append(ret, piece, (size_t)n) == 0)
        ;
}

TEST(pieces_make_the_same_lines_as_the_whole)
{
    auto_buf struct buf whole = {};

    streamed(story, strlen(story), strlen(story), &whole);
    assert_str_eq(buf_str(&whole),
                  "# Title\n\nOne two three.\n\n• a\n\n• b\n\n• c\n\n  d end of it\n\n"
                  "  def f():\n\n      pass\n\nAfter `code`.\n\na │ b\n──┼──\n1 │ 2\n\n"
                  "  indented\n\n  more\n\n1. x\n\n   y\n\n2. z\n\n│ q\n\nLast [r] line\n\n"
                  "and r (http://a/b) again\n");
    for (size_t step = 1; step < 9; step++) {
        auto_buf struct buf parts = {};

        streamed(story, strlen(story), step, &parts);
        assert_str_eq(buf_str(&parts), buf_str(&whole));
    }
}

TEST(a_fence_that_is_not_closed_ends_with_the_text)
{
    auto_buf struct buf b = {};

    streamed("```\ncode\nmore", 13, 3, &b);
    assert_str_eq(buf_str(&b), "  code\n  more\n");
}

TEST(a_line_without_an_end_is_printed_in_bounded_memory)
{
    enum { SIZE = 2 << 20 };
    auto_free char *text = malloc(SIZE);
    auto_buf struct buf b = {};

    assert_not_null(text);
    memset(text, 'x', SIZE);
    streamed(text, SIZE, 10000, &b);
    assert_true(b.len > 1 << 19);
}
