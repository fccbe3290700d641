/* SPDX-License-Identifier: MIT */
/*
 * A message from a client, in whichever spelling. Each type has a table of its members in the order
 * of the contract; what the table does not name follows as it came, so a client finds its own
 * members again.
 */
#include "agent/message.h"

#include "base/str.h"
#include "base/uuid.h"
#include "llm/llm.h"

#include <stdio.h>
#include <string.h>

enum { ID_MAX = 1024 };

struct draft {
    yyjson_mut_doc *doc;
    yyjson_mut_val *root;
    yyjson_mut_val *invalid_calls; /* filled while tool_calls is written, which is before it */

    enum message_type type;
    const char *spelling; /* as the client called the type */
    yyjson_val *members;  /* NULL: nothing but a content */
    yyjson_val *content;
};

/* Writes one member; `value` NULL where the client sent none. */
typedef int field_fn(struct draft *d, const char *key, yyjson_val *value, struct error *reterr);

struct field {
    const char *key;
    field_fn *write;
};

static const char *const openai_role = "__openai_role__";

/* `value` NULL is a failed allocation. */
static int member_add(struct draft *d, const char *key, yyjson_mut_val *value, struct error *reterr)
{
    return yyjson_mut_obj_add_val(d->doc, d->root, key, value) ? 0 : error_no_memory(reterr);
}

static int member_copy(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    return member_add(d, key, yyjson_val_mut_copy(d->doc, value), reterr);
}

static bool is_given(yyjson_val *value)
{
    return value && !yyjson_is_null(value);
}

/* ---- members ---- */

static int type_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    static const char *const names[] = {"human", "ai", "tool", "system", "remove"};

    (void)value;
    return member_add(d, key, yyjson_mut_str(d->doc, names[d->type]), reterr);
}

static int content_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    yyjson_val *block;
    size_t i, max;

    if (!value && (d->type == MESSAGE_HUMAN || d->type == MESSAGE_SYSTEM))
        return error_set(reterr, ERR_INVALID, "a message has no content");
    if (!is_given(value))
        return member_add(d, key, yyjson_mut_str(d->doc, ""), reterr);
    if (!yyjson_is_str(value) && !yyjson_is_arr(value))
        return error_set(reterr, ERR_INVALID, "content is neither a text nor a list of blocks");
    yyjson_arr_foreach(value, i, max, block)
    {
        if (!yyjson_is_str(block) && !yyjson_is_obj(block))
            return error_set(reterr, ERR_INVALID, "content[%zu] is neither a text nor a block", i);
    }
    return member_copy(d, key, value, reterr);
}

/* Ids may be numbers in what clients send. NULL: the value is neither. */
static yyjson_mut_val *id_copy(struct draft *d, yyjson_val *value)
{
    char number[24];

    if (yyjson_is_str(value))
        return yyjson_mut_strncpy(d->doc, yyjson_get_str(value), yyjson_get_len(value));
    if (!yyjson_is_int(value))
        return NULL;
    if (yyjson_is_sint(value))
        snprintf(number, sizeof(number), "%lld", (long long)yyjson_get_sint(value));
    else
        snprintf(number, sizeof(number), "%llu", (unsigned long long)yyjson_get_uint(value));
    return yyjson_mut_strcpy(d->doc, number);
}

static int id_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    const char *text = yyjson_get_str(value);
    char id[UUID_LEN + 1];
    int r;

    if (text && (yyjson_get_len(value) > ID_MAX || strlen(text) != yyjson_get_len(value)))
        return error_set(reterr, ERR_INVALID, "the id of a message is no text of up to %d bytes",
                         ID_MAX);
    if (is_given(value) && !yyjson_equals_str(value, "")) {
        if (!text && !yyjson_is_int(value))
            return error_set(reterr, ERR_INVALID, "the id of a message is not a text");
        return member_add(d, key, id_copy(d, value), reterr);
    }
    if (d->type == MESSAGE_REMOVE)
        return error_set(reterr, ERR_INVALID, "what a message of type remove removes needs an id");
    r = uuid_v4(id, reterr);
    return r < 0 ? r : member_add(d, key, yyjson_mut_strcpy(d->doc, id), reterr);
}

