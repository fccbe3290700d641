/* SPDX-License-Identifier: MIT */
/*
 * Runs entries of the fixture's tables. Questions go the way of the era: a request of ours in the
 * middle of the call to a legacy client, a result `input_required` to a modern one, whose retry
 * brings the answers and, sealed, how many rounds there were.
 */
#include "mcp/fixture.h"

#include "base/str.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/meta.h"

#include <ctype.h>
#include <stdio.h>

enum { TEXT_MAX = 1 << 20, ROUND_MAX = 16, ASK_OVER = 2 };

/* ---- texts with placeholders ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static yyjson_val *value_find(const struct fixture_values *values, const char *path, size_t len)
{
    const char *end = path + len, *dot = memchr(path, '.', len);
    const char *stop = dot ? dot : end;
    yyjson_val *at = values->responses;

    if (values->key && strlen(values->key) == (size_t)(stop - path) &&
        memcmp(values->key, path, (size_t)(stop - path)) == 0)
        at = values->answer;
    else if ((size_t)(stop - path) == strlen("arguments") && str_starts(path, "arguments"))
        at = values->arguments;
    else
        stop = path - 1;
    while (stop < end && at) {
        path = stop + 1;
        dot = memchr(path, '.', (size_t)(end - path));
        stop = dot ? dot : end;
        at = yyjson_obj_getn(at, path, (size_t)(stop - path));
    }
    return at;
}

/* A string as it is, another value as JSON. */
static int value_append(yyjson_val *value, struct buf *ret)
{
    if (!value)
        return 0;
    return yyjson_is_str(value) ? buf_append(ret, yyjson_get_str(value), yyjson_get_len(value))
                                : json_write(value, ret, NULL);
}

int fixture_expand(const char *text, const struct fixture_values *values, struct buf *ret)
{
    int r = 0;

    while (*text && r == 0) {
        size_t len = 0;

        while (*text == '{' && is_word(text[1 + len]))
            len++;
        if (len && text[1 + len] == '}') {
            r = value_append(value_find(values, text + 1, len), ret);
            text += len + 2;
        } else {
            r = buf_append_byte(ret, (unsigned char)*text++);
        }
    }
    return r;
}

static yyjson_mut_val *string_expand(yyjson_mut_doc *doc, const char *text,
                                     const struct fixture_values *values)
{
    auto_buf struct buf out;

    buf_init(&out, TEXT_MAX);
    if (fixture_expand(text, values, &out) < 0)
        buf_clear(&out);
    return json_mut_text(doc, buf_str(&out), out.len);
}

/* As deep as the tables are, which is not much. */
static yyjson_mut_val *value_expand(yyjson_mut_doc *doc, yyjson_val *value,
                                    const struct fixture_values *values)
{
    yyjson_mut_val *copy;
    yyjson_val *key, *item;
    size_t i, max;

    if (yyjson_is_str(value))
        return string_expand(doc, yyjson_get_str(value), values);
    if (yyjson_is_arr(value)) {
        copy = yyjson_mut_arr(doc);
        yyjson_arr_foreach(value, i, max, item)
        {
            yyjson_mut_arr_append(copy, value_expand(doc, item, values));
        }
        return copy;
    }
    if (!yyjson_is_obj(value))
        return yyjson_val_mut_copy(doc, value);
    copy = yyjson_mut_obj(doc);
    yyjson_obj_foreach(value, i, max, key, item)
    {
        yyjson_mut_obj_add(copy, yyjson_val_mut_copy(doc, key), value_expand(doc, item, values));
    }
    return copy;
}

/* NULL for a text that is no JSON, which a table's never is. */
static yyjson_mut_val *json_expand(yyjson_mut_doc *doc, const char *json,
                                   const struct fixture_values *values)
{
    auto_json yyjson_doc *parsed = NULL;

    if (json_parse(json, strlen(json), &parsed, NULL) < 0)
        return NULL;
    return value_expand(doc, yyjson_doc_get_root(parsed), values);
}

