/* SPDX-License-Identifier: MIT */
/*
 * The schema is read as it stands, there is no compiled form: it is small, and a call looks at it
 * once. Every value that is looked at counts as a step, so that neither nested alternatives nor a
 * reference to itself can make the work larger than the input by more than a constant.
 */
#include "tools/schema.h"

#include "base/str.h"

#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum {
    NUMBER_LEN = 64,        /* of a number in a string */
    INPUT_CHARS = 200,      /* of a text that is quoted in an error */
    INPUT_VALUES = 32,      /* of a value that is quoted whole */
    MESSAGE_LEN = 512,      /* of an error */
    PATTERN_INPUT_MAX = 256 /* of a text that is matched with a pattern */
};

struct schema {
    yyjson_doc *doc;
};

/* The way from the root to the value that is looked at. */
struct place {
    const struct place *up;
    yyjson_val *key; /* or NULL */
    size_t index;
};

struct check {
    yyjson_val *root;        /* of the schema, for its $defs */
    yyjson_mut_doc *doc;     /* of the copy and the errors */
    yyjson_mut_val *details; /* the list that errors go to */
    size_t errors;           /* found, listed or not */
    size_t steps;
    unsigned depth;
};

/* ---- errors ---- */

/* The first characters of a text; a cut is never inside one. */
static size_t text_head(const char *text, size_t len, size_t chars)
{
    size_t at = 0;

    while (at < len && chars--) {
        at++;
        while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
            at++;
    }
    return at;
}

static void loc_add(struct check *c, yyjson_mut_val *list, const struct place *at)
{
    const char *key = yyjson_get_str(at->key);

    if (!at->up)
        return;
    loc_add(c, list, at->up);
    if (key)
        yyjson_mut_arr_add_strncpy(c->doc, list, key,
                                   text_head(key, yyjson_get_len(at->key), INPUT_CHARS));
    else
        yyjson_mut_arr_add_uint(c->doc, list, at->index);
}

/* Whether a value is short enough to be quoted whole; counts down. */
static bool is_short(yyjson_val *v, size_t *values, size_t *chars)
{
    yyjson_val *item, *key;
    yyjson_arr_iter items;
    yyjson_obj_iter members;

    if ((*values)-- == 0)
        return false;
    if (yyjson_is_str(v)) {
        if (yyjson_get_len(v) > *chars)
            return false;
        *chars -= yyjson_get_len(v);
    }
    yyjson_arr_iter_init(v, &items);
    while ((item = yyjson_arr_iter_next(&items))) {
        if (!is_short(item, values, chars))
            return false;
    }
    yyjson_obj_iter_init(v, &members);
    while ((key = yyjson_obj_iter_next(&members))) {
        if (!is_short(key, values, chars) || !is_short(yyjson_obj_iter_get_val(key), values, chars))
            return false;
    }
    return true;
}

/* What the caller gave, or what it was when that is long. */
static yyjson_mut_val *input_quote(struct check *c, yyjson_val *v)
{
    size_t values = INPUT_VALUES, chars = INPUT_CHARS;
    char note[INPUT_CHARS * 4 + 64];

    if (!v)
        return yyjson_mut_null(c->doc);
    if (is_short(v, &values, &chars))
        return yyjson_val_mut_copy(c->doc, v);
    if (yyjson_is_str(v))
        snprintf(note, sizeof(note), "%.*s... (%zu bytes)",
                 (int)text_head(yyjson_get_str(v), yyjson_get_len(v), INPUT_CHARS),
                 yyjson_get_str(v), yyjson_get_len(v));
    else
        snprintf(note, sizeof(note), "(%s of %zu)", yyjson_is_arr(v) ? "a list" : "an object",
                 yyjson_is_arr(v) ? yyjson_arr_size(v) : yyjson_obj_size(v));
    return yyjson_mut_strcpy(c->doc, note);
}

/* Adds an error; NULL when it is not listed any more, so that nothing is added to it. */
static yyjson_mut_val *detail_add(struct check *c, const struct place *at, yyjson_val *input,
                                  const char *type, const char *fmt, ...) printf_like(5, 6);

