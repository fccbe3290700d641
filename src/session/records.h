/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of what sandbox-archive says. That process may have been taken over by its
 * archive, so each record is checked as if anybody had written it.
 */
#pragma once

#include "session/tree.h"
#include "wire/record.h"

struct tree_records {
    struct tree_guard guard;
    struct buf in;
    bool ended;
};

void tree_records_init(struct tree_records *t, struct tree_sink *to);
void tree_records_done(struct tree_records *t);

/*
 * Takes bytes as they come. 1 when the tree is whole, 0 when more has to come; an error of the
 * other side is returned as the error that it is.
 */
int tree_records_feed(struct tree_records *t, const void *data, size_t len,
                      struct error *reterr) must_check;
