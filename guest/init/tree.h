/* SPDX-License-Identifier: MIT */
/*
 * Removing a tree of any depth and size in small steps. Nothing recurses and two descriptors are
 * enough: what is found below a subdirectory is moved up into the top directory first.
 */
#pragma once

#include "base/error.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

struct tree {
    int parent; /* borrowed */
    char base[NAME_MAX + 1];
    DIR *top;
    DIR *sub;           /* the subdirectory that is being emptied */
    int top_fd, sub_fd; /* theirs */
    char sub_name[NAME_MAX + 1];
    bool again; /* entries were added to the top, or came from elsewhere */
    bool begun;
    unsigned passes, moved;
    unsigned long salt;
};

/* Removes `base` below `parent`, a directory or anything else. */
void tree_init(struct tree *t, int parent, const char *base);
void tree_done(struct tree *t);

/* Goes on for about `budget` entries: 1 it is gone, 0 there is more, -1 errno. */
int tree_step(struct tree *t, int budget) must_check;
