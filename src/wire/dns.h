/* SPDX-License-Identifier: MIT */
/*
 * DNS as a stub needs it: one question in, one answer out, nothing compressed, nothing forwarded.
 * What follows the question (EDNS, cookies) is ignored and answered as by a server of 1987.
 */
#pragma once

#include "wire/addr.h"

#include <stddef.h>

enum {
    DNS_PACKET_MAX = 512, /* an answer is never longer, so none is ever cut */
    DNS_TYPE_A = 1,
    DNS_TYPE_ANY = 255,
    DNS_TTL = 30, /* s; the address is fixed, but a restart of egress makes new ones */
};

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
};

struct dns_question {
    uint16_t id;
    uint16_t flags; /* as received */
    uint16_t type;
    uint8_t wire[260]; /* the question as asked, with its case: name, type, class */
    size_t wire_len;
    char name[HOST_SIZE]; /* canonical; empty when it is no host name */
};

/*
 * Returns DNS_NOERROR, another rcode with which to answer, or -1 where no answer may be sent (too
 * short, or itself an answer).
 */
int dns_question_parse(const uint8_t *data, size_t len, struct dns_question *ret) must_check;

/* Writes the answer and returns its length; `a` is the address of an A record or NULL. */
size_t dns_answer_format(const struct dns_question *q, enum dns_rcode rcode, const uint8_t a[4],
                         uint8_t ret[DNS_PACKET_MAX]);
