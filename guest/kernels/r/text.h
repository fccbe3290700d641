/* SPDX-License-Identifier: MIT */
/* Base64 and the inside of JSON strings, for bytes that R strings cannot hold or hold slowly. */
#pragma once

#include <stddef.h>

/* Writes (length + 2) / 3 * 4 bytes. */
void base64_encode(const unsigned char *from, size_t length, unsigned char *ret);

/* Text as the inside of a JSON string; bytes that are no UTF-8 become U+FFFD. Returns the length,
 * at most 6 times that of the text. A NULL `ret` only counts. */
size_t json_escape(const unsigned char *text, size_t length, unsigned char *ret);