void fixture_result_fill(const struct fixture_entry *entry, const struct fixture_values *values,
                         yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    yyjson_mut_val *all = json_expand(doc, entry->result, values), *key, *value;
    yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(all);

    while ((key = yyjson_mut_obj_iter_next(&it))) {
        value = yyjson_mut_obj_iter_get_val(key);
        yyjson_mut_obj_add(result, yyjson_mut_strcpy(doc, yyjson_mut_get_str(key)),
                           yyjson_mut_val_mut_copy(doc, value));
    }
}

struct fixture_values fixture_values_of(const struct mcp_request *r)
{
    return (struct fixture_values){
        .arguments = yyjson_obj_get(r->message.params, "arguments"),
        .responses = yyjson_obj_get(r->message.params, "inputResponses"),
    };
}

/* ---- what a client can do ---- */

void fixture_fail_capability(struct mcp_request *r, unsigned missing)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{MCP_CAN_ELICIT, "elicitation"},
                 {MCP_CAN_SAMPLE, "sampling"},
                 {MCP_CAN_LIST_ROOTS, "roots"}};
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *data = yyjson_mut_obj(doc);
    yyjson_mut_val *required = yyjson_mut_obj_add_obj(doc, data, "requiredCapabilities");

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (missing & names[i].bit)
            yyjson_mut_obj_add_obj(doc, required, names[i].name);
    }
    if (missing & MCP_CAN_TASKS)
        yyjson_mut_obj_add_obj(doc, yyjson_mut_obj_add_obj(doc, required, "extensions"),
                               MCP_EXTENSION_TASKS);
    mcp_request_fail(r,
                     &(struct jsonrpc_fault){MCP_MISSING_CAPABILITY,
                                             "the client did not declare what this needs", data});
}

/* ---- questions, legacy ---- */

struct asked {
    struct mcp_request *request;
    const struct fixture_entry *entry;
};

static void on_answer(void *user, yyjson_val *answer)
{
    struct asked *a = user;
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    struct fixture_values values = fixture_values_of(a->request);
    struct error error;

    values.key = a->entry->questions[0].key;
    values.answer = answer;
    if (answer) {
        fixture_result_fill(a->entry, &values, doc, result);
        mcp_request_answer(a->request, doc, result);
    } else {
        error_set(&error, ERR_UPSTREAM, "the client did not answer %s",
                  a->entry->questions[0].method);
        mcp_request_fail_error(a->request, &error);
    }
    mcp_request_unref(a->request);
    free(a);
}

static int ask_legacy(struct mcp_request *r, const struct fixture_entry *entry,
                      struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    const struct fixture_question *q = &entry->questions[0];
    struct fixture_values values = fixture_values_of(r);
    struct asked *a;
    int n;

    if (entry->questions[1].key)
        return error_set(reterr, ERR_INVALID, "%s asks as clients of %s can be asked", entry->name,
                         MCP_VERSION_MODERN);
    if (!(r->capabilities & q->needs))
        return error_set(reterr, ERR_INVALID, "the client did not declare that it answers %s",
                         q->method);
    a = malloc(sizeof(*a));
    if (!a)
        return error_no_memory(reterr);
    *a = (struct asked){.request = mcp_request_ref(r), .entry = entry};
    n = mcp_ask(r, q->method, doc, json_expand(doc, q->params, &values),
                &(struct mcp_asker){on_answer, a}, reterr);
    if (n < 0) {
        mcp_request_unref(r);
        free(a);
    }
    return n < 0 ? n : MCP_LATER;
}

/* ---- questions, modern ---- */

