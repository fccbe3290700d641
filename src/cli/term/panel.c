/* SPDX-License-Identifier: MIT */
/*
 * A panel makes lines; whether they are printed at once or held until the panel before it is closed
 * is decided in one place. So each line is written once, in its final form.
 */
#include "cli/term/panel.h"

#include "base/str.h"
#include "cli/term/clean.h"
#include "cli/term/text.h"

#include <stdio.h>

enum {
    HELD_MAX = 4 * 1024 * 1024,
    SHOW_BYTES = 256 * 1024, /* of input: what is on the screen is printed in pieces */
    TEXT_MAX = 16 * 1024 * 1024,
    LINE_MAX_LEN = 64 * 1024, /* an unfinished line of more is broken */
    LAST_LINES = 4,           /* shown of what is above lines_max */
    TITLE_COLUMNS = 200,
    WIDTH_MIN = 24,
};

struct panels {
    struct term *term;
    struct panel *first; /* the one on the screen; the others wait */
};

struct panel {
    struct panels *all;
    struct panel *next;
    struct buf held; /* lines of one that waits */
    struct clean clean;
    struct buf line; /* the unfinished line of the output, cleaned */
    struct buf rule; /* the label of a rule that is due */
    bool is_due;
    bool is_return; /* what follows replaces the unfinished line */
    bool is_closed;
    unsigned lines, lines_max;
    struct buf last[LAST_LINES]; /* of the lines that are left out, by their number */
    unsigned left_out;
    bool is_short; /* of memory: something is missing */
};

/* ---- where lines go ---- */

static bool is_on_screen(const struct panel *p)
{
    return p->all->first == p;
}

static bool has_border(const struct panel *p)
{
    return term_caps(p->all->term)->is_tty;
}

static size_t width(const struct panel *p)
{
    return has_border(p) ? MAX(term_width(p->all->term), (unsigned)WIDTH_MIN) : 0;
}

static void out(struct panel *p, const struct buf *lines)
{
    p->is_short |= buf_append(&p->held, buf_str(lines), lines->len) < 0;
}

/* ---- borders ---- */

static const struct corner {
    const char *left, *right;
} corner_top = {"╭─", "╮"}, corner_rule = {"├─", "┤"}, corner_bottom = {"╰─", "╯"};

static enum style_role role_of(enum panel_state state)
{
    static const enum style_role roles[] = {[PANEL_RUNNING] = STYLE_FAINT,
                                            [PANEL_OK] = STYLE_OK,
                                            [PANEL_ERROR] = STYLE_ERROR,
                                            [PANEL_WARNING] = STYLE_WARNING};

    return (unsigned)state < ARRAY_LEN(roles) ? roles[state] : STYLE_FAINT;
}

/* A border with a label in it, which stands in the border's colour or, a title, in bold. */
static int border_put(struct panel *p, const struct corner *c, enum style_role role,
                      const char *label, bool is_title, struct buf *ret)
{
    enum term_color color = term_color(p->all->term);
    size_t room = width(p) - 3, used = 0;
    auto_buf struct buf text;

    buf_init(&text, 4096);
    if (*label && clean_line(label, room - 4, &text) < 0)
        return -1;
    if (style_put(ret, style_of(role), color) < 0 || buf_append_str(ret, c->left) < 0)
        return -1;
    if (text.len) {
        used = text_width(buf_str(&text), text.len) + 2;
        if (buf_append_byte(ret, ' ') < 0 ||
            (is_title && style_put(ret, style_of(STYLE_STRONG), color) < 0) ||
            buf_append(ret, buf_str(&text), text.len) < 0 ||
            (is_title && style_put(ret, style_of(role), color) < 0) ||
            buf_append_byte(ret, ' ') < 0)
            return -1;
    }
    if (text_repeat(ret, "─", room - used) < 0 || buf_append_str(ret, c->right) < 0 ||
        style_put(ret, style_of(STYLE_PLAIN), color) < 0)
        return -1;
    return buf_append_byte(ret, '\n');
}

static void border_out(struct panel *p, const struct corner *c, enum style_role role,
                       const char *label)
{
    bool is_title = c == &corner_top;
    auto_buf struct buf lines, text;

    buf_init(&lines, TEXT_MAX);
    buf_init(&text, 4096);
    if (has_border(p)) {
        p->is_short |= border_put(p, c, role, label, is_title, &lines) < 0;
    } else if (*label) {
        p->is_short |= clean_line(label, TITLE_COLUMNS, &text) < 0 ||
                       buf_printf(&lines, is_title ? "[%s]\n" : "  [%s]\n", buf_str(&text)) < 0;
    }
    out(p, &lines);
}

/* ---- lines ---- */

