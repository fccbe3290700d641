/* SPDX-License-Identifier: MIT */
/*
 * A table of members with the forms that each may have; what it lets through is what the agent
 * reads. The run's own config lies over the assistant's, `context` and `configurable` are one.
 */
#include "api/run_params.h"

#include "base/str.h"
#include "base/uuid.h"

#include <stdio.h>

enum { METADATA_MAX = 64 << 10, DELAY_MAX_S = 90 * 86400, NAMES_MAX = 32 };

/* ---- members ---- */

static bool is_object(yyjson_val *v)
{
    return yyjson_is_obj(v);
}

static bool is_string(yyjson_val *v)
{
    return yyjson_is_str(v);
}

static bool is_bool(yyjson_val *v)
{
    return yyjson_is_bool(v);
}

static bool is_anything(yyjson_val *v)
{
    return true;
}

static bool is_delay(yyjson_val *v)
{
    return yyjson_is_num(v) && yyjson_get_num(v) >= 0 && yyjson_get_num(v) <= DELAY_MAX_S;
}

static bool is_names(yyjson_val *v)
{
    size_t i, max;
    yyjson_val *name;

    if (yyjson_is_str(v))
        return str_eq(yyjson_get_str(v), "*");
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) > NAMES_MAX)
        return false;
    yyjson_arr_foreach(v, i, max, name)
    {
        if (!yyjson_is_str(name))
            return false;
    }
    return true;
}

static bool is_modes(yyjson_val *v)
{
    size_t i, max;
    yyjson_val *mode;

    if (yyjson_is_str(v))
        return stream_mode_parse(yyjson_get_str(v)) != 0;
    if (!yyjson_is_arr(v))
        return false;
    yyjson_arr_foreach(v, i, max, mode)
    {
        if (!yyjson_is_str(mode) || stream_mode_parse(yyjson_get_str(mode)) == 0)
            return false;
    }
    return true;
}

static const struct member {
    const char *name;
    bool (*check)(yyjson_val *v);
    const char *form;
    bool kept; /* in the row, as it is */
} members[] = {
    {"assistant_id", is_string, "a string", false},
    {"input", is_object, "an object or null", true},
    {"command", is_object, "an object or null", true},
    {"config", is_object, "an object", false},
    {"context", is_object, "an object", false},
    {"metadata", is_object, "an object", false},
    {"stream_mode", is_modes, "a stream mode or an array of them", true},
    {"stream_subgraphs", is_bool, "true or false", true},
    {"stream_resumable", is_bool, "true or false", true},
    {"on_disconnect", is_string, "\"continue\" or \"cancel\"", true},
    {"multitask_strategy", is_string, "reject, interrupt, rollback or enqueue", false},
    {"if_not_exists", is_string, "\"create\" or \"reject\"", false},
    {"checkpoint", is_object, "an object", true},
    {"checkpoint_id", is_string, "a string", false},
    {"interrupt_before", is_names, "\"*\" or an array of node names", true},
    {"interrupt_after", is_names, "\"*\" or an array of node names", true},
    {"durability", is_string, "sync, async or exit", true},
    {"on_completion", is_string, "\"delete\" or \"keep\"", false},
    {"after_seconds", is_delay, "seconds from now", true},
    {"feedback_keys", is_anything, "", false},
    {"langsmith_tracer", is_anything, "", false},
};

static const struct word_list {
    const char *member, *words[5];
} word_lists[] = {
    {"on_disconnect", {"continue", "cancel"}},
    {"multitask_strategy", {"enqueue", "reject", "interrupt", "rollback"}},
    {"if_not_exists", {"create", "reject"}},
    {"on_completion", {"delete", "keep"}},
    {"durability", {"sync", "async", "exit"}},
};

/* The member's value; NULL when it is absent or null. */
static yyjson_val *member_of(yyjson_val *body, const char *name)
{
    yyjson_val *v = yyjson_obj_get(body, name);

    return yyjson_is_null(v) ? NULL : v;
}

static int members_check(struct http_request *req, yyjson_val *body)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        yyjson_val *v = member_of(body, members[i].name);

        if (v && !members[i].check(v))
            return api_unprocessable(req, "'%s' has to be %s", members[i].name, members[i].form);
    }
    /* A client that asks for this counts on it, and a server must not be made to call any URL. */
    if (member_of(body, "webhook"))
        return api_unprocessable(req, "'webhook' is not served: follow the run's stream instead");
    return 0;
}