static int name_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (!is_given(value))
        return member_add(d, key, yyjson_mut_null(d->doc), reterr);
    if (!yyjson_is_str(value))
        return error_set(reterr, ERR_INVALID, "the name of a message is not a text");
    return member_copy(d, key, value, reterr);
}

static int object_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (!is_given(value))
        return member_add(d, key, yyjson_mut_obj(d->doc), reterr);
    if (!yyjson_is_obj(value))
        return error_set(reterr, ERR_INVALID, "%s of a message is not an object", key);
    return member_copy(d, key, value, reterr);
}

/* OpenAI's "developer" is a system message that remembers what it was called. */
static int kwargs_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    int r = object_write(d, key, value, reterr);

    if (r < 0 || !str_eq(d->spelling, "developer") || yyjson_obj_get(value, openai_role))
        return r;
    if (!yyjson_mut_obj_add_str(d->doc, yyjson_mut_obj_get(d->root, key), openai_role, "developer"))
        return error_no_memory(reterr);
    return 0;
}

static int usage_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (is_given(value))
        return object_write(d, key, value, reterr);
    return member_add(d, key, yyjson_mut_null(d->doc), reterr);
}

static int any_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (is_given(value))
        return member_copy(d, key, value, reterr);
    return member_add(d, key, yyjson_mut_null(d->doc), reterr);
}

static int status_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (!is_given(value))
        return member_add(d, key, yyjson_mut_str(d->doc, "success"), reterr);
    if (!yyjson_equals_str(value, "success") && !yyjson_equals_str(value, "error"))
        return error_set(reterr, ERR_INVALID, "status of a tool message is not success or error");
    return member_copy(d, key, value, reterr);
}

/* The old role "function" knows its call by the function's name. */
static int call_id_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    if (!is_given(value) &&
        (str_eq(d->spelling, "function") || str_eq(d->spelling, "FunctionMessage")))
        value = yyjson_obj_get(d->members, "name");
    if (!yyjson_is_str(value) && !yyjson_is_int(value))
        return error_set(reterr, ERR_INVALID, "a tool message has no tool_call_id");
    return member_add(d, key, id_copy(d, value), reterr);
}

/* ---- tool calls ---- */

struct call {
    yyjson_val *from;
    yyjson_val *name, *args, *id;
    yyjson_doc *parsed; /* of arguments that came as a text */
    const char *problem;
};

static void call_done(struct call *c)
{
    yyjson_doc_free(c->parsed);
}

static int call_read(yyjson_val *from, struct call *c, struct error *reterr)
{
    yyjson_val *function = yyjson_obj_get(from, "function");

    c->from = from;
    c->id = yyjson_obj_get(from, "id");
    c->name = yyjson_obj_get(yyjson_is_obj(function) ? function : from, "name");
    c->args = yyjson_is_obj(function) ? yyjson_obj_get(function, "arguments")
                                      : yyjson_obj_get(from, "args");
    if (!yyjson_is_str(c->name))
        return error_set(reterr, ERR_INVALID, "a tool call has no name");
    if (is_given(c->id) && !yyjson_is_str(c->id))
        return error_set(reterr, ERR_INVALID, "the id of a tool call is not a text");
    if (is_given(c->args) && !yyjson_is_str(c->args) && !yyjson_is_obj(c->args))
        return error_set(reterr, ERR_INVALID, "the arguments of a tool call are not an object");
    return 0;
}

/* Arguments as a text: JSON as the model wrote it, perhaps none. */
static int call_args_parse(struct call *c, struct error *reterr)
{
    struct error err = {};

    if (!yyjson_is_str(c->args) || yyjson_get_len(c->args) == 0)
        return 0;
    if (json_parse(yyjson_get_str(c->args), yyjson_get_len(c->args), &c->parsed, &err) ==
        -ERR_NO_MEMORY)
        return error_no_memory(reterr);
    if (!c->parsed)
        c->problem = "the arguments are not valid JSON";
    else if (!yyjson_is_obj(yyjson_doc_get_root(c->parsed)))
        c->problem = "the arguments are not a JSON object";
    return 0;
}

