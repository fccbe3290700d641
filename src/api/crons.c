/* SPDX-License-Identifier: MIT */
/*
 * Crons: runs by the clock. The body of the run is checked when the cron is made, and what a run
 * needs is kept with it, so that nothing is left to go wrong at night; the assistant's config is
 * that of that time. A time that passed while no server ran is made up for once.
 */
#include "api/crons.h"

#include "api/run_params.h"
#include "api/schedule.h"
#include "base/str.h"
#include "base/uuid.h"

#define SECOND_US 1000000
enum { CRONS_LIMIT = 10, CRONS_LIMIT_MAX = 1000, OWNER_MAX = 100 };

/* Members of a cron's body that are not the run's. */
static const char *const own_members[] = {
    "schedule", "timezone", "end_time", "enabled", "on_run_completed", "metadata", "thread_id",
};

/* What is stored as its payload: the run's body as it was given but for secrets, and what came of
 * it. */
#define STORED_BODY "body"
#define STORED_KWARGS "kwargs"
#define STORED_GRAPH "graph_id"
#define STORED_MULTITASK "multitask"
#define STORED_MODES "modes"

/* ---- times ---- */

/* In microseconds; 0: never again, or the zone is no longer known here. */
int64_t cron_next(const struct store_cron *c, int64_t after_us)
{
    auto_zone struct zone *zone = NULL;
    struct schedule schedule;

    if (schedule_parse(c->schedule, &schedule, NULL) < 0 ||
        zone_load(c->timezone ? c->timezone : "UTC", &zone, NULL) < 0)
        return 0;
    return schedule_next(&schedule, zone, after_us / SECOND_US) * SECOND_US;
}

static int times_check(struct http_request *req, const struct store_cron *c)
{
    auto_zone struct zone *zone = NULL;
    struct schedule schedule;
    struct error error;

    if (schedule_parse(c->schedule, &schedule, &error) < 0 ||
        zone_load(c->timezone ? c->timezone : "UTC", &zone, &error) < 0)
        return api_unprocessable(req, "%s", error.text);
    return 0;
}

/* ---- as clients see them ---- */

static yyjson_mut_val *payload_format(yyjson_mut_doc *doc, const struct store_cron *c)
{
    auto_json yyjson_doc *stored = NULL;

    if (json_parse(c->payload, strlen(c->payload), &stored, NULL) < 0)
        return yyjson_mut_obj(doc);
    return yyjson_val_mut_copy(doc, yyjson_obj_get(yyjson_doc_get_root(stored), STORED_BODY));
}

static yyjson_mut_val *cron_format(yyjson_mut_doc *doc, const struct store_cron *c)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    api_add_str(doc, v, "cron_id", c->id);
    api_add_str(doc, v, "assistant_id", c->assistant_id);
    api_add_str(doc, v, "thread_id", c->thread_id);
    api_add_str(doc, v, "schedule", c->schedule);
    api_add_str(doc, v, "timezone", c->timezone);
    if (c->end_us)
        api_add_time(doc, v, "end_time", c->end_us);
    else
        yyjson_mut_obj_add_null(doc, v, "end_time");
    yyjson_mut_obj_add_bool(doc, v, "enabled", c->enabled);
    api_add_str(doc, v, "on_run_completed", c->on_run_completed);
    yyjson_mut_obj_add_val(doc, v, "payload", payload_format(doc, c));
    api_add_raw(doc, v, "metadata", c->metadata);
    if (c->enabled && c->next_us)
        api_add_time(doc, v, "next_run_date", c->next_us);
    else
        yyjson_mut_obj_add_null(doc, v, "next_run_date");
    api_add_str(doc, v, "user_id", c->owner);
    api_add_time(doc, v, "created_at", c->created_us);
    api_add_time(doc, v, "updated_at", c->updated_us);
    return v;
}

/* ---- what is asked for ---- */

static bool is_own_member(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(own_members); i++) {
        if (str_eq(own_members[i], name))
            return true;
    }
    return false;
}

