/* SPDX-License-Identifier: MIT */
/* What the clock's thread needs of crons. */
#pragma once

#include "api/api-internal.h"

/* store_cron_next_fn */
int64_t cron_next(const struct store_cron *c, int64_t after_us);

/* Creates the run that a cron plans. ERR_NOT_FOUND when its assistant is gone. */
int cron_fire(struct api *api, const struct store_cron *c, struct arena *arena,
              struct error *reterr) must_check;