static yyjson_mut_val *detail_add(struct check *c, const struct place *at, yyjson_val *input,
                                  const char *type, const char *fmt, ...)
{
    yyjson_mut_val *detail, *loc;
    char text[MESSAGE_LEN];
    va_list args;

    if (c->errors++ >= SCHEMA_ERRORS_MAX)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    detail = yyjson_mut_arr_add_obj(c->doc, c->details);
    yyjson_mut_obj_add_str(c->doc, detail, "type", type);
    loc = yyjson_mut_obj_add_arr(c->doc, detail, "loc");
    loc_add(c, loc, at);
    /* A text that was cut may end inside a character. */
    yyjson_mut_obj_add_strncpy(c->doc, detail, "msg", text,
                               text_head(text, strlen(text), sizeof(text)));
    yyjson_mut_obj_add_val(c->doc, detail, "input", input_quote(c, input));
    return detail;
}

static yyjson_mut_val *ctx_get(struct check *c, yyjson_mut_val *detail)
{
    yyjson_mut_val *ctx = yyjson_mut_obj_get(detail, "ctx");

    return ctx ? ctx : yyjson_mut_obj_add_obj(c->doc, detail, "ctx");
}

static void ctx_int(struct check *c, yyjson_mut_val *detail, const char *key, int64_t value)
{
    if (detail)
        yyjson_mut_obj_add_sint(c->doc, ctx_get(c, detail), key, value);
}

static void ctx_text(struct check *c, yyjson_mut_val *detail, const char *key, const char *value)
{
    if (detail)
        yyjson_mut_obj_add_strcpy(c->doc, ctx_get(c, detail), key, value);
}

/* ---- numbers in strings ---- */

/* A short string without blanks around it; false when it cannot be a number. */
static bool number_text(yyjson_val *v, char ret[NUMBER_LEN])
{
    const char *s = yyjson_get_str(v);
    size_t len = yyjson_get_len(v);

    while (len && strchr(" \t\r\n", *s) && *s)
        s++, len--;
    while (len && s[len - 1] && strchr(" \t\r\n", s[len - 1]))
        len--;
    if (len == 0 || len >= NUMBER_LEN || memchr(s, 0, len))
        return false;
    memcpy(ret, s, len);
    ret[len] = 0;
    return true;
}

static bool integer_text_parse(yyjson_val *v, int64_t *ret)
{
    char text[NUMBER_LEN], *digits = text, *dot;

    if (!number_text(v, text))
        return false;
    dot = strchr(text, '.');
    if (dot && dot[1] && strspn(dot + 1, "0") == strlen(dot + 1))
        *dot = 0;
    if (*digits == '+' && digits[1] != '-')
        digits++;
    return str_parse_int(digits, INT64_MIN, INT64_MAX, ret) == 0;
}

static bool real_text_parse(yyjson_val *v, double *ret)
{
    char text[NUMBER_LEN], *end;

    if (!number_text(v, text) || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    *ret = strtod(text, &end);
    return *end == 0 && isfinite(*ret);
}

/* ---- conversions, one per type; NULL: an error was added ---- */

static yyjson_mut_val *string_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    detail_add(c, at, v, "string_type", "Input should be a valid string");
    return NULL;
}

static yyjson_mut_val *integer_from_real(struct check *c, yyjson_val *v, const struct place *at)
{
    double d = yyjson_get_real(v);

    /* The largest whole numbers that a double tells apart. */
    if (d == trunc(d) && fabs(d) <= 9007199254740992.0)
        return yyjson_mut_sint(c->doc, (int64_t)d);
    detail_add(c, at, v, "int_from_float",
               "Input should be a valid integer, got a number with a fractional part");
    return NULL;
}