/* The run's body: of what was stored, if anything, with what is given over it. */
static yyjson_mut_val *body_merge(yyjson_mut_doc *doc, yyjson_val *stored, yyjson_val *given)
{
    yyjson_mut_val *body = stored ? yyjson_val_mut_copy(doc, stored) : yyjson_mut_obj(doc);
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach(given, i, max, key, value)
    {
        if (is_own_member(yyjson_get_str(key)))
            continue;
        yyjson_mut_obj_remove_key(body, yyjson_get_str(key));
        if (!yyjson_is_null(value))
            yyjson_mut_obj_add(body, yyjson_val_mut_copy(doc, key),
                               yyjson_val_mut_copy(doc, value));
    }
    return body;
}

static void secret_drop(yyjson_mut_val *body)
{
    yyjson_mut_val *config = yyjson_mut_obj_get(body, "config");

    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(config, "configurable"), RUN_SECRET);
    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(body, "context"), RUN_SECRET);
}

/* A change that says nothing about the config keeps the key that was sealed before. */
static void secret_keep(yyjson_mut_doc *doc, yyjson_mut_val *kwargs, yyjson_val *stored,
                        yyjson_val *given)
{
    yyjson_val *config = yyjson_obj_get(yyjson_obj_get(stored, STORED_KWARGS), "config");
    yyjson_val *sealed = yyjson_obj_get(yyjson_obj_get(config, "configurable"), RUN_SECRET);
    yyjson_mut_val *to = yyjson_mut_obj_get(yyjson_mut_obj_get(kwargs, "config"), "configurable");

    if (!sealed || !to || yyjson_obj_get(given, "config") || yyjson_obj_get(given, "context") ||
        yyjson_mut_obj_get(to, RUN_SECRET))
        return;
    yyjson_mut_obj_add_val(doc, to, RUN_SECRET, yyjson_val_mut_copy(doc, sealed));
}

static const char *doc_text(struct http_request *req, const yyjson_mut_doc *doc)
{
    auto_buf struct buf text;
    struct error error;
    char *copy;

    buf_init(&text, API_ANSWER_MAX);
    if (json_mut_write(doc, &text, &error) < 0) {
        api_fail(req, &error);
        return NULL;
    }
    copy = arena_memdup(http_arena(req), buf_str(&text), text.len);
    if (!copy) {
        error_set(&error, ERR_LIMIT, "the cron's payload is too large");
        api_fail(req, &error);
    }
    return copy;
}

/* Checks the run's body; `stored`: the cron's payload so far, or NULL. */
static int payload_make(struct http_request *req, yyjson_val *given, yyjson_val *stored,
                        struct store_cron *ret)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc), *kwargs;
    yyjson_mut_val *body = body_merge(doc, yyjson_obj_get(stored, STORED_BODY), given);
    auto_json yyjson_doc *merged = yyjson_mut_val_imut_copy(body, NULL), *made = NULL;
    struct run_params params;
    struct error error;

    if (!merged)
        return api_unprocessable(req, "the cron's body cannot be read");
    if (run_params_parse(req, yyjson_doc_get_root(merged), ret->thread_id, &params) < 0)
        return -1;
    if (json_parse(params.create.new.run.kwargs, strlen(params.create.new.run.kwargs), &made,
                   &error) < 0)
        return api_fail(req, &error);
    kwargs = yyjson_val_mut_copy(doc, yyjson_doc_get_root(made));
    secret_keep(doc, kwargs, stored, given);
    secret_drop(body);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, STORED_BODY, body);
    yyjson_mut_obj_add_val(doc, root, STORED_KWARGS, kwargs);
    yyjson_mut_obj_add_str(doc, root, STORED_GRAPH, params.graph_id);
    yyjson_mut_obj_add_str(doc, root, STORED_MULTITASK, params.create.new.run.multitask);
    yyjson_mut_obj_add_uint(doc, root, STORED_MODES, params.create.modes);
    ret->assistant_id = arena_strdup(http_arena(req), params.assistant_id);
    ret->payload = doc_text(req, owned);
    return ret->payload && ret->assistant_id ? 0 : -1;
}

