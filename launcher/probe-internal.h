/* SPDX-License-Identifier: MIT */
/* The single tries of the probe (probe-try.c) and their table. */
#pragma once

#include "launcher/probe.h"

#include <stddef.h>

struct probe_entry {
    const char *name;
    enum finding_result otherwise; /* what it is when the try fails */
    /* Tries it in a child of its own. Returns 0 with a detail, or <0 with the error as the detail
     * and perhaps a fix. */
    int (*run)(const struct probe_options *options, struct finding *ret, struct error *reterr);
    const char *fix; /* where the try gives none */
};

extern const struct probe_entry probe_table[];
extern const size_t probe_count;
