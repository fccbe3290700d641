/* SPDX-License-Identifier: MIT */
/*
 * md4c finds the structure, this lays it out. The text is cleaned before it is parsed, and once
 * more where the parser makes characters (entities), so no control character can be written in any
 * spelling. A text that makes far more of itself than it is long is shown as it stands.
 */
#include "cli/term/markdown.h"

#include "base/str.h"
#include "cli/term/clean.h"
#include "cli/term/highlight.h"
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <md4c.h>
#include <stdio.h>

enum {
    DEPTH_MAX = 10, /* of quotes and lists that are indented */
    LISTS_MAX = 32,
    STEPS_MIN = 100 * 1000, /* and 32 for each byte */
    ADDRESS_COLUMNS = 300,
    DATA_COLUMNS = 40,
    TEXT_MAX = 8 * 1024 * 1024,
};

/* A quote or an item of a list: what stands before its lines. */
struct nest {
    char first[64]; /* the first line: a bullet */
    char rest[64];
    bool is_begun;
};

struct list {
    bool is_ordered, is_tight;
    unsigned next;
};

struct render {
    const struct markdown_layout *layout;
    struct buf *ret;
    struct nest nests[DEPTH_MAX];
    unsigned depth; /* may be above DEPTH_MAX; those have no place */
    struct list lists[LISTS_MAX];
    unsigned list_depth;
    size_t steps_left;
    bool is_begun;  /* something was written, so the next block is apart from it */
    bool is_joined; /* ...but not this one */
    /* the leaf that is being read */
    struct buf text;
    struct style shown;
    enum style_role role;
    unsigned strong, italic, strike, code, math, link;
    struct buf address; /* of the link */
    size_t link_start;
    /* a table, a code block */
    struct table table;
    bool is_cell;
    struct highlight highlight;
    bool is_code;
};

/* ---- inline text ---- */

static struct style style_now(const struct render *r)
{
    struct style s = *style_of(r->role);

    if (r->link)
        s = *style_of(STYLE_LINK);
    if (r->math)
        s = *style_of(STYLE_MATH);
    if (r->code)
        s.fg = style_of(STYLE_CODE)->fg;
    s.attrs |= (r->strong ? STYLE_BOLD : 0u) | (r->italic ? STYLE_ITALIC : 0u) |
               (r->strike ? STYLE_STRIKE : 0u);
    return s;
}

static int style_show(struct render *r, struct style style)
{
    if (style_equal(&style, &r->shown))
        return 0;
    r->shown = style;
    return style_put(&r->text, &style, r->layout->color);
}

static int inline_put(struct render *r, const char *text, size_t len)
{
    return style_show(r, style_now(r)) < 0 ? -1 : buf_append(&r->text, text, len);
}

static int inline_str(struct render *r, const char *text)
{
    return inline_put(r, text, strlen(text));
}

static const struct entity {
    const char *name, *text;
} entities[] = {
    {"&amp;", "&"},    {"&lt;", "<"},     {"&gt;", ">"},     {"&quot;", "\""}, {"&apos;", "'"},
    {"&nbsp;", " "},   {"&copy;", "©"},   {"&reg;", "®"},    {"&trade;", "™"}, {"&hellip;", "…"},
    {"&ndash;", "–"},  {"&mdash;", "—"},  {"&lsquo;", "‘"},  {"&rsquo;", "’"}, {"&ldquo;", "“"},
    {"&rdquo;", "”"},  {"&laquo;", "«"},  {"&raquo;", "»"},  {"&bull;", "•"},  {"&middot;", "·"},
    {"&times;", "×"},  {"&divide;", "÷"}, {"&plusmn;", "±"}, {"&deg;", "°"},   {"&micro;", "µ"},
    {"&le;", "≤"},     {"&ge;", "≥"},     {"&ne;", "≠"},     {"&asymp;", "≈"}, {"&infin;", "∞"},
    {"&rarr;", "→"},   {"&larr;", "←"},   {"&harr;", "↔"},   {"&rArr;", "⇒"},  {"&euro;", "€"},
    {"&pound;", "£"},  {"&yen;", "¥"},    {"&sect;", "§"},   {"&para;", "¶"},  {"&alpha;", "α"},
    {"&beta;", "β"},   {"&gamma;", "γ"},  {"&delta;", "δ"},  {"&pi;", "π"},    {"&mu;", "μ"},
    {"&lambda;", "λ"}, {"&sigma;", "σ"},  {"&theta;", "θ"},  {"&Delta;", "Δ"}, {"&Sigma;", "Σ"},
    {"&Omega;", "Ω"},  {"&radic;", "√"},  {"&sum;", "∑"},    {"&int;", "∫"},   {"&check;", "✓"},
};

