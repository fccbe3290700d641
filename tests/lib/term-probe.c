/* SPDX-License-Identifier: MIT */
/*
 * For test_term_screen.py: the parts of src/cli/term/ on a terminal of the test's own.
 *
 *     caps | markdown FILE STEP | panels | spinner | image FILE | line HISTORY
 */
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/image.h"
#include "cli/term/line.h"
#include "cli/term/markdown.h"
#include "cli/term/panel.h"
#include "cli/term/spinner.h"

#include <fcntl.h>
#include <stdio.h>

enum { FILE_MAX = 16 * 1024 * 1024, LINES = 40 };

static void say(struct term *t, const char *fmt, ...) printf_like(2, 3);
static void say(struct term *t, const char *fmt, ...)
{
    auto_free char *text = NULL;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0)
        text = NULL;
    else
        term_print(t, text, (size_t)len);
}

static int caps_main(struct term *t, char **argv, struct error *reterr)
{
    const struct term_caps *c = term_caps(t);

    say(t, "tty=%d input=%d color=%d picture=%d cell=%ux%u", c->is_tty, c->has_input, (int)c->color,
        (int)c->picture, c->cell_width, c->cell_height);
    return 0;
}

static int markdown_main(struct term *t, char **argv, struct error *reterr)
{
    auto_markdown_stream struct markdown_stream *m = NULL;
    auto_free char *text = NULL;
    size_t len;
    int64_t step;
    int r;

    if (str_parse_int(argv[1], 1, FILE_MAX, &step) < 0)
        return -1;
    if ((r = fd_read_file(AT_FDCWD, argv[0], FILE_MAX, &text, &len, reterr)) < 0 ||
        (r = markdown_stream_new(t, &m, reterr)) < 0)
        return r;
    for (size_t at = 0; at < len && r == 0; at += (size_t)step)
        r = markdown_stream_feed(m, text + at, MIN((size_t)step, len - at), reterr);
    return r < 0 ? r : markdown_stream_end(m, reterr);
}

/* Two at once, while a spinner turns. */
static int panels_main(struct term *t, char **argv, struct error *reterr)
{
    auto_panels struct panels *all = NULL;
    auto_spinner struct spinner *s = NULL;
    struct panel *a, *b;
    char line[64];
    int r;

    if ((r = panels_new(t, &all, reterr)) < 0 || (r = spinner_new(t, &s, reterr)) < 0 ||
        (r = panel_open(all, "first", 0, &a, reterr)) < 0 ||
        (r = panel_open(all, "second", 3, &b, reterr)) < 0)
        return r;
    spinner_start(s, "running");
    panel_code(a, HIGHLIGHT_PYTHON, "print('x')", strlen("print('x')"));
    panel_rule(a, "output");
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof(line), "\033[31mline %d\033[0m\033[2J\n", i);
        panel_feed(a, line, strlen(line));
        panel_feed(b, line, strlen(line));
        term_status_set(t, line, strlen("status"));
    }
    panel_feed(a, "10%\r20%\r30%", strlen("10%\r20%\r30%"));
    panel_close(a, PANEL_OK, "ok");
    panel_close(b, PANEL_ERROR, "timeout");
    spinner_stop(s);
    return 0;
}

/* Turns until a line comes. */
static int spinner_main(struct term *t, char **argv, struct error *reterr)
{
    auto_spinner struct spinner *s = NULL;
    char c;
    int r = spinner_new(t, &s, reterr);

    if (r < 0)
        return r;
    term_echo(t, false);
    spinner_start(s, "thinking\033[2J");
    while (read(term_in(t), &c, 1) == 1 && c != '\n')
        say(t, "typed %c", c);
    spinner_stop(s);
    term_echo(t, true);
    return 0;
}

static int image_main(struct term *t, char **argv, struct error *reterr)
{
    auto_free char *data = NULL;
    size_t len;
    int r = fd_read_file(AT_FDCWD, argv[0], FILE_MAX, &data, &len, reterr);

    if (r < 0 || (r = image_print(t, &(struct image_source){data, len, -1}, reterr)) < 0)
        return r;
    say(t, "drawn=%d", r);
    return 0;
}

static void complete(void *user, const char *before, struct line_choices *choices)
{
    static const char *const words[] = {"/files", "/threads", "/threads-all", "/日本"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(words[i], before))
            line_choice(choices, 0, words[i]);
    }
}

static int line_main(struct term *t, char **argv, struct error *reterr)
{
    const struct line_options options = {
        .size = sizeof(options), .history = argv[0], .stop_fd = -1, .complete = complete};
    auto_line struct line *l = NULL;
    enum line_event event = LINE_TEXT;
    int r = line_new(t, &options, &l, reterr);

    while (r == 0 && event != LINE_END) {
        auto_buf struct buf text;

        buf_init(&text, 2 * (size_t)LINE_MAX_BYTES);
        r = line_read(l, "> ", &text, &event, reterr);
        for (size_t i = 0; i < text.len; i++)
            text.data[i] = text.data[i] == '\n' ? '|' : text.data[i];
        say(t, "event=%d <%s>", (int)event, buf_str(&text));
        if (event == LINE_TEXT && r == 0)
            line_remember(l, buf_str(&text));
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        int (*run)(struct term *t, char **argv, struct error *reterr);
    } modes[] = {{"caps", 0, caps_main},     {"markdown", 2, markdown_main},
                 {"panels", 0, panels_main}, {"spinner", 0, spinner_main},
                 {"image", 1, image_main},   {"line", 1, line_main}};
    auto_term struct term *t = NULL;
    struct error error = {.text = "usage"};

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(modes); i++) {
        if (!str_eq(argv[1], modes[i].name) || argc != 2 + modes[i].arguments)
            continue;
        if (term_open(STDIN_FILENO, STDOUT_FILENO, &t, &error) == 0 &&
            modes[i].run(t, argv + 2, &error) == 0)
            return 0;
        break;
    }
    fprintf(stderr, "term-probe: %s\n", error.text);
    return 1;
}
