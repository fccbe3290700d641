/* SPDX-License-Identifier: MIT */
/*
 * From stored messages to what a model is asked with. First every message becomes an entry, then
 * entries are put in the order that providers want: results directly after the calls they belong
 * to, one for each call. Only then is looked at how much it is.
 */
#include "agent/view.h"

#include "agent/view-internal.h"
#include "base/str.h"

struct maker {
    struct view view;
    struct view_entry *found; /* one for each message, in their order */
    size_t found_count;
    size_t image_count;
    bool *placed; /* results that have their place */
};

/* ---- one message ---- */

static char *member_text(struct arena *arena, yyjson_val *value)
{
    return view_text(arena, yyjson_get_str(value), yyjson_get_len(value), false);
}

static int member_find(struct arena *arena, yyjson_val *object, const char *key, const char **ret,
                       struct error *reterr)
{
    yyjson_val *value = yyjson_obj_get(object, key);

    *ret = NULL;
    if (!yyjson_is_str(value))
        return 0;
    *ret = member_text(arena, value);
    return *ret ? 0 : error_no_memory(reterr);
}

static int value_text(struct arena *arena, yyjson_val *value, const char **ret,
                      struct error *reterr)
{
    auto_buf struct buf text;
    int r;

    buf_init(&text, MESSAGE_BYTES_MAX);
    r = json_write(value, &text, reterr);
    if (r < 0)
        return r;
    *ret = arena_memdup(arena, buf_str(&text), text.len);
    return *ret ? 0 : error_no_memory(reterr);
}

/* What its provider wants back with a block or a call. */
static int raw_find(struct arena *arena, yyjson_val *object, const char **ret, struct error *reterr)
{
    yyjson_val *raw = yyjson_obj_get(yyjson_obj_get(object, "extras"), "raw");

    return raw ? value_text(arena, raw, ret, reterr) : 0;
}

/* ---- of a model ---- */

static bool is_own(const struct view *v, const struct view_entry *e)
{
    const char *provider = v->options->model.provider;

    return e->m.provider && provider && str_eq(e->m.provider, provider);
}

static bool is_reasoning(const char *kind)
{
    return str_eq(kind, "reasoning") || str_eq(kind, "thinking") ||
           str_eq(kind, "redacted_thinking");
}

static yyjson_val *reasoning_text(yyjson_val *block)
{
    static const char *const keys[] = {"reasoning", "thinking", "text"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        yyjson_val *v = yyjson_obj_get(block, keys[i]);

        if (yyjson_is_str(v))
            return v;
    }
    return yyjson_obj_get(yyjson_arr_get_first(yyjson_obj_get(block, "summary")), "text");
}

/* Blocks in a provider's own form, as other servers store them, are what it wants back. */
static int own_raw_find(struct arena *arena, yyjson_val *block, const char **ret,
                        struct error *reterr)
{
    const char *kind;
    int r = raw_find(arena, block, ret, reterr);

    if (r < 0 || *ret)
        return r;
    kind = json_get_str(block, "type", "");
    if ((str_eq(kind, "thinking") && yyjson_obj_get(block, "signature")) ||
        (str_eq(kind, "redacted_thinking") && yyjson_obj_get(block, "data")))
        return value_text(arena, block, ret, reterr);
    return 0;
}

static int reply_block_add(struct view_parts *p, yyjson_val *block, bool own, struct error *reterr)
{
    const char *kind = json_get_str(block, "type", "");
    bool thinks = is_reasoning(kind);
    struct llm_part part = {.kind = thinks ? LLM_REASONING : LLM_TEXT};
    yyjson_val *text = thinks ? reasoning_text(block) : yyjson_obj_get(block, "text");
    int r;

    if (yyjson_is_str(block))
        text = block;
    else if (!thinks && !str_eq(kind, "text"))
        return str_eq(kind, "image") || str_eq(kind, "image_url") || str_eq(kind, "file")
                   ? view_media(p, block, reterr)
                   : 0; /* mirrors of calls, and what only its provider knows */
    r = own ? own_raw_find(p->view->arena, block, &part.raw, reterr) : 0;
    if (r < 0)
        return r;
    if (yyjson_get_len(text) == 0 && !part.raw)
        return 0;
    part.text = yyjson_is_str(text) ? member_text(p->view->arena, text) : "";
    return part.text ? view_part_add(p, &part, reterr) : error_no_memory(reterr);
}

