/* SPDX-License-Identifier: MIT */
/* Whether one JSON value contains another, as PostgreSQL's `jsonb @>` says. */
#pragma once

#include "base/json.h"

bool contains_json(yyjson_val *whole, yyjson_val *part);
