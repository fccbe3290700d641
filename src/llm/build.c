/* SPDX-License-Identifier: MIT */
/*
 * Values that requests are built of. A conversation holds what models have made up, and services
 * refuse a whole request for one bad name or call in it; so what they would refuse is given a form
 * that they take, always the same for the same.
 */
#include "base/sha256.h"
#include "base/str.h"
#include "llm/llm-internal.h"

#include <stdio.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
enum { NAME_MAX_LEN = 64 };

bool build_is_empty(const struct llm_part *part)
{
    if (part->kind == LLM_IMAGE || part->kind == LLM_FILE)
        return (!part->data || !*part->data) && (!part->url || !*part->url);
    return !part->text || !part->text[strspn(part->text, " \t\r\n\v\f")];
}

bool build_is_picture(const struct llm_part *part)
{
    static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

    for (size_t i = 0; part->data && i < ARRAY_LEN(types); i++) {
        if (part->mime && str_eq(part->mime, types[i]))
            return true;
    }
    return !part->data && part->url;
}

yyjson_mut_val *build_data_url(yyjson_mut_doc *doc, const struct llm_part *part)
{
    auto_buf struct buf url = {.max = LLM_BODY_BYTES};

    if (!part->data || !*part->data)
        return part->url ? yyjson_mut_str(doc, part->url) : NULL;
    if (buf_reserve(&url, strlen(part->data) + 128) < 0 ||
        buf_printf(&url, "data:%.100s;base64,", part->mime ? part->mime : "") < 0 ||
        buf_append_str(&url, part->data) < 0)
        return NULL;
    return yyjson_mut_strncpy(doc, url.data, url.len);
}

yyjson_mut_val *build_json(yyjson_mut_doc *doc, const char *text)
{
    auto_json yyjson_doc *parsed = NULL;

    if (!text || json_parse(text, strlen(text), &parsed, NULL) < 0)
        return NULL;
    return yyjson_val_mut_copy(doc, yyjson_doc_get_root(parsed));
}

yyjson_mut_val *build_arguments(yyjson_mut_doc *doc, const struct llm_tool_call *call)
{
    const char *text = call->arguments ? call->arguments : "{}";
    yyjson_mut_val *object = build_json(doc, text);

    if (yyjson_mut_is_obj(object))
        return object;
    object = yyjson_mut_obj(doc);
    return yyjson_mut_obj_add_str(doc, object, "invalid_arguments", text) ? object : NULL;
}

yyjson_mut_val *build_schema(yyjson_mut_doc *doc, const struct llm_tool *tool)
{
    static const char *const refused[] = {"$schema", "allOf", "anyOf", "else", "enum",
                                          "if",      "not",   "oneOf", "then"};
    yyjson_mut_val *schema = tool->schema ? build_json(doc, tool->schema) : yyjson_mut_obj(doc);

    if (!yyjson_mut_is_obj(schema))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        yyjson_mut_obj_remove_key(schema, refused[i]);
    if (!yyjson_mut_obj_put(schema, yyjson_mut_str(doc, "type"), yyjson_mut_str(doc, "object")))
        return NULL;
    if (!yyjson_mut_obj_get(schema, "properties") &&
        !yyjson_mut_obj_add_obj(doc, schema, "properties"))
        return NULL;
    return schema;
}

yyjson_mut_val *build_name(yyjson_mut_doc *doc, const char *name)
{
    char clean[NAME_MAX_LEN + 1] = "";
    size_t len = 0;

    for (; name && *name && len < NAME_MAX_LEN; name++)
        clean[len++] = strchr(NAME_CHARS, *name) ? *name : '_';
    clean[len] = 0;
    return yyjson_mut_strcpy(doc, len ? clean : "unknown");
}

yyjson_mut_val *build_id(yyjson_mut_doc *doc, const char *id, size_t max)
{
    char digest[2 * SHA256_SIZE + 1], made[48];
    struct sha256 h;

    id = id ? id : "";
    if (str_check_chars(id, NAME_CHARS, max))
        return yyjson_mut_str(doc, id);
    sha256_init(&h);
    sha256_update(&h, id, strlen(id));
    sha256_finish_hex(&h, digest);
    snprintf(made, sizeof(made), "call_%.32s", digest);
    return yyjson_mut_strcpy(doc, made);
}
