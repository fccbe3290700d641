/* SPDX-License-Identifier: MIT */
/*
 * A line is at most LOG_LINE bytes, which a pipe takes whole, and holds printable ASCII only: what
 * a resolver or a proxy said cannot forge a second line or move a terminal's cursor.
 */
#include "egress/log.h"

#include "base/clock.h"
#include "base/fd.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOG_LINE = 1024 };

static unsigned long lost;

/* A pipe that is ready takes a line whole, so this write does not block. */
static void line_write(const char *line, size_t len)
{
    ssize_t n;

    if (fd_wait(STDERR_FILENO, POLLOUT, clock_ms()) <= 0) {
        lost++;
        return;
    }
    n = write(STDERR_FILENO, line, len);
    if (n < 0)
        lost++;
}

void log_line(const char *fmt, ...)
{
    char line[LOG_LINE] = "sandbox-egress: ";
    size_t len = strlen(line);
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    len = MIN(len + (size_t)n, sizeof(line) - 2);
    for (size_t i = 0; i < len; i++) {
        if (line[i] < 0x20 || line[i] > 0x7e)
            line[i] = '?';
    }
    line[len++] = '\n';
    if (lost > 0) {
        char note[80];
        unsigned long count = lost;

        lost = 0;
        n = snprintf(note, sizeof(note), "sandbox-egress: %lu lines were lost\n", count);
        line_write(note, (size_t)n);
        lost = lost ? lost + count - 1 : 0;
    }
    line_write(line, len);
}
