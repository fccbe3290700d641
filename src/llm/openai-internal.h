/* SPDX-License-Identifier: MIT */
/* What the files of the provider `openai` share. */
#pragma once

#include "llm/llm-internal.h"

/* One call as the server tells it apart: by index, by id, or by neither. */
struct openai_call {
    int64_t index; /* -1: none */
    char id[256];
    int depth; /* of brackets in its arguments so far */
    bool in_string, escaped;
    bool whole; /* the arguments are a complete object */
};

struct openai {
    bool begun;        /* the first byte of the answer has come */
    bool whole;        /* it is one document */
    bool has_finish;   /* a finish_reason has come */
    const char *field; /* of the reasoning that is open: its `raw` */
    struct openai_call calls[LLM_CALLS_MAX];
    unsigned call_count;
};

/* A piece of a call; `call`: what holds index and id, or NULL. */
int openai_call(struct llm_stream *s, struct openai *own, yyjson_val *call, yyjson_val *function,
                struct error *reterr) must_check;

/* The member that a reasoning part came in, by its `raw`; NULL for none. */
const char *reasoning_field(const char *raw);