static int reply_content(struct view_parts *p, yyjson_val *content, bool own, struct error *reterr)
{
    yyjson_val *block;
    size_t i, max;

    if (yyjson_is_str(content))
        return reply_block_add(p, content, own, reterr);
    yyjson_arr_foreach(content, i, max, block)
    {
        int r = reply_block_add(p, block, own, reterr);

        if (r < 0)
            return r;
    }
    return 0;
}

static int call_read(const struct view *v, yyjson_val *from, bool own, struct llm_tool_call *ret,
                     struct error *reterr)
{
    yyjson_val *args = yyjson_obj_get(from, "args");
    int r;

    ret->valid = yyjson_is_obj(args);
    if ((r = member_find(v->arena, from, "id", &ret->id, reterr)) < 0 ||
        (r = member_find(v->arena, from, "name", &ret->name, reterr)) < 0 ||
        (r = member_find(v->arena, from, "error", &ret->error, reterr)) < 0 ||
        (r = own ? raw_find(v->arena, from, &ret->raw, reterr) : 0) < 0)
        return r;
    if (yyjson_is_str(args))
        return member_find(v->arena, from, "args", &ret->arguments, reterr);
    ret->arguments = "{}";
    return args ? value_text(v->arena, args, &ret->arguments, reterr) : 0;
}

static int calls_read(const struct view *v, yyjson_val *message, struct view_entry *e,
                      struct error *reterr)
{
    static const char *const keys[] = {"tool_calls", "invalid_tool_calls"};
    size_t most = yyjson_arr_size(yyjson_obj_get(message, keys[0])) +
                  yyjson_arr_size(yyjson_obj_get(message, keys[1]));
    struct llm_tool_call *calls = arena_alloc(v->arena, most * sizeof(*calls) + 1);
    bool own = is_own(v, e);
    yyjson_val *call;
    size_t i, max;

    if (!calls)
        return error_no_memory(reterr);
    e->calls = calls;
    for (size_t n = 0; n < ARRAY_LEN(keys); n++) {
        yyjson_arr_foreach(yyjson_obj_get(message, keys[n]), i, max, call)
        {
            struct llm_tool_call read = {};
            int r = call_read(v, call, own, &read, reterr);

            if (r < 0)
                return r;
            if (read.id && read.name && *read.name)
                calls[e->call_count++] = read;
        }
    }
    return 0;
}

static int reply_read(struct view *v, yyjson_val *message, struct view_entry *e,
                      struct view_parts *p, struct error *reterr)
{
    int r;

    e->m.role = LLM_ASSISTANT;
    r = member_find(v->arena, yyjson_obj_get(message, "response_metadata"), "model_provider",
                    &e->m.provider, reterr);
    if (r == 0)
        r = reply_content(p, yyjson_obj_get(message, "content"), is_own(v, e), reterr);
    return r < 0 ? r : calls_read(v, message, e, reterr);
}

/* ---- of the others ---- */

static int result_read(struct view *v, yyjson_val *message, struct view_entry *e,
                       struct view_parts *p, struct error *reterr)
{
    yyjson_val *content = yyjson_obj_get(message, "content");
    int r;

    e->m.role = LLM_TOOL;
    e->m.is_error = str_eq(json_get_str(message, "status", ""), "error");
    p->hostile = true;
    if ((r = member_find(v->arena, message, "tool_call_id", &e->m.tool_call_id, reterr)) < 0 ||
        (r = member_find(v->arena, message, "name", &e->m.name, reterr)) < 0)
        return r;
    r = yyjson_is_str(content)
            ? view_payload(p, yyjson_get_str(content), yyjson_get_len(content), reterr)
            : view_content(p, content, reterr);
    return r < 0 || p->count ? r : view_part_note(p, reterr, "(no output)");
}

