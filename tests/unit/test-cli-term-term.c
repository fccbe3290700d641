/* SPDX-License-Identifier: MIT */
/* What a terminal is, what it answers, and the part of the screen that changes. */
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/answer.h"
#include "cli/term/panel.h"
#include "cli/term/term.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>

/* ---- the environment ---- */

static const char *const *variables;

static char *variable(const char *name)
{
    for (size_t i = 0; variables[i]; i += 2) {
        if (str_eq(variables[i], name))
            return (char *)variables[i + 1];
    }
    return NULL;
}

static const struct {
    const char *variables[7];
    enum term_color color;
    enum term_picture picture;
} environments[] = {
    {{"TERM", "xterm"}, TERM_COLOR_16, TERM_PICTURE_NONE},
    {{"TERM", "xterm-256color"}, TERM_COLOR_256, TERM_PICTURE_NONE},
    {{"TERM", "xterm-256color", "COLORTERM", "truecolor"}, TERM_COLOR_TRUE, TERM_PICTURE_NONE},
    {{"TERM", "xterm-256color", "NO_COLOR", "1"}, TERM_COLOR_NONE, TERM_PICTURE_NONE},
    {{"TERM", "xterm", "NO_COLOR", ""}, TERM_COLOR_16, TERM_PICTURE_NONE},
    {{"TERM", "xterm-kitty"}, TERM_COLOR_TRUE, TERM_PICTURE_KITTY},
    {{"TERM", "xterm-256color", "TERM_PROGRAM", "iTerm.app"}, TERM_COLOR_256, TERM_PICTURE_ITERM2},
    {{"TERM", "foot"}, TERM_COLOR_16, TERM_PICTURE_SIXEL},
    {{"TERM", "tmux-256color", "KITTY_WINDOW_ID", "1"}, TERM_COLOR_256, TERM_PICTURE_NONE},
    {{"TERM", "xterm", "KITTY_WINDOW_ID", "1", "TMUX", "x"}, TERM_COLOR_16, TERM_PICTURE_NONE},
};

TEST(the_environment_names_colours_and_pictures)
{
    for (size_t i = 0; i < ARRAY_LEN(environments); i++) {
        struct term_caps caps = {.is_tty = true};

        variables = environments[i].variables;
        term_caps_guess(&caps, variable);
        assert_true(caps.is_tty);
        assert_int_eq(caps.color, environments[i].color);
        assert_int_eq(caps.picture, environments[i].picture);
    }
}

TEST(a_terminal_that_moves_no_cursor_is_none)
{
    static const char *const names[][3] = {{"TERM", "dumb"}, {"TERM", ""}, {NULL}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct term_caps caps = {.is_tty = true};

        variables = names[i];
        term_caps_guess(&caps, variable);
        assert_false(caps.is_tty);
        assert_int_eq(caps.color, TERM_COLOR_NONE);
    }
}

/* ---- answers ---- */

static void answered(struct answer *a, const char *text, const char *typed)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    if (answer_feed(a, text, strlen(text), &b) < 0 || answer_finish(a, &b) < 0)
        test_skip("no memory");
    assert_str_eq(buf_str(&b), typed);
}

TEST(answers_are_understood)
{
    struct answer a = {};
    struct term_caps caps = {.color = TERM_COLOR_256};

    answered(&a, "\033_Gi=31;OK\033\\\033P1+r524742=8\033\\\033[6;20;10t\033[?62;4;22c", "");
    assert_true(a.is_complete && a.has_kitty && a.has_rgb && a.has_sixel);
    answer_apply(&a, &caps);
    assert_int_eq(caps.color, TERM_COLOR_TRUE);
    assert_int_eq(caps.picture, TERM_PICTURE_KITTY);
    assert_uint_eq(caps.cell_width, 10);
    assert_uint_eq(caps.cell_height, 20);
}

