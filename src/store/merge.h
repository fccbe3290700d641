/* SPDX-License-Identifier: MIT */
/* Changes to JSON objects that the store keeps. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

/* Members of `patch` replace those of `base`, one by one and not deeper; either may be NULL. The
 * result, at least "{}", lives in the arena. ERR_INVALID where one is not an object. */
int merge_json(const char *base, const char *patch, struct arena *arena, const char **ret,
               struct error *reterr) must_check;
