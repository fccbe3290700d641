/* SPDX-License-Identifier: MIT */
/* Programs of the person's own: a browser, an editor. */
#pragma once

#include "base/error.h"
#include "base/path.h"

/*
 * The path of a program: along PATH, whose directories that are not absolute are passed over; a
 * name with a slash is one already. ERR_NOT_FOUND.
 */
int program_find(const char *name, char ret[PATH_LEN], struct error *reterr) must_check;