static yyjson_mut_val *integer_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    int64_t n;

    if (yyjson_is_real(v))
        return integer_from_real(c, v, at);
    if (yyjson_is_str(v) && integer_text_parse(v, &n))
        return yyjson_mut_sint(c->doc, n);
    if (yyjson_is_str(v))
        detail_add(c, at, v, "int_parsing",
                   "Input should be a valid integer, unable to parse string as an integer");
    else
        detail_add(c, at, v, "int_type", "Input should be a valid integer");
    return NULL;
}

static yyjson_mut_val *number_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    double d;

    if (yyjson_is_str(v) && real_text_parse(v, &d))
        return yyjson_mut_real(c->doc, d);
    if (yyjson_is_str(v))
        detail_add(c, at, v, "float_parsing",
                   "Input should be a valid number, unable to parse string as a number");
    else
        detail_add(c, at, v, "float_type", "Input should be a valid number");
    return NULL;
}

/* -1 when the value stands for neither. */
static int truth_of(yyjson_val *v)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes",
                                        "off",   "on",   "f", "t", "n",  "y"};

    if (yyjson_is_num(v))
        return yyjson_get_num(v) == 0 ? 0 : yyjson_get_num(v) == 1 ? 1 : -1;
    for (size_t i = 0; yyjson_is_str(v) && i < ARRAY_LEN(words); i++) {
        if (strlen(words[i]) == yyjson_get_len(v) &&
            strncasecmp(words[i], yyjson_get_str(v), yyjson_get_len(v)) == 0)
            return (int)(i % 2);
    }
    return -1;
}

static yyjson_mut_val *boolean_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    int truth = truth_of(v);

    if (truth >= 0)
        return yyjson_mut_bool(c->doc, truth);
    if (yyjson_is_str(v) || yyjson_is_num(v))
        detail_add(c, at, v, "bool_parsing",
                   "Input should be a valid boolean, unable to interpret input");
    else
        detail_add(c, at, v, "bool_type", "Input should be a valid boolean");
    return NULL;
}

static yyjson_mut_val *array_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    detail_add(c, at, v, "list_type", "Input should be a valid list");
    return NULL;
}

static yyjson_mut_val *object_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    detail_add(c, at, v, "dict_type", "Input should be a valid dictionary");
    return NULL;
}

static yyjson_mut_val *null_convert(struct check *c, yyjson_val *v, const struct place *at)
{
    detail_add(c, at, v, "none_required", "Input should be None");
    return NULL;
}

/* ---- limits, one function per kind of value ---- */

static bool limit_get(yyjson_val *schema, const char *key, int64_t *ret)
{
    yyjson_val *limit = yyjson_obj_get(schema, key);

    if (!yyjson_is_int(limit) || (yyjson_is_uint(limit) && yyjson_get_uint(limit) > INT64_MAX))
        return false;
    *ret = yyjson_get_sint(limit);
    return true;
}

