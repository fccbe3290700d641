/* SPDX-License-Identifier: MIT */
/* PostgreSQL by libpq. */
#include "store/db.h"

static int postgres_open(const struct settings *settings, void **ret, struct error *reterr)
{
    return error_set(reterr, ERR_UNAVAILABLE, "PostgreSQL is not built in");
}

const struct store_engine store_postgres = {.name = "postgres", .open = postgres_open};
