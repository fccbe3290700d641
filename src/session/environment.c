/* SPDX-License-Identifier: MIT */
/*
 * The environment of everything that runs in a sandbox. Nothing is inherited from the host: each
 * variable is written here, by the settings or by the caller.
 */
#include "session/session-internal.h"

#include "base/str.h"

#include <ctype.h>
#include <stdio.h>

enum { ENV_MAX_COUNT = 1000, ENV_MAX_BYTES = 256 * 1024 };

#define CA_FILE "/etc/sandbox-agent/ca.crt"

static const char *const fixed_env[] = {
    "PATH=/home/sandbox/.local/bin:/workspace/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
    "HOME=/home/sandbox",
    "USER=sandbox",
    "LOGNAME=sandbox",
    "SHELL=/bin/sh",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
    "LC_CTYPE=C.UTF-8",
    "TZ=Etc/UTC",
    "TERM=dumb",
    "UV_USE_IO_URING=0",
    "PYTHONUSERBASE=/home/sandbox/.local",
    "PIP_BREAK_SYSTEM_PACKAGES=1",
    "PIP_NO_CACHE_DIR=1",
    "PIP_DISABLE_PIP_VERSION_CHECK=1",
    "PIP_NO_INPUT=1",
    "PIP_ROOT_USER_ACTION=ignore",
    "NPM_CONFIG_CACHE=/tmp/.npm",
    "NPM_CONFIG_UPDATE_NOTIFIER=false",
    "NPM_CONFIG_FUND=false",
    "NPM_CONFIG_AUDIT=false",
    "R_LIBS_USER=/home/sandbox/R",
    "R_PROFILE_USER=",
    "MPLBACKEND=Agg",
    "MATPLOTLIBRC=/etc/matplotlibrc",
    "MPLCONFIGDIR=/home/sandbox/.config/matplotlib",
    "GIT_TERMINAL_PROMPT=0",
};

/* Every name by which some tool looks for CA certificates. */
static const char *const ca_names[] = {
    "PIP_CERT",       "SSL_CERT_FILE",      "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NPM_CONFIG_CAFILE",
};

static const char *const thread_names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                                           "MKL_NUM_THREADS"};

/* Whether the caller sets this variable (NAME or NAME=value) itself. Of two entries with one name
 * programs read the first, so ours must not be there then. */
static bool env_is_given(const char *const *env, const char *entry)
{
    size_t len = strcspn(entry, "=");

    for (; env && *env; env++) {
        if (strncmp(*env, entry, len) == 0 && (*env)[len] == '=')
            return true;
    }
    return false;
}

/* Adds NAME=value unless the caller has it. */
static int entry_add(const struct session_options *o, struct buf *ret, const char *entry)
{
    return env_is_given(o->env, entry) ? 0 : fields_add_str(ret, "env", entry);
}

static int env_add(const struct session_options *o, struct buf *ret, const char *name,
                   const char *value)
{
    auto_buf struct buf text;

    buf_init(&text, ENV_MAX_BYTES);
    if (buf_printf(&text, "%s=%s", name, value) < 0)
        return -1;
    return entry_add(o, ret, text.data);
}

static int ca_add(const struct session_options *o, struct buf *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(ca_names); i++) {
        if (env_add(o, ret, ca_names[i], CA_FILE) < 0)
            return -1;
    }
    return 0;
}

/* From a plain http index pip installs only what a second setting allows; being set is that. */
static int pip_index_add(const struct settings *s, const struct session_options *o, struct buf *ret)
{
    const char *host = s->pip_index + strlen("http://"), *at;
    char text[256];
    size_t len;

    if (!s->pip_index[0])
        return 0;
    if (env_add(o, ret, "PIP_INDEX_URL", s->pip_index) < 0)
        return -1;
    if (!str_starts(s->pip_index, "http://"))
        return 0;
    len = strcspn(host, "/?#");
    at = memrchr(host, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1), host);
    return env_add(o, ret, "PIP_TRUSTED_HOST", text);
}

static int indexes_add(const struct settings *s, const struct session_options *o, struct buf *ret)
{
    if (pip_index_add(s, o, ret) < 0)
        return -1;
    if (s->npm_registry[0] && env_add(o, ret, "NPM_CONFIG_REGISTRY", s->npm_registry) < 0)
        return -1;
    return s->cran[0] ? env_add(o, ret, "SANDBOX_CRAN", s->cran) : 0;
}

/* More threads than the CPU quota only cost: one per whole core. */
static int threads_add(const struct settings *s, const struct session_options *o, struct buf *ret)
{
    int64_t quota = o->cpu_quota ? o->cpu_quota : s->cpu_quota;
    int64_t threads = quota ? MAX((quota + 99999) / 100000, 1) : 4;
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)threads);
    for (size_t i = 0; i < ARRAY_LEN(thread_names); i++) {
        if (env_add(o, ret, thread_names[i], text) < 0)
            return -1;
    }
    return 0;
}

static bool env_name_check(const char *entry)
{
    const char *p = entry;

    if (!isalpha((unsigned char)*p) && *p != '_')
        return false;
    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    return *p == '=' && p - entry <= 255;
}

static int caller_add(const struct session_options *o, struct buf *ret, struct error *reterr)
{
    size_t count = 0, bytes = 0;

    for (const char *const *e = o->env; e && *e; e++) {
        if (!env_name_check(*e))
            return error_set(reterr, ERR_INVALID, "'%.40s' is no NAME=value for the environment",
                             *e);
        if (env_is_given(e + 1, *e))
            continue; /* the last one counts */
        bytes += strlen(*e);
        if (++count > ENV_MAX_COUNT || bytes > ENV_MAX_BYTES || fields_add_str(ret, "env", *e) < 0)
            return error_set(reterr, ERR_LIMIT, "the environment is above %d variables or %d KiB",
                             ENV_MAX_COUNT, ENV_MAX_BYTES / 1024);
    }
    return 0;
}

int environment_fields(const struct settings *s, const struct session_options *o, bool has_ca,
                       struct buf *ret, struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed_env); i++) {
        if (entry_add(o, ret, fixed_env[i]) < 0)
            return error_no_memory(reterr);
    }
    if ((has_ca && ca_add(o, ret) < 0) || indexes_add(s, o, ret) < 0 || threads_add(s, o, ret) < 0)
        return error_no_memory(reterr);
    return caller_add(o, ret, reterr);
}
