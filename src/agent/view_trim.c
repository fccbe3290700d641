/* SPDX-License-Identifier: MIT */
/*
 * Makes a conversation fit into a model's window, in stages from what is missed least. What is
 * taken away grows in steps of a quarter of the window, not with each message: so the beginning of
 * what is sent stays the same from call to call, and a provider can keep it.
 */
#include "agent/view-internal.h"

#include "base/str.h"

enum {
    WINDOW_DEFAULT = 128000,
    WINDOW_STEPS = 4,
    MESSAGE_TOKENS = 4, /* around each */
    IMAGE_TOKENS = 1600,
    FILE_BYTES = 64, /* of base64, for each token */
    END_BYTES = 1000,
    RESULT_TOKENS = 256, /* of the newest results, at least */
};

#define TEXTS_MAX (8 * MESSAGE_BYTES_MAX) /* of one message, with its escapes */

struct trim {
    struct view *v;
    int64_t total, window, budget, target;
    size_t last_turn, last_step;
};

static int64_t text_tokens(const char *text)
{
    return text ? view_tokens(text, strlen(text)) : 0;
}

static int64_t part_tokens(const struct llm_part *part)
{
    if (part->kind == LLM_IMAGE)
        return IMAGE_TOKENS;
    if (part->kind == LLM_FILE)
        return IMAGE_TOKENS + (part->data ? (int64_t)strlen(part->data) / FILE_BYTES : 0);
    return text_tokens(part->text) + text_tokens(part->raw);
}

void view_count(struct view_entry *e)
{
    e->tokens = MESSAGE_TOKENS;
    for (size_t i = 0; i < e->part_count; i++)
        e->tokens += part_tokens(&e->parts[i]);
    for (size_t i = 0; i < e->call_count; i++)
        e->tokens += MESSAGE_TOKENS + text_tokens(e->calls[i].name) +
                     text_tokens(e->calls[i].arguments) + text_tokens(e->calls[i].raw);
}

/* Notes of what is gone are counted, too, when they are made. */
static void recount(struct trim *t, struct view_entry *e)
{
    t->total -= e->tokens;
    view_count(e);
    t->total += e->tokens;
}

/* ---- the stages ---- */

static int texts_cut(struct trim *t, struct view_entry *e, size_t end, struct error *reterr)
{
    for (size_t i = 0; i < e->part_count; i++) {
        struct llm_part *part = &e->parts[i];

        if (part->kind != LLM_TEXT)
            continue;
        part->text = view_ends(t->v->arena, part->text, end);
        if (!part->text)
            return error_no_memory(reterr);
    }
    recount(t, e);
    return 0;
}

/* All texts as one, because the ends of many small ones would be all of them. */
static int texts_join(struct trim *t, struct view_entry *e, struct error *reterr)
{
    struct llm_part text = {.kind = LLM_TEXT};
    auto_buf struct buf all;
    int r = 0;

    buf_init(&all, TEXTS_MAX);
    for (size_t i = 0; i < e->part_count && r == 0; i++) {
        if (e->parts[i].kind == LLM_TEXT)
            r = buf_printf(&all, "%s%s", all.len ? "\n" : "", e->parts[i].text);
    }
    if (r == 0 && all.len == 0)
        r = buf_append_str(&all, VIEW_IMAGE_OLDER);
    text.text = r == 0 ? arena_memdup(t->v->arena, buf_str(&all), all.len) : NULL;
    if (!text.text)
        return error_no_memory(reterr);
    e->part_count = 1;
    e->parts[0] = text;
    return 0;
}

/* To its ends, and without pictures. */
static int result_cut(struct trim *t, struct view_entry *e, size_t end, struct error *reterr)
{
    bool is_text = e->part_count == 1 && e->parts[0].kind == LLM_TEXT;
    int r = is_text ? 0 : texts_join(t, e, reterr);

    return r < 0 ? r : texts_cut(t, e, end, reterr);
}

/* The results of tools, oldest first, of all turns but the last or of the last one's older steps.
 */
