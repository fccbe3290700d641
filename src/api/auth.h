/* SPDX-License-Identifier: MIT */
/* Keys, the owners that they stand for, and how often each may ask. */
#pragma once

#include "api/api-internal.h"

/* Of API_KEY and API_KEYS_FILE; none of both: open, everybody is "anonymous". */
int key_table_new(const struct settings *settings, struct key_table **ret,
                  struct error *reterr) must_check;
void key_table_free(struct key_table *t);
bool key_table_is_open(const struct key_table *t);

/* The owner's name (at most 64 characters). */
bool key_table_find(struct key_table *t, const char *key, char ret[65]);

/* Token buckets: so many a second, twice as many at once; 0 is no limit. */
int limiter_new(double per_second, struct limiter **ret, struct error *reterr) must_check;
void limiter_free(struct limiter *l);
bool limiter_take(struct limiter *l, const char *who, double cost);
