/* SPDX-License-Identifier: MIT */
/*
 * A tree of files on its way: a source (a walk of the host, a walk of a session, an archive) pushes
 * entries into a sink (a session, an archive). Every sink checks every entry by tree_check(), so
 * what a name may be and how much a tree may hold is decided in one place.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum tree_type { TREE_DIR = 'd', TREE_FILE = 'f', TREE_LINK = 'l' };

struct tree_entry {
    enum tree_type type;
    const char *path; /* relative, separated by '/', any bytes but NUL; no ".", "..", "" in it */
    uint64_t size;    /* TREE_FILE: exactly so many bytes of data follow */
    bool executable; /* files become 0755 or 0644, directories 0755; nothing else of a mode stays */
    int64_t mtime_ms;
    const char *target; /* TREE_LINK: relative, and inside the tree */
};

/* Counts of one tree, for tree_check(). */
struct tree_budget {
    uint64_t entries, bytes;
};

/*
 * Refuses a name that leaves the tree, a link out of it, and what passes TREE_*_MAX (transfer.h).
 * A link's target may have ".." only in front: behind a name it would count from where that name
 * leads, which may be another link. The error names the entry.
 */
int tree_check(struct tree_budget *budget, const struct tree_entry *e,
               struct error *reterr) must_check;

struct tree_sink {
    int (*entry)(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr);
    int (*data)(struct tree_sink *sink, const void *data, size_t len, struct error *reterr);
};

/*
 * A sink in front of another one, for a source that is only a list of names, as an archive is: two
 * files of one name, a file that is also a folder, a name below a file or a link, names that leave
 * the tree elsewhere (`..\x`, `C:\x`) and data that does not fit its size are refused. Folders come
 * before what is in them, each once, also those that the source does not name; all of them count.
 */
struct tree_guard {
    struct tree_sink sink; /* first */
    struct tree_sink *to;
    struct tree_budget budget;
    uint64_t missing; /* bytes of the last file that have not come */
    void *names;      /* a search tree of what was seen */
    void *garbage;    /* the same as a list */
};

void tree_guard_init(struct tree_guard *g, struct tree_sink *to);
void tree_guard_done(struct tree_guard *g);

/* The source is at its end: its last file is whole. */
int tree_guard_finish(struct tree_guard *g, struct error *reterr) must_check;