static size_t characters(const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static bool pattern_matches(const char *pattern, yyjson_val *v)
{
    regex_t compiled;
    bool matches;

    if (yyjson_get_len(v) > PATTERN_INPUT_MAX || strlen(yyjson_get_str(v)) != yyjson_get_len(v) ||
        regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    matches = regexec(&compiled, yyjson_get_str(v), 0, NULL, 0) == 0;
    regfree(&compiled);
    return matches;
}

static void string_limits(struct check *c, yyjson_val *schema, yyjson_val *v,
                          const struct place *at)
{
    const char *pattern = json_get_str(schema, "pattern", NULL);
    int64_t limit, n = (int64_t)characters(yyjson_get_str(v), yyjson_get_len(v));

    if (limit_get(schema, "minLength", &limit) && n < limit)
        ctx_int(c,
                detail_add(c, at, v, "string_too_short",
                           "String should have at least %lld character%s", (long long)limit,
                           limit == 1 ? "" : "s"),
                "min_length", limit);
    if (limit_get(schema, "maxLength", &limit) && n > limit)
        ctx_int(c,
                detail_add(c, at, v, "string_too_long",
                           "String should have at most %lld character%s", (long long)limit,
                           limit == 1 ? "" : "s"),
                "max_length", limit);
    if (pattern && !pattern_matches(pattern, v))
        ctx_text(c,
                 detail_add(c, at, v, "string_pattern_mismatch", "String should match pattern '%s'",
                            pattern),
                 "pattern", pattern);
}

static void number_limits(struct check *c, yyjson_val *schema, double n, yyjson_val *v,
                          const struct place *at)
{
    int64_t limit;

    if (limit_get(schema, "minimum", &limit) && n < (double)limit)
        ctx_int(c,
                detail_add(c, at, v, "greater_than_equal",
                           "Input should be greater than or equal to %lld", (long long)limit),
                "ge", limit);
    if (limit_get(schema, "maximum", &limit) && n > (double)limit)
        ctx_int(c,
                detail_add(c, at, v, "less_than_equal",
                           "Input should be less than or equal to %lld", (long long)limit),
                "le", limit);
}

/* Of a list or a dictionary; whether its items are worth a look. */
static bool size_limits(struct check *c, yyjson_val *schema, yyjson_val *v, const struct place *at)
{
    bool list = yyjson_is_arr(v);
    const char *name = list ? "List" : "Dictionary";
    int64_t limit, n = (int64_t)(list ? yyjson_arr_size(v) : yyjson_obj_size(v));
    yyjson_mut_val *detail;

    if (limit_get(schema, list ? "minItems" : "minProperties", &limit) && n < limit) {
        detail = detail_add(c, at, v, "too_short",
                            "%s should have at least %lld item%s after validation, not %lld", name,
                            (long long)limit, limit == 1 ? "" : "s", (long long)n);
        ctx_text(c, detail, "field_type", name);
        ctx_int(c, detail, "min_length", limit);
        ctx_int(c, detail, "actual_length", n);
    }
    if (!limit_get(schema, list ? "maxItems" : "maxProperties", &limit) || n <= limit)
        return true;
    detail = detail_add(c, at, v, "too_long",
                        "%s should have at most %lld item%s after validation, not %lld", name,
                        (long long)limit, limit == 1 ? "" : "s", (long long)n);
    ctx_text(c, detail, "field_type", name);
    ctx_int(c, detail, "max_length", limit);
    ctx_int(c, detail, "actual_length", n);
    return false;
}

/* ---- values ---- */

static yyjson_mut_val *value_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                   const struct place *at);

/* A string of the input: it lives until the copy is finished. */
static yyjson_mut_val *string_copy(struct check *c, yyjson_val *v)
{
    return yyjson_mut_strn(c->doc, yyjson_get_str(v), yyjson_get_len(v));
}

static yyjson_mut_val *array_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                   const struct place *at)
{
    yyjson_val *items = yyjson_obj_get(schema, "items"), *item;
    yyjson_mut_val *ret = yyjson_mut_arr(c->doc);
    struct place below = {.up = at};
    yyjson_arr_iter iter;

    if (!size_limits(c, schema, v, at))
        return NULL;
    yyjson_arr_iter_init(v, &iter);
    while ((item = yyjson_arr_iter_next(&iter))) {
        yyjson_mut_arr_append(ret, value_check(c, items, item, &below));
        below.index++;
    }
    return ret;
}

static bool is_required(yyjson_val *schema, yyjson_val *key)
{
    yyjson_val *item;
    yyjson_arr_iter iter;

    yyjson_arr_iter_init(yyjson_obj_get(schema, "required"), &iter);
    while ((item = yyjson_arr_iter_next(&iter))) {
        if (yyjson_equals(item, key))
            return true;
    }
    return false;
}

static yyjson_val *member_get(yyjson_val *object, yyjson_val *key)
{
    return yyjson_obj_getn(object, yyjson_get_str(key), yyjson_get_len(key));
}

