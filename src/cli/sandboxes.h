/* SPDX-License-Identifier: MIT */
/* All sandboxes of the state directory, whichever process owns them: what `ps` and `stop` work on.
 */
#pragma once

#include "base/error.h"
#include "base/settings.h"
#include "wire/job.h"

#include <stdbool.h>

struct sandbox_row {
    char instance[64];
    struct keeper_event event;
    struct launch_job job;
};

struct sandbox_table {
    struct sandbox_row *rows;
    size_t count, cap;
};

int sandbox_table_read(const struct settings *settings, struct sandbox_table *ret,
                       struct error *reterr) must_check;
void sandbox_table_done(struct sandbox_table *t);

/* Ends one sandbox through its keeper; returns when every trace of it is gone. */
int sandbox_row_stop(const struct settings *settings, const struct sandbox_row *row,
                     struct error *reterr) must_check;
