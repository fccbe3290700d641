/* SPDX-License-Identifier: MIT */
/* The parts of a tar header block and of the extended headers in front of it. */
#pragma once

#include "archive/output.h"
#include "archive/tar.h"

/* `magic` has the version behind it: each kind of tar has its own eight bytes. */
struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char target[100], magic[8], uname[32], gname[32], major[8], minor[8];
    char prefix[155], pad[12];
};

/* What extended headers say of the next entry. */
struct tar_extended {
    struct buf path, target;
    bool has_size, has_mtime;
    uint64_t size;
    int64_t mtime_ms;
    bool sparse;
    bool pax, any; /* a PAX header, a header of any kind was there */
};

void tar_extended_init(struct tar_extended *x);
void tar_extended_done(struct tar_extended *x);

bool tar_header_is_zero(const struct tar_header *h);
bool tar_header_check_sum(const struct tar_header *h);

/* Octal text or a base-256 number; false when it is malformed or does not fit. */
bool tar_number_parse(const char *field, size_t len, int64_t *ret);

/* The records of one PAX header; a global one may not say what differs between entries. */
int tar_pax_parse(struct tar_extended *x, bool global, const char *data, size_t len,
                  struct error *reterr) must_check;
