/* SPDX-License-Identifier: MIT */
/*
 * Four kinds of answers begin in a way that no key does. What begins like one and goes on
 * differently, or is too long, was typed. DA1 is asked last: a terminal answers in order, so with
 * its answer there is nothing more to wait for.
 */
#include "cli/term/answer.h"

#include "base/str.h"

enum { ESCAPE = 0x1b };

const char *answer_questions(const struct term_caps *caps)
{
    if (caps->is_silent)
        return "";
    if (caps->is_nested)
        return "\033[c";
    return "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\" /* a picture of one pixel, not shown */
           "\033P+q524742\033\\"                        /* "RGB": are there 24 bits of colour? */
           "\033[16t\033[c";
}

/* ---- what an answer says ---- */

/* The numbers between `from` and the last byte; those beyond `max` are only counted. */
static unsigned numbers(const struct answer *a, unsigned from, unsigned *ret, unsigned max)
{
    unsigned count = 0, value = 0;

    for (unsigned i = from; i < a->len; i++) {
        char c = a->held[i];

        if (c >= '0' && c <= '9') {
            value = MIN(value, 100000u) * 10 + (unsigned)(c - '0');
            continue;
        }
        if (count < max)
            ret[count] = value;
        count++;
        value = 0;
    }
    return count;
}

/* ESC [ ? 62 ; 4 ; 22 c: 4 is sixel. */
static void da1_read(struct answer *a)
{
    unsigned n[32], count = MIN(numbers(a, 3, n, ARRAY_LEN(n)), (unsigned)ARRAY_LEN(n));

    a->is_complete = true;
    for (unsigned i = 1; i < count; i++)
        a->has_sixel |= n[i] == 4;
}

/* ESC [ 6 ; height ; width t */
static void cell_read(struct answer *a)
{
    unsigned n[3];

    if (numbers(a, 2, n, ARRAY_LEN(n)) != 3 || n[0] != 6)
        return;
    if (n[1] >= 4 && n[1] <= 200 && n[2] >= 2 && n[2] <= 200) {
        a->cell_height = n[1];
        a->cell_width = n[2];
    }
}

/* ESC _ G i=31;OK ESC \ */
static void kitty_read(struct answer *a)
{
    a->has_kitty |= memmem(a->held, a->len, "i=31", 4) && memmem(a->held, a->len, ";OK", 3);
}

/* ESC P 1 + r 524742 ... ESC \ */
static void rgb_read(struct answer *a)
{
    a->has_rgb |= memmem(a->held, a->len, "1+r524742", 9) != NULL;
}

/* ---- their shapes ---- */

static const struct shape {
    const char *start;
    const char *body; /* bytes it may have; NULL: any printable one, and ESC \ ends it */
    char end;
    void (*read)(struct answer *a);
} shapes[] = {
    {"\033[?", "0123456789;", 'c', da1_read}, {"\033[6;", "0123456789;", 't', cell_read},
    {"\033_G", NULL, '\\', kitty_read},       {"\033P0+r", NULL, '\\', rgb_read},
    {"\033P1+r", NULL, '\\', rgb_read},
};

enum fit { NO, PART, WHOLE };

static enum fit body_fits(const struct shape *s, const char *body, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_last = i + 1 == len;

        if (s->body && body[i] == s->end)
            return is_last ? WHOLE : NO;
        if (s->body && !(body[i] && strchr(s->body, body[i])))
            return NO;
        if (!s->body && i && body[i - 1] == ESCAPE)
            return is_last && body[i] == s->end ? WHOLE : NO;
        if (!s->body && body[i] != ESCAPE && (body[i] < 0x20 || body[i] == 0x7f))
            return NO;
    }
    return PART;
}

static enum fit shape_fits(const struct shape *s, const char *held, size_t len)
{
    size_t start = strlen(s->start);

    if (memcmp(held, s->start, MIN(start, len)) != 0)
        return NO;
    return len < start ? PART : body_fits(s, held + start, len - start);
}

/* Whether what is held may become an answer; a whole one is read. */
static enum fit held_fits(struct answer *a)
{
    enum fit best = NO;

    for (size_t i = 0; i < ARRAY_LEN(shapes) && best != WHOLE; i++) {
        enum fit fit = shape_fits(&shapes[i], a->held, a->len);

        best = MAX(best, fit);
        if (fit == WHOLE)
            shapes[i].read(a);
    }
    return best;
}

/* ---- all ---- */

int answer_finish(struct answer *a, struct buf *typed)
{
    unsigned len = a->len;

    a->len = 0;
    return len ? buf_append(typed, a->held, len) : 0;
}

static int byte_take(struct answer *a, char c, struct buf *typed)
{
    enum fit fit;

    if (a->len == 0 && c != ESCAPE)
        return buf_append_byte(typed, (unsigned char)c);
    a->held[a->len++] = c;
    fit = held_fits(a);
    if (fit == WHOLE)
        a->len = 0;
    else if (fit == PART && a->len < sizeof(a->held))
        return 0;
    /* A key was cut off by the next one, which may begin an answer. */
    if (a->len > 1 && c == ESCAPE) {
        a->len--;
        if (answer_finish(a, typed) < 0)
            return -1;
        return byte_take(a, c, typed);
    }
    return answer_finish(a, typed);
}

int answer_feed(struct answer *a, const char *data, size_t len, struct buf *typed)
{
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++)
        r = byte_take(a, data[i], typed);
    return r;
}

void answer_apply(const struct answer *a, struct term_caps *caps)
{
    if (a->has_rgb && caps->color != TERM_COLOR_NONE)
        caps->color = TERM_COLOR_TRUE;
    if (a->has_kitty)
        caps->picture = TERM_PICTURE_KITTY;
    else if (a->has_sixel && caps->picture == TERM_PICTURE_NONE)
        caps->picture = TERM_PICTURE_SIXEL;
    if (a->cell_width) {
        caps->cell_width = a->cell_width;
        caps->cell_height = a->cell_height;
    }
}
