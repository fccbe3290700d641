/* SPDX-License-Identifier: MIT */
/* The body with which clients create runs, checked, and as the store keeps it. */
#pragma once

#include "api/api-internal.h"

/* The member of `configurable` that is a secret: sealed in the store, and in no answer. */
#define RUN_SECRET "chat_model_api_key"
#define RUN_SEALED "sealed:"

struct run_params {
    struct live_create create;
    bool cancel_on_disconnect;
    bool resumable;
    const char *assistant_id, *graph_id;
};

/*
 * Of a run on a thread, or, with `thread_id` NULL, of a stateless one, which gets a thread of its
 * own. On a failure the answer is given, and <0 returned. All texts live as long as the request.
 */
int run_params_parse(struct http_request *req, yyjson_val *body, const char *thread_id,
                     struct run_params *ret);

/* A run as clients know it; `values`: the final state as JSON, or NULL. */
yyjson_mut_val *run_format(yyjson_mut_doc *doc, const struct store_run *row, const char *values);

/* Creates the run; the answer is given on a failure. `ret` is referenced. */
int api_run_start(struct http_request *req, struct run_params *params, struct store_run *ret_row,
                  struct live_run **ret);

/* A run of this owner's thread, live or not; answers 404. `ret` is referenced. */
int api_run_attach(struct http_request *req, const char *thread_id, const char *run_id,
                   struct live_run **ret);

/* Answers: an event stream of the run, or its final values once it has ended. */
struct run_follow {
    uint32_t modes;
    bool cancel_on_disconnect, creator, resumable;
};
int api_run_stream(struct http_request *req, struct live_run *run, const struct run_follow *follow,
                   struct error *reterr) must_check;
int api_run_wait(struct http_request *req, struct live_run *run, const struct run_follow *follow,
                 struct error *reterr) must_check;
