/* SPDX-License-Identifier: MIT */
/* Shared by the two files about images: paths and the lock of one runtime. */
#pragma once

#include "engine/image.h"

#define IMAGE_LOCK "lock"
#define IMAGE_JSON "image.json"
#define IMAGE_REMOVED ".removed-" /* how an image's name starts while it is removed */

/* IMAGE_DIR/<runtime> as a descriptor; made when missing if `make`. */
int image_dir_open(const struct image_store *store, const char *runtime, bool make,
                   struct error *reterr) must_check;

/* Whether a complete image of this name is below the directory. */
bool image_is_complete(int dir, const char *name);
