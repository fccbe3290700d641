/* SPDX-License-Identifier: MIT */
/* Files that a person gives to a thread's tools, and gets from them. */
#include "api/api-internal.h"

const struct route_entry api_file_routes[] = {
    {},
};
