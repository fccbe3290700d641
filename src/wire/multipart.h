/* SPDX-License-Identifier: MIT */
/*
 * multipart/form-data (RFC 7578) as it arrives: bytes in, parts out, nothing kept but what may be
 * the start of a boundary. Names are given as the client wrote them; what they mean for a disk is
 * the receiver's matter.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { MULTIPART_PARTS_MAX = 1000, MULTIPART_HEADER_MAX = 8192, MULTIPART_NAME_MAX = 1024 };

/* Both names are valid UTF-8 without control characters. */
struct multipart_part {
    char name[MULTIPART_NAME_MAX];
    char filename[MULTIPART_NAME_MAX]; /* "" for none; that of `filename*` wins */
    char content_type[128];            /* "" for none */
};

struct multipart_sink {
    /* <0 ends the feed with that failure. */
    int (*begin)(void *user, const struct multipart_part *part, struct error *reterr);
    int (*data)(void *user, const char *data, size_t len, struct error *reterr);
    int (*end)(void *user, struct error *reterr);
    void *user;
};

struct multipart;

/* Of a Content-Type; ERR_INVALID when it is none with a boundary of 1 to 70 legal characters. */
int multipart_new(const char *content_type, const struct multipart_sink *sink,
                  struct multipart **ret, struct error *reterr) must_check;
void multipart_free(struct multipart *m);

/*
 * ERR_INVALID for what is malformed: a part without a name, two file names of one kind, a line that
 * ends otherwise than by CR LF, a header that does not end, an encoding; ERR_LIMIT for more than
 * the bounds above. After a failure nothing more is taken. What follows the closing boundary is
 * passed over.
 */
int multipart_feed(struct multipart *m, const char *data, size_t len,
                   struct error *reterr) must_check;
/* After the last byte: ERR_INVALID when the closing boundary has not come. */
int multipart_finish(struct multipart *m, struct error *reterr) must_check;

DEFINE_CLEANUP(struct multipart *, multipart_free)
#define auto_multipart __attribute__((cleanup(multipart_free_cleanup)))