TEST(what_is_typed_between_answers_is_kept)
{
    struct answer a = {};

    answered(&a, "ls\033[?1;2c -l\033[A\033\033[6;9;9t\033OP\033P0+r\033\\",
             "ls -l\033[A\033\033OP");
    assert_true(a.is_complete);
    assert_false(a.has_sixel || a.has_rgb || a.has_kitty);
    assert_uint_eq(a.cell_width, 9);
}

TEST(no_answer_says_more_than_it_may)
{
    static const char *const texts[] = {
        "\033[6;99999999999;3t",   "\033[6;0;0t",         "\033[6;20t",
        "\033_Gi=31;ENOENT\033\\", "\033_Gi=32;OK\033\\",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct answer a = {};

        answered(&a, texts[i], "");
        assert_false(a.has_kitty);
        assert_uint_eq(a.cell_width, 0);
    }
}

TEST(colours_that_nobody_wants_stay_away)
{
    struct answer a = {.has_rgb = true};
    struct term_caps caps = {.color = TERM_COLOR_NONE};

    answer_apply(&a, &caps);
    assert_int_eq(caps.color, TERM_COLOR_NONE);
}

/* ---- the screen ---- */

struct screen {
    int master, slave;
    struct term *term;
};

static void screen_close(struct screen *s)
{
    if (s->term)
        term_free(s->term);
    close(s->slave);
    close(s->master);
}

#define auto_screen auto_cleanup(screen_close)

/* A terminal of 20 x 6 that is nobody's controlling terminal, so it is not asked anything. */
static void screen_open_with(struct screen *s, const char *no_color)
{
    const struct winsize size = {.ws_row = 6, .ws_col = 20};
    struct termios raw;
    struct error err;
    char name[64];

    setenv("TERM", "xterm", 1);
    if (no_color)
        setenv("NO_COLOR", no_color, 1);
    else
        unsetenv("NO_COLOR");
    unsetenv("COLORTERM");
    s->slave = -1;
    s->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->master >= 0 && grantpt(s->master) == 0 && unlockpt(s->master) == 0 &&
        ptsname_r(s->master, name, sizeof(name)) == 0)
        s->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->slave < 0 || tcgetattr(s->slave, &raw) < 0)
        test_skip("no pseudo-terminals here");
    cfmakeraw(&raw);
    tcsetattr(s->slave, TCSANOW, &raw);
    ioctl(s->slave, TIOCSWINSZ, &size);
    fd_set_nonblock(s->master, true);
    if (term_open(s->slave, s->slave, &s->term, &err) < 0)
        test_skip("%s", err.text);
}

static void screen_open(struct screen *s)
{
    screen_open_with(s, NULL);
}

/* What was written since the last look. */
static const char *seen(struct screen *s)
{
    static char text[8192];
    ssize_t n = read(s->master, text, sizeof(text) - 1);

    text[MAX(n, 0)] = 0;
    return text;
}

TEST(finished_text_is_put_above_the_part_that_changes)
{
    auto_screen struct screen s = {};

    screen_open(&s);
    term_open_set(s.term, "a\nb", 3);
    assert_str_eq(seen(&s), "a\nb\033[?25l");
    term_status_set(s.term, "st", 2);
    assert_str_eq(seen(&s), "\033[1A\r\033[Ja\nb\nst");
    term_print(s.term, "done", 4);
    assert_str_eq(seen(&s), "\033[2A\r\033[Jdone\na\nb\nst");
    term_status_set(s.term, "sx", 2);
    assert_str_eq(seen(&s), "\r\033[Ksx");
    term_status_set(s.term, "sx", 2);
    assert_str_eq(seen(&s), "");
    term_status_set(s.term, "", 0);
    assert_str_eq(seen(&s), "\033[2A\r\033[Ja\nb");
    term_print_open(s.term, "x\n", 2, "", 0);
    assert_str_eq(seen(&s), "\033[1A\r\033[Jx\n\033[?25h");
}

