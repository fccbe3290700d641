/* SPDX-License-Identifier: MIT */
/* What file answers say about a file's name and kind. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* "attachment; filename=...", and filename* (RFC 8187) where ASCII cannot say it; appended. Bytes
 * of any kind are taken. */
int attachment_write(const char *name, struct buf *ret) must_check;

/* How a display of this kind is answered. */
struct blob_kind {
    const char *content_type;
    bool base64;     /* the stored text is */
    bool attachment; /* a browser is not to show it: it could run what is in it */
};
struct blob_kind blob_kind_of(const char *mime);