static int words_check(struct http_request *req, yyjson_val *body)
{
    for (size_t i = 0; i < ARRAY_LEN(word_lists); i++) {
        const char *word = json_get_str(body, word_lists[i].member, NULL);
        const char *const *w = word_lists[i].words;

        while (word && *w && !str_eq(*w, word))
            w++;
        if (word && !*w)
            return api_unprocessable(req, "'%s' is not known for '%s'", word, word_lists[i].member);
    }
    return 0;
}

/* ---- streams ---- */

static const struct mode_word {
    const char *word;
    uint32_t bit;
} mode_words[] = {
    {"values", MODE_VALUES},     {"updates", MODE_UPDATES},
    {"messages", MODE_MESSAGES}, {"messages-tuple", MODE_MESSAGES_TUPLE},
    {"custom", MODE_CUSTOM},     {"debug", MODE_DEBUG},
    {"tasks", MODE_TASKS},       {"checkpoints", MODE_CHECKPOINTS},
    {"events", MODE_EVENTS},     {"tools", MODE_TOOLS},
};

uint32_t stream_mode_parse(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(mode_words); i++) {
        if (str_eq(mode_words[i].word, word))
            return mode_words[i].bit;
    }
    return 0;
}

static uint32_t modes_parse(yyjson_val *value)
{
    uint32_t modes = 0;
    size_t i, max;
    yyjson_val *mode;

    if (yyjson_is_str(value))
        return stream_mode_parse(yyjson_get_str(value));
    yyjson_arr_foreach(value, i, max, mode) modes |= stream_mode_parse(yyjson_get_str(mode));
    return modes ? modes : MODE_VALUES;
}

/* ---- the row ---- */

/* Members of `from`, which may be NULL, over those of `to`. */
static void object_merge(yyjson_mut_doc *doc, yyjson_mut_val *to, yyjson_val *from)
{
    size_t i, max;
    yyjson_val *key, *value;

    if (!from)
        return;
    yyjson_obj_foreach(from, i, max, key, value)
    {
        yyjson_mut_obj_remove_key(to, yyjson_get_str(key));
        yyjson_mut_obj_add(to, yyjson_val_mut_copy(doc, key), yyjson_val_mut_copy(doc, value));
    }
}

static yyjson_val *text_parse(struct http_request *req, const char *json, yyjson_doc **ret)
{
    *ret = NULL;
    if (json_parse(json ? json : "{}", strlen(json ? json : "{}"), ret, NULL) < 0)
        return NULL;
    return yyjson_doc_get_root(*ret);
}

/* Never in clear in the store. */
static int secret_seal(struct http_request *req, yyjson_mut_doc *doc, yyjson_mut_val *configurable)
{
    yyjson_mut_val *key = yyjson_mut_obj_get(configurable, RUN_SECRET);
    auto_buf struct buf sealed;
    struct error error;

    if (!yyjson_mut_is_str(key) || yyjson_mut_get_len(key) == 0) {
        yyjson_mut_obj_remove_key(configurable, RUN_SECRET);
        return 0;
    }
    buf_init(&sealed, 64 * KIB);
    if (buf_append_str(&sealed, RUN_SEALED) < 0 ||
        sealed_seal(&api_of(req)->keys, yyjson_mut_get_str(key), yyjson_mut_get_len(key), &sealed,
                    &error) < 0)
        return api_unprocessable(req, "the key of the model cannot be sealed");
    yyjson_mut_obj_remove_key(configurable, RUN_SECRET);
    yyjson_mut_obj_add_strncpy(doc, configurable, RUN_SECRET, buf_str(&sealed), sealed.len);
    return 0;
}

/* {"configurable": assistant's context and config, then the run's, ..., "recursion_limit": n} */
static int config_make(struct http_request *req, yyjson_mut_doc *doc, yyjson_val *body,
                       const struct store_assistant *a)
{
    auto_json yyjson_doc *config_doc = NULL, *context_doc = NULL;
    yyjson_val *base = text_parse(req, a->config, &config_doc);
    yyjson_val *context = text_parse(req, a->context, &context_doc);
    yyjson_mut_val *config = yyjson_mut_obj(doc), *configurable = yyjson_mut_obj(doc);
    yyjson_val *own = member_of(body, "config");

    object_merge(doc, config, base);
    object_merge(doc, config, own);
    yyjson_mut_obj_remove_key(config, "configurable");
    object_merge(doc, configurable, context);
    object_merge(doc, configurable, yyjson_obj_get(base, "configurable"));
    object_merge(doc, configurable, member_of(own, "configurable"));
    object_merge(doc, configurable, member_of(body, "context"));
    yyjson_mut_obj_add_val(doc, config, "configurable", configurable);
    yyjson_mut_obj_add_val(doc, yyjson_mut_doc_get_root(doc), "config", config);
    return secret_seal(req, doc, configurable);
}