/* The number of &#27; or &#x1B;. */
static uint32_t entity_number(const char *text, size_t len)
{
    bool is_hex = len > 3 && (text[2] == 'x' || text[2] == 'X');
    uint32_t value = 0;

    for (size_t i = is_hex ? 3 : 2; i + 1 < len && value < 0x110000; i++) {
        unsigned digit = (unsigned)(text[i] <= '9' ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);

        value = value * (is_hex ? 16 : 10) + digit;
    }
    return value;
}

static void utf8_write(uint32_t c, char ret[5])
{
    if (c < 0x80)
        snprintf(ret, 5, "%c", (char)c);
    else if (c < 0x800)
        snprintf(ret, 5, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)));
    else if (c < 0x10000)
        snprintf(ret, 5, "%c%c%c", (char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
                 (char)(0x80 | (c & 0x3f)));
    else
        snprintf(ret, 5, "%c%c%c%c", (char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
                 (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)));
}

/* Appends what an entity means; one that is unknown, as it stands. */
static int entity_append(struct buf *ret, const char *text, size_t len)
{
    char bytes[5] = "";
    uint32_t c;

    if (len > 3 && text[1] == '#') {
        c = entity_number(text, len);
        utf8_write(c == 0 || c > 0x10ffff ? 0xfffd : c, bytes);
        return clean_text(bytes, strlen(bytes), CLEAN_STRIP, ret);
    }
    for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
        if (strlen(entities[i].name) == len && memcmp(entities[i].name, text, len) == 0)
            return buf_append_str(ret, entities[i].text);
    }
    return buf_append(ret, text, len);
}

