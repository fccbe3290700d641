/* SPDX-License-Identifier: MIT */
/*
 * A growing text is taken apart by lines into blocks that nothing to come can change: at a blank
 * line that no list goes on after, at a fence, at a heading. The rules may be coarser than
 * Markdown's, never finer: what is cut too late is only printed later.
 */
#include "cli/term/markdown.h"

#include "base/clock.h"
#include "base/str.h"
#include "cli/term/clean.h"
#include "cli/term/highlight.h"
#include "cli/term/text.h"

enum {
    BLOCK_MAX = 64 * 1024, /* an open block of more is printed as it is */
    TEXT_MAX = 16 * 1024 * 1024,
    REFERENCES_MAX = 16 * 1024,
    REDRAW_SHARE = 8, /* of the time, at most one part in so many is spent on the open part */
};

enum open_kind { NOTHING, PARAGRAPH, LIST, INDENTED, FENCE };

struct markdown_stream {
    struct term *term;
    struct clean clean;
    struct buf text; /* cleaned, not printed */
    size_t looked;   /* at whole lines up to here */
    enum open_kind kind;
    bool after_blank;      /* the last whole line was blank */
    bool is_begun;         /* something was printed: the next block is apart */
    struct buf references; /* "[name]: address" lines, which later blocks may use */
    /* in a FENCE */
    char fence;
    size_t fence_len, fence_indent;
    struct highlight highlight;
    /* the open part */
    int64_t drawn_at, draw_cost; /* microseconds */
};

/* ---- lines ---- */

struct line_view {
    const char *at;
    size_t len;    /* without the '\n' */
    size_t indent; /* columns */
    const char *body;
    size_t body_len;
};

static struct line_view line_view(const char *at, size_t len)
{
    struct line_view l = {.at = at, .len = len, .body = at, .body_len = len};

    while (l.body_len && (*l.body == ' ' || *l.body == '\t')) {
        l.indent += *l.body == '\t' ? 4 - l.indent % 4 : 1;
        l.body++;
        l.body_len--;
    }
    return l;
}

static size_t run_length(const struct line_view *l, char c)
{
    size_t n = 0;

    while (n < l->body_len && l->body[n] == c)
        n++;
    return n;
}

/* How many signs open a fence here, or 0. Behind backticks there is no backtick. */
static size_t fence_opens(const struct line_view *l)
{
    size_t n;

    if (l->indent > 3 || l->body_len < 3 || (*l->body != '`' && *l->body != '~'))
        return 0;
    n = run_length(l, *l->body);
    if (n < 3 || (*l->body == '`' && memchr(l->body + n, '`', l->body_len - n)))
        return 0;
    return n;
}

static bool fence_closes(const struct markdown_stream *m, const struct line_view *l)
{
    size_t n = run_length(l, m->fence);

    if (l->indent > 3 || n < m->fence_len)
        return false;
    while (n < l->body_len && (l->body[n] == ' ' || l->body[n] == '\t'))
        n++;
    return n == l->body_len;
}

static bool is_heading(const struct line_view *l)
{
    size_t n = run_length(l, '#');

    return l->indent <= 3 && n >= 1 && n <= 6 && (n == l->body_len || l->body[n] == ' ');
}

/* "- ", "1. "; but not "- | -", which is below the head of a table. */
static bool is_item(const struct line_view *l)
{
    size_t n = 0;

    if (l->indent > 3 || l->body_len == 0)
        return false;
    if (strchr("-+*", *l->body))
        n = 1;
    while (n < l->body_len && n < 9 && l->body[n] >= '0' && l->body[n] <= '9')
        n++;
    if (n && *l->body >= '0' && *l->body <= '9')
        n = n < l->body_len && strchr(".)", l->body[n]) ? n + 1 : 0;
    if (n == 0 || (n < l->body_len && l->body[n] != ' ' && l->body[n] != '\t'))
        return false;
    for (size_t i = 0; i < l->body_len; i++) {
        if (!strchr("-:| ", l->body[i]))
            return true;
    }
    return !memchr(l->body, '|', l->body_len);
}

/* ---- printing ---- */

static struct markdown_layout layout(struct markdown_stream *m)
{
    bool is_tty = term_caps(m->term)->is_tty;

    return (struct markdown_layout){.width = is_tty ? term_width(m->term) : 0,
                                    .color = term_color(m->term)};
}

/* The block as lines, apart from what was printed before it. */
static int block_render(struct markdown_stream *m, const char *text, size_t len, struct buf *ret,
                        struct error *reterr)
{
    struct markdown_layout l = layout(m);
    auto_buf struct buf source;
    size_t before;

    buf_init(&source, TEXT_MAX);
    if (buf_append(&source, text, len) < 0 || buf_append_str(&source, "\n\n") < 0 ||
        buf_append(&source, buf_str(&m->references), m->references.len) < 0 ||
        (m->is_begun && buf_append_byte(ret, '\n') < 0))
        return error_no_memory(reterr);
    before = ret->len;
    if (markdown_render(buf_str(&source), source.len, &l, ret, reterr) < 0)
        return -ERR_NO_MEMORY;
    if (ret->len == before)
        buf_clear(ret);
    return 0;
}