/* One line of text between the borders, as many lines as it takes. */
static int line_put(struct panel *p, const char *text, size_t len, struct buf *ret)
{
    enum term_color color = term_color(p->all->term);
    size_t all = width(p), inner = all ? all - 4 : 0;
    const struct text_wrap wrap = {inner, "", "", true};
    auto_buf struct buf lines, plain;
    const char *at;

    buf_init(&lines, TEXT_MAX);
    buf_init(&plain, TEXT_MAX);
    if (text_expand(&plain, text, len) < 0 ||
        text_wrap(&lines, buf_str(&plain), plain.len, &wrap) < 0)
        return -1;
    if (!has_border(p))
        return buf_append_str(ret, "  ") < 0 ? -1 : buf_append(ret, buf_str(&lines), lines.len);
    at = buf_str(&lines);
    while (*at) {
        size_t n = strcspn(at, "\n");

        if (style_text(ret, STYLE_FAINT, color, "│ ", strlen("│ ")) < 0 ||
            text_pad(ret, at, n, inner) < 0 ||
            style_text(ret, STYLE_FAINT, color, " │", strlen(" │")) < 0 ||
            buf_append_byte(ret, '\n') < 0)
            return -1;
        at += n + 1;
    }
    return 0;
}

static void line_out(struct panel *p, const char *text, size_t len)
{
    auto_buf struct buf lines;

    buf_init(&lines, TEXT_MAX);
    p->is_short |= line_put(p, text, len, &lines) < 0;
    out(p, &lines);
}

static void rule_flush(struct panel *p)
{
    if (!p->is_due)
        return;
    p->is_due = false;
    border_out(p, &corner_rule, STYLE_FAINT, buf_str(&p->rule));
}

/* A finished line of the output: printed, or kept as one of the last. */
static void output_line(struct panel *p, const char *text, size_t len)
{
    struct buf *last = &p->last[p->left_out % LAST_LINES];

    rule_flush(p);
    if (p->lines_max == 0 || p->lines < p->lines_max) {
        p->lines++;
        line_out(p, text, len);
        return;
    }
    p->left_out++;
    buf_clear(last);
    p->is_short |= buf_append(last, text, len) < 0;
}

/* ---- the open part ---- */

static const struct buf *last_line(const struct panel *p, unsigned number)
{
    return &p->last[number % LAST_LINES];
}

static int left_out_put(struct panel *p, struct buf *ret)
{
    unsigned shown = MIN(p->left_out, (unsigned)LAST_LINES), hidden = p->left_out - shown;
    char text[80];
    int r = 0;

    snprintf(text, sizeof(text), "… %u more line%s", hidden, hidden == 1 ? "" : "s");
    if (hidden)
        r = line_put(p, text, strlen(text), ret);
    for (unsigned i = hidden; i < p->left_out && r == 0; i++)
        r = line_put(p, buf_str(last_line(p, i)), last_line(p, i)->len, ret);
    return r;
}

/* What is not finished: the last lines, the line that is being written, the lower border. */
static int open_put(struct panel *p, struct buf *ret)
{
    if (!has_border(p) || p->is_closed)
        return 0;
    if (left_out_put(p, ret) < 0 ||
        (p->line.len && line_put(p, buf_str(&p->line), p->line.len, ret) < 0))
        return -1;
    return border_put(p, &corner_bottom, STYLE_FAINT, "", false, ret);
}

/* Prints what is finished when the panel is on the screen, and draws the rest below it. */
static void show(struct panel *p)
{
    auto_buf struct buf open;

    if (!is_on_screen(p))
        return;
    buf_init(&open, TEXT_MAX);
    if (open_put(p, &open) < 0)
        buf_clear(&open);
    term_print_open(p->all->term, buf_str(&p->held), p->held.len, buf_str(&open), open.len);
    buf_clear(&p->held);
}

static void line_finish(struct panel *p)
{
    if (p->line.len)
        output_line(p, buf_str(&p->line), p->line.len);
    buf_clear(&p->line);
}

/* ---- what a panel is given ---- */

void panel_code(struct panel *p, enum highlight_language language, const char *code, size_t len)
{
    struct highlight h = {.language = language, .color = term_color(p->all->term)};
    /* Inverse video is no colour: who wants none still has to tell "\x1b" from what it stands for.
     */
    struct clean clean = {.mode = CLEAN_VISIBLE,
                          .color = has_border(p) ? MAX(h.color, TERM_COLOR_16) : TERM_COLOR_NONE};
    auto_buf struct buf plain, colored;
    const char *at;

    buf_init(&plain, TEXT_MAX);
    buf_init(&colored, TEXT_MAX);
    line_finish(p);
    rule_flush(p);
    while (len && code[len - 1] == '\n')
        len--;
    if (clean_feed(&clean, code, len, &plain) < 0 || clean_finish(&clean, &plain) < 0 ||
        highlight_text(&h, buf_str(&plain), plain.len, &colored) < 0) {
        p->is_short = true;
        return;
    }
    at = buf_str(&colored);
    while (*at) {
        size_t n = strcspn(at, "\n");

        line_out(p, at, n);
        if (p->held.len > SHOW_BYTES)
            show(p);
        at += at[n] ? n + 1 : n;
    }
    show(p);
}

bool panel_is_whole(const struct panel *p)
{
    return !p->is_short;
}

