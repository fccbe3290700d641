/* SPDX-License-Identifier: MIT */
/* Logging. The whole line is built first and written by one write(), so lines of threads do not
 * mix. */
#include "base/log.h"

#include "base/clock.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LOG_LINE = 2048 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static _Atomic int log_threshold = LOG_LEVEL_INFO;
static _Atomic bool log_json;

void log_configure(enum log_level level, bool json)
{
    atomic_store(&log_threshold, (int)level);
    atomic_store(&log_json, json);
}

int log_level_parse(const char *word, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        if (str_eq(word, level_names[i])) {
            *ret = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

/* What would end a line, change its direction, or is no text: controls, those of Unicode included,
 * and bytes that are no UTF-8. */
static bool is_shown(const unsigned char *p, size_t len)
{
    if (len < 2)
        return len == 1 && *p >= 0x20 && *p != 0x7f;
    if (len == 2)
        return p[0] != 0xc2 || p[1] >= 0xa0;
    if (len == 3 && p[0] == 0xe2)
        return !(p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) &&
               !(p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    return true;
}

/* Copies what may be shown; the bytes of the rest, and in JSON quotes, become \u00XX. */
static size_t escape(char *out, size_t room, const char *text, bool json)
{
    size_t len = 0, n;

    for (const unsigned char *p = (const unsigned char *)text; *p && len + 8 < room; p += n) {
        n = str_character(p);
        if (!is_shown(p, n) || (json && (*p == '"' || *p == '\\'))) {
            len += (size_t)snprintf(out + len, room - len, "\\u%04x", *p);
            n = 1;
            continue;
        }
        memcpy(out + len, p, n);
        len += n;
    }
    out[len] = 0;
    return len;
}

/* On its own: its buffers are no part of the stack, nor zeroed, where the line is not written. */
__attribute__((noinline, format(printf, 2, 0))) static void log_write(enum log_level level,
                                                                      const char *fmt, va_list args)
{
    char text[LOG_LINE], safe[LOG_LINE], line[LOG_LINE + 128];
    bool json = atomic_load(&log_json);
    int64_t now = clock_wall_ms();
    int len;

    vsnprintf(text, sizeof(text), fmt, args);
    escape(safe, sizeof(safe), text, json);
    if (json)
        len = snprintf(line, sizeof(line), "{\"time_ms\":%lld,\"level\":\"%s\",\"event\":\"%s\"}\n",
                       (long long)now, level_names[level], safe);
    else
        len = snprintf(line, sizeof(line), "sandbox-agent: %s: %s\n", level_names[level], safe);
    if (write(STDERR_FILENO, line, (size_t)len) < 0)
        return; /* nowhere left to say it */
}

void log_event(enum log_level level, const char *fmt, ...)
{
    va_list args;

    if ((int)level > atomic_load(&log_threshold))
        return;
    va_start(args, fmt);
    log_write(level, fmt, args);
    va_end(args);
}