static int results_cut(struct trim *t, bool in_last_turn, struct error *reterr)
{
    for (size_t i = 0; i < t->v->count && t->total > t->target; i++) {
        struct view_entry *e = &t->v->entries[i];
        int r;

        if (e->gone || e->m.role != LLM_TOOL || (e->turn == t->last_turn) != in_last_turn ||
            e->step == t->last_step)
            continue;
        r = result_cut(t, e, END_BYTES, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static void drop(struct trim *t, struct view_entry *e, struct view_entry *host)
{
    if (e->gone)
        return;
    e->gone = true;
    t->total -= e->tokens;
    if (host)
        host->left_out++;
}

static struct view_entry *human_first(struct trim *t)
{
    for (size_t i = 0; i < t->v->count; i++) {
        if (t->v->entries[i].is_human)
            return &t->v->entries[i];
    }
    return NULL;
}

/* Whole turns before the last one, oldest first; of the first one its human message stays. */
static void turns_drop(struct trim *t)
{
    struct view_entry *first = human_first(t);
    size_t i = 0;

    while (i < t->v->count && t->total > t->target && t->v->entries[i].turn < t->last_turn) {
        size_t turn = t->v->entries[i].turn;

        for (; i < t->v->count && t->v->entries[i].turn == turn; i++) {
            struct view_entry *e = &t->v->entries[i];

            if (e != first && e->m.role != LLM_SYSTEM)
                drop(t, e, first);
        }
    }
}

/* Steps of the last turn before the last one: a reply and the results of its calls. */
static void steps_drop(struct trim *t)
{
    struct view_entry *human = NULL;
    size_t i = 0;

    while (i < t->v->count) {
        struct view_entry *e = &t->v->entries[i];
        size_t step = e->step;

        if (e->turn == t->last_turn && e->is_human)
            human = e;
        if (e->turn < t->last_turn || e->is_human || e->m.role == LLM_SYSTEM) {
            i++;
            continue;
        }
        if (step == t->last_step || t->total <= t->target)
            return;
        for (; i < t->v->count && t->v->entries[i].step == step; i++)
            drop(t, &t->v->entries[i], human);
    }
}

/* The newest results, each to an equal share of what is left. */
static int last_cut(struct trim *t, struct error *reterr)
{
    int64_t others = t->total, count = 0, share;

    for (size_t i = 0; i < t->v->count; i++) {
        const struct view_entry *e = &t->v->entries[i];

        if (!e->gone && e->m.role == LLM_TOOL && e->step == t->last_step) {
            others -= e->tokens;
            count++;
        }
    }
    if (count == 0 || t->total <= t->budget)
        return 0;
    share = MAX((t->budget - others) / count, RESULT_TOKENS);
    for (size_t i = 0; i < t->v->count; i++) {
        struct view_entry *e = &t->v->entries[i];
        int r = 0;

        /* A byte may be half a token; and the note between the ends is some, too. */
        if (!e->gone && e->m.role == LLM_TOOL && e->step == t->last_step && e->tokens > share)
            r = result_cut(t, e, (size_t)(share - RESULT_TOKENS / 8), reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* At last what people wrote, where even that is more than a model can read. */
static int humans_cut(struct trim *t, struct error *reterr)
{
    size_t end = (size_t)MAX(t->window / 2, END_BYTES);

    for (size_t i = 0; i < t->v->count && t->total > t->window; i++) {
        struct view_entry *e = &t->v->entries[i];
        int r = !e->gone && e->is_human ? texts_cut(t, e, end, reterr) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- all of it ---- */

static int notes_add(struct trim *t, struct error *reterr)
{
    for (size_t i = 0; i < t->v->count; i++) {
        struct view_entry *e = &t->v->entries[i];
        struct view_parts parts = {.view = t->v, .items = e->parts, .count = e->part_count};
        int r;

        if (e->gone || !e->left_out)
            continue;
        parts.cap = parts.count;
        r = view_part_note(&parts, reterr,
                           "[%zu messages that came after this one are left out here, because the "
                           "conversation is longer than can be shown]",
                           e->left_out);
        if (r < 0)
            return r;
        e->parts = parts.items;
        e->part_count = parts.count;
        recount(t, e);
    }
    return 0;
}

static void budget_set(struct trim *t)
{
    const struct view_options *o = t->v->options;
    int64_t step;

    t->window = o->window_tokens > 0 ? o->window_tokens : view_window(o->model.name);
    if (t->window == 0)
        t->window = WINDOW_DEFAULT;
    /* The rest is for the answer, the tools' descriptions, and for counting by guess. */
    t->budget = t->window - t->window / 4;
    step = MAX(t->budget / WINDOW_STEPS, 1);
    t->target = t->total - (t->total - t->budget + step - 1) / step * step;
}

int view_trim(struct view *v, struct error *reterr)
{
    struct trim t = {.v = v};
    int r;

    for (size_t i = 0; i < v->count; i++) {
        t.total += v->entries[i].tokens;
        t.last_turn = v->entries[i].turn;
        t.last_step = v->entries[i].step;
    }
    budget_set(&t);
    if (t.total <= t.budget)
        return 0;
    r = results_cut(&t, false, reterr);
    if (r < 0)
        return r;
    turns_drop(&t);
    r = results_cut(&t, true, reterr);
    if (r < 0)
        return r;
    steps_drop(&t);
    if ((r = last_cut(&t, reterr)) < 0 || (r = humans_cut(&t, reterr)) < 0)
        return r;
    return notes_add(&t, reterr);
}
