/* SPDX-License-Identifier: MIT */
/* What a model thinks, dimmed behind a line: its lines are printed when they end, the last one is
 * the open part of the terminal. */
#include "cli/chat.h"

#include "cli/term/text.h"

#include <string.h>

enum { THOUGHT_LINE_MAX = 4000, THOUGHT_MAX = 256 << 10 };

static const char bar[] = "┊ ";

/* As lines for the terminal. */
static int thought_wrap(struct chat *c, const char *text, size_t len, struct buf *ret)
{
    enum term_color color = term_color(c->term);
    auto_buf struct buf styled, before;

    buf_init(&styled, 4 * THOUGHT_MAX);
    buf_init(&before, 128);
    if (style_text(&before, STYLE_FAINT, color, bar, strlen(bar)) < 0 ||
        style_text(&styled, STYLE_FAINT, color, text, len) < 0)
        return -1;
    return text_wrap(
        ret, buf_str(&styled), styled.len,
        &(struct text_wrap){.width = term_caps(c->term)->is_tty ? term_width(c->term) : 0,
                            .first = buf_str(&before),
                            .rest = buf_str(&before)});
}

static void thought_print(struct chat *c, const char *text, size_t len)
{
    auto_buf struct buf lines;

    buf_init(&lines, 8 * THOUGHT_MAX);
    if (thought_wrap(c, text, len, &lines) == 0)
        term_print(c->term, buf_str(&lines), lines.len);
}

/* Where a line that does not end is cut: behind a space, else anywhere between two characters. */
static size_t long_line_cut(const struct buf *line)
{
    for (size_t i = line->len; i > line->len / 2; i--) {
        if (line->data[i - 1] == ' ')
            return i;
    }
    return utf8_cut(line->data, line->len, line->len - 1);
}

static void thought_flush(struct chat *c)
{
    struct buf *line = &c->view.thought;
    const char *end;

    while (line->len > 0 && (end = memchr(line->data, '\n', line->len))) {
        size_t len = (size_t)(end - line->data);

        thought_print(c, line->data, len);
        buf_consume(line, len + 1);
    }
    if (line->len > THOUGHT_LINE_MAX) {
        size_t cut = long_line_cut(line);

        thought_print(c, line->data, cut);
        buf_consume(line, cut);
    }
}

void chat_thought_feed(struct chat *c, const char *text, size_t len)
{
    auto_buf struct buf open;

    if (c->is_answer_only)
        return;
    (void)!clean_feed(&c->view.clean, text, len, &c->view.thought);
    thought_flush(c);
    buf_init(&open, 8 * THOUGHT_MAX);
    if (thought_wrap(c, buf_str(&c->view.thought), c->view.thought.len, &open) == 0)
        term_open_set(c->term, buf_str(&open), open.len);
}

void chat_thought_end(struct chat *c)
{
    if (c->is_answer_only)
        return;
    (void)!clean_finish(&c->view.clean, &c->view.thought);
    thought_flush(c);
    term_open_set(c->term, "", 0);
    if (c->view.thought.len > 0)
        thought_print(c, c->view.thought.data, c->view.thought.len);
    buf_clear(&c->view.thought);
}