/* Only the first message may be a system message for a model: a later one is told by the user. */
static int system_read(yyjson_val *message, struct view_entry *e, struct view_parts *p, bool leads,
                       struct error *reterr)
{
    int r = leads ? 0 : view_part_note(p, reterr, "[a message of the system:]");

    e->m.role = leads ? LLM_SYSTEM : LLM_USER;
    return r < 0 ? r : view_content(p, yyjson_obj_get(message, "content"), reterr);
}

static int human_read(yyjson_val *message, struct view_entry *e, struct view_parts *p,
                      struct error *reterr)
{
    int r = view_content(p, yyjson_obj_get(message, "content"), reterr);

    e->m.role = LLM_USER;
    e->is_human = true;
    return r < 0 || p->count ? r : view_part_note(p, reterr, "(an empty message)");
}

static int message_read(struct maker *k, const struct message *m, bool leads,
                        struct view_entry *ret, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    struct view_parts parts = {.view = &k->view, .images_gone = k->image_count >= VIEW_IMAGES};
    yyjson_val *root;
    int r = json_parse(m->json, m->len, &doc, reterr);

    if (r < 0)
        return error_wrap(reterr, "a stored message");
    root = yyjson_doc_get_root(doc);
    if (m->type == MESSAGE_AI)
        r = reply_read(&k->view, root, ret, &parts, reterr);
    else if (m->type == MESSAGE_TOOL)
        r = result_read(&k->view, root, ret, &parts, reterr);
    else if (m->type == MESSAGE_SYSTEM)
        r = system_read(root, ret, &parts, leads, reterr);
    else
        r = human_read(root, ret, &parts, reterr);
    ret->parts = parts.items;
    ret->part_count = parts.count;
    for (size_t i = 0; i < parts.count; i++)
        k->image_count += parts.items[i].kind == LLM_IMAGE;
    return r;
}

/* ---- their order ---- */

static void entry_push(struct maker *k, const struct view_entry *e, size_t turn, size_t step)
{
    struct view_entry *to = &k->view.entries[k->view.count++];

    *to = *e;
    to->turn = turn;
    to->step = step;
}

/* A result may come after a message of the user, but not after the model spoke again. */
static struct view_entry *result_find(struct maker *k, size_t reply, const char *id)
{
    for (size_t i = reply + 1; i < k->found_count; i++) {
        struct view_entry *e = &k->found[i];

        if (e->m.role == LLM_ASSISTANT)
            return NULL;
        if (e->m.role == LLM_TOOL && !k->placed[i] && e->m.tool_call_id &&
            str_eq(e->m.tool_call_id, id)) {
            k->placed[i] = true;
            return e;
        }
    }
    return NULL;
}

static int answer_missing(struct maker *k, const struct llm_tool_call *call, struct view_entry *ret,
                          struct error *reterr)
{
    struct view_parts parts = {.view = &k->view};
    int r = view_part_note(&parts, reterr,
                           "(There is no result: the call was not carried out to its end.)");

    *ret = (struct view_entry){
        .m = {.role = LLM_TOOL, .tool_call_id = call->id, .name = call->name, .is_error = true},
        .parts = parts.items,
        .part_count = parts.count,
    };
    return r;
}

static int results_push(struct maker *k, size_t reply, size_t turn, size_t step,
                        struct error *reterr)
{
    const struct view_entry *e = &k->found[reply];

    for (size_t i = 0; i < e->call_count; i++) {
        const struct view_entry *result = result_find(k, reply, e->calls[i].id);
        struct view_entry missing;

        if (!result && answer_missing(k, &e->calls[i], &missing, reterr) < 0)
            return -ERR_NO_MEMORY;
        entry_push(k, result ? result : &missing, turn, step);
    }
    return 0;
}