static int round_seal(const struct mcp_request *r, unsigned round, yyjson_mut_doc *doc,
                      yyjson_mut_val *result)
{
    auto_buf struct buf purpose, sealed;
    char text[ROUND_MAX];

    buf_init(&purpose, 4 * KIB);
    buf_init(&sealed, 4 * KIB);
    snprintf(text, sizeof(text), "%u", round);
    if (mcp_state_purpose(r, &purpose) < 0 ||
        mcp_state_seal(r->server->state_key, buf_str(&purpose), text, &sealed) < 0)
        return -1;
    yyjson_mut_obj_add_val(doc, result, "requestState",
                           json_mut_text(doc, buf_str(&sealed), sealed.len));
    return 0;
}

/* The round whose answers come with the request; -1: none yet. */
static int round_open(const struct mcp_request *r, const struct fixture_entry *entry,
                      int64_t *ret_round, struct error *reterr)
{
    yyjson_val *state = yyjson_obj_get(r->message.params, "requestState");
    auto_buf struct buf purpose, text;
    int n;

    *ret_round = entry->flags & FIXTURE_STATE ? -1 : 0;
    if (!state)
        return 0;
    buf_init(&purpose, 4 * KIB);
    buf_init(&text, ROUND_MAX);
    if (!yyjson_is_str(state) || !(entry->flags & FIXTURE_STATE))
        return error_set(reterr, ERR_INVALID, "requestState is not what this server gave");
    if (mcp_state_purpose(r, &purpose) < 0)
        return error_no_memory(reterr);
    n = mcp_state_open(r->server->state_key, buf_str(&purpose), yyjson_get_str(state), &text,
                       reterr);
    if (n == 0 && str_parse_int(buf_str(&text), 0, FIXTURE_QUESTIONS_MAX, ret_round) < 0)
        n = error_set(reterr, ERR_INVALID, "requestState is not what this server gave");
    return n;
}

/* Whether the value may be what the client's answer to this question is. */
static bool answer_fits(const struct fixture_question *q, yyjson_val *answer)
{
    const char *action = json_get_str(answer, "action", "");

    if (q->needs == MCP_CAN_ELICIT)
        return str_eq(action, "decline") || str_eq(action, "cancel") ||
               (str_eq(action, "accept") && yyjson_is_obj(yyjson_obj_get(answer, "content")));
    if (q->needs == MCP_CAN_SAMPLE)
        return yyjson_obj_get(answer, "role") && yyjson_obj_get(answer, "content");
    return yyjson_is_arr(yyjson_obj_get(answer, "roots"));
}

/* How far a round has come. */
struct round {
    unsigned missing; /* capabilities */
    unsigned open;    /* questions without an answer */
    unsigned count;   /* that can be asked */
};

static int round_look(const struct mcp_request *r, const struct fixture_entry *entry,
                      int64_t number, struct round *ret, struct error *reterr)
{
    yyjson_val *responses = yyjson_obj_get(r->message.params, "inputResponses");

    *ret = (struct round){};
    if (responses && !yyjson_is_obj(responses))
        return error_set(reterr, ERR_INVALID, "inputResponses is no object");
    for (const struct fixture_question *q = entry->questions; q->key; q++) {
        yyjson_val *answer = yyjson_obj_get(responses, q->key);

        if ((int64_t)q->round != number)
            continue;
        if (!(r->capabilities & q->needs)) {
            ret->missing |= q->needs;
            continue;
        }
        ret->count++;
        ret->open += !answer;
        if (answer && !answer_fits(q, answer))
            return error_set(reterr, ERR_INVALID, "inputResponses.%s is no answer to %s", q->key,
                             q->method);
    }
    return 0;
}

void fixture_questions_fill(const struct mcp_request *r, const struct fixture_entry *entry,
                            int64_t round, yyjson_mut_doc *doc, yyjson_mut_val *ret)
{
    struct fixture_values values = fixture_values_of(r);

    for (const struct fixture_question *q = entry->questions; q->key; q++) {
        yyjson_mut_val *one;

        if ((int64_t)q->round != round || !(r->capabilities & q->needs))
            continue;
        one = yyjson_mut_obj_add_obj(doc, ret, q->key);
        yyjson_mut_obj_add_str(doc, one, "method", q->method);
        yyjson_mut_obj_add_val(doc, one, "params", json_expand(doc, q->params, &values));
    }
}

