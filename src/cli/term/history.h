/* SPDX-License-Identifier: MIT */
/*
 * The file of what was typed: one message a line, "\n" and "\\" written with a backslash. Several
 * programs may append to it at once.
 */
#pragma once

#include "base/error.h"

enum { HISTORY_BYTES_MAX = 4 * 1024 * 1024 };

typedef void history_entry_fn(void *user, const char *text);

/*
 * Gives the newest `max` messages, the oldest of them first; a file that has grown to more than
 * twice as many keeps only these. A missing file has none; one that cannot be read fails.
 */
int history_load(const char *path, unsigned max, history_entry_fn *entry, void *user,
                 struct error *reterr) must_check;

/* Adds one. Makes the file, for its owner alone, and its directory. */
int history_append(const char *path, const char *text, struct error *reterr) must_check;
