/* SPDX-License-Identifier: MIT */
/*
 * The list of messages and LangGraph's reducer. Messages are matched by sorting, not by hashing: a
 * client chooses the ids, and could choose ones that make a hash table slow.
 */
#include "agent/message.h"

#include "base/str.h"

#include <string.h>

static const char *const remove_all = "__remove_all__";

void transcript_done(struct transcript *t)
{
    for (size_t i = 0; i < t->count; i++)
        message_unref(t->items[i]);
    free(t->items);
    *t = (struct transcript){};
}

static int transcript_reserve(struct transcript *t, size_t count, struct error *reterr)
{
    struct message **items;
    size_t cap = MAX(t->cap, 16);

    if (count > TRANSCRIPT_MAX)
        return error_set(reterr, ERR_LIMIT, "a conversation of more than %d messages",
                         TRANSCRIPT_MAX);
    if (count <= t->cap)
        return 0;
    while (cap < count)
        cap *= 2;
    items = realloc(t->items, cap * sizeof(*items));
    if (!items)
        return error_no_memory(reterr);
    t->items = items;
    t->cap = cap;
    return 0;
}

int transcript_append(struct transcript *t, struct message *m, struct error *reterr)
{
    int r = transcript_reserve(t, t->count + 1, reterr);

    if (r < 0)
        return r;
    t->items[t->count++] = message_ref(m);
    return 0;
}

int transcript_copy(const struct transcript *from, struct transcript *ret, struct error *reterr)
{
    int r;

    *ret = (struct transcript){};
    r = transcript_reserve(ret, from->count, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < from->count; i++)
        ret->items[ret->count++] = message_ref(from->items[i]);
    return 0;
}

int transcript_write(const struct transcript *t, struct buf *ret, struct error *reterr)
{
    int r = buf_append_byte(ret, '[');

    for (size_t i = 0; i < t->count && r == 0; i++) {
        if (i)
            r = buf_append_byte(ret, ',');
        if (r == 0)
            r = buf_append(ret, t->items[i]->json, t->items[i]->len);
    }
    if (r < 0 || buf_append_byte(ret, ']') < 0)
        return error_set(reterr, ERR_LIMIT, "the conversation is above its limit");
    return 0;
}

/* ---- the reducer ---- */

struct entry {
    struct message *m; /* borrowed */
    size_t order;
};

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->m->id, y->m->id);

    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static bool is_remove_all(const struct message *m)
{
    return m->type == MESSAGE_REMOVE && str_eq(m->id, remove_all);
}

/* How many messages of `t` stay, and from where `change` counts: the last "__remove_all__". */
static size_t change_begin(const struct transcript *change, size_t *kept)
{
    for (size_t i = change->count; i-- > 0;) {
        if (is_remove_all(change->items[i])) {
            *kept = 0;
            return i + 1;
        }
    }
    return 0;
}

/*
 * Entries of one id stand together, in order. The first says where the message is, the last what it
 * is: so of a removal and a new message of that id, the later one counts.
 */
static int groups_resolve(const struct entry *entries, size_t count, size_t kept,
                          struct message **slots, struct error *reterr)
{
    for (size_t first = 0, next; first < count; first = next) {
        const struct entry *e = &entries[first];

        for (next = first + 1; next < count && str_eq(entries[next].m->id, e->m->id);)
            next++;
        if (e->m->type == MESSAGE_REMOVE && e->order >= kept)
            return error_set(reterr, ERR_INVALID,
                             "no message of the id '%.80s' is there to be removed", e->m->id);
        if (entries[next - 1].m->type != MESSAGE_REMOVE)
            slots[e->order] = entries[next - 1].m;
    }
    return 0;
}

static int slots_collect(struct message **slots, size_t count, struct transcript *t,
                         struct error *reterr)
{
    auto_transcript struct transcript merged = {};

    for (size_t i = 0; i < count; i++) {
        int r = slots[i] ? transcript_append(&merged, slots[i], reterr) : 0;

        if (r < 0)
            return r;
    }
    transcript_done(t);
    *t = merged;
    merged = (struct transcript){};
    return 0;
}

static int transcript_merge(struct transcript *t, const struct transcript *change,
                            struct error *reterr)
{
    size_t kept = t->count, begin = change_begin(change, &kept);
    size_t count = kept + change->count - begin;
    auto_free struct entry *entries = calloc(count + 1, sizeof(*entries));
    auto_free struct message **slots = calloc(count + 1, sizeof(*slots));
    int r;

    if (!entries || !slots)
        return error_no_memory(reterr);
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct entry){
            i < kept ? t->items[i] : change->items[begin + i - kept],
            i,
        };
    qsort(entries, count, sizeof(*entries), entry_compare);
    r = groups_resolve(entries, count, kept, slots, reterr);
    return r < 0 ? r : slots_collect(slots, count, t, reterr);
}

static int change_parse(yyjson_val *value, struct transcript *ret, struct error *reterr)
{
    auto_message struct message *m = NULL;
    int r = message_parse(value, &m, reterr);

    return r < 0 ? r : transcript_append(ret, m, reterr);
}

int transcript_apply(struct transcript *t, yyjson_val *value, struct error *reterr)
{
    auto_transcript struct transcript change = {};
    yyjson_val *item;
    size_t i, max;
    int r = 0;

    if (!yyjson_is_arr(value))
        r = change_parse(value, &change, reterr);
    yyjson_arr_foreach(value, i, max, item)
    {
        r = change_parse(item, &change, reterr);
        if (r < 0)
            return error_wrap(reterr, "messages[%zu]", i);
    }
    return r < 0 ? error_wrap(reterr, "messages") : transcript_merge(t, &change, reterr);
}

int transcript_add(struct transcript *t, struct message *m, struct error *reterr)
{
    const struct transcript change = {.items = &m, .count = 1};

    return transcript_merge(t, &change, reterr);
}
