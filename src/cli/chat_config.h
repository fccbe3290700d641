/* SPDX-License-Identifier: MIT */
/*
 * What a person has chosen for this chat in place of the server's settings. It goes along with each
 * run as `configurable`, and is kept nowhere else: not the key, and not the rest.
 */
#pragma once

#include "base/json.h"

struct chat_config {
    char *model, *provider, *key, *base_url; /* NULL: the server's */
    int vision;                              /* 1, 0; -1: the server's */
};

static inline void chat_config_init(struct chat_config *c)
{
    *c = (struct chat_config){.vision = -1};
}
void chat_config_done(struct chat_config *c); /* the key is wiped */

/* `value` NULL: the server's again. 0, or -1 without memory. */
int chat_config_set(char **member, const char *value) must_check;

bool chat_config_is_empty(const struct chat_config *c);

/* {"configurable": {...}}, or NULL when nothing is chosen or memory is short (see is_empty). */
yyjson_mut_val *chat_config_write(const struct chat_config *c, yyjson_mut_doc *doc);
