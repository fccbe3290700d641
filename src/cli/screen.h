/* SPDX-License-Identifier: MIT */
/* Text that hostile code may have written, on its way to a person. */
#pragma once

#include <stddef.h>

/*
 * Writes to stdout or stderr. On a terminal only what draws, moves along the line or sets a colour
 * gets through, everything else is made visible; elsewhere the bytes stay as they are.
 */
void screen_write(int fd, const char *data, size_t len);

/* The same for a text, with a line's end behind it. */
void screen_line(int fd, const char *text);

/* A line of ours on stderr, with the program's name before it. */
void screen_message(const char *text);
