/* SPDX-License-Identifier: MIT */
/*
 * Bodies and queries are checked by the schemas that describe them, before a handler looks for its
 * members. It is strict where the tools' own checker (src/tools/schema.c) is lax on purpose: a
 * program sends these, not a model. Nothing is copied.
 */
#include "api/describe.h"

#include "base/str.h"
#include "base/uuid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { DEPTH_MAX = 64, PLACE_MAX = 128, SCHEMAS_MAX = 96 };

struct shapes {
    yyjson_doc *docs[SCHEMAS_MAX]; /* in the order of api_schemas */
};

/* The way from the root to the value that is looked at. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an index */
    size_t index;
};

struct walk {
    const struct shapes *shapes;
    struct error *reterr;
    unsigned depth;
};

/* ---- complaints ---- */

static void place_format(const struct place *at, char *ret, size_t size)
{
    size_t len;

    if (!at->up)
        return;
    place_format(at->up, ret, size);
    len = strlen(ret);
    if (at->key)
        snprintf(ret + len, size - len, "%s%.40s", len ? "." : "", at->key);
    else
        snprintf(ret + len, size - len, "[%zu]", at->index);
}

static int complain(const struct walk *w, const struct place *at, const char *fmt, ...)
    printf_like(3, 4);

static int complain(const struct walk *w, const struct place *at, const char *fmt, ...)
{
    char place[PLACE_MAX] = "", text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    place_format(at, place, sizeof(place));
    if (!place[0])
        return error_set(w->reterr, ERR_INVALID, "the body %s", text);
    return error_set(w->reterr, ERR_INVALID, "'%s' %s", place, text);
}

/* ---- types ---- */

static bool is_whole(yyjson_val *v)
{
    double d = yyjson_get_num(v);

    return yyjson_is_int(v) || (yyjson_is_real(v) && d == trunc(d) && fabs(d) < 9e15);
}

static bool type_is(const char *name, yyjson_val *v)
{
    switch (name[0]) {
    case 's':
        return yyjson_is_str(v);
    case 'i':
        return is_whole(v);
    case 'n':
        return name[2] == 'l' ? yyjson_is_null(v) : yyjson_is_num(v);
    case 'b':
        return yyjson_is_bool(v);
    case 'a':
        return yyjson_is_arr(v);
    default:
        return yyjson_is_obj(v);
    }
}

static int type_check(const struct walk *w, yyjson_val *schema, yyjson_val *v,
                      const struct place *at)
{
    const char *about = json_get_str(schema, "description", NULL);
    yyjson_val *type = yyjson_obj_get(schema, "type"), *name;
    char names[80] = "";
    size_t i, max;

    if (yyjson_is_str(type))
        return type_is(yyjson_get_str(type), v)
                   ? 0
                   : complain(w, at, "has to be of the type %s%s%s", yyjson_get_str(type),
                              about ? ": " : "", about ? about : "");
    yyjson_arr_foreach(type, i, max, name)
    {
        size_t len = strlen(names);

        if (type_is(yyjson_get_str(name), v))
            return 0;
        snprintf(names + len, sizeof(names) - len, "%s%s", len ? " or " : "", yyjson_get_str(name));
    }
    return type ? complain(w, at, "has to be of the type %s", names) : 0;
}

static int choice_check(const struct walk *w, yyjson_val *schema, yyjson_val *v,
                        const struct place *at)
{
    yyjson_val *list = yyjson_obj_get(schema, "enum"), *choice;
    char names[200] = "";
    size_t i, max;

    yyjson_arr_foreach(list, i, max, choice)
    {
        size_t len = strlen(names);

        if (yyjson_equals(choice, v))
            return 0;
        if (yyjson_is_str(choice))
            snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
                     yyjson_get_str(choice));
    }
    return list ? complain(w, at, "has to be one of: %s", names) : 0;
}

/* ---- bounds ---- */

static int bound_check(const struct walk *w, yyjson_val *schema, const char *const names[2],
                       size_t n, const struct place *at)
{
    yyjson_val *min = yyjson_obj_get(schema, names[0]), *max = yyjson_obj_get(schema, names[1]);

    if (min && n < yyjson_get_uint(min))
        return complain(w, at, "is too short or has too few members");
    if (max && n > yyjson_get_uint(max))
        return complain(w, at, "is longer or has more members than %llu",
                        (unsigned long long)yyjson_get_uint(max));
    return 0;
}