/* Those that the schema names, in its order. */
static void members_known(struct check *c, yyjson_val *schema, yyjson_val *v,
                          const struct place *at, yyjson_mut_val *ret)
{
    yyjson_val *key;
    yyjson_obj_iter iter;

    yyjson_obj_iter_init(yyjson_obj_get(schema, "properties"), &iter);
    while ((key = yyjson_obj_iter_next(&iter))) {
        yyjson_val *rule = yyjson_obj_iter_get_val(key), *member = member_get(v, key);
        yyjson_val *fallback = yyjson_obj_get(rule, "default");
        const struct place below = {.up = at, .key = key};

        c->steps += yyjson_obj_size(v);
        if (member)
            yyjson_mut_obj_add(ret, string_copy(c, key), value_check(c, rule, member, &below));
        else if (is_required(schema, key))
            detail_add(c, &below, v, "missing", "Field required");
        else if (fallback)
            yyjson_mut_obj_add(ret, string_copy(c, key), yyjson_val_mut_copy(c->doc, fallback));
    }
}

/* The others, where the schema has a rule for them. Of a name that is there twice the last counts.
 */
static void members_other(struct check *c, yyjson_val *schema, yyjson_val *v,
                          const struct place *at, yyjson_mut_val *ret)
{
    yyjson_val *rule = yyjson_obj_get(schema, "additionalProperties"), *key;
    yyjson_val *known = yyjson_obj_get(schema, "properties");
    yyjson_obj_iter iter;

    yyjson_obj_iter_init(yyjson_is_obj(rule) || yyjson_is_false(rule) ? v : NULL, &iter);
    while ((key = yyjson_obj_iter_next(&iter))) {
        const struct place below = {.up = at, .key = key};
        yyjson_val *member = yyjson_obj_iter_get_val(key);

        c->steps += yyjson_obj_size(known) + yyjson_mut_obj_size(ret);
        if (member_get(known, key))
            continue;
        if (yyjson_is_obj(rule))
            yyjson_mut_obj_put(ret, string_copy(c, key), value_check(c, rule, member, &below));
        else
            detail_add(c, &below, member, "extra_forbidden", "Extra inputs are not permitted");
    }
}

/* Names that are required without being described: in alternatives. */
static void members_required(struct check *c, yyjson_val *schema, yyjson_val *v,
                             const struct place *at)
{
    yyjson_val *known = yyjson_obj_get(schema, "properties"), *key;
    size_t i, max;

    yyjson_arr_foreach(yyjson_obj_get(schema, "required"), i, max, key)
    {
        const struct place below = {.up = at, .key = key};

        c->steps += yyjson_obj_size(known) + yyjson_obj_size(v);
        if (yyjson_is_str(key) && !member_get(known, key) && !member_get(v, key))
            detail_add(c, &below, v, "missing", "Field required");
    }
}

static yyjson_mut_val *object_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                    const struct place *at)
{
    yyjson_mut_val *ret = yyjson_mut_obj(c->doc);

    if (!size_limits(c, schema, v, at))
        return NULL;
    members_known(c, schema, v, at, ret);
    members_required(c, schema, v, at);
    members_other(c, schema, v, at, ret);
    return ret;
}

/* ---- types ---- */

static bool is_whole(yyjson_val *v)
{
    return yyjson_is_int(v);
}

struct type_entry {
    const char *name;
    bool (*is)(yyjson_val *v);
    yyjson_mut_val *(*convert)(struct check *c, yyjson_val *v, const struct place *at);
};

/* yyjson's own are inline, and may be macros one day. */
static bool is_string(yyjson_val *v)
{
    return yyjson_is_str(v);
}
static bool is_number(yyjson_val *v)
{
    return yyjson_is_num(v);
}
static bool is_boolean(yyjson_val *v)
{
    return yyjson_is_bool(v);
}
static bool is_array(yyjson_val *v)
{
    return yyjson_is_arr(v);
}
static bool is_object(yyjson_val *v)
{
    return yyjson_is_obj(v);
}
static bool is_null(yyjson_val *v)
{
    return yyjson_is_null(v);
}

static const struct type_entry types[] = {
    {"string", is_string, string_convert}, {"integer", is_whole, integer_convert},
    {"number", is_number, number_convert}, {"boolean", is_boolean, boolean_convert},
    {"array", is_array, array_convert},    {"object", is_object, object_convert},
    {"null", is_null, null_convert},
};

