/* SPDX-License-Identifier: MIT */
/*
 * A table fitted to a width: columns keep what they need while there is room, the widest give way
 * first, and cells are broken into lines. Too many columns for the width become a list of records.
 */
#pragma once

#include "base/buf.h"
#include "cli/term/style.h"

#include <stdbool.h>

enum { TABLE_COLUMNS_MAX = 128, TABLE_CELLS_MAX = 16 * 1024 };

enum table_align { TABLE_LEFT, TABLE_CENTER, TABLE_RIGHT };

struct table {
    unsigned columns;
    enum table_align align[TABLE_COLUMNS_MAX];
    char **cells; /* row by row, the head first */
    size_t count, room;
};

void table_init(struct table *t, unsigned columns); /* 1 to TABLE_COLUMNS_MAX */
void table_done(struct table *t);

/* The next cell: text as in cli/term/text.h, without tabs. -1 when there are too many. */
int table_add(struct table *t, const char *text, size_t len) must_check;

struct table_layout {
    size_t width; /* of a whole line; 0: as wide as it is */
    enum term_color color;
    const char *before; /* each line */
};

/* Missing cells of the last row are empty. */
int table_render(const struct table *t, const struct table_layout *layout,
                 struct buf *ret) must_check;
