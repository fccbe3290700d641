/* SPDX-License-Identifier: MIT */
/* Widths first, then each row: its cells are wrapped, and put side by side line by line. */
#include "cli/term/table.h"

#include "base/str.h"
#include "cli/term/text.h"

enum { GAP = 3, COLUMN_MIN = 3, LINES_MAX = 4 * 1024 * 1024 };

void table_init(struct table *t, unsigned columns)
{
    *t = (struct table){.columns = MIN(columns, (unsigned)TABLE_COLUMNS_MAX)};
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(TAKE_PTR(t->cells));
    t->count = t->room = 0;
}

static int room_make(struct table *t)
{
    size_t room = t->room ? 2 * t->room : 64;
    char **cells;

    if (t->count < t->room)
        return 0;
    if (room > TABLE_CELLS_MAX)
        return -1;
    cells = reallocarray(t->cells, room, sizeof(*cells));
    if (!cells)
        return -1;
    t->cells = cells;
    t->room = room;
    return 0;
}

int table_add(struct table *t, const char *text, size_t len)
{
    if (room_make(t) < 0)
        return -1;
    t->cells[t->count] = strndup(text, len);
    if (!t->cells[t->count])
        return -1;
    t->count++;
    return 0;
}

static size_t rows(const struct table *t)
{
    return (t->count + t->columns - 1) / t->columns;
}

static const char *cell(const struct table *t, size_t row, unsigned column)
{
    size_t i = row * t->columns + column;

    return i < t->count ? t->cells[i] : "";
}

/* ---- widths ---- */

/* Columns of the longest line. */
static size_t longest(const char *text)
{
    size_t most = 0;

    for (;;) {
        size_t n = strcspn(text, "\n"), width = text_width(text, n);

        most = MAX(most, width);
        if (!text[n])
            return most;
        text += n + 1;
    }
}

static size_t sum(const size_t *widths, unsigned count, size_t cap)
{
    size_t total = 0;

    for (unsigned i = 0; i < count; i++)
        total += MIN(widths[i], cap);
    return total;
}

/* False when the columns cannot be as narrow as they had to be. */
static bool widths_fit(const struct table *t, const struct table_layout *l, size_t *ret)
{
    size_t gaps = (size_t)GAP * (t->columns - 1), before = text_width(l->before, strlen(l->before));
    size_t room = l->width > before + gaps ? l->width - before - gaps : 0, cap = 0;

    for (unsigned c = 0; c < t->columns; c++) {
        ret[c] = 1;
        for (size_t r = 0; r < rows(t); r++)
            ret[c] = MAX(ret[c], longest(cell(t, r, c)));
        cap = MAX(cap, ret[c]);
    }
    if (l->width == 0 || sum(ret, t->columns, cap) <= room)
        return true;
    if (sum(ret, t->columns, COLUMN_MIN) > room)
        return false;
    cap = room; /* no column is wider than the whole */
    while (sum(ret, t->columns, cap) > room)
        cap--;
    for (unsigned c = 0; c < t->columns; c++)
        ret[c] = MIN(ret[c], cap);
    return true;
}

/* ---- rows ---- */

struct lines {
    struct buf cells[TABLE_COLUMNS_MAX];
    const char *at[TABLE_COLUMNS_MAX]; /* the next line of each; NULL: no more */
};

static void lines_done(struct lines **l)
{
    for (size_t i = 0; *l && i < ARRAY_LEN((*l)->cells); i++)
        buf_done(&(*l)->cells[i]);
    free(*l);
}

