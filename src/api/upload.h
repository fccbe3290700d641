/* SPDX-License-Identifier: MIT */
/*
 * A form with files on its way to a thread's folder. All of it is staged aside first: files appear
 * at their names when the whole form has come, and nothing is left of one that did not.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

enum {
    UPLOAD_FILES_MAX = 1000, /* of one form */
    UPLOAD_DEPTH_MAX = 32,
    UPLOAD_NAME_MAX = 1024,
    UPLOAD_LISTED_MAX = 10000,
};

struct upload;

struct upload_file {
    char *name; /* below the thread's folder of uploads */
    uint64_t size;
};

/* `storage` is made when it is not there. ERR_INVALID for a body that is no form. */
int upload_new(const char *storage, const char *content_type, uint64_t bytes_max,
               struct upload **ret, struct error *reterr) must_check;
void upload_free(struct upload *u);

/* ERR_LIMIT for too much, ERR_INVALID for a form or a name that is none. */
int upload_feed(struct upload *u, const char *data, size_t len, struct error *reterr) must_check;

/* The end of the body: files get their names below <storage>/<thread>/uploads. ERR_EXISTS, before
 * anything is changed, where a folder stands in the place of a file or a file in that of a folder.
 */
int upload_commit(struct upload *u, const char *thread_id, struct error *reterr) must_check;

/* In the order in which they came. */
const struct upload_file *upload_files(const struct upload *u, size_t *ret_count);

/* Calls `each` for the files of a thread, in the order of their names; at most UPLOAD_LISTED_MAX.
 */
struct upload_found {
    const char *name; /* below its folder of uploads */
    uint64_t size;
    int64_t modified_us;
};
typedef void upload_found_fn(void *user, const struct upload_found *file);
void upload_list(const char *storage, const char *thread_id, upload_found_fn *each, void *user);

/* Removes what processes that are gone have left staged. */
void upload_sweep(const char *storage);

/*
 * A client's name as a relative path: empty parts, "." and ".." are dropped. ERR_INVALID when
 * nothing is left, or for control characters, a part above 255 bytes, or too many of them.
 */
int upload_name(const char *given, char ret[UPLOAD_NAME_MAX], struct error *reterr) must_check;
