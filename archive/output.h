/* SPDX-License-Identifier: MIT */
/*
 * What was found in an archive, as records. Entries are brought into the form that records want
 * here: "." and doubled slashes vanish, and what cannot be a file, a folder or a link is refused.
 */
#pragma once

#include "wire/record.h"

struct output {
    int (*send)(struct output *o, const void *data, size_t len, struct error *reterr);
    struct buf waiting;
};

/* A name as the archive has it: any bytes. */
struct entry {
    const char *name;
    size_t name_len;
    enum record_kind kind; /* RECORD_DIR, RECORD_FILE, RECORD_LINK */
    bool executable;
    uint64_t size;
    int64_t mtime_ms;
    const char *target; /* RECORD_LINK */
    size_t target_len;
};

void output_init(struct output *o,
                 int (*send)(struct output *, const void *, size_t, struct error *));
void output_done(struct output *o);

/* The archive's own root ("./") is no entry and passes without a record. */
int output_entry(struct output *o, const struct entry *e, struct error *reterr) must_check;
int output_data(struct output *o, const void *data, size_t len, struct error *reterr) must_check;

/* RECORD_END, or RECORD_ERROR with the reason. */
int output_finish(struct output *o, const struct error *why, struct error *reterr) must_check;

/* "entry 'NAME' is ...": refuses the archive. */
int entry_refuse(const struct entry *e, struct error *reterr, const char *fmt, ...)
    printf_like(3, 4);

/* Puts "entry 'NAME': " before an error that is set already. */
int entry_wrap(const struct entry *e, struct error *reterr);
