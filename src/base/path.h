/* SPDX-License-Identifier: MIT */
/* Paths below a directory descriptor, and a few for people. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { PATH_LEN = 512 };

/* Joins with one slash; ERR_INVALID when it does not fit. */
int path_join(char *ret, size_t size, const char *dir, const char *name,
              struct error *reterr) must_check;

/* Opens below `dirfd`: no component may lead out of it, no magic links (openat2 RESOLVE_BENEATH).
 */
int path_open_beneath(int dirfd, const char *path, int flags, unsigned mode,
                      struct error *reterr) must_check;

/* Makes a directory and its parents with `mode` for the last one; an existing directory is fine. */
int path_make_dirs(const char *path, unsigned mode, struct error *reterr) must_check;

/* Opens a directory (O_CLOEXEC, must be a real directory). */
int path_open_dir(int dirfd, const char *path, struct error *reterr) must_check;

/* Removes a tree below dirfd without following links, without recursion of ours. Missing is fine.
 */
int path_remove_tree(int dirfd, const char *name, struct error *reterr) must_check;

/* A plain single component: not empty, no slash, not "." or "..". */
bool path_is_name(const char *s);
