/* SPDX-License-Identifier: MIT */
/* URIs of what sessions offer, and the MIME types of files by their names. */
#pragma once

#include "session/transfer.h"

enum { RESOURCE_URI_MAX = 3 * TREE_PATH_MAX + 64 };

struct resource_place {
    char id[ID_LEN + 1];
    bool is_display;          /* a display is found by its whole URI */
    char path[TREE_PATH_MAX]; /* absolute */
};

/* sandbox://<session id>/files/<path, percent-encoded, without its first slash> */
int resource_uri_format(struct buf *ret, const char *id, const char *path) must_check;

/* Decodes once. -1 for what is not in the form that resource_uri_format() gives, or another one of
 * the same path. */
int resource_uri_parse(const char *uri, struct resource_place *ret) must_check;

/* By the suffix; NULL when it tells nothing. */
const char *resource_mime(const char *path);

/* Whether content of this kind is read as text. */
bool resource_mime_is_text(const char *mime);

/* The last component of a path, as UTF-8. */
int resource_name_format(struct buf *ret, const char *path) must_check;
