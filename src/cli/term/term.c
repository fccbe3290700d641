/* SPDX-License-Identifier: MIT */
/*
 * The part that changes is never in what has scrolled away: it has at most as many rows as the
 * screen, and is erased before anything is printed. Each change is one write, so nothing is seen
 * half done.
 */
#include "cli/term/term.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/answer.h"
#include "cli/term/text.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

enum {
    ANSWER_MS = 100,
    WIDTH_DEFAULT = 80,
    HEIGHT_DEFAULT = 24,
    WIDTH_MIN = 20,
    OPEN_MAX_BYTES = 4 * 1024 * 1024,
    TYPED_MAX = 64 * 1024,
};

struct term {
    int in, out;
    struct term_caps caps;
    pthread_mutex_t lock;
    struct buf open, status; /* what is wanted */
    struct buf drawn;        /* what is on the screen of it: lines without the last '\n' */
    size_t drawn_status;     /* where the status line begins in it */
    struct buf typed;
    struct termios before; /* of the input, while it is not shown */
    bool is_hidden;
};

/* ---- sizes ---- */

static void size_get(const struct term *t, struct winsize *ret)
{
    *ret = (struct winsize){0};
    if (t->caps.is_tty && ioctl(t->out, TIOCGWINSZ, ret) == 0 && ret->ws_col && ret->ws_row)
        return;
    ret->ws_col = WIDTH_DEFAULT;
    ret->ws_row = HEIGHT_DEFAULT;
}

unsigned term_width(struct term *t)
{
    struct winsize size;

    size_get(t, &size);
    return MAX((unsigned)size.ws_col, (unsigned)WIDTH_MIN);
}

unsigned term_height(struct term *t)
{
    struct winsize size;

    size_get(t, &size);
    return size.ws_row;
}

/* ---- the part that changes ---- */

/* Rows of what is drawn, at the width of now: a terminal that became narrower has broken lines. */
static size_t rows_drawn(const struct term *t, size_t width)
{
    const char *at = buf_str(&t->drawn), *end = at + t->drawn.len;
    size_t rows = 0;

    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t columns = text_width(at, (size_t)((newline ? newline : end) - at));

        rows += columns > width ? (columns + width - 1) / width : 1;
        if (!newline)
            return rows;
        at = newline + 1;
    }
}

static int tail_erase(struct term *t, struct buf *out)
{
    size_t rows;

    if (t->drawn.len == 0)
        return 0;
    rows = rows_drawn(t, term_width(t));
    buf_clear(&t->drawn);
    if (rows > 1 && buf_printf(out, "\033[%zuA", rows - 1) < 0)
        return -1;
    return buf_append_str(out, "\r\033[J");
}

/* The last `rows` lines of the open part. */
static const char *open_end(const struct term *t, size_t rows, size_t *ret_len)
{
    const char *text = buf_str(&t->open);
    size_t len = t->open.len, at;

    if (len && text[len - 1] == '\n')
        len--;
    for (at = len; at; at--) {
        if (text[at - 1] == '\n' && --rows == 0)
            break;
    }
    *ret_len = len - at;
    return text + at;
}

/* Each line is cut at the width: one that is broken by the terminal has rows that nobody counts. */
static int lines_fit(struct buf *ret, const char *text, size_t len, size_t width)
{
    for (;;) {
        const char *newline = memchr(text, '\n', len);
        size_t n = newline ? (size_t)(newline - text) : len;
        size_t fit = text_fit(text, n, width);

        if (buf_append(ret, text, fit) < 0 || (fit < n && buf_append_str(ret, "\033[0m") < 0))
            return -1;
        if (!newline)
            return 0;
        if (buf_append_byte(ret, '\n') < 0)
            return -1;
        text = newline + 1;
        len -= n + 1;
    }
}

static int tail_draw(struct term *t, struct buf *out)
{
    size_t width = term_width(t), height = MAX(term_height(t), 3u), len;
    const char *open = open_end(t, height - 2, &len);

    if (lines_fit(&t->drawn, open, len, width) < 0)
        return -1;
    if (t->open.len && t->status.len && buf_append_byte(&t->drawn, '\n') < 0)
        return -1;
    t->drawn_status = t->drawn.len;
    if (lines_fit(&t->drawn, buf_str(&t->status), t->status.len, width) < 0)
        return -1;
    return buf_append(out, buf_str(&t->drawn), t->drawn.len);
}

