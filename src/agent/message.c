/* SPDX-License-Identifier: MIT */
/*
 * One message. Every way to make one ends in message_load(), which reads the text that will be
 * stored: so nothing is kept that could not be read again.
 */
#include "agent/message.h"

#include "base/str.h"
#include "base/uuid.h"

#include <string.h>

static const char *const type_names[] = {
    [MESSAGE_HUMAN] = "human",   [MESSAGE_AI] = "ai",         [MESSAGE_TOOL] = "tool",
    [MESSAGE_SYSTEM] = "system", [MESSAGE_REMOVE] = "remove",
};

struct message *message_ref(struct message *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void message_unref(struct message *m)
{
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        free(m);
}

bool message_has_calls(const struct message *m)
{
    return m->has_calls;
}

/* ---- from a text ---- */

static int type_find(yyjson_val *root, enum message_type *ret)
{
    const char *name = json_get_str(root, "type", "");

    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (str_eq(name, type_names[i])) {
            *ret = (enum message_type)i;
            return 0;
        }
    }
    return -1;
}

static bool content_check(yyjson_val *root)
{
    yyjson_val *content = yyjson_obj_get(root, "content");

    return yyjson_is_str(content) || yyjson_is_arr(content);
}

/* A NUL character in an id would make two ids one in C. */
static bool id_check(yyjson_val *id)
{
    return yyjson_is_str(id) && yyjson_get_len(id) > 0 &&
           strlen(yyjson_get_str(id)) == yyjson_get_len(id);
}

/* One block of memory: the struct, the text, the id. */
static struct message *message_new(const char *json, size_t len, const char *id)
{
    size_t id_size = strlen(id) + 1;
    struct message *m = malloc(sizeof(*m) + len + 1 + id_size);
    char *text = (char *)(m + 1);

    if (!m)
        return NULL;
    memcpy(text, json, len);
    text[len] = 0;
    memcpy(text + len + 1, id, id_size);
    *m = (struct message){.refs = 1, .id = text + len + 1, .json = text, .len = len};
    return m;
}

int message_load(const char *json, size_t len, int64_t ref, struct message **ret,
                 struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    auto_message struct message *m = NULL;
    enum message_type type = MESSAGE_HUMAN;
    yyjson_val *root, *id;
    int r;

    if (len > MESSAGE_BYTES_MAX)
        return error_set(reterr, ERR_LIMIT, "a message is above %llu MiB", MESSAGE_BYTES_MAX / MIB);
    r = json_parse(json, len, &doc, reterr);
    if (r < 0)
        return error_wrap(reterr, "a message");
    root = yyjson_doc_get_root(doc);
    id = yyjson_obj_get(root, "id");
    if (type_find(root, &type) < 0 || !id_check(id) || !content_check(root))
        return error_set(reterr, ERR_INVALID, "no message: its type, id or content is not good");
    m = message_new(json, len, yyjson_get_str(id));
    if (!m)
        return error_no_memory(reterr);
    m->type = type;
    m->ref = ref;
    m->has_calls = type == MESSAGE_AI && yyjson_arr_size(yyjson_obj_get(root, "tool_calls")) > 0;
    *ret = TAKE_PTR(m);
    return 0;
}

int message_make(yyjson_mut_doc *doc, struct message **ret, struct error *reterr)
{
    auto_buf struct buf json;
    int r;

    buf_init(&json, MESSAGE_BYTES_MAX);
    r = json_mut_write(doc, &json, reterr);
    if (r == -ERR_LIMIT)
        return error_set(reterr, ERR_LIMIT, "a message is above %llu MiB", MESSAGE_BYTES_MAX / MIB);
    if (r < 0)
        return r;
    return message_load(buf_str(&json), json.len, 0, ret, reterr);
}

int message_make_tool(const struct message_tool_result *result, struct message **ret,
                      struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    char id[UUID_LEN + 1] = "";
    int r = result->id ? 0 : uuid_v4(id, reterr);

    if (r < 0)
        return r;
    yyjson_mut_doc_set_root(doc, root);
    if (!yyjson_mut_obj_add_str(doc, root, "type", type_names[MESSAGE_TOOL]) ||
        !yyjson_mut_obj_add_strn(doc, root, "content", result->content, result->len) ||
        !yyjson_mut_obj_add_str(doc, root, "id", result->id ? result->id : id) ||
        !yyjson_mut_obj_add_str(doc, root, "name", result->name) ||
        !yyjson_mut_obj_add_str(doc, root, "tool_call_id", result->tool_call_id) ||
        !yyjson_mut_obj_add_null(doc, root, "artifact") ||
        !yyjson_mut_obj_add_str(doc, root, "status", result->is_error ? "error" : "success") ||
        !yyjson_mut_obj_add_obj(doc, root, "additional_kwargs") ||
        !yyjson_mut_obj_add_obj(doc, root, "response_metadata"))
        return error_no_memory(reterr);
    return message_make(doc, ret, reterr);
}

/* ---- its text ---- */

static int block_text(yyjson_val *block, struct buf *ret)
{
    yyjson_val *text = block;

    if (yyjson_is_obj(block))
        text =
            str_eq(json_get_str(block, "type", ""), "text") ? yyjson_obj_get(block, "text") : NULL;
    return yyjson_is_str(text) ? buf_append(ret, yyjson_get_str(text), yyjson_get_len(text)) : 0;
}

int message_text(const struct message *m, struct buf *ret, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *content, *block;
    size_t i, max;
    int r = json_parse(m->json, m->len, &doc, reterr);

    if (r < 0)
        return r;
    content = yyjson_obj_get(yyjson_doc_get_root(doc), "content");
    r = yyjson_is_str(content) ? block_text(content, ret) : 0;
    yyjson_arr_foreach(content, i, max, block)
    {
        if (r == 0)
            r = block_text(block, ret);
    }
    return r < 0 ? error_set(reterr, ERR_LIMIT, "a message's text is above its limit") : 0;
}