static const struct type_entry *type_find(yyjson_val *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (yyjson_equals_str(name, types[i].name))
            return &types[i];
    }
    return NULL;
}

/*
 * The type that the value has or is to be converted to: of several the one that it has, else the
 * first. NULL: any will do.
 */
static const struct type_entry *type_choose(yyjson_val *names, yyjson_val *v)
{
    const struct type_entry *first = NULL;
    yyjson_arr_iter iter;
    yyjson_val *name;

    if (!yyjson_is_arr(names))
        return type_find(names);
    yyjson_arr_iter_init(names, &iter);
    while ((name = yyjson_arr_iter_next(&iter))) {
        const struct type_entry *type = type_find(name);

        if (type && type->is(v))
            return type;
        if (!first)
            first = type;
    }
    return first;
}

/* ---- enum, anyOf, $ref ---- */

/* "'a', 'b' or 'c'", as pydantic says it. */
static void choices_format(yyjson_val *choices, char *ret, size_t size)
{
    size_t i, max, named = 0, used = 0;
    yyjson_val *choice;
    const char *text;

    *ret = 0;
    yyjson_arr_foreach(choices, i, max, choice)
    {
        named += yyjson_is_str(choice);
    }
    yyjson_arr_foreach(choices, i, max, choice)
    {
        text = yyjson_get_str(choice);
        if (!text || used >= size)
            continue;
        named--;
        used += (size_t)snprintf(ret + used, size - used, "%s'%s'",
                                 used == 0 ? ""
                                 : named   ? ", "
                                           : " or ",
                                 text);
    }
}

static yyjson_mut_val *enum_check(struct check *c, yyjson_val *choices, yyjson_val *v,
                                  const struct place *at)
{
    char expected[MESSAGE_LEN / 2];
    yyjson_val *choice;
    size_t i, max;

    yyjson_arr_foreach(choices, i, max, choice)
    {
        if (yyjson_equals(choice, v))
            return yyjson_val_mut_copy(c->doc, v);
    }
    choices_format(choices, expected, sizeof(expected));
    ctx_text(c, detail_add(c, at, v, "enum", "Input should be %s", expected), "expected", expected);
    return NULL;
}

/* The value as the first alternative that takes it makes it; the errors of the others are dropped.
 */
static yyjson_mut_val *any_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                 const struct place *at)
{
    const char *why = json_get_str(schema, "description", "Input fits none of the alternatives");
    yyjson_mut_val *details = c->details, *ret;
    size_t errors = c->errors, i, max;
    yyjson_val *branch;

    yyjson_arr_foreach(yyjson_obj_get(schema, "anyOf"), i, max, branch)
    {
        c->details = yyjson_mut_arr(c->doc);
        c->errors = 0;
        ret = value_check(c, branch, v, at);
        if (c->errors == 0) {
            c->details = details;
            c->errors = errors;
            return ret;
        }
    }
    c->details = details;
    c->errors = errors;
    ctx_text(c, detail_add(c, at, v, "value_error", "Value error, %s", why), "error", why);
    return NULL;
}

/* An unknown target is no schema, and takes nothing. */
static yyjson_val *ref_follow(struct check *c, const char *ref)
{
    static const char start[] = "#/$defs/";

    if (!str_starts(ref, start))
        return NULL;
    return yyjson_obj_get(yyjson_obj_get(c->root, "$defs"), ref + strlen(start));
}

static yyjson_mut_val *typed_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                   const struct place *at)
{
    const struct type_entry *type = type_choose(yyjson_obj_get(schema, "type"), v);
    yyjson_mut_val *ret;

    if (type && !type->is(v)) {
        ret = type->convert(c, v, at);
        if (yyjson_mut_is_num(ret))
            number_limits(c, schema, yyjson_mut_get_num(ret), v, at);
        return ret;
    }
    if (yyjson_is_arr(v))
        return array_check(c, schema, v, at);
    if (yyjson_is_obj(v))
        return object_check(c, schema, v, at);
    if (yyjson_is_str(v)) {
        string_limits(c, schema, v, at);
        return string_copy(c, v);
    }
    if (yyjson_is_num(v))
        number_limits(c, schema, yyjson_get_num(v), v, at);
    return yyjson_val_mut_copy(c->doc, v);
}