/* ---- writing ---- */

static void out_write(struct term *t, const struct buf *out)
{
    /* A closed pipe (`| head`) is no reason to lose the orderly end of a run. */
    (void)!fd_write_full(t->out, buf_str(out), out->len, NULL);
}

/* What is finished, in place of the tail, and the tail below it. */
static void update(struct term *t, const char *text, size_t len, bool is_lines)
{
    auto_buf struct buf out;
    bool was_drawn = t->drawn.len > 0;
    bool is_open = len && is_lines && text[len - 1] != '\n';
    bool bad = false;

    buf_init(&out, len + 8 * (size_t)OPEN_MAX_BYTES);
    if (t->caps.is_tty)
        bad |= tail_erase(t, &out) < 0;
    bad |= buf_append(&out, text, len) < 0 || (is_open && buf_append_byte(&out, '\n') < 0);
    if (t->caps.is_tty) {
        bad |= tail_draw(t, &out) < 0;
        if (was_drawn != (t->drawn.len > 0))
            bad |= buf_append_str(&out, was_drawn ? "\033[?25h" : "\033[?25l") < 0;
    }
    out_write(t, &out);
    if (bad)
        buf_clear(&t->drawn);
}

void term_print(struct term *t, const char *text, size_t len)
{
    if (len == 0)
        return;
    pthread_mutex_lock(&t->lock);
    update(t, text, len, true);
    pthread_mutex_unlock(&t->lock);
}

void term_raw(struct term *t, const char *data, size_t len)
{
    pthread_mutex_lock(&t->lock);
    update(t, data, len, false);
    pthread_mutex_unlock(&t->lock);
}

static bool is_same(const struct buf *b, const char *text, size_t len)
{
    return b->len == len && (len == 0 || memcmp(b->data, text, len) == 0);
}

/* Takes the new text; false when there is nothing to draw. */
static bool part_set(struct term *t, struct buf *part, const char *text, size_t len)
{
    if (!t->caps.is_tty || is_same(part, text, len))
        return false;
    if (len > part->max) {
        text += len - part->max;
        len = part->max;
    }
    buf_clear(part);
    return buf_append(part, text, len) == 0 || t->drawn.len > 0;
}

void term_open_set(struct term *t, const char *text, size_t len)
{
    pthread_mutex_lock(&t->lock);
    if (part_set(t, &t->open, text, len))
        update(t, "", 0, true);
    pthread_mutex_unlock(&t->lock);
}

void term_print_open(struct term *t, const char *text, size_t len, const char *open,
                     size_t open_len)
{
    pthread_mutex_lock(&t->lock);
    if (part_set(t, &t->open, open, open_len) || len)
        update(t, text, len, true);
    pthread_mutex_unlock(&t->lock);
}

/* The turning sign changes ten times a second: only its row is written. */
static bool status_redraw(struct term *t)
{
    auto_buf struct buf out;
    size_t before = t->drawn_status, width = term_width(t);

    buf_init(&out, OPEN_MAX_BYTES);
    if (t->drawn.len <= before || t->status.len == 0 ||
        text_width(buf_str(&t->drawn) + before, t->drawn.len - before) > width)
        return false;
    t->drawn.len = before;
    if (lines_fit(&t->drawn, buf_str(&t->status), t->status.len, width) < 0 ||
        buf_append_str(&out, "\r\033[K") < 0 ||
        buf_append(&out, t->drawn.data + before, t->drawn.len - before) < 0)
        return false;
    out_write(t, &out);
    return true;
}

void term_status_set(struct term *t, const char *text, size_t len)
{
    pthread_mutex_lock(&t->lock);
    if (part_set(t, &t->status, text, len) && !status_redraw(t))
        update(t, "", 0, true);
    pthread_mutex_unlock(&t->lock);
}

/* ---- input ---- */

void term_echo(struct term *t, bool on)
{
    struct termios hidden;

    if (!t->caps.has_input || on != t->is_hidden)
        return;
    if (on) {
        (void)tcsetattr(t->in, TCSANOW, &t->before);
        t->is_hidden = false;
    } else if (tcgetattr(t->in, &t->before) == 0) {
        hidden = t->before;
        hidden.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL);
        t->is_hidden = tcsetattr(t->in, TCSANOW, &hidden) == 0;
    }
}