static yyjson_mut_val *call_args(struct draft *d, const struct call *c)
{
    if (yyjson_is_obj(c->args) || c->problem)
        return yyjson_val_mut_copy(d->doc, c->args);
    if (c->parsed)
        return yyjson_val_mut_copy(d->doc, yyjson_doc_get_root(c->parsed));
    return yyjson_mut_obj(d->doc);
}

/* A call without an id could never be answered. */
static int call_id(struct draft *d, yyjson_val *id, yyjson_mut_val **ret, struct error *reterr)
{
    char made[UUID_LEN + 1], text[UUID_LEN + sizeof("call_")];
    int r;

    if (yyjson_is_str(id) && yyjson_get_len(id) > 0) {
        *ret = yyjson_val_mut_copy(d->doc, id);
        return 0;
    }
    r = uuid_v4(made, reterr);
    if (r < 0)
        return r;
    snprintf(text, sizeof(text), "call_%s", made);
    *ret = yyjson_mut_strcpy(d->doc, text);
    return 0;
}

static bool name_in(yyjson_val *key, const char *const *names)
{
    for (; *names; names++) {
        if (yyjson_equals_str(key, *names))
            return true;
    }
    return false;
}

/* The members of `from` that are not named, in their order. */
static int rest_copy(struct draft *d, yyjson_val *from, const char *const *names,
                     yyjson_mut_val *ret, struct error *reterr)
{
    yyjson_val *key, *value;
    size_t i, max;

    if (!from)
        return 0;
    yyjson_obj_foreach(from, i, max, key, value)
    {
        if (name_in(key, names))
            continue;
        if (!yyjson_mut_obj_add(ret, yyjson_val_mut_copy(d->doc, key),
                                yyjson_val_mut_copy(d->doc, value)))
            return error_no_memory(reterr);
    }
    return 0;
}

static int call_write(struct draft *d, const struct call *c, yyjson_mut_val *ret,
                      struct error *reterr)
{
    static const char *const known[] = {"name", "args", "id", "type", "function", "error", NULL};
    yyjson_mut_val *id = NULL;
    int r = call_id(d, c->id, &id, reterr);

    if (r < 0)
        return r;
    if (!yyjson_mut_obj_add_val(d->doc, ret, "name", yyjson_val_mut_copy(d->doc, c->name)) ||
        !yyjson_mut_obj_add_val(d->doc, ret, "args", call_args(d, c)) ||
        !yyjson_mut_obj_add_val(d->doc, ret, "id", id) ||
        (c->problem && !yyjson_mut_obj_add_str(d->doc, ret, "error", c->problem)) ||
        !yyjson_mut_obj_add_str(d->doc, ret, "type",
                                c->problem ? "invalid_tool_call" : "tool_call"))
        return error_no_memory(reterr);
    return rest_copy(d, c->from, known, ret, reterr);
}

static int call_add(struct draft *d, yyjson_val *from, yyjson_mut_val *calls, struct error *reterr)
{
    auto_cleanup(call_done) struct call c = {};
    yyjson_mut_val *call = yyjson_mut_obj(d->doc);
    int r = call_read(from, &c, reterr);

    if (r == 0)
        r = call_args_parse(&c, reterr);
    if (r == 0)
        r = call_write(d, &c, call, reterr);
    if (r < 0)
        return r;
    yyjson_mut_arr_append(c.problem ? d->invalid_calls : calls, call);
    return 0;
}

