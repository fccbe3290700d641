/* SPDX-License-Identifier: MIT */
/* The checksum of zip entries (IEEE 802.3), which libarchive does not check for bare data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of what was summed before (0 at first) and these bytes. */
uint32_t zip_crc32(uint32_t before, const void *data, size_t len);
