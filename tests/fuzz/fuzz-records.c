/* SPDX-License-Identifier: MIT */
/*
 * What a reader of archives that was taken over may say to the daemon: whatever it is, the sink
 * sees only names that stay in the tree, folders before what is in them, and files of their size.
 */
#include "session/records.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct checker {
    struct tree_sink sink; /* first */
    struct tree_budget budget;
    uint64_t missing;
};

static int checker_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct checker *c = (struct checker *)sink;

    if (c->missing > 0 || tree_check(&c->budget, e, NULL) < 0 || strncmp(e->path, "..\\", 3) == 0 ||
        strstr(e->path, "/..\\"))
        abort();
    c->missing = e->type == TREE_FILE ? e->size : 0;
    return 0;
}

static int checker_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    struct checker *c = (struct checker *)sink;

    if (len == 0 || len > c->missing)
        abort();
    c->missing -= len;
    return 0;
}

/* In pieces of the given size, as a pipe would bring them. */
static int records_run(const uint8_t *data, size_t size, size_t piece)
{
    struct checker c = {.sink = {checker_entry, checker_data}};
    struct tree_records records;
    int r = 0;

    tree_records_init(&records, &c.sink);
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = tree_records_feed(&records, data + at, MIN(piece, size - at), NULL);
    if (r > 0 && c.missing > 0)
        abort();
    tree_records_done(&records);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int whole = records_run(data, size, size + 1), pieces = records_run(data, size, PIECE);

    /* A record behind the end is an error only when it comes in the same piece. */
    if (whole != pieces && !(whole == -ERR_PROTOCOL && pieces == 1))
        abort();
    return 0;
}
