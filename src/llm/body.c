/* SPDX-License-Identifier: MIT */
/*
 * What several builders of request bodies need. Options are written by people for OpenAI's names
 * (`temperature`, `top_p`), which other services take elsewhere, or refuse.
 */
#include "llm/body.h"

#include "base/str.h"
#include "wire/utf8.h"

/* ---- memory ---- */

static void *doc_malloc(void *ctx, size_t size)
{
    bool *failed = ctx;
    void *p = malloc(size);

    *failed = *failed || !p;
    return p;
}

static void *doc_realloc(void *ctx, void *old, size_t old_size, size_t size)
{
    bool *failed = ctx;
    void *p = realloc(old, size);

    *failed = *failed || !p;
    return p;
}

static void doc_free(void *ctx, void *p)
{
    free(p);
}

yyjson_mut_doc *body_begin(struct llm_stream *s)
{
    bool *failed = arena_alloc(s->arena, sizeof(*failed));
    yyjson_alc alc = {.malloc = doc_malloc, .realloc = doc_realloc, .free = doc_free};
    yyjson_mut_doc *doc;

    alc.ctx = failed;
    doc = failed ? yyjson_mut_doc_new(&alc) : NULL;
    if (doc)
        yyjson_mut_doc_set_root(doc, yyjson_mut_obj(doc));
    return doc;
}

const char *body_check(yyjson_mut_doc *doc, const char *text)
{
    bool *failed = doc->alc.ctx;

    *failed = *failed || !text;
    return text;
}

/* ---- options ---- */

/* Members that say what is asked, and where the answer goes. */
static bool option_is_fixed(const char *key)
{
    static const char *const fixed[] = {"model", "messages", "contents", "tools", "stream"};

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (str_eq(fixed[i], key))
            return true;
    }
    return false;
}

static const char *option_target(const struct option_place *places, const char *key)
{
    for (size_t i = 0; places[i].name; i++) {
        if (str_eq(places[i].name, key))
            return places[i].to;
    }
    return NULL;
}

static yyjson_mut_val *object_below(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(root, key);

    return yyjson_mut_is_obj(v) ? v : yyjson_mut_obj_add_obj(doc, root, key);
}

static void member_put(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                       yyjson_val *value)
{
    yyjson_mut_obj_put(object, yyjson_mut_strcpy(doc, key), yyjson_val_mut_copy(doc, value));
}

static void object_merge(yyjson_mut_doc *doc, yyjson_mut_val *object, yyjson_val *more)
{
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_obj_foreach(more, i, max, key, value)
        member_put(doc, object, yyjson_get_str(key), value);
}

static void option_put(yyjson_mut_doc *doc, const char *inner, const struct option_place *places,
                       yyjson_val *key, yyjson_val *value)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    const char *name = yyjson_get_str(key), *to = option_target(places, name);
    yyjson_mut_val *mine = yyjson_mut_obj_get(root, name);

    if (option_is_fixed(name))
        return;
    if (to)
        member_put(doc, object_below(doc, root, inner), to, value);
    else if (yyjson_mut_is_obj(mine) && yyjson_is_obj(value))
        object_merge(doc, mine, value);
    else
        member_put(doc, root, name, value);
}

int body_finish(struct llm_stream *s, yyjson_mut_doc *doc, const char *inner,
                const struct option_place *places, struct error *reterr)
{
    const bool *failed = doc->alc.ctx; /* NULL: it is not of body_begin() */
    const char *text = s->request->options;
    auto_json yyjson_doc *options = NULL;
    yyjson_val *root, *key, *value;
    size_t i, max;

    if (text && *text) {
        if (json_parse(text, strlen(text), &options, reterr) < 0)
            return error_wrap(reterr, "the model's options");
        root = yyjson_doc_get_root(options);
        if (!yyjson_is_obj(root))
            return error_set(reterr, ERR_INVALID, "the model's options are not a JSON object");
        yyjson_obj_foreach(root, i, max, key, value) option_put(doc, inner, places, key, value);
    }
    if (failed && *failed)
        return error_no_memory(reterr);
    return json_mut_write(doc, &s->body, reterr);
}

/* ---- messages ---- */

const char *body_text(struct llm_stream *s, const struct llm_message *m)
{
    const char *only = "";
    size_t len = 0, count = 0;
    char *text, *at;

    for (size_t i = 0; i < m->part_count; i++) {
        if (m->parts[i].kind != LLM_TEXT || !m->parts[i].text)
            continue;
        only = m->parts[i].text;
        len += strlen(only);
        count++;
    }
    if (count < 2)
        return only;
    if (!(at = text = arena_alloc(s->arena, len + 1)))
        return NULL;
    for (size_t i = 0; i < m->part_count; i++) {
        if (m->parts[i].kind == LLM_TEXT && m->parts[i].text)
            at = stpcpy(at, m->parts[i].text);
    }
    return text;
}

const struct llm_tool_call *body_call_find(const struct llm_request *request, size_t at,
                                           const struct llm_message **ret_turn)
{
    const char *id = request->messages[at].tool_call_id;

    for (size_t i = at; id && i-- > 0;) {
        const struct llm_message *m = &request->messages[i];

        for (size_t k = 0; k < m->call_count; k++) {
            if (!m->calls[k].id || !str_eq(m->calls[k].id, id))
                continue;
            if (ret_turn)
                *ret_turn = m;
            return &m->calls[k];
        }
    }
    return NULL;
}

const char *body_tool_name(const struct llm_request *request, size_t at)
{
    const struct llm_tool_call *call = body_call_find(request, at, NULL);
    const char *name = call ? call->name : request->messages[at].name;

    return name && *name ? name : "tool";
}

const char *body_omitted(struct llm_stream *s, const struct llm_part *part)
{
    const char *what = part->kind == LLM_FILE ? "file" : "image";
    const char *which = part->name ? part->name : part->url ? part->url : part->mime;

    if (!which)
        which = "without a name";
    return arena_printf(s->arena, "[left out, as this model takes none such: %s %.*s]", what,
                        (int)utf8_cut(which, strlen(which), 200), which);
}
