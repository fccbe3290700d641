/* SPDX-License-Identifier: MIT */
/* Panels where there is no terminal, and what their owner cannot get wrong. */
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/history.h"
#include "cli/term/image.h"
#include "cli/term/line.h"
#include "cli/term/panel.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct place {
    int fd;
    struct term *term;
    struct panels *panels;
    char text[16384];
};

static void place_close(struct place *p)
{
    if (p->panels)
        panels_free(p->panels);
    if (p->term)
        term_free(p->term);
    close(p->fd);
}

#define auto_place auto_cleanup(place_close)

static void place_open(struct place *p)
{
    struct error err;

    p->fd = memfd_create("out", MFD_CLOEXEC);
    if (p->fd < 0 || term_open(p->fd, p->fd, &p->term, &err) < 0 ||
        panels_new(p->term, &p->panels, &err) < 0)
        test_skip("no memory");
}

static const char *written(struct place *p)
{
    ssize_t n = pread(p->fd, p->text, sizeof(p->text) - 1, 0);

    p->text[MAX(n, 0)] = 0;
    return p->text;
}

static struct panel *opened(struct place *p, const char *title, unsigned lines_max)
{
    struct panel *panel = NULL;
    struct error err;

    if (panel_open(p->panels, title, lines_max, &panel, &err) < 0)
        test_skip("no memory");
    return panel;
}

static void fed(struct panel *p, const char *text)
{
    panel_feed(p, text, strlen(text));
}

/* The end of a file of lines that is larger than what a waiting panel holds. */
TEST(code_on_the_screen_is_never_cut)
{
    auto_place struct place p = {.fd = -1};
    auto_buf struct buf code;
    struct panel *a;
    off_t size;

    if (test_is_torture())
        return;
    place_open(&p);
    buf_init(&code, 32 << 20);
    for (size_t i = 0; i < 60000; i++)
        assert_int_eq(buf_printf(&code, "%0100zu\n", i), 0);
    assert_int_eq(buf_append_str(&code, "the_last_line()"), 0);
    a = opened(&p, "code", 0);
    panel_code(a, HIGHLIGHT_NONE, buf_str(&code), code.len);
    assert_true(panel_is_whole(a));
    panel_close(a, PANEL_OK, NULL);
    size = lseek(p.fd, 0, SEEK_END);
    assert_true(size > 6000000);
    assert_int_eq(lseek(p.fd, size - 100, SEEK_SET), size - 100);
    assert_true(read(p.fd, p.text, 100) == 100);
    assert_not_null(memmem(p.text, 100, "the_last_line()", 15));
}

TEST(a_panel_knows_that_it_has_lost_code)
{
    auto_place struct place p = {.fd = -1};
    auto_buf struct buf code;
    struct panel *a;

    if (test_is_torture())
        return;
    place_open(&p);
    buf_init(&code, 32 << 20);
    assert_int_eq(buf_reserve(&code, 17 << 20), 0);
    memset(code.data, 'x', 17 << 20);
    a = opened(&p, "code", 0);
    panel_code(a, HIGHLIGHT_NONE, code.data, 17 << 20);
    assert_false(panel_is_whole(a));
    panel_close(a, PANEL_OK, NULL);
}

TEST(a_panel_is_plain_lines_in_a_pipe)
{
    auto_place struct place p = {.fd = -1};
    struct panel *a;

    place_open(&p);
    a = opened(&p, "run\033[2J · py", 0);
    panel_code(a, HIGHLIGHT_PYTHON, "x = 1\n\033[8mhidden", 16);
    panel_rule(a, "output");
    fed(a, "one\ntw");
    fed(a, "o\n10%\r20%\r\n\033[31mred\033[0m");
    panel_note(a, STYLE_WARNING, "careful");
    panel_close(a, PANEL_OK, "ok");
    if (test_is_torture())
        return;
    assert_str_eq(written(&p), "[run · py]\n  x = 1\n  \\x1b[8mhidden\n  [output]\n  one\n  two\n"
                               "  20%\n  red\n  careful\n  [ok]\n");
}

TEST(a_second_panel_waits_for_the_first)
{
    auto_place struct place p = {.fd = -1};
    struct panel *a, *b, *c;

    place_open(&p);
    a = opened(&p, "a", 0);
    b = opened(&p, "b", 0);
    c = opened(&p, "c", 0);
    fed(b, "b1\n");
    fed(a, "a1\n");
    fed(c, "c1\n");
    panel_close(b, PANEL_OK, "bye");
    fed(a, "a2\n");
    if (!test_is_torture())
        assert_str_eq(written(&p), "[a]\n  a1\n  a2\n");
    panel_close(a, PANEL_OK, NULL);
    if (!test_is_torture())
        assert_str_eq(written(&p), "[a]\n  a1\n  a2\n[b]\n  b1\n  [bye]\n[c]\n  c1\n");
    panels_close_all(p.panels, PANEL_WARNING, "stopped");
    if (!test_is_torture())
        assert_str_has(written(&p), "[c]\n  c1\n  [stopped]\n");
}

TEST(of_many_lines_the_first_and_the_last_are_shown)
{
    auto_place struct place p = {.fd = -1};
    char line[32];
    struct panel *a;

    place_open(&p);
    a = opened(&p, "a", 2);
    for (int i = 1; i <= 20; i++) {
        snprintf(line, sizeof(line), "%d\n", i);
        fed(a, line);
    }
    panel_rule(a, "nothing follows");
    panel_close(a, PANEL_OK, NULL);
    if (test_is_torture())
        return;
    assert_str_eq(written(&p), "[a]\n  1\n  2\n  … 14 more lines\n  17\n  18\n  19\n  20\n");
}