static size_t characters(yyjson_val *v)
{
    const char *s = yyjson_get_str(v);
    size_t n = 0;

    for (size_t i = 0; i < yyjson_get_len(v); i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static int number_check(const struct walk *w, yyjson_val *schema, double n, const struct place *at)
{
    yyjson_val *min = yyjson_obj_get(schema, "minimum");
    yyjson_val *over = yyjson_obj_get(schema, "exclusiveMinimum");
    yyjson_val *max = yyjson_obj_get(schema, "maximum");

    if (min && n < yyjson_get_num(min))
        return complain(w, at, "has to be at least %.15g", yyjson_get_num(min));
    if (over && n <= yyjson_get_num(over))
        return complain(w, at, "has to be more than %.15g", yyjson_get_num(over));
    if (max && n > yyjson_get_num(max))
        return complain(w, at, "has to be at most %.15g", yyjson_get_num(max));
    return 0;
}

/* ---- what holds others ---- */

static int value_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at);

static int array_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    static const char *const bounds[] = {"minItems", "maxItems"};
    yyjson_val *items = yyjson_obj_get(schema, "items"), *item;
    struct place below = {.up = at};
    size_t max;
    int r = bound_check(w, schema, bounds, yyjson_arr_size(v), at);

    if (r < 0 || !items)
        return r;
    yyjson_arr_foreach(v, below.index, max, item)
    {
        r = value_check(w, items, item, &below);
        if (r < 0)
            return r;
    }
    return 0;
}

static int required_check(const struct walk *w, yyjson_val *schema, yyjson_val *v,
                          const struct place *at)
{
    yyjson_val *name;
    size_t i, max;

    yyjson_arr_foreach(yyjson_obj_get(schema, "required"), i, max, name)
    {
        const struct place below = {.up = at, .key = yyjson_get_str(name)};

        if (!yyjson_obj_get(v, below.key))
            return complain(w, &below, "is missing");
    }
    return 0;
}

static int object_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    static const char *const bounds[] = {"minProperties", "maxProperties"};
    yyjson_val *known = yyjson_obj_get(schema, "properties");
    yyjson_val *others = yyjson_obj_get(schema, "additionalProperties"), *key, *member;
    size_t i, max;
    int r = bound_check(w, schema, bounds, yyjson_obj_size(v), at);

    if (r == 0)
        r = required_check(w, schema, v, at);
    if (r < 0 || (!known && !others))
        return r;
    yyjson_obj_foreach(v, i, max, key, member)
    {
        const struct place below = {.up = at, .key = yyjson_get_str(key)};
        yyjson_val *rule = yyjson_obj_getn(known, yyjson_get_str(key), yyjson_get_len(key));

        r = value_check(w, rule ? rule : others, member, &below);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the whole ---- */

static int all_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    yyjson_val *one;
    size_t i, max;
    int r = 0;

    yyjson_arr_foreach(yyjson_obj_get(schema, "allOf"), i, max, one)
    {
        if (r == 0)
            r = value_check(w, one, v, at);
    }
    return r;
}

static int any_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    struct error *reterr = w->reterr, dropped;
    yyjson_val *branch, *list = yyjson_obj_get(schema, "anyOf");
    size_t i, max;
    int r = 0;

    w->reterr = &dropped;
    yyjson_arr_foreach(list, i, max, branch)
    {
        r = value_check(w, branch, v, at);
        if (r == 0)
            break;
    }
    w->reterr = reterr;
    return r < 0 ? complain(w, at, "has to be %s",
                            json_get_str(schema, "description", "as the API's description says"))
                 : 0;
}

static int schema_apply(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    static const char *const lengths[] = {"minLength", "maxLength"};
    int r = type_check(w, schema, v, at);

    if (r == 0)
        r = choice_check(w, schema, v, at);
    if (r == 0)
        r = all_check(w, schema, v, at);
    if (r == 0)
        r = any_check(w, schema, v, at);
    if (r < 0)
        return r;
    if (yyjson_is_str(v))
        return bound_check(w, schema, lengths, characters(v), at);
    if (yyjson_is_num(v))
        return number_check(w, schema, yyjson_get_num(v), at);
    if (yyjson_is_arr(v))
        return array_check(w, schema, v, at);
    return yyjson_is_obj(v) ? object_check(w, schema, v, at) : 0;
}

static int value_check(struct walk *w, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    const char *ref = json_get_str(schema, "$ref", NULL);
    int r;

    if (ref)
        schema = shapes_find(w->shapes, strrchr(ref, '/') + 1);
    if (!yyjson_is_obj(schema))
        return 0;
    if (w->depth == DEPTH_MAX)
        return complain(w, at, "is nested too deeply");
    w->depth++;
    r = schema_apply(w, schema, v, at);
    w->depth--;
    return r;
}

int shapes_check(const struct shapes *s, yyjson_val *schema, yyjson_val *value,
                 struct error *reterr)
{
    struct walk w = {.shapes = s, .reterr = reterr};

    return value_check(&w, schema, value, &(struct place){});
}

