/* SPDX-License-Identifier: MIT */
/*
 * Which name is resolved when. A lookup belongs to one sandbox, serves all its connections to that
 * name, and is kept for a few seconds; each connection checks every address again.
 */
#pragma once

#include "egress/sandbox.h"

struct lookup {
    struct lookup *next;
    struct sandbox *box; /* NULL: its sandbox ended while it ran */
    const struct name *name;
    enum { LOOKUP_QUEUED, LOOKUP_RUNNING, LOOKUP_DONE } state;
    int64_t expires;
    struct resolver_job job;
};

/*
 * A result that is at hand, or NULL after seeing to it that conn_resolved() will be called; or NULL
 * with *ret_error <0 when memory is short or too many names of this sandbox are under way.
 */
const struct lookup *lookup_get(struct egress *e, struct sandbox *box, const struct name *name,
                                int *ret_error);

/* Takes results back and hands the next names out. */
void lookup_collect(struct egress *e);

void lookup_drop_all(struct sandbox *box);
