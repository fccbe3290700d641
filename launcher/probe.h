/* SPDX-License-Identifier: MIT */
/*
 * `sandbox-launch --probe`: tries each kernel feature that a sandbox needs, each in a child of its
 * own, and prints a line per feature: name, ok|missing|degraded, detail, fix, separated by tabs.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum finding_result {
    FINDING_OK,
    FINDING_DEGRADED, /* sandboxes start, with less */
    FINDING_MISSING,  /* they do not */
};

struct finding {
    char name[40];
    enum finding_result result;
    char detail[256];
    char fix[256];
};

struct probe_options {
    const char *image_dir; /* where id-mapped mounts have to work; NULL: not tried */
    const char *fake;      /* file of lines that replace what was found, for tests; NULL: none */
};

int probe_main(const struct probe_options *options);

/* A line as printed; false when it is none. */
bool finding_parse(const char *line, struct finding *ret);
