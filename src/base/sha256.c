/* SPDX-License-Identifier: MIT */
/* SHA-256. Ours is enough for a few small files; a library for it would cost every start more. */
#include "base/sha256.h"

#include "base/macro.h"

#include <string.h>

enum { SHA256_ROUNDS = 64, SHA256_LENGTH_AT = 56 };

static const uint32_t round_constants[SHA256_ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule: the block's 16 words, and 48 made from them. */
static void schedule_fill(uint32_t w[SHA256_ROUNDS], const unsigned char *block)
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < SHA256_ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void block_add(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[SHA256_ROUNDS], v[8];

    schedule_fill(w, block);
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < SHA256_ROUNDS; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + round_constants[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
    *s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *s, const void *data, size_t len)
{
    const unsigned char *p = data;

    while (len) {
        size_t at = s->total % SHA256_BLOCK, part = MIN(len, SHA256_BLOCK - at);

        memcpy(s->block + at, p, part);
        s->total += part;
        p += part;
        len -= part;
        if (at + part == SHA256_BLOCK)
            block_add(s->state, s->block);
    }
}

void sha256_finish_hex(struct sha256 *s, char ret[2 * SHA256_SIZE + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = s->total * 8;
    unsigned char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_update(s, "\x80", 1);
    while (s->total % SHA256_BLOCK != SHA256_LENGTH_AT)
        sha256_update(s, "", 1);
    sha256_update(s, length, sizeof(length));
    for (int i = 0; i < 2 * SHA256_SIZE; i++)
        ret[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret[2 * SHA256_SIZE] = 0;
}