static int calls_add(struct draft *d, yyjson_val *from, yyjson_mut_val *calls, struct error *reterr)
{
    yyjson_val *call;
    size_t i, max;

    if (is_given(from) && !yyjson_is_arr(from))
        return error_set(reterr, ERR_INVALID, "tool_calls of a message is not a list");
    if (yyjson_arr_size(from) > LLM_CALLS_MAX)
        return error_set(reterr, ERR_LIMIT, "a message of more than %d tool calls", LLM_CALLS_MAX);
    yyjson_arr_foreach(from, i, max, call)
    {
        int r = call_add(d, call, calls, reterr);

        if (r < 0)
            return error_wrap(reterr, "tool_calls[%zu]", i);
    }
    return 0;
}

static int invalid_copy(struct draft *d, yyjson_val *from, struct error *reterr)
{
    yyjson_val *call;
    size_t i, max;

    if (is_given(from) && !yyjson_is_arr(from))
        return error_set(reterr, ERR_INVALID, "invalid_tool_calls of a message is not a list");
    if (yyjson_arr_size(from) > LLM_CALLS_MAX)
        return error_set(reterr, ERR_LIMIT, "a message of more than %d calls that are not valid",
                         LLM_CALLS_MAX);
    yyjson_arr_foreach(from, i, max, call)
    {
        if (!yyjson_is_obj(call))
            return error_set(reterr, ERR_INVALID, "invalid_tool_calls[%zu] is not an object", i);
        if (!yyjson_mut_arr_append(d->invalid_calls, yyjson_val_mut_copy(d->doc, call)))
            return error_no_memory(reterr);
    }
    return 0;
}

static bool is_empty(yyjson_val *list)
{
    return !is_given(list) || (yyjson_is_arr(list) && yyjson_arr_size(list) == 0);
}

/* Old clients leave OpenAI's calls in additional_kwargs and nowhere else. */
static int calls_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    yyjson_val *invalid = yyjson_obj_get(d->members, "invalid_tool_calls");
    yyjson_mut_val *calls = yyjson_mut_arr(d->doc);
    int r;

    d->invalid_calls = yyjson_mut_arr(d->doc);
    if (!calls || !d->invalid_calls)
        return error_no_memory(reterr);
    if (is_empty(value) && is_empty(invalid))
        value = yyjson_obj_get(yyjson_obj_get(d->members, "additional_kwargs"), key);
    r = invalid_copy(d, invalid, reterr);
    if (r == 0)
        r = calls_add(d, value, calls, reterr);
    return r < 0 ? r : member_add(d, key, calls, reterr);
}

static int invalid_write(struct draft *d, const char *key, yyjson_val *value, struct error *reterr)
{
    (void)value;
    return member_add(d, key, d->invalid_calls, reterr);
}

/* ---- types ---- */

static const struct field plain_fields[] = {
    {"type", type_write},
    {"content", content_write},
    {"id", id_write},
    {"name", name_write},
    {"additional_kwargs", kwargs_write},
    {"response_metadata", object_write},
    {},
};

static const struct field ai_fields[] = {
    {"type", type_write},
    {"content", content_write},
    {"id", id_write},
    {"name", name_write},
    {"additional_kwargs", object_write},
    {"response_metadata", object_write},
    {"tool_calls", calls_write},
    {"invalid_tool_calls", invalid_write},
    {"usage_metadata", usage_write},
    {},
};

static const struct field tool_fields[] = {
    {"type", type_write},
    {"content", content_write},
    {"id", id_write},
    {"name", name_write},
    {"tool_call_id", call_id_write},
    {"artifact", any_write},
    {"status", status_write},
    {"additional_kwargs", object_write},
    {"response_metadata", object_write},
    {},
};

static const struct field remove_fields[] = {
    {"type", type_write},
    {"id", id_write},
    {"content", content_write},
    {},
};

static const struct field *const fields[] = {
    [MESSAGE_HUMAN] = plain_fields,  [MESSAGE_AI] = ai_fields,         [MESSAGE_TOOL] = tool_fields,
    [MESSAGE_SYSTEM] = plain_fields, [MESSAGE_REMOVE] = remove_fields,
};

