/* SPDX-License-Identifier: MIT */
/*
 * The "fields" payload of control frames: repeated `u8 key length, key, u32 value length, value`.
 * It exists because the static init has no JSON library (Debian ships yyjson as a shared object
 * only) and because values hold any byte.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIELDS_KEY_MAX = 32 };

struct field {
    const char *key; /* not NUL-terminated */
    size_t key_len;
    const char *value;
    size_t len;
};

struct fields {
    const char *data;
    size_t len;
};

/* Iterates: 1 and `ret`, 0 at the end, ERR_PROTOCOL when the payload is malformed. *pos starts at
 * 0. */
int fields_next(const struct fields *f, size_t *pos, struct field *ret,
                struct error *reterr) must_check;

/* Whether the whole payload is well formed; the getters below assume that it was checked. */
int fields_check(const struct fields *f, struct error *reterr) must_check;

bool field_is(const struct field *f, const char *key);

/* First value of a key; false when absent. */
bool fields_find(const struct fields *f, const char *key, struct field *ret);

/* Decimal value of a key, `fallback` when absent, ERR_PROTOCOL when it is no number in [min, max].
 */
int fields_get_int(const struct fields *f, const char *key, int64_t fallback, int64_t *ret,
                   struct error *reterr) must_check;

/* A copy as a C string (malloc); ERR_PROTOCOL when it holds a NUL byte, ERR_NOT_FOUND when absent.
 */
int fields_get_str(const struct fields *f, const char *key, char **ret,
                   struct error *reterr) must_check;

/* All values of a repeated key as a NULL-terminated vector in one allocation (free the vector). */
int fields_get_strv(const struct fields *f, const char *key, char ***ret, size_t *ret_count,
                    struct error *reterr) must_check;

int fields_add(struct buf *b, const char *key, const void *value, size_t len) must_check;
int fields_add_str(struct buf *b, const char *key, const char *value) must_check;
int fields_add_int(struct buf *b, const char *key, int64_t value) must_check;