TEST(what_is_open_is_closed_at_the_end)
{
    auto_place struct place p = {.fd = -1};

    place_open(&p);
    fed(opened(&p, "a", 0), "half a line");
    (void)opened(&p, "b", 0);
    panels_free(TAKE_PTR(p.panels));
    if (test_is_torture())
        return;
    assert_str_eq(written(&p), "[a]\n  half a line\n  [stopped]\n[b]\n  [stopped]\n");
}

/* ---- history ---- */

static void entry_add(void *user, const char *text)
{
    (void)!buf_printf(user, "<%s>", text);
}

static void loaded(const char *path, unsigned max, struct buf *ret)
{
    struct error err;

    buf_init(ret, 1 << 20);
    if (history_load(path, max, entry_add, ret, &err) < 0) {
        buf_done(ret);
        test_skip("%s", err.text);
    }
}

TEST(messages_come_back_as_they_were)
{
    static const char *const texts[] = {"one", "two\nlines", "a \\n b\\", "日本"};
    auto_buf struct buf none = {}, all = {}, last = {};
    char path[300];
    struct error err;
    struct stat st;

    snprintf(path, sizeof(path), "%s/deep/er/history", test_dir());
    loaded(path, 10, &none);
    assert_uint_eq(none.len, 0);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (history_append(path, texts[i], &err) < 0)
            test_skip("%s", err.text);
    }
    assert_int_eq(stat(path, &st), 0);
    assert_uint_eq(st.st_mode & 0777, 0600);
    loaded(path, 10, &all);
    assert_str_eq(buf_str(&all), "<one><two\nlines><a \\n b\\><日本>");
    loaded(path, 1, &last); /* and forgets the others: 4 are more than 2 */
    assert_str_eq(buf_str(&last), "<日本>");
    buf_done(&all);
    loaded(path, 10, &all);
    assert_str_eq(buf_str(&all), "<日本>");
    assert_int_eq(stat(path, &st), 0);
    assert_uint_eq(st.st_mode & 0777, 0600);
}

/* ---- lines without a terminal ---- */

TEST(plain_lines_are_read_to_the_end)
{
    static const char text[] = "one\r\n\ntw\033[31mo\nlast";
    static const char *const lines[] = {"one", "", "two", "last"};
    auto_fd int in = fd_memfd_sealed("in", text, sizeof(text) - 1);
    auto_fd int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    auto_term struct term *t = NULL;
    auto_line struct line *l = NULL;
    const struct line_options options = {.size = sizeof(options), .stop_fd = -1};
    enum line_event event;
    struct error err;

    if (in < 0 || out < 0 || lseek(in, 0, SEEK_SET) < 0 || term_open(in, out, &t, &err) < 0 ||
        line_new(t, &options, &l, &err) < 0)
        test_skip("no memory");
    for (size_t i = 0; i <= ARRAY_LEN(lines); i++) {
        auto_buf struct buf b;

        buf_init(&b, 1 << 20);
        if (line_read(l, "> ", &b, &event, &err) < 0)
            test_skip("%s", err.text);
        if (test_is_torture())
            return;
        assert_int_eq(event, i < ARRAY_LEN(lines) ? LINE_TEXT : LINE_END);
        assert_str_eq(buf_str(&b), i < ARRAY_LEN(lines) ? lines[i] : "");
    }
}

/* ---- pictures ---- */

/* 1 x 1, with a checksum that nobody here looks at. */
static const unsigned char tiny[] =
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0\0\0\0\0"
    "\0\0\0\1IDATx....\0\0\0\0IEND....";

static int drawn(enum term_picture picture, const void *data, size_t len, struct buf *ret)
{
    const struct term_caps caps = {
        .is_tty = true, .picture = picture, .cell_width = 10, .cell_height = 20};
    struct error err;

    buf_init(ret, 64 << 20);
    return image_encode(&caps, 80, &(struct image_source){data, len, -1}, ret, &err);
}

TEST(pictures_go_in_base64_between_sequences_of_ours)
{
    auto_buf struct buf kitty = {}, iterm = {}, none = {};
    int r = drawn(TERM_PICTURE_KITTY, tiny, sizeof(tiny) - 1, &kitty);

    if (r < 0 && test_is_torture())
        test_skip("no memory");
    assert_int_eq(r, 1);
    assert_true(str_starts(buf_str(&kitty), "\033_Ga=T,f=100,q=2,m=0;iVBORw0KGgo"));
    assert_true(str_ends(buf_str(&kitty), "\033\\\n"));
    r = drawn(TERM_PICTURE_ITERM2, tiny, sizeof(tiny) - 1, &iterm);
    if (r < 0 && test_is_torture())
        test_skip("no memory");
    assert_true(str_starts(buf_str(&iterm), "\033]1337;File=inline=1;size="));
    assert_int_eq(drawn(TERM_PICTURE_NONE, tiny, sizeof(tiny) - 1, &none), 0);
    assert_uint_eq(none.len, 0);
}

TEST(what_is_no_whole_picture_is_refused)
{
    auto_buf struct buf cut = {}, text = {}, gif = {}, large = {};
    auto_free char *zeros = calloc(1, IMAGE_BYTES_MAX + 1);

    assert_not_null(zeros);
    assert_true(drawn(TERM_PICTURE_KITTY, tiny, sizeof(tiny) - 20, &cut) < 0);
    assert_true(drawn(TERM_PICTURE_ITERM2, "\033]0;x\007", 6, &text) < 0);
    assert_true(drawn(TERM_PICTURE_ITERM2, zeros, IMAGE_BYTES_MAX + 1, &large) < 0);
    assert_true(drawn(TERM_PICTURE_SIXEL, "GIF89a\1\0\1\0\0\0\0;", 14, &gif) < 0);
}
