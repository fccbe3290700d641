/* SPDX-License-Identifier: MIT */
/*
 * Dependency installation: strict names and versions, argument vectors and never a shell, and the
 * package must be there afterwards.
 */
#pragma once

#include "session/session.h"
#include "session/text.h"

/*
 * Checks names and versions before anything starts: ERR_INVALID names the first bad one.
 * Names: an optional `@scope/` (npm), letters, digits, `.`, `_`, `-`, first and last alphanumeric.
 * Versions: what the runtime's installer calls an exact version or, for pip and npm, a simple
 * range; never an option, path or URL.
 */
int deps_check(const char *runtime, const struct session_dependency *deps, size_t count,
               struct error *reterr) must_check;

/* Installs into a sandbox; fails with the installer's last lines. */
struct sandbox;
struct deps_job {
    struct sandbox *sandbox;
    const char *runtime;
    const struct session_dependency *deps;
    size_t count;
    const char *env_fields; /* encoded */
    size_t env_fields_len;
    const char *user; /* sandbox or root */
    int64_t deadline;
    void (*on_output)(void *user, const char *data, size_t len);
    void *on_output_user;
    struct text_keep *err; /* is fed what they write to stderr; or NULL */
};
int deps_install(const struct deps_job *job, struct error *reterr) must_check;