static int entries_order(struct maker *k, struct error *reterr)
{
    size_t turn = 0, step = 0;

    for (size_t i = 0; i < k->found_count; i++) {
        const struct view_entry *e = &k->found[i];
        int r;

        if (e->m.role == LLM_TOOL)
            continue;
        turn += e->is_human;
        entry_push(k, e, turn, ++step);
        r = results_push(k, i, turn, step, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- all of it ---- */

static int prompt_read(struct maker *k, struct view_entry *ret, struct error *reterr)
{
    const char *system = k->view.options->system;
    struct view_parts parts = {.view = &k->view};
    int r = system ? view_part_text(&parts, system, strlen(system), reterr) : 0;

    *ret =
        (struct view_entry){.m.role = LLM_SYSTEM, .parts = parts.items, .part_count = parts.count};
    return r;
}

static int parts_join(struct maker *k, struct view_entry *to, const struct view_entry *from,
                      struct error *reterr)
{
    struct view_parts parts = {.view = &k->view, .items = to->parts};

    parts.count = parts.cap = to->part_count;
    for (size_t i = 0; i < from->part_count; i++) {
        int r = view_part_add(&parts, &from->parts[i], reterr);

        if (r < 0)
            return r;
    }
    to->parts = parts.items;
    to->part_count = parts.count;
    return 0;
}

/* Leaves out what says nothing. All system messages at the beginning become one. */
static int found_collect(struct maker *k, size_t count, struct error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        const struct view_entry *e = &k->found[i];
        int r = 0;

        if (e->part_count == 0 && e->call_count == 0)
            continue;
        if (k->found_count && e->m.role == LLM_SYSTEM)
            r = parts_join(k, &k->found[0], e, reterr);
        else
            k->found[k->found_count++] = *e;
        if (r < 0)
            return r;
    }
    return 0;
}

/* The newest first, because of older ones fewer images are needed. */
static int messages_read(struct maker *k, const struct transcript *t, struct error *reterr)
{
    size_t leading = 0;
    int r = 0;

    while (leading < t->count && t->items[leading]->type == MESSAGE_SYSTEM)
        leading++;
    if (leading == 0)
        r = prompt_read(k, &k->found[0], reterr);
    for (size_t i = t->count; i-- > 0 && r == 0;) {
        if (t->items[i]->type != MESSAGE_REMOVE)
            r = message_read(k, t->items[i], i < leading, &k->found[i + 1], reterr);
    }
    return r < 0 ? r : found_collect(k, t->count + 1, reterr);
}

/* Results are placed once, and each call may need one that is not there. */
static int entries_alloc(struct maker *k, struct error *reterr)
{
    size_t most = k->found_count;

    for (size_t i = 0; i < k->found_count; i++)
        most += k->found[i].call_count;
    k->view.entries = arena_alloc(k->view.arena, most * sizeof(struct view_entry) + 1);
    k->placed = arena_alloc(k->view.arena, k->found_count + 1);
    return k->view.entries && k->placed ? 0 : error_no_memory(reterr);
}

static int messages_give(struct view *v, struct llm_message **ret, size_t *ret_count,
                         struct error *reterr)
{
    struct llm_message *messages = arena_alloc(v->arena, v->count * sizeof(*messages) + 1);
    size_t count = 0;

    if (!messages)
        return error_no_memory(reterr);
    for (size_t i = 0; i < v->count; i++) {
        struct view_entry *e = &v->entries[i];

        if (e->gone)
            continue;
        e->m.parts = e->parts;
        e->m.part_count = e->part_count;
        e->m.calls = e->calls;
        e->m.call_count = e->call_count;
        messages[count++] = e->m;
    }
    *ret = messages;
    *ret_count = count;
    return 0;
}

int view_make(const struct transcript *t, const struct view_options *options, struct arena *arena,
              struct llm_message **ret, size_t *ret_count, struct error *reterr)
{
    struct maker k = {.view = {.options = options, .arena = arena}};
    int r;

    k.found = arena_alloc(arena, (t->count + 1) * sizeof(*k.found));
    if (!k.found)
        return error_no_memory(reterr);
    if ((r = messages_read(&k, t, reterr)) < 0 || (r = entries_alloc(&k, reterr)) < 0 ||
        (r = entries_order(&k, reterr)) < 0)
        return r;
    view_images_choose(&k.view);
    for (size_t i = 0; i < k.view.count; i++)
        view_count(&k.view.entries[i]);
    if ((r = view_trim(&k.view, reterr)) < 0 || (r = view_images_fetch(&k.view, reterr)) < 0)
        return r;
    return messages_give(&k.view, ret, ret_count, reterr);
}