/* Keeps the definitions of links that a block begins with. */
static void references_note(struct markdown_stream *m, const char *text, size_t len)
{
    while (len > 4 && *text == '[') {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) + 1 : len;

        if (!memmem(text, n, "]: ", 3) || m->references.len + n > REFERENCES_MAX ||
            buf_append(&m->references, text, n) < 0)
            break;
        text += n;
        len -= n;
    }
}

static int block_print(struct markdown_stream *m, size_t len, struct error *reterr)
{
    auto_buf struct buf out;

    buf_init(&out, TEXT_MAX);
    if (m->kind == PARAGRAPH)
        references_note(m, buf_str(&m->text), len);
    if (len && block_render(m, buf_str(&m->text), len, &out, reterr) < 0)
        return -ERR_NO_MEMORY;
    term_print_open(m->term, buf_str(&out), out.len, "", 0);
    m->is_begun |= out.len > 0;
    buf_consume(&m->text, len);
    m->looked -= MIN(m->looked, len);
    m->kind = NOTHING;
    m->after_blank = false;
    return 0;
}

/* A line of code, coloured, with as much of its indent as the fence had taken away. */
static int code_render(struct markdown_stream *m, struct highlight *h, const struct line_view *l,
                       struct buf *ret)
{
    struct text_wrap wrap = {layout(m).width, "  ", "  ", true};
    auto_buf struct buf plain, colored;
    size_t skip = 0;

    buf_init(&plain, TEXT_MAX);
    buf_init(&colored, TEXT_MAX);
    while (skip < MIN(m->fence_indent, l->len) && l->at[skip] == ' ')
        skip++;
    if (text_expand(&plain, l->at + skip, l->len - skip) < 0 ||
        highlight_line(h, buf_str(&plain), plain.len, &colored) < 0)
        return -1;
    return text_wrap(ret, buf_str(&colored), colored.len, &wrap);
}

static int code_print(struct markdown_stream *m, const struct line_view *l, struct error *reterr)
{
    auto_buf struct buf out;

    buf_init(&out, TEXT_MAX);
    if (code_render(m, &m->highlight, l, &out) < 0)
        return error_no_memory(reterr);
    term_print_open(m->term, buf_str(&out), out.len, "", 0);
    return 0;
}

/* ---- blocks ---- */

static void fence_begin(struct markdown_stream *m, const struct line_view *l)
{
    size_t n = fence_opens(l), end;

    m->fence = *l->body;
    m->fence_len = n;
    m->fence_indent = l->indent;
    while (n < l->body_len && l->body[n] == ' ')
        n++;
    for (end = n; end < l->body_len && l->body[end] != ' ';)
        end++;
    m->highlight = (struct highlight){.language = highlight_find(l->body + n, end - n),
                                      .color = term_color(m->term)};
    if (m->is_begun)
        term_print(m->term, "\n", 1);
    m->is_begun = true;
}

/* A whole line, `next` is behind it. The first line of a block says what it is. */
static int first_take(struct markdown_stream *m, const struct line_view *l, size_t next,
                      struct error *reterr)
{
    if (l->body_len == 0) {
        buf_consume(&m->text, next);
        m->looked = 0;
        return 0;
    }
    m->looked = next;
    m->kind = PARAGRAPH;
    if (fence_opens(l)) {
        fence_begin(m, l);
        m->kind = FENCE;
        buf_consume(&m->text, next);
        m->looked = 0;
    } else if (is_heading(l)) {
        return block_print(m, next, reterr);
    } else if (is_item(l)) {
        m->kind = LIST;
    } else if (l->indent >= 4) {
        m->kind = INDENTED;
    }
    return 0;
}

static int fence_take(struct markdown_stream *m, const struct line_view *l, size_t next,
                      struct error *reterr)
{
    int r = 0;

    if (fence_closes(m, l))
        m->kind = NOTHING;
    else
        r = code_print(m, l, reterr);
    buf_consume(&m->text, next);
    m->looked = 0;
    return r;
}

/* Whether a line that is not blank is of the block before it. */
static bool goes_on(const struct markdown_stream *m, const struct line_view *l)
{
    switch (m->kind) {
    case LIST:
        if (m->after_blank)
            return l->indent >= 2 || is_item(l);
        return l->indent >= 2 || (!fence_opens(l) && !is_heading(l));
    case INDENTED:
        return l->indent >= 4;
    case PARAGRAPH:
        return !fence_opens(l) && !is_heading(l) && !is_item(l);
    case NOTHING:
    case FENCE:
        break;
    }
    return true;
}