void panel_rule(struct panel *p, const char *label)
{
    line_finish(p);
    p->is_due = true;
    buf_clear(&p->rule);
    p->is_short |= clean_line(label, TITLE_COLUMNS, &p->rule) < 0;
}

/* A piece of the unfinished line; one that has no end is broken. */
static void piece_take(struct panel *p, const char *text, size_t len)
{
    if (len == 0)
        return;
    if (p->is_return)
        buf_clear(&p->line);
    p->is_return = false;
    p->is_short |= buf_append(&p->line, text, len) < 0;
    if (p->line.len > LINE_MAX_LEN)
        line_finish(p);
}

/* Cleaned output: '\n' ends the line, '\r' begins it again. */
static void output_take(struct panel *p, const char *text, size_t len)
{
    while (len) {
        size_t n = 0;

        while (n < len && text[n] != '\n' && text[n] != '\r')
            n++;
        piece_take(p, text, n);
        if (n < len && text[n] == '\n') {
            output_line(p, buf_str(&p->line), p->line.len);
            buf_clear(&p->line);
        }
        p->is_return = n < len ? text[n] == '\r' : p->is_return;
        text += MIN(n + 1, len);
        len -= MIN(n + 1, len);
    }
}

void panel_feed(struct panel *p, const char *data, size_t len)
{
    auto_buf struct buf clean;

    buf_init(&clean, TEXT_MAX);
    while (len) {
        size_t n = MIN(len, (size_t)LINE_MAX_LEN);

        buf_clear(&clean);
        p->is_short |= clean_feed(&p->clean, data, n, &clean) < 0;
        output_take(p, buf_str(&clean), clean.len);
        data += n;
        len -= n;
        show(p);
    }
}

void panel_note(struct panel *p, enum style_role role, const char *text)
{
    auto_buf struct buf plain, line;

    buf_init(&plain, TEXT_MAX);
    buf_init(&line, TEXT_MAX);
    line_finish(p);
    rule_flush(p);
    if (clean_text(text, strlen(text), CLEAN_STRIP, &plain) < 0 ||
        style_text(&line, role, term_color(p->all->term), buf_str(&plain), plain.len) < 0) {
        p->is_short = true;
        return;
    }
    line_out(p, buf_str(&line), line.len);
    show(p);
}

/* ---- life ---- */

int panels_new(struct term *t, struct panels **ret, struct error *reterr)
{
    struct panels *all = calloc(1, sizeof(*all));

    if (!all)
        return error_no_memory(reterr);
    all->term = t;
    *ret = all;
    return 0;
}

static void panel_free(struct panel *p)
{
    buf_done(&p->held);
    buf_done(&p->line);
    buf_done(&p->rule);
    for (size_t i = 0; i < ARRAY_LEN(p->last); i++)
        buf_done(&p->last[i]);
    free(p);
}

int panel_open(struct panels *all, const char *title, unsigned lines_max, struct panel **ret,
               struct error *reterr)
{
    struct panel *p = calloc(1, sizeof(*p)), **end = &all->first;

    if (!p)
        return error_no_memory(reterr);
    p->all = all;
    p->lines_max = lines_max;
    p->clean =
        (struct clean){.mode = CLEAN_COLORS, .color = term_color(all->term), .keep_return = true};
    buf_init(&p->held, HELD_MAX);
    buf_init(&p->line, 4 * (size_t)LINE_MAX_LEN);
    buf_init(&p->rule, 4096);
    for (size_t i = 0; i < ARRAY_LEN(p->last); i++)
        buf_init(&p->last[i], 4 * (size_t)LINE_MAX_LEN);
    while (*end)
        end = &(*end)->next;
    *end = p;
    border_out(p, &corner_top, STYLE_RUNNING, title);
    show(p);
    *ret = p;
    return 0;
}

/* The panel on the screen is done: the next ones appear, up to one that is still open. */
static void screen_pass(struct panels *all)
{
    while (all->first) {
        struct panel *p = all->first;

        show(p);
        if (!p->is_closed)
            return;
        all->first = p->next;
        panel_free(p);
    }
}

void panel_close(struct panel *p, enum panel_state state, const char *note)
{
    auto_buf struct buf rest, clean;

    buf_init(&rest, TEXT_MAX);
    buf_init(&clean, TEXT_MAX);
    p->is_short |= clean_finish(&p->clean, &clean) < 0;
    output_take(p, buf_str(&clean), clean.len);
    line_finish(p);
    p->is_short |= left_out_put(p, &rest) < 0;
    if (p->is_short)
        (void)!line_put(p, "… some of it is missing", strlen("… some of it is missing"), &rest);
    out(p, &rest);
    border_out(p, &corner_bottom, role_of(state), note ? note : "");
    p->is_closed = true;
    screen_pass(p->all);
}

void panels_close_all(struct panels *all, enum panel_state state, const char *note)
{
    for (;;) {
        struct panel *p = all->first;

        while (p && p->is_closed)
            p = p->next;
        if (!p)
            return;
        panel_close(p, state, note);
    }
}

void panels_free(struct panels *all)
{
    panels_close_all(all, PANEL_WARNING, "stopped");
    free(all);
}