/* What is written takes a moment to go through. */
static void assert_comes(struct screen *s, const char *part)
{
    auto_buf struct buf all;
    struct pollfd master = {.fd = s->master, .events = POLLIN};

    buf_init(&all, MIB);
    while (!strstr(buf_str(&all), part)) {
        if (poll(&master, 1, test_is_torture() ? 100 : 10000) <= 0)
            assert_str_has(buf_str(&all), part);
        if (buf_append_str(&all, seen(s)) < 0)
            test_skip("no memory");
    }
}

/* A character that would hide, and the text that says the same. */
TEST(what_is_approved_looks_like_what_it_is)
{
    static const char code[] = "a\033b\\x1b", *const no_color[] = {NULL, "1"};

    for (size_t i = 0; i < ARRAY_LEN(no_color); i++) {
        auto_screen struct screen s = {};
        auto_panels struct panels *panels = NULL;
        struct panel *panel = NULL;
        struct error err;

        screen_open_with(&s, no_color[i]);
        if (panels_new(s.term, &panels, &err) < 0 ||
            panel_open(panels, "run this?", 0, &panel, &err) < 0)
            test_skip("no memory");
        panel_code(panel, HIGHLIGHT_BASH, code, sizeof(code) - 1);
        if (panel_is_whole(panel))
            assert_comes(&s, "a\033[0;7m\\x1b\033[0mb\\x1b ");
    }
}

TEST(an_open_part_is_never_higher_than_the_screen)
{
    auto_screen struct screen s = {};

    screen_open(&s);
    term_open_set(s.term, "1\n2\n3\n4\n5\n6\n7\n", 14);
    assert_str_eq(seen(&s), "4\n5\n6\n7\033[?25l");
    term_open_set(s.term, "", 0);
    assert_str_eq(seen(&s), "\033[3A\r\033[J\033[?25h");
}

TEST(a_line_of_it_is_cut_at_the_width)
{
    auto_screen struct screen s = {};

    screen_open(&s);
    term_open_set(s.term, "0123456789012345678901234\nb", 27);
    assert_str_eq(seen(&s), "01234567890123456789\033[0m\nb\033[?25l");
}

TEST(a_narrower_screen_has_broken_the_lines)
{
    const struct winsize narrow = {.ws_row = 6, .ws_col = 20};
    const struct winsize wide = {.ws_row = 6, .ws_col = 50};
    auto_screen struct screen s = {};

    screen_open(&s);
    ioctl(s.slave, TIOCSWINSZ, &wide);
    term_open_set(s.term, "0123456789012345678901234567890123456789", 40);
    (void)seen(&s);
    ioctl(s.slave, TIOCSWINSZ, &narrow);
    term_open_set(s.term, "x", 1);
    assert_str_eq(seen(&s), "\033[1A\r\033[Jx");
}

TEST(the_end_leaves_a_clean_screen)
{
    auto_screen struct screen s = {};
    struct termios now;

    screen_open(&s);
    tcgetattr(s.slave, &now);
    now.c_lflag |= ECHO;
    tcsetattr(s.slave, TCSANOW, &now);
    term_echo(s.term, false);
    tcgetattr(s.slave, &now);
    assert_false(now.c_lflag & ECHO);
    term_status_set(s.term, "st", 2);
    (void)seen(&s);
    term_free(TAKE_PTR(s.term));
    assert_str_eq(seen(&s), "\r\033[J\033[?25h");
    tcgetattr(s.slave, &now);
    assert_true(now.c_lflag & ECHO);
}

TEST(a_pipe_gets_finished_text_alone)
{
    auto_fd int fd = memfd_create("out", MFD_CLOEXEC);
    auto_term struct term *t = NULL;
    char text[64] = "";
    struct error err;

    if (fd < 0 || term_open(fd, fd, &t, &err) < 0)
        test_skip("no memory");
    assert_false(term_caps(t)->is_tty);
    term_status_set(t, "status", 6);
    term_open_set(t, "open", 4);
    term_print(t, "done", 4);
    assert_true(pread(fd, text, sizeof(text) - 1, 0) >= 0);
    assert_str_eq(text, "done\n");
}