int term_in(const struct term *t)
{
    return t->in;
}

int term_out(const struct term *t)
{
    return t->out;
}

size_t term_typed_take(struct term *t, char *ret, size_t size)
{
    size_t n = MIN(size, t->typed.len);

    memcpy(ret, buf_str(&t->typed), n);
    buf_consume(&t->typed, n);
    return n;
}

void term_typed_drop(struct term *t)
{
    buf_clear(&t->typed);
    (void)tcflush(t->in, TCIFLUSH);
}

/* ---- asking ---- */

static void answers_wait(struct term *t, struct answer *a)
{
    int64_t deadline = clock_deadline(ANSWER_MS);
    char piece[256];

    while (!a->is_complete && fd_wait(t->in, POLLIN, deadline) > 0) {
        ssize_t n = read(t->in, piece, sizeof(piece));

        if (n <= 0 || answer_feed(a, piece, (size_t)n, &t->typed) < 0)
            break;
    }
    (void)!answer_finish(a, &t->typed);
}

/* A job in the background must not touch the terminal's settings: it would be stopped. */
static void ask(struct term *t)
{
    const char *questions = answer_questions(&t->caps);
    struct termios before, raw;
    struct answer a = {};

    if (!*questions || tcgetpgrp(t->in) != getpgrp() || tcgetattr(t->in, &before) < 0)
        return;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(t->in, TCSANOW, &raw) < 0)
        return;
    if (fd_write_full(t->out, questions, strlen(questions), NULL) == 0)
        answers_wait(t, &a);
    (void)!fd_write_full(t->out, "\r\033[K", 4, NULL); /* where it was printed after all */
    (void)tcsetattr(t->in, TCSANOW, &before);
    answer_apply(&a, &t->caps);
}

/* ---- life ---- */

static void locale_set(void)
{
    if (!setlocale(LC_CTYPE, "") || !str_eq(nl_langinfo(CODESET), "UTF-8"))
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static void cell_measure(struct term *t)
{
    struct winsize size;

    size_get(t, &size);
    if (size.ws_xpixel / size.ws_col >= 2 && size.ws_ypixel / size.ws_row >= 4) {
        t->caps.cell_width = size.ws_xpixel / size.ws_col;
        t->caps.cell_height = size.ws_ypixel / size.ws_row;
    }
}

static int open_as(int in, int out, bool plain, struct term **ret, struct error *reterr)
{
    auto_term struct term *t = calloc(1, sizeof(*t));

    if (!t)
        return error_no_memory(reterr);
    t->in = in;
    t->out = out;
    pthread_mutex_init(&t->lock, NULL);
    buf_init(&t->open, OPEN_MAX_BYTES);
    buf_init(&t->status, OPEN_MAX_BYTES);
    buf_init(&t->drawn, 4 * (size_t)OPEN_MAX_BYTES);
    buf_init(&t->typed, TYPED_MAX);
    locale_set();
    t->caps.is_tty = !plain && isatty(out);
    term_caps_guess(&t->caps, secure_getenv);
    t->caps.has_input = t->caps.is_tty && isatty(in);
    if (t->caps.is_tty)
        cell_measure(t);
    if (t->caps.has_input)
        ask(t);
    *ret = TAKE_PTR(t);
    return 0;
}

int term_open(int in, int out, struct term **ret, struct error *reterr)
{
    return open_as(in, out, false, ret, reterr);
}

int term_open_plain(int in, int out, struct term **ret, struct error *reterr)
{
    return open_as(in, out, true, ret, reterr);
}

void term_free(struct term *t)
{
    term_status_set(t, "", 0);
    term_open_set(t, "", 0);
    term_echo(t, true);
    pthread_mutex_destroy(&t->lock);
    buf_done(&t->open);
    buf_done(&t->status);
    buf_done(&t->drawn);
    buf_done(&t->typed);
    free(t);
}

const struct term_caps *term_caps(const struct term *t)
{
    return &t->caps;
}

enum term_color term_color(const struct term *t)
{
    return t->caps.color;
}
