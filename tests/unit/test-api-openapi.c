/* SPDX-License-Identifier: MIT */
/* The API's description: that it holds everything that is served, and checks as it says. */
#include "api/describe.h"
#include "base/str.h"
#include "lib/test.h"
#include "mcp/mcp.h"

static const struct route_entry *const tables[] = {
    api_system_routes, api_assistant_routes, api_thread_routes,  api_state_routes,
    api_run_routes,    api_event_routes,     api_item_routes,    api_file_routes,
    api_cron_routes,   api_settings_routes,  api_session_routes, mcp_http_routes,
};

static bool schema_is_known(const char *name)
{
    for (const struct api_schema *s = api_schemas; s->name; s++) {
        if (str_eq(s->name, name))
            return true;
    }
    return false;
}

static bool route_is_served(const struct api_operation *o)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (const struct route_entry *e = tables[i]; e->path; e++) {
            if (str_eq(e->path, o->path) && str_eq(e->method, o->method))
                return true;
        }
    }
    return false;
}

TEST(every_route_is_described)
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (const struct route_entry *e = tables[i]; e->path; e++) {
            if (!api_operation_find(e->method, e->path))
                test_fail(__FILE__, __LINE__, "%s %s is not described", e->method, e->path);
            assert_true(e->summary && *e->summary);
            count++;
        }
    }
    assert_true(count > 70);
}

TEST(every_operation_is_served_and_whole)
{
    for (const struct api_operation *o = api_operations; o->path; o++) {
        const char *names = o->query, *name;
        size_t len;

        if (!route_is_served(o))
            test_fail(__FILE__, __LINE__, "%s %s is not served", o->method, o->path);
        if (o->body && !schema_is_known(o->body))
            test_fail(__FILE__, __LINE__, "%s %s: no schema %s", o->method, o->path, o->body);
        if (o->reply && !schema_is_known(o->reply))
            test_fail(__FILE__, __LINE__, "%s %s: no schema %s", o->method, o->path, o->reply);
        assert_true((o->kind == REPLY_JSON || o->kind == REPLY_LIST || o->kind == REPLY_RPC) ==
                    (o->reply != NULL));
        while ((name = api_name_next(&names, &len)))
            assert_not_null(api_parameter_find(api_query_parameters, name, len));
        for (const char *at = strchr(o->path, '{'); at; at = strchr(at + 1, '{'))
            assert_not_null(api_parameter_find(api_path_parameters, at + 1, strcspn(at + 1, "}.")));
    }
}

static void refs_check(yyjson_val *v, const char *where)
{
    const char *ref = json_get_str(v, "$ref", NULL);
    yyjson_val *key, *member;
    size_t i, max;

    if (ref &&
        (!str_starts(ref, "#/components/schemas/") || !schema_is_known(strrchr(ref, '/') + 1)))
        test_fail(__FILE__, __LINE__, "%s: %s leads nowhere", where, ref);
    yyjson_arr_foreach(v, i, max, member) refs_check(member, where);
    yyjson_obj_foreach(v, i, max, key, member) refs_check(member, where);
}

TEST(every_reference_resolves)
{
    for (const struct api_schema *s = api_schemas; s->name; s++) {
        auto_json yyjson_doc *doc = NULL;
        struct error err;

        assert_ok(json_parse(s->text, strlen(s->text), &doc, &err), err);
        assert_ok(json_keys_check(doc, &err), err);
        assert_true(yyjson_is_obj(yyjson_doc_get_root(doc)));
        refs_check(yyjson_doc_get_root(doc), s->name);
    }
}

TEST(no_schema_stands_twice_and_parameters_are_schemas)
{
    const struct api_parameter *const lists[] = {api_query_parameters, api_path_parameters};

    for (const struct api_schema *s = api_schemas; s->name; s++) {
        for (const struct api_schema *other = s + 1; other->name; other++)
            assert_false(str_eq(s->name, other->name));
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        for (const struct api_parameter *p = lists[i]; p->name; p++) {
            auto_json yyjson_doc *doc = NULL;
            struct error err;

            assert_ok(json_parse(p->text, strlen(p->text), &doc, &err), err);
            assert_true(*p->about);
        }
    }
}