static int line_take(struct markdown_stream *m, const struct line_view *l, size_t next,
                     struct error *reterr)
{
    if (m->kind == NOTHING)
        return first_take(m, l, next, reterr);
    if (m->kind == FENCE)
        return fence_take(m, l, next, reterr);
    if (l->body_len == 0) {
        if (m->kind == PARAGRAPH)
            return block_print(m, next, reterr);
        m->after_blank = true;
        m->looked = next;
        return 0;
    }
    if (!goes_on(m, l))
        return block_print(m, m->looked, reterr); /* the line is looked at again */
    m->after_blank = false;
    m->looked = next;
    return m->looked > BLOCK_MAX ? block_print(m, next, reterr) : 0;
}

static int lines_take(struct markdown_stream *m, struct error *reterr)
{
    int r = 0;

    while (r == 0 && m->looked < m->text.len) {
        const char *at = m->text.data + m->looked;
        const char *newline = memchr(at, '\n', m->text.len - m->looked);
        struct line_view l;

        if (!newline)
            break;
        l = line_view(at, (size_t)(newline - at));
        r = line_take(m, &l, m->looked + l.len + 1, reterr);
    }
    return r;
}

/* ---- the open part ---- */

/* Signs that may become a fence are not shown before it is known. */
static size_t fence_start_cut(const char *text, size_t len)
{
    size_t n = len;

    while (n && (text[n - 1] == '`' || text[n - 1] == '~'))
        n--;
    return n == 0 || text[n - 1] == '\n' ? n : len;
}

static int open_render(struct markdown_stream *m, struct buf *ret, struct error *reterr)
{
    const char *text = buf_str(&m->text);
    size_t len = fence_start_cut(text, m->text.len);
    struct line_view l = line_view(text, len);
    struct highlight h = m->highlight;

    if (len == 0)
        return 0;
    if (m->kind != FENCE)
        return block_render(m, text, len, ret, reterr);
    return code_render(m, &h, &l, ret) < 0 ? error_no_memory(reterr) : 0;
}

/* A long block takes long to draw, and is drawn less often. */
static int open_draw(struct markdown_stream *m, struct error *reterr)
{
    auto_buf struct buf out;
    int64_t now = clock_us();
    int r;

    if (!term_caps(m->term)->is_tty || now - m->drawn_at < REDRAW_SHARE * m->draw_cost)
        return 0;
    buf_init(&out, TEXT_MAX);
    r = open_render(m, &out, reterr);
    if (r == 0)
        term_open_set(m->term, buf_str(&out), out.len);
    m->drawn_at = clock_us();
    m->draw_cost = m->drawn_at - now;
    return r;
}

/* ---- all ---- */

int markdown_stream_new(struct term *t, struct markdown_stream **ret, struct error *reterr)
{
    struct markdown_stream *m = calloc(1, sizeof(*m));

    if (!m)
        return error_no_memory(reterr);
    m->term = t;
    buf_init(&m->text, TEXT_MAX);
    buf_init(&m->references, REFERENCES_MAX);
    *ret = m;
    return 0;
}

void markdown_stream_free(struct markdown_stream *m)
{
    buf_done(&m->text);
    buf_done(&m->references);
    free(m);
}

/* A line without an end, of a text that nobody reads: it goes as it is. */
static int endless_print(struct markdown_stream *m, struct error *reterr)
{
    struct line_view l = line_view(buf_str(&m->text), m->text.len);
    int r;

    if (m->kind != FENCE)
        return block_print(m, m->text.len, reterr);
    r = code_print(m, &l, reterr);
    buf_clear(&m->text);
    return r;
}

int markdown_stream_feed(struct markdown_stream *m, const char *text, size_t len,
                         struct error *reterr)
{
    int r = 0;

    while (len && r == 0) {
        size_t n = MIN(len, (size_t)BLOCK_MAX);

        if (clean_feed(&m->clean, text, n, &m->text) < 0)
            return error_no_memory(reterr);
        r = lines_take(m, reterr);
        if (r == 0 && m->text.len > 4 * (size_t)BLOCK_MAX)
            r = endless_print(m, reterr);
        text += n;
        len -= n;
    }
    return r == 0 ? open_draw(m, reterr) : r;
}

int markdown_stream_end(struct markdown_stream *m, struct error *reterr)
{
    int r = 0;

    if (clean_finish(&m->clean, &m->text) < 0)
        return error_no_memory(reterr);
    if (m->text.len && m->text.data[m->text.len - 1] != '\n' && buf_append_byte(&m->text, '\n') < 0)
        return error_no_memory(reterr);
    r = lines_take(m, reterr);
    if (r == 0 && m->text.len)
        r = block_print(m, m->text.len, reterr);
    term_open_set(m->term, "", 0);
    buf_clear(&m->text);
    buf_clear(&m->references);
    m->looked = 0;
    m->kind = NOTHING;
    m->is_begun = m->after_blank = false;
    m->clean = (struct clean){};
    m->draw_cost = 0;
    return r;
}
