/* SPDX-License-Identifier: MIT */
/* Displays at the command line: saved as numbered files, or named in one line. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct display_sink {
    int dir; /* -1: nowhere */
    unsigned count;
    char path[512];
};

/* `path` NULL: displays are only named. Makes the directory. */
int display_sink_open(struct display_sink *ret, const char *path, struct error *reterr) must_check;
void display_sink_done(struct display_sink *d);

/* A display item as JSON: saves it when there is a directory, and tells it on stderr. */
void display_print(struct display_sink *d, const char *json, size_t len);

/* Only saves it. */
void display_save(struct display_sink *d, const char *json, size_t len);

/* How a file of a kind is called behind the dot ("bin" for others), and whether its data is in
 * base64. */
const char *display_suffix(const char *mime, bool *ret_base64);