/* A text that stands for a value of the type. */
static int text_check(const struct walk *w, yyjson_val *schema, const char *type, const char *value,
                      const struct place *at)
{
    int64_t number;
    bool truth;

    if (str_eq(type, "integer"))
        return str_parse_int(value, INT64_MIN, INT64_MAX, &number) < 0
                   ? complain(w, at, "has to be a number")
                   : number_check(w, schema, (double)number, at);
    if (str_eq(type, "boolean") && str_parse_bool(value, &truth) < 0)
        return complain(w, at, "has to be true or false");
    if (str_eq(json_get_str(schema, "format", ""), "uuid") && !uuid_check(value))
        return complain(w, at, "has to be a UUID");
    return 0;
}

int shapes_check_text(yyjson_val *schema, const char *name, const char *value, struct error *reterr)
{
    const struct place root = {}, at = {.up = &root, .key = name};
    struct walk w = {.reterr = reterr};
    yyjson_val *choice, *list = yyjson_obj_get(schema, "enum"), *type;
    size_t i, max;
    int r = text_check(&w, schema, json_get_str(schema, "type", ""), value, &at);

    yyjson_arr_foreach(yyjson_obj_get(schema, "type"), i, max, type)
    {
        r = text_check(&w, schema, yyjson_get_str(type), value, &at);
        if (r == 0)
            break;
    }
    yyjson_arr_foreach(list, i, max, choice)
    {
        if (yyjson_equals_str(choice, value))
            return 0;
    }
    return r < 0 || !list ? r : complain(&w, &at, "has a value that is not known");
}

/* ---- the schemas ---- */

int shapes_new(struct shapes **ret, struct error *reterr)
{
    struct shapes *s = calloc(1, sizeof(*s));
    int r = 0;

    if (!s)
        return error_no_memory(reterr);
    for (size_t i = 0; r == 0 && i < SCHEMAS_MAX && api_schemas[i].name; i++)
        r = json_parse(api_schemas[i].text, strlen(api_schemas[i].text), &s->docs[i], reterr);
    if (r < 0) {
        shapes_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void shapes_free(struct shapes *s)
{
    for (size_t i = 0; s && i < SCHEMAS_MAX; i++)
        yyjson_doc_free(s->docs[i]);
    free(s);
}

yyjson_val *shapes_find(const struct shapes *s, const char *name)
{
    for (size_t i = 0; i < SCHEMAS_MAX && api_schemas[i].name; i++) {
        if (str_eq(api_schemas[i].name, name))
            return yyjson_doc_get_root(s->docs[i]);
    }
    return NULL;
}

/* ---- requests ---- */

static const struct api_operation *operation_of(const struct http_request *req)
{
    const struct route_entry *route = http_route(req);

    return route ? api_operation_find(route->method, route->path) : NULL;
}

static int parameter_check(struct http_request *req, const struct api_parameter *p)
{
    auto_json yyjson_doc *schema = NULL;
    const char *value;
    struct error error;

    if (p->required && !http_query(req, p->name))
        return api_unprocessable(req, "the query's '%s' is missing", p->name);
    if (json_parse(p->text, strlen(p->text), &schema, NULL) < 0)
        return 0;
    for (size_t i = 0; (value = http_query_at(req, p->name, i)); i++) {
        if (shapes_check_text(yyjson_doc_get_root(schema), p->name, value, &error) < 0)
            return api_unprocessable(req, "%s", error.text);
    }
    return 0;
}

int api_query_check(struct http_request *req)
{
    const struct api_operation *o = operation_of(req);
    const char *names = o ? o->query : NULL, *name;
    size_t len;

    while ((name = api_name_next(&names, &len))) {
        const struct api_parameter *p = api_parameter_find(api_query_parameters, name, len);

        if (p && parameter_check(req, p) < 0)
            return -1;
    }
    return 0;
}

static int one_check(struct http_request *req, const struct api_operation *o, yyjson_val *value)
{
    const struct shapes *shapes = api_of(req)->shapes;
    struct error error;

    if (shapes_check(shapes, shapes_find(shapes, o->body), value, &error) == 0)
        return 0;
    http_fail(req, o->flags & OPERATION_ENVELOPE ? 400 : 422, &error);
    return -1;
}

int api_body_check(struct http_request *req, yyjson_val *body)
{
    const struct api_operation *o = operation_of(req);
    yyjson_val *one;
    size_t i, max;

    if (!o || !o->body || (o->flags & OPERATION_FORM))
        return 0;
    if (!(o->flags & OPERATION_ARRAY))
        return one_check(req, o, body);
    yyjson_arr_foreach(body, i, max, one)
    {
        if (one_check(req, o, one) < 0)
            return -1;
    }
    return 0;
}
