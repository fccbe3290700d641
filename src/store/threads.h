/* SPDX-License-Identifier: MIT */
/* What other files of this room do with threads inside of their own transactions. */
#pragma once

#include "store/db.h"

/* Removes a thread of whatever owner with all that belongs to it. 1, or 0 when there is none. */
int store_thread_remove(struct store_tx *tx, const char *id, struct error *reterr) must_check;
