/* SPDX-License-Identifier: MIT */
/* What a tool's message says, as a person wants to read it. */
#pragma once

#include "base/json.h"
#include "cli/term/panel.h"

enum { CHAT_NOTE_MAX = 256 };

struct chat_result {
    yyjson_val *root;         /* of a result that is an object; NULL: `text` is all there is */
    const char *text;         /* the content as it came */
    enum panel_state state;   /* of the whole call */
    char note[CHAT_NOTE_MAX]; /* "error: NameError · 0.3 s · variables lost" */
    bool is_run;              /* a cell or a command: it has streams and a status */
    bool is_ours;             /* {"success": ...}: an error text is not repeated as JSON */
    const char *out, *err;    /* streams; "" */
    const char *value;        /* the cell's value as text; "" */
    const char *trace;        /* the traceback, else the error's message; "" */
    bool is_cut;              /* of an output a part is missing */
    uint64_t bytes;           /* of the whole output */
    yyjson_val *displays;     /* an array, or NULL */
};

/* `doc` is the parsed content, NULL when it is no JSON; `failed`: the message says so. */
void chat_result_read(yyjson_doc *doc, const char *text, bool failed, struct chat_result *ret);

/* "0.30 s", "12 s", "2 min 5 s". */
void chat_time_format(double ms, char *ret, size_t size);
/* "12 kB" */
void chat_size_format(uint64_t bytes, char *ret, size_t size);
