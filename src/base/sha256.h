/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), for names that follow content; not meant for secrets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t total;
    unsigned char block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);

/* The digest as lower-case hex digits; the object must be initialised again before more use. */
void sha256_finish_hex(struct sha256 *s, char ret[2 * SHA256_SIZE + 1]);
