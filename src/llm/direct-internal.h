/* SPDX-License-Identifier: MIT */
/* What the files of the provider "direct" share: the code that a message holds, and the words for
 * what it gave. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

enum direct_language { DIRECT_PYTHON, DIRECT_NODE, DIRECT_R, DIRECT_SHELL, DIRECT_NONE };

enum { DIRECT_BLOCKS_MAX = 20 };

struct direct_block {
    enum direct_language language; /* never NONE */
    const char *code;
    size_t len;
};

struct direct_blocks {
    struct direct_block items[DIRECT_BLOCKS_MAX];
    size_t count;
    bool truncated; /* there were more */
    bool fenced;    /* there was a fence, of whatever language */
};

/* By the words that people write behind a fence; NONE: something else. */
enum direct_language direct_language_find(const char *word, size_t len);

/* As the tool create_session names it; the shell has none of its own and gets "python". */
const char *direct_runtime(enum direct_language language);

/* The fenced code of a message, without what is in other languages; the whole message where there
 * is no fence. `fallback` is for code whose language is not told. */
void direct_blocks_find(const char *text, enum direct_language fallback, struct direct_blocks *ret);

enum { DIRECT_FILES_MAX = 200 };

/* What clients have uploaded to a conversation, in its order. */
struct direct_files {
    const char *paths[DIRECT_FILES_MAX];
    size_t count;
};

/*
 * Adds the files that the note at the end of a message names, and tells how long the text before it
 * is: all of it where there is no note. -1 without memory.
 */
int direct_files_find(const char *text, struct arena *arena, struct direct_files *ret,
                      size_t *ret_len) must_check;

/*
 * Appends what a run gave, in Markdown: what code printed stands in fences that it cannot end, so
 * nothing of it is shown as anything else. `payload` NULL: the result is not JSON, `text` is shown.
 * -1 when it is full.
 */
int direct_report(struct buf *ret, yyjson_val *payload, const char *text) must_check;
