/* SPDX-License-Identifier: MIT */
/*
 * Images: the root file systems of the runtimes, made from the definitions in images/. An image's
 * directory is named after the digest of its definition, so it is current exactly as long as its
 * definition is unchanged:
 *
 *     IMAGE_DIR/<runtime>/<digest>/rootfs       read-only for every sandbox
 *     IMAGE_DIR/<runtime>/<digest>/image.json   what it is; written last
 *     IMAGE_DIR/<runtime>/lock                  held by who builds
 *     IMAGE_DIR/<runtime>/build.log             of a build that failed
 *
 * All functions may be called from any thread and process at the same time.
 */
#pragma once

#include "base/error.h"
#include "base/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_NAME = 64, IMAGE_DIGEST = 16, IMAGE_RUNTIME = 32 };

struct image_store {
    char definitions[PATH_LEN];
    char dir[PATH_LEN];
};

/* `dir` is where the images are (SANDBOX_IMAGE_DIR); it need not exist yet. */
int image_store_init(struct image_store *ret, const char *dir, struct error *reterr) must_check;

/* The names of the runtimes that have a definition, in a NULL-terminated array; free it. */
int image_runtimes(const struct image_store *store, char ***ret, struct error *reterr) must_check;

/* The digest of the current definition; ERR_INVALID for an unknown runtime. */
int image_digest(const struct image_store *store, const char *runtime, char ret[IMAGE_DIGEST + 1],
                 struct error *reterr) must_check;

/*
 * The root file system of the current, complete image of a runtime. ERR_INVALID for an unknown
 * runtime, ERR_NOT_FOUND when it has to be built.
 */
int image_find(const struct image_store *store, const char *runtime, char *ret_rootfs, size_t size,
               struct error *reterr) must_check;

/* Told what a build does, one line without a line feed, about once a second. */
typedef void image_progress_fn(void *user, const char *line);

struct image_build_options {
    size_t size; /* sizeof(struct image_build_options) */
    image_progress_fn *progress;
    void *user;
    int cancel_fd;      /* readable: stop with ERR_CANCELLED; -1 for none */
    const char *mirror; /* a Debian mirror's address; NULL: from this machine's apt sources */
    bool rebuild;       /* build although it is there, for newer packages */
};

/*
 * Makes sure that the current image of a runtime is there; takes minutes. Waits for another builder
 * of the same runtime first. A build that fails leaves build.log and nothing else.
 */
int image_build(const struct image_store *store, const char *runtime,
                const struct image_build_options *options, struct error *reterr) must_check;

struct image_info {
    char runtime[IMAGE_RUNTIME];
    char name[IMAGE_NAME];    /* of its directory: the digest; replaced ones have a suffix */
    char created[32];         /* ISO 8601, UTC */
    char version[IMAGE_NAME]; /* of the interpreter */
    uint64_t bytes;
    int64_t packages;
    bool current; /* what new sandboxes use */
    char *json;   /* image.json whole */
};

/* What is there, by runtime, newest first; image_list_free(). */
int image_list(const struct image_store *store, struct image_info **ret, size_t *ret_count,
               struct error *reterr) must_check;
void image_list_free(struct image_info *list, size_t count);

/*
 * Removes an image by its name, as image_list() gives it. ERR_BUSY while a process has it as its
 * root; ERR_NOT_FOUND.
 */
int image_remove(const struct image_store *store, const char *runtime, const char *name,
                 struct error *reterr) must_check;