static int text_take(struct http_request *req, yyjson_val *body, const char *name, size_t max,
                     const char **ret)
{
    yyjson_val *v = yyjson_obj_get(body, name);

    if (!v || yyjson_is_null(v))
        return 0;
    if (!yyjson_is_str(v) || yyjson_get_len(v) > max ||
        strlen(yyjson_get_str(v)) != yyjson_get_len(v))
        return api_unprocessable(req, "'%s' has to be a text of at most %zu bytes", name, max);
    *ret = yyjson_get_str(v);
    return 0;
}

static int end_take(struct http_request *req, yyjson_val *body, int64_t *ret)
{
    const char *text = NULL;

    if (yyjson_is_null(yyjson_obj_get(body, "end_time")))
        *ret = 0;
    if (text_take(req, body, "end_time", TIMESTAMP_TEXT, &text) < 0)
        return -1;
    if (!text)
        return 0;
    if (timestamp_parse(text, ret) < 0 || *ret <= timestamp_now())
        return api_unprocessable(req, "'end_time' has to be a time that is not over");
    return 0;
}

static int metadata_take(struct http_request *req, yyjson_val *body, const char **ret)
{
    yyjson_val *metadata = yyjson_obj_get(body, "metadata");

    if (!metadata || yyjson_is_null(metadata))
        return 0;
    if (!yyjson_is_obj(metadata))
        return api_unprocessable(req, "'metadata' has to be an object");
    *ret = api_member(req, body, "metadata");
    return 0;
}

/* The cron's own members over what is there, and its next time. */
static int members_take(struct http_request *req, yyjson_val *body, struct store_cron *c)
{
    yyjson_val *enabled = yyjson_obj_get(body, "enabled");

    if (text_take(req, body, "schedule", SCHEDULE_MAX, &c->schedule) < 0 ||
        text_take(req, body, "timezone", ZONE_NAME_MAX, &c->timezone) < 0 ||
        text_take(req, body, "on_run_completed", SCHEDULE_MAX, &c->on_run_completed) < 0 ||
        end_take(req, body, &c->end_us) < 0 || metadata_take(req, body, &c->metadata) < 0)
        return -1;
    if (!c->schedule)
        return api_unprocessable(req, "'schedule' is missing");
    if (!str_eq(c->on_run_completed, "delete") && !str_eq(c->on_run_completed, "keep"))
        return api_unprocessable(req, "'on_run_completed' is delete or keep");
    if (enabled && !yyjson_is_null(enabled) && !yyjson_is_bool(enabled))
        return api_unprocessable(req, "'enabled' has to be true or false");
    if (yyjson_is_bool(enabled))
        c->enabled = yyjson_get_bool(enabled);
    if (times_check(req, c) < 0)
        return -1;
    c->next_us = cron_next(c, timestamp_now());
    if (c->next_us == 0)
        return api_unprocessable(req, "the schedule never comes");
    return 0;
}

/* ---- routes ---- */

static void cron_reply(struct http_request *req, const char *id)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    struct store_cron c = {};
    struct error error;

    if (store_cron_get(api_of(req)->store, http_principal(req), id, http_arena(req), &c, &error) <
        0) {
        api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, cron_format(doc, &c));
    api_reply_doc(req, 200, owned);
}

/* What is there can be looked at and removed in any case; nothing is planned that would not come.
 */
static int setting_check(struct http_request *req)
{
    struct error error;

    if (api_of(req)->settings->crons)
        return 0;
    error_set(&error, ERR_DENIED, "crons are off on this server; its setting is CRONS");
    return api_fail(req, &error);
}

static int room_check(struct http_request *req)
{
    const struct store_cron_filter all = {.enabled = -1};
    struct store_page page = {.limit = 1};
    struct error error;
    int64_t total = 0;

    if (store_cron_search(api_of(req)->store, http_principal(req), &all, &page, http_arena(req),
                          NULL, NULL, &total, &error) < 0)
        return api_fail(req, &error);
    if (total < OWNER_MAX)
        return 0;
    error_set(&error, ERR_LIMIT, "there are %d crons already", OWNER_MAX);
    return api_fail(req, &error);
}

