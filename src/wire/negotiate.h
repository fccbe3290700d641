/* SPDX-License-Identifier: MIT */
/*
 * What a client would rather have: the headers Accept, Accept-Encoding and If-None-Match. Elements
 * that cannot be read are passed over, so a client that sends nonsense gets what one gets that
 * sends nothing.
 */
#pragma once

#include <stdbool.h>

/* How much one type or coding is wanted. */
struct preference {
    int quality; /* thousandths; 0: not wanted */
    int match; /* 0: not named; 1: by an asterisk, 2: by "type/" and an asterisk, 3: by its name */
};

/* Of a type ("text/html") by an Accept header; the closest range counts, then the best. */
struct preference accept_type(const char *header, const char *type);

/* Of a coding ("gzip") by an Accept-Encoding header. */
struct preference accept_coding(const char *header, const char *coding);

/* Whether If-None-Match names the entity tag (with its quotes), or any: weakly, as it has to. */
bool etag_is_known(const char *header, const char *etag);