static const struct {
    const char *name;
    enum message_type type;
} spellings[] = {
    {"human", MESSAGE_HUMAN},
    {"user", MESSAGE_HUMAN},
    {"HumanMessage", MESSAGE_HUMAN},
    {"HumanMessageChunk", MESSAGE_HUMAN},
    {"ai", MESSAGE_AI},
    {"assistant", MESSAGE_AI},
    {"AIMessage", MESSAGE_AI},
    {"AIMessageChunk", MESSAGE_AI},
    {"tool", MESSAGE_TOOL},
    {"function", MESSAGE_TOOL},
    {"ToolMessage", MESSAGE_TOOL},
    {"ToolMessageChunk", MESSAGE_TOOL},
    {"FunctionMessage", MESSAGE_TOOL},
    {"system", MESSAGE_SYSTEM},
    {"developer", MESSAGE_SYSTEM},
    {"SystemMessage", MESSAGE_SYSTEM},
    {"SystemMessageChunk", MESSAGE_SYSTEM},
    {"remove", MESSAGE_REMOVE},
    {"RemoveMessage", MESSAGE_REMOVE},
};

static int type_find(struct draft *d, const char *name, struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        if (str_eq(spellings[i].name, name)) {
            d->type = spellings[i].type;
            d->spelling = spellings[i].name;
            return 0;
        }
    }
    return error_set(reterr, ERR_INVALID, "no type of message is called '%.40s'", name);
}

/* ---- forms ---- */

/* {"lc":1,"type":"constructor","id":[..., "HumanMessage"],"kwargs":{}} */
static bool is_constructor(yyjson_val *value)
{
    return yyjson_obj_get(value, "lc") && yyjson_is_obj(yyjson_obj_get(value, "kwargs")) &&
           str_eq(json_get_str(value, "type", ""), "constructor");
}

static int object_read(struct draft *d, yyjson_val *value, struct error *reterr)
{
    const char *name = json_get_str(value, "type", NULL);

    d->members = value;
    if (is_constructor(value)) {
        d->members = yyjson_obj_get(value, "kwargs");
        name = yyjson_get_str(yyjson_arr_get_last(yyjson_obj_get(value, "id")));
    }
    name = json_get_str(d->members, "role", name);
    if (!name)
        return error_set(reterr, ERR_INVALID, "a message has neither type nor role");
    d->content = yyjson_obj_get(d->members, "content");
    return type_find(d, name, reterr);
}

static int form_read(struct draft *d, yyjson_val *value, struct error *reterr)
{
    if (yyjson_is_str(value)) {
        d->content = value;
        return type_find(d, "human", reterr);
    }
    if (yyjson_is_obj(value))
        return object_read(d, value, reterr);
    if (yyjson_arr_size(value) != 2 || !yyjson_is_str(yyjson_arr_get_first(value)))
        return error_set(reterr, ERR_INVALID,
                         "a message is no object, text, or pair of role and content");
    d->content = yyjson_arr_get_last(value);
    return type_find(d, yyjson_get_str(yyjson_arr_get_first(value)), reterr);
}

static int fields_write(struct draft *d, struct error *reterr)
{
    const char *known[ARRAY_LEN(ai_fields) + ARRAY_LEN(tool_fields)] = {"role", "type"};
    size_t count = 2;

    for (const struct field *f = fields[d->type]; f->key; f++) {
        yyjson_val *value =
            str_eq(f->key, "content") ? d->content : yyjson_obj_get(d->members, f->key);
        int r = f->write(d, f->key, value, reterr);

        if (r < 0)
            return r;
        known[count++] = f->key;
    }
    return rest_copy(d, d->members, known, d->root, reterr);
}

int message_parse(yyjson_val *value, struct message **ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    struct draft d = {.doc = doc, .root = yyjson_mut_obj(doc)};
    int r;

    if (!d.root)
        return error_no_memory(reterr);
    yyjson_mut_doc_set_root(doc, d.root);
    r = form_read(&d, value, reterr);
    if (r == 0)
        r = fields_write(&d, reterr);
    return r < 0 ? r : message_make(doc, ret, reterr);
}
