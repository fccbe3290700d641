/* SPDX-License-Identifier: MIT */
/*
 * Parser and printer of the stub. The question is kept byte for byte, because clients compare it
 * with what they sent (some mix upper and lower case on purpose); decisions use only the canonical
 * name.
 */
#include "wire/dns.h"

#include <string.h>

enum {
    HEADER = 12,
    FLAG_QR = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_RD = 0x0100,
    FLAG_RA = 0x0080,
    CLASS_IN = 1,
    LABEL_MAX = 63,
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
    return p + 2;
}

/* Length of the name at `p` with its root label, at most 255; 0: malformed or compressed. */
static size_t name_length(const uint8_t *p, size_t len)
{
    size_t at = 0;

    while (at < len && p[at] != 0) {
        if (p[at] > LABEL_MAX)
            return 0;
        at += 1u + p[at];
    }
    return at < len && at < 255 ? at + 1 : 0;
}

/* The labels with dots between them. A dot inside a label must not become a border. */
static void name_text(const uint8_t *p, char ret[HOST_SIZE])
{
    char text[256];
    size_t len = 0;

    ret[0] = 0;
    for (; *p; p += 1 + *p) {
        if (memchr(p + 1, '.', *p))
            return;
        if (len)
            text[len++] = '.';
        memcpy(text + len, p + 1, *p);
        len += *p;
    }
    if (len > 0 && host_parse(text, len, ret) < 0)
        ret[0] = 0;
}

int dns_question_parse(const uint8_t *data, size_t len, struct dns_question *ret)
{
    size_t name;

    *ret = (struct dns_question){};
    if (len < HEADER)
        return -1;
    ret->id = get16(data);
    ret->flags = get16(data + 2);
    if (ret->flags & FLAG_QR)
        return -1;
    if (ret->flags & FLAG_OPCODE)
        return DNS_NOTIMP;
    if (get16(data + 4) != 1)
        return DNS_FORMERR;
    name = name_length(data + HEADER, len - HEADER);
    if (name == 0 || len - HEADER - name < 4)
        return DNS_FORMERR;
    ret->wire_len = name + 4;
    memcpy(ret->wire, data + HEADER, ret->wire_len);
    ret->type = get16(ret->wire + name);
    if (get16(ret->wire + name + 2) != CLASS_IN)
        return DNS_REFUSED;
    name_text(ret->wire, ret->name);
    return DNS_NOERROR;
}

size_t dns_answer_format(const struct dns_question *q, enum dns_rcode rcode, const uint8_t a[4],
                         uint8_t ret[DNS_PACKET_MAX])
{
    uint8_t *p = ret;

    p = put16(p, q->id);
    p = put16(p, FLAG_QR | (q->flags & (FLAG_OPCODE | FLAG_RD)) | FLAG_RA | (unsigned)rcode);
    p = put16(p, q->wire_len > 0);
    p = put16(p, a != NULL);
    p = put16(p, 0);
    p = put16(p, 0);
    memcpy(p, q->wire, q->wire_len);
    p += q->wire_len;
    if (a) {
        p = put16(p, 0xc000 | HEADER);
        p = put16(p, DNS_TYPE_A);
        p = put16(p, CLASS_IN);
        p = put16(p, 0);
        p = put16(p, DNS_TTL);
        p = put16(p, 4);
        memcpy(p, a, 4);
        p += 4;
    }
    return (size_t)(p - ret);
}
