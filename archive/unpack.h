/* SPDX-License-Identifier: MIT */
/* Any archive that is read here, known by its first bytes. */
#pragma once

#include "archive/output.h"
#include "archive/source.h"

#include <stdio.h>

/* An error is for output_finish() to tell. */
int unpack(const struct source *source, struct output *out, struct error *reterr) must_check;

/* The name of each format, one in a line. */
void unpack_list(FILE *to);