static int questions_ask(const struct mcp_request *r, const struct fixture_entry *entry,
                         int64_t number, yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    yyjson_mut_obj_add_str(doc, result, "resultType", "input_required");
    fixture_questions_fill(r, entry, number, doc,
                           yyjson_mut_obj_add_obj(doc, result, "inputRequests"));
    return entry->flags & FIXTURE_STATE ? round_seal(r, (unsigned)number, doc, result) : 0;
}

/* ASK_OVER: all was answered. */
static int ask_modern(struct mcp_request *r, const struct fixture_entry *entry, yyjson_mut_doc *doc,
                      yyjson_mut_val *result, struct error *reterr)
{
    struct round round = {};
    int64_t number;
    int n = round_open(r, entry, &number, reterr);

    if (n == 0 && number >= 0)
        n = round_look(r, entry, number, &round, reterr);
    if (n < 0)
        return n;
    if (number < 0 || (!round.open && !round.missing)) {
        /* The next round, of which no answer can be there. */
        number++;
        n = round_look(r, entry, number, &round, reterr);
        round.open = round.count;
    }
    if (n < 0)
        return n;
    if (round.missing && (!(entry->flags & FIXTURE_ANY) || !round.count)) {
        fixture_fail_capability(r, round.missing);
        return MCP_LATER;
    }
    if (!round.open)
        return ASK_OVER;
    return questions_ask(r, entry, number, doc, result) < 0 ? error_no_memory(reterr) : MCP_DONE;
}

/* ---- running ---- */

static void work_run(struct mcp_request *r, const void *arg)
{
    const struct fixture_entry *entry = arg;
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    struct fixture_values values = fixture_values_of(r);

    entry->work(r, entry);
    fixture_result_fill(entry, &values, doc, result);
    mcp_request_answer(r, doc, result);
}

/* What the client would have to declare. */
static unsigned call_missing(const struct mcp_request *r, const struct fixture_entry *entry)
{
    unsigned missing = entry->flags & FIXTURE_TASK_ONLY ? MCP_CAN_TASKS : 0;

    for (const struct fixture_question *q = entry->questions; q->key; q++)
        missing |= q->needs;
    return r->era == MCP_MODERN ? missing & ~r->capabilities : 0;
}

static int call_run(struct mcp_request *r, const struct fixture_entry *entry, struct error *reterr)
{
    int n = mcp_call_start_work(r, fixture_call_run, entry, reterr);

    if (n == 0 && r->capabilities & MCP_CAN_TASKS)
        mcp_call_make_task(r);
    return n < 0 ? n : MCP_LATER;
}

int mcp_fixture_run(struct mcp_request *r, const struct fixture_entry *entry, yyjson_mut_doc *doc,
                    yyjson_mut_val *result, struct error *reterr)
{
    struct fixture_values values = fixture_values_of(r);
    bool late = entry->flags & FIXTURE_ASK_LATE && r->capabilities & MCP_CAN_TASKS;
    unsigned missing = entry->flags & FIXTURE_CALL ? call_missing(r, entry) : 0;
    int n = ASK_OVER;

    if (missing) {
        fixture_fail_capability(r, missing);
        return MCP_LATER;
    }
    if (entry->questions[0].key && !late)
        n = r->era == MCP_MODERN ? ask_modern(r, entry, doc, result, reterr)
                                 : ask_legacy(r, entry, reterr);
    if (n != ASK_OVER)
        return n;
    if (entry->flags & FIXTURE_CALL)
        return call_run(r, entry, reterr);
    if (entry->work) {
        n = mcp_work_start(r, work_run, entry, reterr);
        return n < 0 ? n : MCP_LATER;
    }
    fixture_result_fill(entry, &values, doc, result);
    return MCP_DONE;
}
