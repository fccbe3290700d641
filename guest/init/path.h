/* SPDX-License-Identifier: MIT */
/*
 * Paths that clients name, resolved inside the root of the sandbox. The caller has taken the
 * sandbox user's identity (ids_enter). All return a descriptor, or -1 with errno.
 */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

int path_setup(struct error *reterr) must_check;

/* Opens a path, absolute or relative to the work directory; links are followed inside the root. */
int path_open(const char *path, int flags) must_check;

/* Opens the directory that holds the last component, which is copied to `base`; it is never "." or
 * "..". With `make` missing directories are made. */
int path_open_parent(const char *path, bool make, char base[NAME_MAX + 1]) must_check;

/* Makes a directory and its parents; fine when it is there. */
int path_make_dirs(const char *path) must_check;