/* Where the run starts: `checkpoint_id`, or that of `checkpoint` or of `config.configurable`. */
static const char *checkpoint_of(yyjson_val *body)
{
    const char *id = json_get_str(body, "checkpoint_id", NULL);
    yyjson_val *config = member_of(body, "config");

    if (!id)
        id = json_get_str(member_of(body, "checkpoint"), "checkpoint_id", NULL);
    return id ? id : json_get_str(member_of(config, "configurable"), "checkpoint_id", NULL);
}

/* Beside a command an input is none, and an empty one is none anywhere: some clients send it
 * always.
 */
static yyjson_val *input_of(yyjson_val *body)
{
    yyjson_val *input = member_of(body, "input");

    return member_of(body, "command") || yyjson_obj_size(input) == 0 ? NULL : input;
}

static int kwargs_make(struct http_request *req, yyjson_val *body, const struct store_assistant *a,
                       const char **ret)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const char *checkpoint = checkpoint_of(body);
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, API_ANSWER_MAX);
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        yyjson_val *v = member_of(body, members[i].name);

        if (v && members[i].kept && (v != member_of(body, "input") || input_of(body)))
            yyjson_mut_obj_add(root, yyjson_mut_str(doc, members[i].name),
                               yyjson_val_mut_copy(doc, v));
    }
    if (checkpoint)
        yyjson_mut_obj_add_str(doc, root, "checkpoint_id", checkpoint);
    yyjson_mut_obj_add_str(doc, root, "graph_id", a->graph_id);
    if (config_make(req, doc, body, a) < 0)
        return -1;
    if (json_mut_write(owned, &text, &error) < 0)
        return api_fail(req, &error);
    *ret = arena_memdup(http_arena(req), buf_str(&text), text.len);
    if (!*ret) {
        error_set(&error, ERR_LIMIT, "the run's parameters are too large");
        return api_fail(req, &error);
    }
    return 0;
}

static int assistant_find(struct http_request *req, yyjson_val *body, struct store_assistant *ret)
{
    const char *given = json_get_str(body, "assistant_id", NULL), *id;
    struct error error;

    if (!given)
        return api_unprocessable(req, "'assistant_id' is missing");
    id = api_assistant_id(given);
    if (!id)
        return api_not_found(req, "assistant");
    if (store_assistant_get(api_of(req)->store, http_principal(req), id, http_arena(req), ret,
                            &error) < 0)
        return api_fail(req, &error);
    return 0;
}

/* What the thread keeps of it: clients filter their lists by these two. */
static const char *thread_metadata(struct http_request *req, const struct store_assistant *a)
{
    return arena_printf(http_arena(req), "{\"graph_id\":\"%s\",\"assistant_id\":\"%s\"}",
                        a->graph_id, a->id);
}

static int row_fill(struct http_request *req, yyjson_val *body, const char *thread_id,
                    struct run_params *ret)
{
    struct store_run *row = &ret->create.new.run;
    char *id = arena_alloc(http_arena(req), UUID_LEN + 1);
    char *fresh = arena_alloc(http_arena(req), UUID_LEN + 1);
    const char *metadata = api_member(req, body, "metadata");
    const char *own_thread = json_get_str(body, "thread_id", NULL);
    double delay = yyjson_get_num(yyjson_obj_get(body, "after_seconds"));
    struct error error;

    if (!id || !fresh || uuid_v7(id, &error) < 0 || uuid_v4(fresh, &error) < 0)
        return api_unprocessable(req, "the run cannot be named");
    if (own_thread && !api_thread_id_check(own_thread))
        return api_unprocessable(req, "'thread_id' is 1 to 128 letters, digits, '-' and '_'");
    if (metadata && strlen(metadata) > METADATA_MAX)
        return api_unprocessable(req, "'metadata' is above 64 KiB");
    row->id = id;
    row->owner = http_principal(req);
    row->thread_id = thread_id ? thread_id : own_thread ? own_thread : fresh;
    row->metadata = metadata ? metadata : "{}";
    row->multitask = json_get_str(body, "multitask_strategy", "enqueue");
    row->temporary =
        !thread_id && !own_thread && !str_eq(json_get_str(body, "on_completion", "delete"), "keep");
    row->start_us = delay > 0 ? timestamp_now() + (int64_t)(delay * 1000000) : 0;
    return 0;
}