static int attribute_append(struct buf *ret, const MD_ATTRIBUTE *a)
{
    if (!a->text)
        return 0;
    for (size_t i = 0; a->substr_offsets[i] < a->size; i++) {
        const char *at = a->text + a->substr_offsets[i];
        size_t len = a->substr_offsets[i + 1] - a->substr_offsets[i];
        int r;

        if (a->substr_types[i] == MD_TEXT_ENTITY)
            r = entity_append(ret, at, len);
        else if (a->substr_types[i] == MD_TEXT_NULLCHAR)
            r = buf_append_str(ret, "\xef\xbf\xbd");
        else
            r = buf_append(ret, at, len);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* ---- blocks ---- */

static int prefix_append(struct render *r, bool is_first, struct buf *ret)
{
    for (unsigned i = 0; i < MIN(r->depth, (unsigned)DEPTH_MAX); i++) {
        struct nest *n = &r->nests[i];

        if (buf_append_str(ret, is_first && !n->is_begun ? n->first : n->rest) < 0)
            return -1;
        n->is_begun |= is_first;
    }
    return 0;
}

/* The line between two blocks; not between the items of a tight list. */
static int gap_put(struct render *r)
{
    auto_buf struct buf prefix;
    bool is_apart = r->is_begun && !r->is_joined;

    r->is_begun = true;
    r->is_joined = false;
    if (!is_apart)
        return 0;
    buf_init(&prefix, sizeof(r->nests));
    if (prefix_append(r, false, &prefix) < 0)
        return -1;
    while (prefix.len && prefix.data[prefix.len - 1] == ' ')
        prefix.len--;
    return buf_append(r->ret, buf_str(&prefix), prefix.len) < 0 ? -1
                                                                : buf_append_byte(r->ret, '\n');
}

struct prefixes {
    struct buf first, rest;
};

static void prefixes_done(struct prefixes *p)
{
    buf_done(&p->first);
    buf_done(&p->rest);
}

#define auto_prefixes auto_cleanup(prefixes_done)

static int prefixes_get(struct render *r, struct prefixes *ret)
{
    buf_init(&ret->first, 2 * sizeof(r->nests));
    buf_init(&ret->rest, 2 * sizeof(r->nests));
    return prefix_append(r, true, &ret->first) < 0 || prefix_append(r, false, &ret->rest) < 0 ? -1
                                                                                              : 0;
}

static void leaf_forget(struct render *r)
{
    buf_clear(&r->text);
    r->shown = (struct style){};
    r->role = STYLE_PLAIN;
}

/* In prose a tab is a space. */
static void tabs_replace(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\t')
            text->data[i] = ' ';
    }
}

/* Writes the text of a paragraph, a heading, an item; nothing when there is none. */
static int leaf_put(struct render *r)
{
    auto_prefixes struct prefixes p = {};
    struct text_wrap wrap = {.width = r->layout->width};

    if (r->text.len == 0)
        return 0;
    if (style_show(r, (struct style){}) < 0 || gap_put(r) < 0 || prefixes_get(r, &p) < 0)
        return -1;
    wrap.first = buf_str(&p.first);
    wrap.rest = buf_str(&p.rest);
    tabs_replace(&r->text);
    if (text_wrap(r->ret, buf_str(&r->text), r->text.len, &wrap) < 0)
        return -1;
    leaf_forget(r);
    return 0;
}

static struct nest *nest_push(struct render *r)
{
    static struct nest nowhere;
    struct nest *n = r->depth < DEPTH_MAX ? &r->nests[r->depth] : &nowhere;

    r->depth++;
    *n = (struct nest){};
    return n;
}

/* Part of a prefix: in a role, cut to its place. */
static int nest_text(const struct render *r, char ret[64], enum style_role role, const char *text)
{
    auto_buf struct buf b;

    buf_init(&b, 256);
    if (style_text(&b, role, r->layout->color, text, strlen(text)) < 0)
        return -1;
    return str_copy(ret, 64, buf_str(&b));
}

static int quote_begin(struct render *r, void *detail)
{
    struct nest *n = nest_push(r);

    if (nest_text(r, n->first, STYLE_FAINT, "│ ") < 0)
        return -1;
    memcpy(n->rest, n->first, sizeof(n->rest));
    return 0;
}

static int nest_end(struct render *r, void *detail)
{
    int result = leaf_put(r);

    r->depth--;
    return result;
}

static struct list *list_now(struct render *r)
{
    static struct list none;

    return r->list_depth && r->list_depth <= LISTS_MAX ? &r->lists[r->list_depth - 1] : &none;
}

/* A list inside a tight one follows its line at once. */
static int list_push(struct render *r, struct list list)
{
    bool is_inner = r->list_depth && list_now(r)->is_tight;

    if (leaf_put(r) < 0)
        return -1;
    r->is_joined |= is_inner;
    r->list_depth++;
    if (r->list_depth <= LISTS_MAX)
        r->lists[r->list_depth - 1] = list;
    return 0;
}

static int bullets_begin(struct render *r, void *detail)
{
    const MD_BLOCK_UL_DETAIL *d = detail;

    return list_push(r, (struct list){.is_tight = d->is_tight});
}

static int numbers_begin(struct render *r, void *detail)
{
    const MD_BLOCK_OL_DETAIL *d = detail;

    return list_push(r,
                     (struct list){.is_ordered = true, .is_tight = d->is_tight, .next = d->start});
}

static int list_end(struct render *r, void *detail)
{
    r->list_depth--;
    r->is_joined = false;
    return 0;
}

static int item_begin(struct render *r, void *detail)
{
    const MD_BLOCK_LI_DETAIL *d = detail;
    struct list *list = list_now(r);
    struct nest *n = nest_push(r);
    char mark[32];

    if (list->is_ordered)
        snprintf(mark, sizeof(mark), "%u. ", list->next++);
    else if (d->is_task)
        snprintf(mark, sizeof(mark), "%s ", d->task_mark == ' ' ? "☐" : "☑");
    else
        snprintf(mark, sizeof(mark), "%s ", r->list_depth % 2 ? "•" : "◦");
    if (list->is_ordered && d->is_task)
        snprintf(mark + strlen(mark), sizeof(mark) - strlen(mark), "%s ",
                 d->task_mark == ' ' ? "☐" : "☑");
    snprintf(n->rest, sizeof(n->rest), "%*s", (int)text_width(mark, strlen(mark)), "");
    return nest_text(r, n->first, STYLE_MARK, mark);
}

/* An item of nothing has its bullet all the same. */
static int item_end(struct render *r, void *detail)
{
    bool is_tight = list_now(r)->is_tight;
    bool is_empty = r->depth <= DEPTH_MAX && !r->nests[r->depth - 1].is_begun;

    if (is_empty && r->text.len == 0 && buf_append_byte(&r->text, ' ') < 0)
        return -1;
    if (nest_end(r, detail) < 0)
        return -1;
    r->is_joined = is_tight;
    return 0;
}

static int rule_put(struct render *r, void *detail)
{
    auto_prefixes struct prefixes p = {};
    size_t width = r->layout->width ? r->layout->width : 40, used;

    if (gap_put(r) < 0 || prefixes_get(r, &p) < 0)
        return -1;
    used = text_width(buf_str(&p.first), p.first.len);
    if (buf_append(r->ret, buf_str(&p.first), p.first.len) < 0 ||
        style_put(r->ret, style_of(STYLE_FAINT), r->layout->color) < 0 ||
        text_repeat(r->ret, "─", width > used + 1 ? width - used : 1) < 0 ||
        style_put(r->ret, style_of(STYLE_PLAIN), r->layout->color) < 0)
        return -1;
    return buf_append_byte(r->ret, '\n');
}

/* Without colours a heading is known by its signs. */
static int heading_begin(struct render *r, void *detail)
{
    const MD_BLOCK_H_DETAIL *d = detail;

    r->role = STYLE_HEADING;
    if (r->layout->color != TERM_COLOR_NONE)
        return 0;
    return text_repeat(&r->text, "#", d->level) < 0 ? -1 : buf_append_byte(&r->text, ' ');
}

static int leaf_end(struct render *r, void *detail)
{
    return leaf_put(r);
}

/* ---- code ---- */

static int code_begin(struct render *r, void *detail)
{
    const MD_BLOCK_CODE_DETAIL *d = detail;

    if (leaf_put(r) < 0)
        return -1;
    r->is_code = true;
    r->highlight = (struct highlight){.language = highlight_find(d->lang.text, d->lang.size),
                                      .color = r->layout->color};
    return 0;
}

static int code_end(struct render *r, void *detail)
{
    auto_prefixes struct prefixes p = {};
    auto_buf struct buf colored, plain;
    struct text_wrap wrap = {.width = r->layout->width, .hard = true};
    size_t len = r->text.len;

    buf_init(&colored, TEXT_MAX);
    buf_init(&plain, TEXT_MAX);
    r->is_code = false;
    if (len && r->text.data[len - 1] == '\n')
        len--;
    if (gap_put(r) < 0 || prefixes_get(r, &p) < 0 || buf_append_str(&p.first, "  ") < 0 ||
        buf_append_str(&p.rest, "  ") < 0 || text_expand(&plain, buf_str(&r->text), len) < 0 ||
        highlight_text(&r->highlight, buf_str(&plain), plain.len, &colored) < 0)
        return -1;
    leaf_forget(r);
    wrap.first = buf_str(&p.first);
    wrap.rest = buf_str(&p.rest);
    return text_wrap(r->ret, buf_str(&colored), colored.len, &wrap);
}

/* ---- tables ---- */

static int table_begin(struct render *r, void *detail)
{
    const MD_BLOCK_TABLE_DETAIL *d = detail;

    if (d->col_count == 0 || d->col_count > TABLE_COLUMNS_MAX || leaf_put(r) < 0)
        return -1;
    table_done(&r->table);
    table_init(&r->table, d->col_count);
    return 0;
}

static int table_end(struct render *r, void *detail)
{
    auto_prefixes struct prefixes p = {};
    struct table_layout layout = {.width = r->layout->width, .color = r->layout->color};
    struct nest *n = r->depth && r->depth <= DEPTH_MAX ? &r->nests[r->depth - 1] : NULL;

    /* A table cannot stand behind a bullet: the bullet has its own line. */
    if (n && !n->is_begun && strcmp(n->first, n->rest) != 0) {
        if (buf_append_byte(&r->text, ' ') < 0 || leaf_put(r) < 0)
            return -1;
        r->is_joined = true;
    }
    if (gap_put(r) < 0 || prefixes_get(r, &p) < 0)
        return -1;
    layout.before = buf_str(&p.rest);
    return table_render(&r->table, &layout, r->ret);
}

static int head_begin(struct render *r, void *detail)
{
    const MD_BLOCK_TD_DETAIL *d = detail;
    size_t column = r->table.count % MAX(r->table.columns, 1u);

    r->role = STYLE_STRONG;
    r->is_cell = true;
    if (d->align == MD_ALIGN_CENTER)
        r->table.align[column] = TABLE_CENTER;
    else if (d->align == MD_ALIGN_RIGHT)
        r->table.align[column] = TABLE_RIGHT;
    return 0;
}

static int cell_begin(struct render *r, void *detail)
{
    r->is_cell = true;
    return 0;
}

static int cell_end(struct render *r, void *detail)
{
    int result = style_show(r, (struct style){});

    r->is_cell = false;
    tabs_replace(&r->text);
    if (result == 0)
        result = table_add(&r->table, buf_str(&r->text), r->text.len);
    leaf_forget(r);
    return result;
}

/* ---- spans ---- */

static int link_begin(struct render *r, const MD_ATTRIBUTE *address)
{
    if (r->link++)
        return 0;
    buf_clear(&r->address);
    r->link_start = r->text.len;
    return attribute_append(&r->address, address);
}

/* The address behind the text, unless it is the text; what only carries data is cut early. */
static int link_end(struct render *r)
{
    auto_buf struct buf shown;
    const char *address = buf_str(&r->address);
    const char *bare = str_starts(address, "mailto:") ? address + strlen("mailto:") : address;

    if (--r->link)
        return 0;
    buf_init(&shown, TEXT_MAX);
    if (clean_line(address, str_starts(address, "data:") ? DATA_COLUMNS : ADDRESS_COLUMNS, &shown) <
        0)
        return -1;
    if (shown.len == 0 || strstr(buf_str(&r->text) + r->link_start, bare))
        return 0;
    if (inline_str(r, " (") < 0 || inline_put(r, buf_str(&shown), shown.len) < 0)
        return -1;
    return inline_str(r, ")");
}

static int span_begin(MD_SPANTYPE type, void *detail, void *user)
{
    struct render *r = user;

    switch (type) {
    case MD_SPAN_EM:
    case MD_SPAN_U:
        r->italic++;
        return 0;
    case MD_SPAN_STRONG:
        r->strong++;
        return 0;
    case MD_SPAN_DEL:
        r->strike++;
        return 0;
    case MD_SPAN_CODE:
        r->code++;
        return r->layout->color == TERM_COLOR_NONE ? inline_str(r, "`") : 0;
    case MD_SPAN_LATEXMATH:
        r->math++;
        return inline_str(r, "$");
    case MD_SPAN_LATEXMATH_DISPLAY:
        r->math++;
        return inline_str(r, "$$");
    case MD_SPAN_A:
        return link_begin(r, &((MD_SPAN_A_DETAIL *)detail)->href);
    case MD_SPAN_IMG:
        return inline_str(r, "[image: ") < 0 ? -1
                                             : link_begin(r, &((MD_SPAN_IMG_DETAIL *)detail)->src);
    case MD_SPAN_WIKILINK:
        return 0;
    }
    return 0;
}

static int span_end(MD_SPANTYPE type, void *detail, void *user)
{
    struct render *r = user;

    switch (type) {
    case MD_SPAN_EM:
    case MD_SPAN_U:
        r->italic--;
        return 0;
    case MD_SPAN_STRONG:
        r->strong--;
        return 0;
    case MD_SPAN_DEL:
        r->strike--;
        return 0;
    case MD_SPAN_CODE:
        if (r->layout->color == TERM_COLOR_NONE && inline_str(r, "`") < 0)
            return -1;
        r->code--;
        return 0;
    case MD_SPAN_LATEXMATH:
    case MD_SPAN_LATEXMATH_DISPLAY:
        if (inline_str(r, type == MD_SPAN_LATEXMATH ? "$" : "$$") < 0)
            return -1;
        r->math--;
        return 0;
    case MD_SPAN_A:
        return link_end(r);
    case MD_SPAN_IMG:
        return link_end(r) < 0 ? -1 : inline_str(r, "]");
    case MD_SPAN_WIKILINK:
        return 0;
    }
    return 0;
}

/* ---- the parser's calls ---- */

typedef int block_fn(struct render *r, void *detail);

static const struct block {
    block_fn *begin, *end;
} blocks[] = {
    [MD_BLOCK_DOC] = {NULL, NULL},
    [MD_BLOCK_QUOTE] = {quote_begin, nest_end},
    [MD_BLOCK_UL] = {bullets_begin, list_end},
    [MD_BLOCK_OL] = {numbers_begin, list_end},
    [MD_BLOCK_LI] = {item_begin, item_end},
    [MD_BLOCK_HR] = {rule_put, NULL},
    [MD_BLOCK_H] = {heading_begin, leaf_end},
    [MD_BLOCK_CODE] = {code_begin, code_end},
    [MD_BLOCK_HTML] = {NULL, leaf_end},
    [MD_BLOCK_P] = {NULL, leaf_end},
    [MD_BLOCK_TABLE] = {table_begin, table_end},
    [MD_BLOCK_THEAD] = {NULL, NULL},
    [MD_BLOCK_TBODY] = {NULL, NULL},
    [MD_BLOCK_TR] = {NULL, NULL},
    [MD_BLOCK_TH] = {head_begin, cell_end},
    [MD_BLOCK_TD] = {cell_begin, cell_end},
};

static bool step(struct render *r)
{
    return r->steps_left && r->steps_left--;
}

/* In a tight list text stands in its item without a paragraph, and a block may follow it. */
static int block_begin(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct render *r = user;
    bool is_tight = !r->is_cell && r->text.len;

    if (!step(r) || (is_tight && leaf_put(r) < 0))
        return -1;
    r->is_joined |= is_tight;
    return blocks[type].begin ? blocks[type].begin(r, detail) : 0;
}

static int block_end(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct render *r = user;

    return blocks[type].end ? blocks[type].end(r, detail) : 0;
}

static bool is_break_tag(const char *text, size_t len)
{
    return len >= 4 && len <= 6 && strncasecmp(text, "<br", 3) == 0 && text[len - 1] == '>';
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE len, void *user)
{
    struct render *r = user;

    if (!step(r))
        return -1;
    if (r->is_code)
        return type == MD_TEXT_NULLCHAR ? 0 : buf_append(&r->text, text, len);
    switch (type) {
    case MD_TEXT_NULLCHAR:
        return inline_str(r, "\xef\xbf\xbd");
    case MD_TEXT_BR:
        return inline_str(r, "\n");
    case MD_TEXT_SOFTBR:
        return inline_str(r, " ");
    case MD_TEXT_ENTITY:
        return style_show(r, style_now(r)) < 0 ? -1 : entity_append(&r->text, text, len);
    case MD_TEXT_HTML:
        return is_break_tag(text, len) ? inline_str(r, "\n") : inline_put(r, text, len);
    case MD_TEXT_NORMAL:
    case MD_TEXT_CODE:
    case MD_TEXT_LATEXMATH:
        return inline_put(r, text, len);
    }
    return 0;
}

/* ---- all ---- */

static void render_done(struct render *r)
{
    buf_done(&r->text);
    buf_done(&r->address);
    table_done(&r->table);
}

static int clean_render(const char *text, size_t len, const struct markdown_layout *layout,
                        struct buf *ret)
{
    static const MD_PARSER parser = {
        .flags = MD_DIALECT_GITHUB | MD_FLAG_LATEXMATHSPANS | MD_FLAG_NOHTMLBLOCKS,
        .enter_block = block_begin,
        .leave_block = block_end,
        .enter_span = span_begin,
        .leave_span = span_end,
        .text = on_text,
    };
    auto_cleanup(render_done) struct render r = {
        .layout = layout, .ret = ret, .steps_left = STEPS_MIN + 32 * len};

    buf_init(&r.text, TEXT_MAX);
    buf_init(&r.address, TEXT_MAX);
    return md_parse(text, (MD_SIZE)len, &parser, &r) == 0 ? 0 : -1;
}

int markdown_render(const char *text, size_t len, const struct markdown_layout *layout,
                    struct buf *ret, struct error *reterr)
{
    const struct text_wrap plain = {layout->width, "", ""};
    auto_buf struct buf clean;
    size_t before = ret->len;

    buf_init(&clean, TEXT_MAX);
    if (clean_text(text, len, CLEAN_STRIP, &clean) < 0)
        return error_no_memory(reterr);
    if (clean_render(buf_str(&clean), clean.len, layout, ret) == 0)
        return 0;
    ret->len = before;
    if (text_wrap(ret, buf_str(&clean), clean.len, &plain) < 0)
        return error_no_memory(reterr);
    return 0;
}