static yyjson_mut_val *ref_check(struct check *c, const char *ref, yyjson_val *v,
                                 const struct place *at)
{
    yyjson_val *target = ref_follow(c, ref);

    if (target)
        return value_check(c, target, v, at);
    detail_add(c, at, v, "definition_error", "Schema '%.80s' is unknown", ref);
    return NULL;
}

/* Beside a type, alternatives only say more about it; and of a wrong value it is said once. */
static yyjson_mut_val *schema_apply(struct check *c, yyjson_val *schema, yyjson_val *v,
                                    const struct place *at)
{
    const char *ref = json_get_str(schema, "$ref", NULL);
    yyjson_val *choices = yyjson_obj_get(schema, "enum");
    bool any = yyjson_obj_get(schema, "anyOf");
    size_t errors = c->errors;
    yyjson_mut_val *ret;

    if (ref)
        return ref_check(c, ref, v, at);
    if (choices)
        return enum_check(c, choices, v, at);
    if (any && !yyjson_obj_get(schema, "type"))
        return any_check(c, schema, v, at);
    ret = typed_check(c, schema, v, at);
    if (any && c->errors == errors)
        any_check(c, schema, v, at);
    return ret;
}

static yyjson_mut_val *value_check(struct check *c, yyjson_val *schema, yyjson_val *v,
                                   const struct place *at)
{
    yyjson_mut_val *ret = NULL;

    if (c->depth >= SCHEMA_DEPTH_MAX || c->steps >= SCHEMA_STEPS_MAX) {
        detail_add(c, at, v, "recursion_loop", "Input is nested too deeply or is too large");
        return NULL;
    }
    c->steps++;
    c->depth++;
    if (!schema || yyjson_is_true(schema))
        ret = typed_check(c, NULL, v, at);
    else if (yyjson_is_obj(schema))
        ret = schema_apply(c, schema, v, at);
    else
        detail_add(c, at, v, "value_error", "Value error, nothing is taken here");
    c->depth--;
    return ret;
}

/* ---- the whole ---- */

int schema_new(const char *text, size_t len, struct schema **ret, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    struct schema *s;
    int r = json_parse(text, len, &doc, reterr);

    if (r < 0)
        return r;
    if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
        return error_set(reterr, ERR_INVALID, "a schema is a JSON object");
    s = calloc(1, sizeof(*s));
    if (!s)
        return error_no_memory(reterr);
    s->doc = TAKE_PTR(doc);
    *ret = s;
    return 0;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    yyjson_doc_free(s->doc);
    free(s);
}

static int details_write(struct check *c, struct buf *details, struct error *reterr)
{
    int r;

    yyjson_mut_doc_set_root(c->doc, c->details);
    r = json_mut_write(c->doc, details, reterr);
    if (r < 0)
        return r;
    return error_set(reterr, ERR_INVALID, "%zu of the arguments %s wrong", c->errors,
                     c->errors == 1 ? "is" : "are");
}

int schema_check(const struct schema *s, yyjson_val *value, yyjson_doc **ret, struct buf *details,
                 struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json yyjson_doc *empty = yyjson_read("{}", 2, 0);
    struct check c = {.root = yyjson_doc_get_root(s->doc), .doc = doc};
    yyjson_mut_val *copy;

    c.details = yyjson_mut_arr(doc);
    if (!c.details || !empty)
        return error_no_memory(reterr);
    copy = value_check(&c, c.root, value ? value : yyjson_doc_get_root(empty), &(struct place){});
    if (c.errors)
        return details_write(&c, details, reterr);
    *ret = copy ? yyjson_mut_val_imut_copy(copy, NULL) : NULL;
    return *ret ? 0 : error_no_memory(reterr);
}
