/* SPDX-License-Identifier: MIT */
/* Requests of the server to a legacy client, and the responses that come back for them. */
#include "mcp/ask-internal.h"
#include "mcp/mcp-internal.h"

#include "base/str.h"

#include <stdio.h>

enum { QUESTIONS_MAX = 64, ID_SIZE = 24 };

struct mcp_question {
    struct mcp_question *next;
    char id[ID_SIZE];
    struct mcp_asker asker;
};

/* Once it is listed it may be answered at any time, and then it is gone: its id is a copy. */
static int question_add(struct mcp_request *r, const struct mcp_asker *asker, char ret_id[ID_SIZE],
                        struct error *reterr)
{
    struct mcp_question *q = calloc(1, sizeof(*q));
    struct mcp_client *c;
    bool listed = false;

    if (!q)
        return error_no_memory(reterr);
    q->asker = *asker;
    pthread_mutex_lock(&r->server->lock);
    c = r->client;
    if (c && c->question_count < QUESTIONS_MAX) {
        snprintf(q->id, sizeof(q->id), "sa-%llu", (unsigned long long)++c->question_next);
        memcpy(ret_id, q->id, sizeof(q->id));
        q->next = r->questions;
        r->questions = q;
        c->question_count++;
        listed = true;
    }
    pthread_mutex_unlock(&r->server->lock);
    if (listed)
        return 0;
    free(q);
    return error_set(reterr, ERR_LIMIT, "the client is gone or has %d questions to answer",
                     QUESTIONS_MAX);
}

int mcp_ask(struct mcp_request *r, const char *method, yyjson_mut_doc *doc, yyjson_mut_val *params,
            const struct mcp_asker *asker, struct error *reterr)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf text;
    char id[ID_SIZE];
    int n = question_add(r, asker, id, reterr);

    if (n < 0)
        return n;
    buf_init(&text, MIB);
    yyjson_mut_obj_add_str(doc, root, "jsonrpc", "2.0");
    yyjson_mut_obj_add_strcpy(doc, root, "id", id);
    yyjson_mut_obj_add_strcpy(doc, root, "method", method);
    yyjson_mut_obj_add_val(doc, root, "params", params);
    yyjson_mut_doc_set_root(doc, root);
    if (json_mut_write(doc, &text, NULL) == 0)
        mcp_request_send(r, buf_str(&text), text.len);
    return 0;
}

/* The question of the id, out of the list of its request. */
static struct mcp_question *question_take(struct mcp_client *c, const char *id)
{
    struct mcp_question **p = NULL, *q = NULL;

    pthread_mutex_lock(&c->server->lock);
    for (struct mcp_request *r = c->requests; r && !q; r = r->next) {
        for (p = &r->questions; *p && !str_eq((*p)->id, id); p = &(*p)->next)
            ;
        q = *p;
    }
    if (q) {
        *p = q->next;
        c->question_count--;
    }
    pthread_mutex_unlock(&c->server->lock);
    return q;
}

void mcp_ask_answered(struct mcp_client *c, const struct jsonrpc_message *m)
{
    const char *id = yyjson_get_str(m->id);
    struct mcp_question *q = id ? question_take(c, id) : NULL;

    if (!q)
        return;
    q->asker.done(q->asker.user, m->result);
    free(q);
}

struct mcp_question *mcp_ask_detach(struct mcp_request *r)
{
    struct mcp_question *list = r->questions;

    for (const struct mcp_question *q = list; q; q = q->next)
        r->client->question_count--;
    r->questions = NULL;
    return list;
}

void mcp_ask_forget(struct mcp_question *list)
{
    struct mcp_question *next;

    for (; list; list = next) {
        next = list->next;
        list->asker.done(list->asker.user, NULL);
        free(list);
    }
}