int run_params_parse(struct http_request *req, yyjson_val *body, const char *thread_id,
                     struct run_params *ret)
{
    struct store_assistant a = {};
    struct store_run_new *new = &ret->create.new;

    *ret = (struct run_params){};
    if (members_check(req, body) < 0 || words_check(req, body) < 0 ||
        assistant_find(req, body, &a) < 0 || row_fill(req, body, thread_id, ret) < 0 ||
        kwargs_make(req, body, &a, &new->run.kwargs) < 0)
        return -1;
    ret->assistant_id = a.id;
    ret->graph_id = a.graph_id;
    new->resume = yyjson_obj_get(member_of(body, "command"), "resume") != NULL;
    new->run.assistant_id = a.id;
    new->create_thread = !str_eq(json_get_str(body, "if_not_exists", "create"), "reject");
    new->thread_metadata = thread_metadata(req, &a);
    ret->create.modes = modes_parse(member_of(body, "stream_mode"));
    ret->cancel_on_disconnect = str_eq(json_get_str(body, "on_disconnect", "continue"), "cancel");
    ret->resumable = json_get_bool(body, "stream_resumable", false);
    return 0;
}

/* ---- as clients see it ---- */

static bool flag_of(yyjson_doc *kwargs, const char *name)
{
    return json_get_bool(yyjson_doc_get_root(kwargs), name, false);
}

static yyjson_mut_val *kwargs_format(yyjson_mut_doc *doc, const struct store_run *row)
{
    auto_json yyjson_doc *kwargs = NULL;
    yyjson_mut_val *copy, *configurable;

    if (json_parse(row->kwargs, strlen(row->kwargs), &kwargs, NULL) < 0)
        return yyjson_mut_obj(doc);
    copy = yyjson_val_mut_copy(doc, yyjson_doc_get_root(kwargs));
    configurable = yyjson_mut_obj_get(yyjson_mut_obj_get(copy, "config"), "configurable");
    yyjson_mut_obj_remove_key(configurable, RUN_SECRET);
    yyjson_mut_obj_add_val(doc, copy, "context", yyjson_mut_val_mut_copy(doc, configurable));
    yyjson_mut_obj_add_bool(doc, copy, "temporary", row->temporary);
    yyjson_mut_obj_add_bool(doc, copy, "subgraphs", flag_of(kwargs, "stream_subgraphs"));
    yyjson_mut_obj_add_bool(doc, copy, "resumable", flag_of(kwargs, "stream_resumable"));
    return copy;
}

yyjson_mut_val *run_format(yyjson_mut_doc *doc, const struct store_run *row, const char *values)
{
    yyjson_mut_val *run = yyjson_mut_obj(doc), *kwargs = kwargs_format(doc, row);
    yyjson_mut_val *input = yyjson_mut_obj_get(kwargs, "input");

    api_add_str(doc, run, "run_id", row->id);
    api_add_str(doc, run, "thread_id", row->thread_id);
    api_add_str(doc, run, "assistant_id", row->assistant_id);
    api_add_time(doc, run, "created_at", row->created_us);
    api_add_time(doc, run, "updated_at", row->updated_us);
    api_add_str(doc, run, "status", row->status);
    api_add_raw(doc, run, "metadata", row->metadata);
    yyjson_mut_obj_add_val(doc, run, "input",
                           input ? yyjson_mut_val_mut_copy(doc, input) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, run, "kwargs", kwargs);
    api_add_str(doc, run, "multitask_strategy", row->multitask);
    api_add_raw(doc, run, "output", values);
    api_add_raw(doc, run, "error", row->error);
    api_add_str(doc, run, "error_message", NULL);
    if (row->error) {
        auto_json yyjson_doc *error = NULL;

        yyjson_mut_obj_remove_key(run, "error_message");
        if (json_parse(row->error, strlen(row->error), &error, NULL) == 0)
            yyjson_mut_obj_add_strcpy(
                doc, run, "error_message",
                json_get_str(yyjson_doc_get_root(error), "message", row->error));
    }
    api_add_str(doc, run, "user_id", row->owner);
    return run;
}
