/* SPDX-License-Identifier: MIT */
/* Eight bytes at a time, by tables that are made at the first call: this process has one thread. */
#include "archive/crc32.h"

#include <endian.h>
#include <string.h>

enum { SLICES = 8 };
#define POLYNOMIAL 0xedb88320u

/* tables[k][b]: what byte b does to the sum when k more bytes come behind it. */
static uint32_t tables[SLICES][256];

static void tables_make(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        tables[0][byte] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (int byte = 0; byte < 256; byte++)
            tables[k][byte] = tables[0][tables[k - 1][byte] & 255] ^ tables[k - 1][byte] >> 8;
}

uint32_t zip_crc32(uint32_t before, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint32_t crc = ~before;

    if (tables[0][1] == 0)
        tables_make();
    for (; len >= SLICES; len -= SLICES, p += SLICES) {
        uint64_t word, sum = 0;

        memcpy(&word, p, sizeof(word));
        word = le64toh(word) ^ crc;
        for (int k = 0; k < SLICES; k++)
            sum ^= tables[SLICES - 1 - k][word >> 8 * k & 255];
        crc = (uint32_t)sum;
    }
    for (; len > 0; len--)
        crc = tables[0][(crc ^ *p++) & 255] ^ crc >> 8;
    return ~crc;
}
