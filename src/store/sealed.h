/* SPDX-License-Identifier: MIT */
/*
 * Secrets at rest: Fernet tokens (github.com/fernet/spec: version 0x80, 64-bit time, AES-128-CBC,
 * HMAC-SHA256, urlsafe base64) that Python's `cryptography` reads and writes, too.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct settings;

struct sealed_keys {
    unsigned char key[4][32]; /* the first seals; all open, so keys can be rotated */
    size_t count;
};

#define SEALED_KEY_FILE "encryption.key"

/* ENCRYPTION_KEY (urlsafe base64 of 32 bytes; several, comma-separated, newest first), else the
 * file `encryption.key` of the state directory with the same text: made when missing, mode 0600,
 * its owner checked. Never logged. */
int sealed_keys_load(const struct settings *settings, struct sealed_keys *ret,
                     struct error *reterr) must_check;
void sealed_keys_clear(struct sealed_keys *k);

/* Appends a token. */
int sealed_seal(const struct sealed_keys *k, const void *data, size_t len, struct buf *ret,
                struct error *reterr) must_check;

/* Appends what was sealed. ERR_DENIED for a token that these keys do not open, whatever is wrong
 * with it; then nothing is appended. `ttl_s` < 0: of any age; else also refused when it is older,
 * or more than a minute from the future. */
int sealed_open(const struct sealed_keys *k, const char *token, size_t len, int64_t ttl_s,
                struct buf *ret, struct error *reterr) must_check;

/* The same at another time and with an initialization vector that is known: the format's own test
 * vectors need them. */
struct sealed_moment {
    int64_t now_s;
    unsigned char iv[16]; /* of sealed_seal_at() */
};
int sealed_seal_at(const struct sealed_keys *k, const struct sealed_moment *at, const void *data,
                   size_t len, struct buf *ret, struct error *reterr) must_check;
int sealed_open_at(const struct sealed_keys *k, int64_t now_s, const char *token, size_t len,
                   int64_t ttl_s, struct buf *ret, struct error *reterr) must_check;

#define auto_sealed_keys __attribute__((cleanup(sealed_keys_clear)))