/* Takes the next line of a cell, which is never the end of the text without a '\n'. */
static int cell_put(struct buf *ret, const char **at, size_t width, enum table_align align,
                    bool is_last)
{
    size_t len = *at ? strcspn(*at, "\n") : 0, used = text_width(*at ? *at : "", len);
    size_t space = width > used ? width - used : 0, left = 0;

    if (align == TABLE_RIGHT)
        left = space;
    else if (align == TABLE_CENTER)
        left = space / 2;
    if (text_repeat(ret, " ", left) < 0 || buf_append(ret, *at ? *at : "", len) < 0)
        return -1;
    if (*at)
        *at = (*at)[len] && (*at)[len + 1] ? *at + len + 1 : NULL;
    return is_last ? 0 : text_repeat(ret, " ", space - left);
}

static bool is_more(const struct table *t, const struct lines *lines)
{
    for (unsigned c = 0; c < t->columns; c++) {
        if (lines->at[c])
            return true;
    }
    return false;
}

static int lines_put(const struct table *t, const struct table_layout *l, const size_t *widths,
                     struct lines *lines, struct buf *ret)
{
    do {
        if (buf_append_str(ret, l->before) < 0)
            return -1;
        for (unsigned c = 0; c < t->columns; c++) {
            if ((c && style_text(ret, STYLE_FAINT, l->color, " │ ", strlen(" │ ")) < 0) ||
                cell_put(ret, &lines->at[c], widths[c], t->align[c], c + 1 == t->columns) < 0)
                return -1;
        }
        if (buf_append_byte(ret, '\n') < 0)
            return -1;
    } while (is_more(t, lines));
    return 0;
}

static int row_put(const struct table *t, const struct table_layout *l, const size_t *widths,
                   size_t row, struct buf *ret)
{
    auto_cleanup(lines_done) struct lines *lines = calloc(1, sizeof(*lines));

    if (!lines)
        return -1;
    for (unsigned c = 0; c < t->columns; c++) {
        const char *text = cell(t, row, c);
        const struct text_wrap wrap = {l->width ? widths[c] : 0, "", ""};

        buf_init(&lines->cells[c], LINES_MAX);
        if (text_wrap(&lines->cells[c], text, strlen(text), &wrap) < 0)
            return -1;
        lines->at[c] = buf_str(&lines->cells[c]);
    }
    return lines_put(t, l, widths, lines, ret);
}

static int rule_put(const struct table *t, const struct table_layout *l, const size_t *widths,
                    struct buf *ret)
{
    if (buf_append_str(ret, l->before) < 0 || style_put(ret, style_of(STYLE_FAINT), l->color) < 0)
        return -1;
    for (unsigned c = 0; c < t->columns; c++) {
        if ((c && buf_append_str(ret, "─┼─") < 0) || text_repeat(ret, "─", widths[c]) < 0)
            return -1;
    }
    return style_put(ret, style_of(STYLE_PLAIN), l->color) < 0 ? -1 : buf_append_byte(ret, '\n');
}

/* ---- records ---- */

static int record_put(const struct table *t, const struct table_layout *l, size_t row,
                      struct buf *ret)
{
    for (unsigned c = 0; c < t->columns; c++) {
        const struct text_wrap wrap = {l->width, l->before, l->before};
        auto_buf struct buf text;

        buf_init(&text, LINES_MAX);
        if (buf_printf(&text, "%s: %s", cell(t, 0, c), cell(t, row, c)) < 0 ||
            text_wrap(ret, buf_str(&text), text.len, &wrap) < 0)
            return -1;
    }
    return 0;
}

int table_render(const struct table *t, const struct table_layout *layout, struct buf *ret)
{
    size_t widths[TABLE_COLUMNS_MAX];
    bool fits;
    int r = 0;

    if (t->columns == 0)
        return 0;
    fits = widths_fit(t, layout, widths);
    for (size_t row = fits ? 0 : 1; row < rows(t) && r == 0; row++) {
        if (fits)
            r = row_put(t, layout, widths, row, ret);
        else
            r = record_put(t, layout, row, ret);
        if (r == 0 && fits && row == 0)
            r = rule_put(t, layout, widths, ret);
        if (r == 0 && !fits && row + 1 < rows(t))
            r = buf_append_byte(ret, '\n');
    }
    return r;
}
