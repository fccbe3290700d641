/* SPDX-License-Identifier: MIT */
/* Ids and sessions; see chat_memory.h. */
#include "cli/chat_memory.h"

#include "base/str.h"

#include <stdio.h>

enum { SEEN_FIRST = 256 };

void chat_memory_done(struct chat_memory *m)
{
    for (size_t i = 0; i < m->seen_size; i++)
        free(m->seen[i]);
    free(m->seen);
    *m = (struct chat_memory){};
}

/* FNV-1a: a server that makes ids collide only makes us slow. */
static size_t id_hash(const char *id)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 0x100000001b3ull;
    return (size_t)h;
}

/* Where the id is, or would be; the table is never full. */
static char **slot_of(char **table, size_t size, const char *id)
{
    size_t at = id_hash(id) & (size - 1);

    while (table[at] && !str_eq(table[at], id))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static int table_grow(struct chat_memory *m)
{
    size_t size = m->seen_size ? 2 * m->seen_size : SEEN_FIRST;
    char **table = calloc(size, sizeof(*table));

    if (!table)
        return -1;
    for (size_t i = 0; i < m->seen_size; i++) {
        if (m->seen[i])
            *slot_of(table, size, m->seen[i]) = m->seen[i];
    }
    free(m->seen);
    m->seen = table;
    m->seen_size = size;
    return 0;
}

bool chat_memory_has(const struct chat_memory *m, const char *id)
{
    return m->seen_size > 0 && *slot_of(m->seen, m->seen_size, id) != NULL;
}

int chat_memory_see(struct chat_memory *m, const char *id)
{
    char **slot;

    if (!id || !id[0] || chat_memory_has(m, id))
        return 0;
    if (4 * (m->seen_count + 1) > 3 * m->seen_size && table_grow(m) < 0)
        return -1;
    slot = slot_of(m->seen, m->seen_size, id);
    *slot = strdup(id);
    if (!*slot)
        return -1;
    m->seen_count++;
    return 1;
}

int chat_memory_see_call(struct chat_memory *m, const char *id)
{
    char text[300];

    snprintf(text, sizeof(text), "call:%.280s", id);
    return chat_memory_see(m, text);
}

/* ---- runtimes ---- */

static struct chat_runtime *runtime_find(struct chat_memory *m, const char *session)
{
    for (size_t i = 0; i < chat_memory_sessions(m); i++) {
        if (str_eq(m->runtimes[i].session, session))
            return &m->runtimes[i];
    }
    return NULL;
}

static void learn_one(struct chat_memory *m, yyjson_val *v)
{
    const char *session = json_get_str(v, "session_id", ""), *runtime;
    struct chat_runtime *r, fresh;

    runtime = json_get_str(v, "runtime", json_get_str(v, "language", ""));
    if (!session[0] || !runtime[0] || str_copy(fresh.session, sizeof(fresh.session), session) < 0 ||
        str_copy(fresh.runtime, sizeof(fresh.runtime), runtime) < 0)
        return;
    r = runtime_find(m, session);
    if (!r)
        r = &m->runtimes[m->runtime_count++ % CHAT_RUNTIMES_MAX];
    *r = fresh;
}

void chat_memory_learn(struct chat_memory *m, yyjson_val *result)
{
    static const char *const lists[] = {"sessions", "active_sessions"};
    size_t i, max;
    yyjson_val *item;

    if (!yyjson_is_obj(result))
        return;
    learn_one(m, result);
    for (size_t n = 0; n < ARRAY_LEN(lists); n++) {
        yyjson_arr_foreach(yyjson_obj_get(result, lists[n]), i, max, item)
        {
            learn_one(m, item);
        }
    }
}

void chat_memory_learn_message(struct chat_memory *m, yyjson_val *message)
{
    yyjson_val *content = yyjson_obj_get(message, "content");
    auto_json yyjson_doc *doc = NULL;

    if (yyjson_is_str(content) &&
        json_parse(yyjson_get_str(content), yyjson_get_len(content), &doc, NULL) == 0)
        chat_memory_learn(m, yyjson_doc_get_root(doc));
}

const char *chat_memory_runtime(const struct chat_memory *m, const char *session)
{
    for (size_t i = 0; i < chat_memory_sessions(m); i++) {
        if (str_eq(m->runtimes[i].session, session))
            return m->runtimes[i].runtime;
    }
    return "";
}

size_t chat_memory_sessions(const struct chat_memory *m)
{
    return MIN(m->runtime_count, (size_t)CHAT_RUNTIMES_MAX);
}
