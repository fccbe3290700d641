/* SPDX-License-Identifier: MIT */
/*
 * Questions to the stub. Whatever comes, an answer fits its buffer, repeats the question to the
 * byte, and the name is canonical or empty.
 */
#include "wire/dns.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t a[4] = {198, 18, 0, 1};
    uint8_t out[DNS_PACKET_MAX];
    char again[HOST_SIZE];
    struct dns_question q;
    int rcode = dns_question_parse(data, size, &q);
    size_t len;

    if (rcode < 0)
        return 0;
    len = dns_answer_format(&q, (enum dns_rcode)rcode, rcode == DNS_NOERROR ? a : NULL, out);
    if (len > sizeof(out) || (q.wire_len && memcmp(out + 12, data + 12, q.wire_len) != 0))
        __builtin_trap();
    if (q.name[0] && (host_parse(q.name, strlen(q.name), again) < 0 || strcmp(q.name, again) != 0))
        __builtin_trap();
    return 0;
}