static const struct body_case {
    const char *schema, *body, *problem; /* NULL: it fits */
} bodies[] = {
    {"ThreadSearch", "{}", NULL},
    {"ThreadSearch", "{\"limit\": 5.0, \"unknown\": 1, \"status\": null}", NULL},
    {"ThreadSearch", "{\"limit\": 0}", "'limit' has to be at least 1"},
    {"ThreadSearch", "{\"limit\": 1001}", "'limit' has to be at most 1000"},
    {"ThreadSearch", "{\"limit\": \"5\"}", "'limit' has to be of the type integer or null"},
    {"ThreadSearch", "{\"limit\": 1.5}", "'limit' has to be of the type integer or null"},
    {"ThreadSearch", "{\"ids\": [\"a\", 1]}", "'ids[1]' has to be of the type string"},
    {"ThreadSearch", "{\"status\": \"x\"}",
     "'status' has to be one of: idle, busy, interrupted, error"},
    {"ThreadSearch", "{\"extract\": {\"a\": 1}}", "'extract.a' has to be of the type string"},
    {"ThreadSearch", "[]", "the body has to be of the type object"},
    {"ThreadCreate", "{\"ttl\": 5}", NULL},
    {"ThreadCreate", "{\"ttl\": {\"ttl\": 5, \"strategy\": \"delete\"}}", NULL},
    {"ThreadCreate", "{\"ttl\": {}}", "'ttl' has to be minutes, or an object with them"},
    {"ThreadCreate", "{\"ttl\": 0}", "'ttl' has to be minutes, or an object with them"},
    {"ThreadCreate", "{\"thread_id\": \"\"}", "'thread_id' is too short or has too few members"},
    {"RunCreate", "{\"assistant_id\": \"agent\", \"input\": null, \"stream_mode\": \"values\"}",
     NULL},
    {"RunCreate", "{\"assistant_id\": \"agent\", \"stream_mode\": [\"values\", \"tools\"]}", NULL},
    {"RunCreate", "{\"assistant_id\": \"agent\", \"stream_mode\": [\"nothing\"]}",
     "'stream_mode' has to be a stream mode, or an array of them"},
    {"RunCreate", "{}", "'assistant_id' is missing"},
    {"RunCreate", "{\"assistant_id\": \"a\", \"webhook\": \"http://x\"}",
     "'webhook' has to be of the type null: Is not served"},
    {"RunCreateStateless", "{\"assistant_id\": \"a\", \"thread_id\": 1}",
     "'thread_id' has to be of the type string or null"},
    {"RunCreateStateless", "{\"thread_id\": \"a\"}", "'assistant_id' is missing"},
    {"RunsCancel", "{\"status\": \"all\"}", NULL},
    {"RunsCancel", "{\"thread_id\": \"a\"}",
     "the body has to be a status, or a thread and its runs"},
    {"ItemPut", "{\"namespace\": [\"a\", \"b\"], \"key\": \"k\", \"value\": {}}", NULL},
    {"ItemPut", "{\"namespace\": [\"\"], \"key\": \"k\", \"value\": {}}",
     "'namespace' has to be labels without dots, as an array or with dots between them"},
    {"EventStream", "{\"channels\": [\"values\"], \"namespaces\": [[\"a\"]]}", NULL},
    {"EventStream", "{\"channels\": []}", "'channels' is too short or has too few members"},
    {"EventStream", "{\"channels\": [\"values\"], \"namespaces\": [[1]]}",
     "'namespaces[0][0]' has to be of the type string"},
};

TEST(bodies_are_checked_by_their_schemas)
{
    struct shapes *shapes = NULL;
    struct error err;

    assert_ok(shapes_new(&shapes, &err), err);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        const struct body_case *c = &bodies[i];
        auto_json yyjson_doc *doc = NULL;
        int r;

        assert_ok(json_parse(c->body, strlen(c->body), &doc, &err), err);
        r = shapes_check(shapes, shapes_find(shapes, c->schema), yyjson_doc_get_root(doc), &err);
        if ((r < 0) != (c->problem != NULL))
            test_fail(__FILE__, __LINE__, "%s %s: %s", c->schema, c->body,
                      r < 0 ? err.text : "fits");
        if (r < 0)
            assert_str_eq(err.text, c->problem);
    }
    shapes_free(shapes);
}

TEST(queries_are_checked_by_their_schemas)
{
    static const struct {
        const char *name, *value;
        bool fits;
    } cases[] = {
        {"limit", "1", true},      {"limit", "1000", true}, {"limit", "0", false},
        {"limit", "x", false},     {"wait", "1", true},     {"wait", "true", true},
        {"wait", "2", false},      {"before", "x", false},  {"action", "cancel", true},
        {"action", "stop", false}, {"xray", "false", true}, {"xray", "3", true},
        {"xray", "-1", false},     {"xray", "deep", false}, {"path", "", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct api_parameter *p =
            api_parameter_find(api_query_parameters, cases[i].name, strlen(cases[i].name));
        auto_json yyjson_doc *doc = NULL;
        struct error err;
        int r;

        assert_not_null(p);
        assert_ok(json_parse(p->text, strlen(p->text), &doc, &err), err);
        r = shapes_check_text(yyjson_doc_get_root(doc), p->name, cases[i].value, &err);
        if ((r == 0) != cases[i].fits)
            test_fail(__FILE__, __LINE__, "%s=%s: %s", cases[i].name, cases[i].value,
                      r < 0 ? err.text : "fits");
    }
}
