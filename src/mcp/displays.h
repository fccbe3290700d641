/* SPDX-License-Identifier: MIT */
/*
 * Display outputs, kept whole for a while so that a client can fetch what an answer only shows
 * reduced or not at all. Bounded by bytes; the least recently used go first. All calls from any
 * thread.
 */
#pragma once

#include "base/error.h"
#include "base/id.h"

#include <stdbool.h>

struct buf;
struct displays;

enum { DISPLAY_MIME_SIZE = 129, DISPLAY_NAME_SIZE = 40, DISPLAY_URI_SIZE = 128 };

#define DISPLAYS_BYTES (128 * MIB) /* what the store holds unless told otherwise */

/* One output: does not change, and lives until the last reference is gone. */
struct display {
    unsigned refs;
    struct display *newer, *older; /* the store's */
    char session_id[ID_LEN + 1];
    char mime[DISPLAY_MIME_SIZE];
    char name[DISPLAY_NAME_SIZE]; /* "display-3.png" */
    char uri[DISPLAY_URI_SIZE];   /* sandbox://<session>/displays/3.png; "" when it is not kept */
    char *data;
    size_t len;
};

int displays_new(size_t max_bytes, struct displays **ret, struct error *reterr) must_check;
void displays_free(struct displays *d);

/*
 * Takes over the content of `data` and returns a reference. What is larger than the whole store, or
 * belongs to no session, is not kept: then it has no URI.
 */
int displays_put(struct displays *d, const char *session_id, const char *mime, struct buf *data,
                 struct display **ret, struct error *reterr) must_check;

/* A reference, or NULL. Whose session it is, the caller must check. */
struct display *displays_get(struct displays *d, const char *uri);

struct display *display_ref(struct display *o);
void display_unref(struct display *o);

/* Calls `each` for what is kept, oldest first, of the sessions for which `may_see` says so. */
typedef bool displays_may_see_fn(void *user, const char *session_id);
typedef void displays_each_fn(void *user, const struct display *o);
int displays_list(struct displays *d, displays_may_see_fn *may_see, displays_each_fn *each,
                  void *user, struct error *reterr) must_check;

/* Forgets all of a session; references that are out stay good. */
void displays_drop_session(struct displays *d, const char *session_id);

DEFINE_CLEANUP(struct display *, display_unref)
#define auto_display __attribute__((cleanup(display_unref_cleanup)))
