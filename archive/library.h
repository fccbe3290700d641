/* SPDX-License-Identifier: MIT */
/*
 * The one door to libarchive, 3.6 and later. Of its readers only the gzip and zstd filters and the
 * "raw" and "empty" formats are named anywhere, so no other parser ever runs; what is in a tar or
 * zip file is decided by tar.c and zip.c, which refuse what libarchive would repair or guess.
 */
#pragma once

#include "base/macro.h"

#include <archive.h>
#include <archive_entry.h>

DEFINE_CLEANUP(struct archive *, archive_read_free)
#define auto_archive_read __attribute__((cleanup(archive_read_free_cleanup)))
DEFINE_CLEANUP(struct archive *, archive_write_free)
#define auto_archive_write __attribute__((cleanup(archive_write_free_cleanup)))
DEFINE_CLEANUP(struct archive_entry *, archive_entry_free)
#define auto_archive_entry __attribute__((cleanup(archive_entry_free_cleanup)))
