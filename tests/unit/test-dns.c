/* SPDX-License-Identifier: MIT */
/* Questions that are answered, refused and dropped, and what an answer looks like to the byte. */
#include "base/macro.h"
#include "tests/lib/test.h"
#include "wire/dns.h"

/* Header with one question, then the name, A, IN. */
#define HEADER(flags) "\x12\x34" flags "\0\1\0\0\0\0\0\0"
#define QUERY HEADER("\x01\x00")
#define A_IN "\0\1\0\1"

#define parse_text(text, q) dns_question_parse((const uint8_t *)(text), sizeof(text) - 1, q)

TEST(a_question_is_read)
{
    struct dns_question q;

    assert_int_eq(parse_text(QUERY "\3wWw\7Example\3com\0" A_IN, &q), DNS_NOERROR);
    assert_int_eq(q.id, 0x1234);
    assert_int_eq(q.type, DNS_TYPE_A);
    assert_str_eq(q.name, "www.example.com");
    assert_uint_eq(q.wire_len, 21);
}

TEST(an_answer_repeats_the_question_and_its_case)
{
    static const uint8_t want[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0"
                                  "\3wWw\0\0\1\0\1"
                                  "\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\1\2";
    static const uint8_t a[4] = {198, 18, 1, 2};
    uint8_t out[DNS_PACKET_MAX];
    struct dns_question q;

    assert_int_eq(parse_text(QUERY "\3wWw\0" A_IN, &q), DNS_NOERROR);
    assert_uint_eq(dns_answer_format(&q, DNS_NOERROR, a, out), sizeof(want) - 1);
    assert_mem_eq(out, want, sizeof(want) - 1);
}

TEST(an_answer_without_an_address_is_whole_too)
{
    static const uint8_t want[] = "\x12\x34\x80\x83\0\1\0\0\0\0\0\0"
                                  "\1a\0\0\x1c\0\1";
    uint8_t out[DNS_PACKET_MAX];
    struct dns_question q;

    assert_int_eq(parse_text(HEADER("\0\0") "\1a\0\0\x1c\0\1", &q), DNS_NOERROR);
    assert_uint_eq(dns_answer_format(&q, DNS_NXDOMAIN, NULL, out), sizeof(want) - 1);
    assert_mem_eq(out, want, sizeof(want) - 1);
}

TEST(what_follows_the_question_is_ignored)
{
    static const char edns[] = "\x12\x34\x01\x20\0\1\0\0\0\0\0\1"
                               "\1a\0" A_IN "\0\0\x29\x10\0\0\0\0\0\0\x0c\0\x0a\0\x08 cookie ";
    struct dns_question q;

    assert_int_eq(parse_text(edns, &q), DNS_NOERROR);
    assert_str_eq(q.name, "a");
    assert_int_eq(parse_text(QUERY "\1a\0" A_IN "rubbish", &q), DNS_NOERROR);
}

TEST(what_is_no_question_gets_no_answer)
{
    struct dns_question q;

    assert_int_eq(parse_text("", &q), -1);
    assert_int_eq(parse_text("\x12\x34\1\0\0\1\0\0\0\0\0", &q), -1);
    assert_int_eq(parse_text(HEADER("\x81\x80") "\1a\0" A_IN, &q), -1);
}

TEST(what_cannot_be_read_is_answered_by_its_header)
{
    uint8_t out[DNS_PACKET_MAX];
    struct dns_question q;

    assert_int_eq(parse_text("\x12\x34\1\0\0\2\0\0\0\0\0\0\1a\0" A_IN, &q), DNS_FORMERR);
    assert_int_eq(parse_text("\x12\x34\1\0\0\0\0\0\0\0\0\0", &q), DNS_FORMERR);
    assert_int_eq(parse_text(HEADER("\x29\x00") "\1a\0" A_IN, &q), DNS_NOTIMP);
    assert_int_eq(parse_text(QUERY "\1a\0\0\1\0\3", &q), DNS_REFUSED);
    assert_int_eq(parse_text(QUERY "\1a", &q), DNS_FORMERR);
    assert_int_eq(parse_text(QUERY "\1a\0\0\1\0", &q), DNS_FORMERR);
    assert_int_eq(parse_text(QUERY "\x10"
                                   "abc\0" A_IN,
                             &q),
                  DNS_FORMERR);
    assert_int_eq(parse_text(QUERY "\xc0\x0c" A_IN, &q), DNS_FORMERR);
    assert_int_eq(parse_text(QUERY "\x40"
                                   "aaaa\0" A_IN,
                             &q),
                  DNS_FORMERR);
    assert_uint_eq(dns_answer_format(&q, DNS_FORMERR, NULL, out), 12);
    assert_mem_eq(out, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", 12);
}

TEST(odd_names_are_no_names)
{
    struct dns_question q;

    /* A NUL, a hash, a dot inside a label, upper bytes, an address, the root. */
    assert_int_eq(parse_text(QUERY "\x10"
                                   "allowed.com\0.evi\0" A_IN,
                             &q),
                  DNS_NOERROR);
    assert_str_eq(q.name, "");
    assert_int_eq(parse_text(QUERY "\3a#b\3com\0" A_IN, &q), DNS_NOERROR);
    assert_str_eq(q.name, "");
    assert_int_eq(parse_text(QUERY "\7evil.co\1m\0" A_IN, &q), DNS_NOERROR);
    assert_str_eq(q.name, "");
    assert_int_eq(parse_text(QUERY "\2\xc3\xbc\3com\0" A_IN, &q), DNS_NOERROR);
    assert_str_eq(q.name, "");
    assert_int_eq(parse_text(QUERY "\1"
                                   "1\1"
                                   "2\1"
                                   "3\1"
                                   "4\0" A_IN,
                             &q),
                  DNS_NOERROR);
    assert_str_eq(q.name, "");
    assert_int_eq(parse_text(QUERY "\0" A_IN, &q), DNS_NOERROR);
    assert_str_eq(q.name, "");
}

/* 254 bytes of labels and the root: a name of 253 characters. */
static size_t long_question(uint8_t *packet, size_t labels, uint8_t last)
{
    uint8_t *p = packet;

    memcpy(p, QUERY, 12);
    p += 12;
    for (size_t i = 0; i < labels; i++) {
        *p++ = 63;
        memset(p, 'a', 63);
        p += 63;
    }
    *p++ = last;
    memset(p, 'b', last);
    p += last;
    *p++ = 0;
    memcpy(p, A_IN, 4);
    return (size_t)(p + 4 - packet);
}

TEST(the_longest_name_fits_and_a_longer_one_does_not)
{
    uint8_t packet[512], out[DNS_PACKET_MAX];
    struct dns_question q;

    assert_int_eq(dns_question_parse(packet, long_question(packet, 3, 61), &q), DNS_NOERROR);
    assert_uint_eq(strlen(q.name), 253);
    assert_uint_eq(dns_answer_format(&q, DNS_NOERROR, (const uint8_t *)"\1\2\3\4", out),
                   12 + 255 + 4 + 16);
    assert_int_eq(dns_question_parse(packet, long_question(packet, 3, 62), &q), DNS_FORMERR);
    assert_int_eq(dns_question_parse(packet, long_question(packet, 5, 63), &q), DNS_FORMERR);
}
