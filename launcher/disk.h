/* SPDX-License-Identifier: MIT */
/*
 * SANDBOX_DISK: a file in the run directory, an ext4 in it, a loop device under that. Hard limits
 * on bytes and inodes where the host's file system has no project quota. Root only.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define DISK_FILE "disk"

/*
 * Makes the file below `dirfd` (whose path is `dir_path`, for mkfs), owned inside by `owner`, and
 * mounts it. Returns a detached mount; *ret_loop is the device, set also when a later step fails.
 */
int disk_open(int dirfd, const char *dir_path, uint64_t bytes, uint32_t owner, int *ret_loop,
              struct error *reterr) must_check;

/* True when the device holds that file no more; asks the kernel to let go, so call it again. */
bool disk_close(int dirfd, int loop);