static void cron_create(struct http_request *req, const char *thread_id)
{
    struct store_cron c = {.owner = http_principal(req),
                           .thread_id = thread_id,
                           .on_run_completed = "delete",
                           .metadata = "{}",
                           .enabled = true};
    char id[UUID_LEN + 1];
    struct error error;
    yyjson_val *body;

    if (setting_check(req) < 0 || api_body(req, &body) < 0 || members_take(req, body, &c) < 0 ||
        payload_make(req, body, NULL, &c) < 0 || room_check(req) < 0)
        return;
    c.id = id;
    if (uuid_v4(id, &error) < 0 || store_cron_put(api_of(req)->store, &c, &error) < 0)
        api_fail(req, &error);
    else
        cron_reply(req, id);
}

static void on_create(struct http_request *req)
{
    cron_create(req, NULL);
}

static void on_create_on_thread(struct http_request *req)
{
    const char *thread_id = api_thread_id(req);

    if (thread_id)
        cron_create(req, thread_id);
}

static void on_update(struct http_request *req)
{
    const char *id = api_uuid(req, "cron_id");
    auto_json yyjson_doc *stored = NULL;
    struct store_cron c = {};
    struct error error;
    yyjson_val *body;

    if (!id || setting_check(req) < 0 || api_body(req, &body) < 0)
        return;
    if (store_cron_get(api_of(req)->store, http_principal(req), id, http_arena(req), &c, &error) <
            0 ||
        json_parse(c.payload, strlen(c.payload), &stored, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    if (members_take(req, body, &c) < 0 ||
        payload_make(req, body, yyjson_doc_get_root(stored), &c) < 0)
        return;
    if (store_cron_put(api_of(req)->store, &c, &error) < 0)
        api_fail(req, &error);
    else
        cron_reply(req, id);
}

static void on_delete(struct http_request *req)
{
    const char *id = api_uuid(req, "cron_id");
    struct error error;

    if (!id)
        return;
    if (store_cron_delete(api_of(req)->store, http_principal(req), id, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_empty(req, 204);
}

static int filter_parse(struct http_request *req, yyjson_val *body, struct store_cron_filter *ret)
{
    const char *assistant = json_get_str(body, "assistant_id", NULL);
    yyjson_val *enabled = yyjson_obj_get(body, "enabled");

    *ret = (struct store_cron_filter){.thread_id = json_get_str(body, "thread_id", NULL),
                                      .enabled =
                                          yyjson_is_bool(enabled) ? yyjson_get_bool(enabled) : -1};
    if (yyjson_obj_size(yyjson_obj_get(body, "metadata")) > 0)
        return api_unprocessable(req, "crons are not searched by 'metadata'");
    if (!assistant)
        return 0;
    ret->assistant_id = api_assistant_id(assistant);
    if (!ret->assistant_id)
        ret->assistant_id = assistant;
    return 0;
}

static void on_search(struct http_request *req)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    struct store_cron_filter filter;
    struct store_cron *list = NULL;
    struct store_page page;
    struct error error;
    yyjson_val *body;
    size_t count = 0;
    int64_t total = 0;

    if (api_body(req, &body) < 0 || api_page(req, body, CRONS_LIMIT, CRONS_LIMIT_MAX, &page) < 0 ||
        filter_parse(req, body, &filter) < 0)
        return;
    if (store_cron_search(api_of(req)->store, http_principal(req), &filter, &page, http_arena(req),
                          &list, &count, &total, &error) < 0) {
        if (error.code == ERR_INVALID)
            api_unprocessable(req, "%s", error.text);
        else
            api_fail(req, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(root, cron_format(doc, &list[i]));
    api_pagination(req, &page, count, total);
    api_reply_doc(req, 200, owned);
}

static void on_count(struct http_request *req)
{
    struct store_page page = {.limit = 1};
    struct store_cron_filter filter;
    struct error error;
    yyjson_val *body;
    int64_t total = 0;

    if (api_body(req, &body) < 0 || filter_parse(req, body, &filter) < 0)
        return;
    if (store_cron_search(api_of(req)->store, http_principal(req), &filter, &page, http_arena(req),
                          NULL, NULL, &total, &error) < 0)
        api_fail(req, &error);
    else
        api_reply_text(req, 200, arena_printf(http_arena(req), "%lld", (long long)total));
}

/* ---- when it is time ---- */

/* The cron's metadata, and which one it was. */
static const char *run_metadata(const struct store_cron *c, struct arena *arena)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_mut_doc *copy = NULL;
    auto_buf struct buf text;
    int r;

    buf_init(&text, MIB);
    if (json_parse(c->metadata, strlen(c->metadata), &doc, NULL) < 0 ||
        !(copy = yyjson_doc_mut_copy(doc, NULL)))
        return "{}";
    yyjson_mut_obj_put(yyjson_mut_doc_get_root(copy), yyjson_mut_str(copy, "cron_id"),
                       yyjson_mut_str(copy, c->id));
    r = json_mut_write(copy, &text, NULL);
    yyjson_mut_doc_free(copy);
    return r < 0 ? "{}" : arena_memdup(arena, buf_str(&text), text.len);
}

static const char *member_text(yyjson_val *object, const char *name, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, API_ANSWER_MAX);
    if (json_write(yyjson_obj_get(object, name), &text, NULL) < 0)
        return NULL;
    return arena_memdup(arena, buf_str(&text), text.len);
}

static int run_fill(const struct store_cron *c, yyjson_val *stored, struct arena *arena,
                    struct live_create *ret, struct error *reterr)
{
    struct store_run *run = &ret->new.run;
    char *id = arena_alloc(arena, UUID_LEN + 1), *fresh = arena_alloc(arena, UUID_LEN + 1);
    int r;

    if (!id || !fresh)
        return error_no_memory(reterr);
    r = uuid_v7(id, reterr);
    if (r == 0)
        r = uuid_v4(fresh, reterr);
    if (r < 0)
        return r;
    *run = (struct store_run){
        .id = id,
        .thread_id = c->thread_id ? c->thread_id : fresh,
        .owner = c->owner,
        .assistant_id = c->assistant_id,
        .metadata = run_metadata(c, arena),
        .kwargs = member_text(stored, STORED_KWARGS, arena),
        .multitask = json_get_str(stored, STORED_MULTITASK, "enqueue"),
        .temporary = !c->thread_id && !str_eq(c->on_run_completed, "keep"),
    };
    ret->new.create_thread = !c->thread_id;
    ret->new.thread_metadata =
        arena_printf(arena, "{\"graph_id\":\"%s\",\"assistant_id\":\"%s\"}",
                     json_get_str(stored, STORED_GRAPH, AGENT_GRAPH), c->assistant_id);
    ret->modes = (uint32_t)yyjson_get_uint(yyjson_obj_get(stored, STORED_MODES));
    return run->kwargs && run->metadata && ret->new.thread_metadata ? 0 : error_no_memory(reterr);
}

int cron_fire(struct api *api, const struct store_cron *c, struct arena *arena,
              struct error *reterr)
{
    auto_live_run struct live_run *run = NULL;
    auto_json yyjson_doc *stored = NULL;
    struct store_assistant a = {};
    struct live_create create = {};
    struct store_run row = {};
    int r = store_assistant_get(api->store, c->owner, c->assistant_id, arena, &a, reterr);

    if (r == 0)
        r = json_parse(c->payload, strlen(c->payload), &stored, reterr);
    if (r == 0)
        r = run_fill(c, yyjson_doc_get_root(stored), arena, &create, reterr);
    return r < 0 ? r : live_run_create(api->live, &create, arena, &row, &run, reterr);
}

const struct route_entry api_cron_routes[] = {
    {"POST", "/runs/crons", "Plan runs, each on a thread of its own", on_create},
    {"POST", "/threads/{thread_id}/runs/crons", "Plan runs on a thread", on_create_on_thread},
    {"POST", "/runs/crons/search", "Search crons", on_search},
    {"POST", "/runs/crons/count", "Count crons", on_count},
    {"PATCH", "/runs/crons/{cron_id}", "Change a cron", on_update},
    {"DELETE", "/runs/crons/{cron_id}", "Delete a cron", on_delete},
    {},
};
