/* SPDX-License-Identifier: MIT */
/* The checksum of zip entries and gzip members (IEEE 802.3); libarchive does not compare it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of what was summed before (0 at first) and these bytes. */
uint32_t zip_crc32(uint32_t before, const void *data, size_t len);
