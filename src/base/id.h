/* SPDX-License-Identifier: MIT */
/* Random identifiers: 128 bits as 32 lower-case hex digits. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { ID_LEN = 32, ID_SHORT = 8 };

int id_new(char ret[ID_LEN + 1], struct error *reterr) must_check;

/* Whether the text is a whole id. */
bool id_check(const char *s);

/* Whether the text may be the start of an id: 4 to 32 hex digits. */
bool id_prefix_check(const char *s);
