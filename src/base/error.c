/* SPDX-License-Identifier: MIT */
/* The error table and the three ways to fill an error. Texts are cut, never allocated. */
#define ERROR_IMPLEMENTATION
#include "base/error.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct error_entry error_table[ERR_CODE_COUNT] = {
    [ERR_OK] = {"OK", 200, 0, 0, "None"},
    [ERR_INVALID] = {"INVALID_INPUT", 400, -32602, 2, "ValueError"},
    [ERR_NOT_FOUND] = {"NOT_FOUND", 404, -32001, 3, "LookupError"},
    [ERR_EXISTS] = {"EXISTS", 409, -32002, 3, "FileExistsError"},
    [ERR_DENIED] = {"DENIED", 403, -32003, 3, "PermissionError"},
    [ERR_LIMIT] = {"LIMIT_REACHED", 429, -32004, 3, "LimitError"},
    [ERR_TIMEOUT] = {"TIMEOUT", 504, -32005, 124, "TimeoutError"},
    [ERR_CANCELLED] = {"CANCELLED", 499, -32006, 1, "CancelledError"},
    [ERR_BUSY] = {"BUSY", 409, -32007, 3, "BusyError"},
    [ERR_UNAVAILABLE] = {"UNAVAILABLE", 503, -32008, 3, "UnavailableError"},
    [ERR_PROTOCOL] = {"PROTOCOL", 502, -32009, 3, "ProtocolError"},
    [ERR_UPSTREAM] = {"UPSTREAM", 502, -32010, 3, "UpstreamError"},
    [ERR_DIED] = {"CONTAINER_DIED", 410, -32011, 1, "SandboxDiedError"},
    [ERR_DISK] = {"DISK_FULL", 507, -32012, 3, "DiskFullError"},
    [ERR_SYSTEM] = {"SYSTEM", 500, -32013, 3, "OSError"},
    [ERR_NO_MEMORY] = {"NO_MEMORY", 503, -32014, 3, "MemoryError"},
    [ERR_INTERNAL] = {"INTERNAL", 500, -32603, 3, "RuntimeError"},
};

const struct error_entry *error_entry(enum error_code code)
{
    if ((unsigned)code >= ERR_CODE_COUNT)
        code = ERR_INTERNAL;
    return &error_table[code];
}

/* Texts quote what came from outside, and are cut: every door may take them as one line of UTF-8.
 */
static void text_clean(char *text)
{
    for (unsigned char *s = (unsigned char *)text; *s;) {
        size_t len = str_character(s);

        if (len == 0 || *s < 0x20 || *s == 0x7f)
            *s = '?';
        s += len ? len : 1;
    }
}

int error_set(struct error *reterr, enum error_code code, const char *fmt, ...)
{
    va_list args;

    if (reterr) {
        reterr->code = code;
        reterr->sys = 0;
        va_start(args, fmt);
        vsnprintf(reterr->text, sizeof(reterr->text), fmt, args);
        va_end(args);
        text_clean(reterr->text);
    }
    return -(int)code;
}

static enum error_code code_from_errno(int sys)
{
    if (sys == ENOMEM)
        return ERR_NO_MEMORY;
    if (sys == ENOSPC || sys == EDQUOT)
        return ERR_DISK;
    return ERR_SYSTEM;
}

int error_sys(struct error *reterr, int sys, const char *fmt, ...)
{
    enum error_code code = code_from_errno(sys);
    va_list args;
    size_t used;

    if (!reterr)
        return -(int)code;
    reterr->code = code;
    reterr->sys = sys;
    va_start(args, fmt);
    vsnprintf(reterr->text, sizeof(reterr->text), fmt, args);
    va_end(args);
    used = strlen(reterr->text);
    snprintf(reterr->text + used, sizeof(reterr->text) - used, ": %s", strerrordesc_np(sys));
    text_clean(reterr->text);
    return -(int)code;
}

int error_wrap(struct error *reterr, const char *fmt, ...)
{
    char inner[sizeof(reterr->text)];
    va_list args;
    size_t used;

    if (!reterr)
        return -(int)ERR_INTERNAL;
    memcpy(inner, reterr->text, sizeof(inner));
    va_start(args, fmt);
    vsnprintf(reterr->text, sizeof(reterr->text), fmt, args);
    va_end(args);
    used = strlen(reterr->text);
    snprintf(reterr->text + used, sizeof(reterr->text) - used, ": %s", inner);
    text_clean(reterr->text);
    return -(int)reterr->code;
}
