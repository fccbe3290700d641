/* SPDX-License-Identifier: MIT */
/*
 * Installers by table. An installer's word is not trusted (R's exits 0 on failure): a second
 * program asks the language whether each package is there in the wanted version. Package names
 * reach both programs as arguments behind fixed ones.
 */
#include "session/deps.h"

#include "base/clock.h"
#include "base/str.h"
#include "engine/engine.h"

#include <ctype.h>
#include <stdio.h>

enum { DEPS_MAX = 100, NAME_LEN = 214, VERSION_LEN = 64, TAIL_BYTES = 4096, ARG_BYTES = 512 };

#define KERNEL_DIR "/opt/sandbox-agent/kernel"

struct installer {
    const char *runtime;
    const char *const *install;
    const char *const *verify;
    const char *separator;     /* between name and version */
    const char *version_chars; /* besides letters and digits */
    bool scoped;               /* names like @scope/name */
};

static const char *const pip_install[] = {"python3",
                                          "-m",
                                          "pip",
                                          "install",
                                          "--user",
                                          "--no-cache-dir",
                                          "--no-input",
                                          "--disable-pip-version-check",
                                          "--progress-bar=off",
                                          "--",
                                          NULL};
static const char *const pip_verify[] = {"python3", "-P", KERNEL_DIR "/verify.py", NULL};
static const char *const npm_install[] = {
    "npm", "install", "--save", "--no-audit", "--no-fund", "--no-update-notifier", "--", NULL};
static const char *const npm_verify[] = {"node", KERNEL_DIR "/verify.mjs", NULL};
static const char *const r_install[] = {"Rscript", "--vanilla", KERNEL_DIR "/install.R", NULL};
static const char *const r_verify[] = {"Rscript", "--vanilla", KERNEL_DIR "/verify.R", NULL};

static const struct installer installers[] = {
    {"python", pip_install, pip_verify, "==", ".!+*_-", false},
    {"node", npm_install, npm_verify, "@", ".+*_-~^", true},
    {"r", r_install, r_verify, "@", ".-", false},
};

static const struct installer *installer_find(const char *runtime)
{
    for (size_t i = 0; i < ARRAY_LEN(installers); i++) {
        if (str_eq(installers[i].runtime, runtime))
            return &installers[i];
    }
    return NULL;
}

/* ---- grammar ---- */

static bool part_check(const char *s, size_t len)
{
    if (len == 0 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    }
    return true;
}

static bool name_check(const struct installer *in, const char *name)
{
    const char *slash;

    if (strlen(name) > NAME_LEN)
        return false;
    if (name[0] != '@')
        return part_check(name, strlen(name));
    slash = strchr(name, '/');
    return in->scoped && slash && part_check(name + 1, (size_t)(slash - name - 1)) &&
           part_check(slash + 1, strlen(slash + 1));
}

static bool version_check(const struct installer *in, const char *version)
{
    size_t len = strlen(version);
    size_t first = version[0] == '~' || version[0] == '^';

    if (len == 0)
        return true;
    if (len > VERSION_LEN || !isalnum((unsigned char)version[first]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)version[i]) && !strchr(in->version_chars, version[i]))
            return false;
    }
    return true;
}

int deps_check(const char *runtime, const struct session_dependency *deps, size_t count,
               struct error *reterr)
{
    const struct installer *in = installer_find(runtime);

    if (count && !in)
        return error_set(reterr, ERR_INVALID, "runtime '%s' has no installer", runtime);
    if (count > DEPS_MAX)
        return error_set(reterr, ERR_INVALID, "more than %d dependencies", DEPS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!name_check(in, deps[i].name))
            return error_set(reterr, ERR_INVALID, "'%.80s' is no package name for %s", deps[i].name,
                             runtime);
        if (deps[i].version && !version_check(in, deps[i].version))
            return error_set(reterr, ERR_INVALID, "'%.80s' is no version of package '%s'",
                             deps[i].version, deps[i].name);
    }
    return 0;
}

/* ---- running ---- */

struct install_output {
    const struct deps_job *job;
    char tail[TAIL_BYTES + 1]; /* the last bytes */
    size_t len;
};

static bool output_collect(void *user, const struct frame *f)
{
    struct install_output *o = user;
    const char *data = f->payload;
    size_t len = f->len;

    if (f->type != FRAME_STDOUT && f->type != FRAME_STDERR)
        return true;
    if (f->type == FRAME_STDERR && o->job->err)
        text_keep_feed(o->job->err, data, len);
    if (o->job->on_output)
        o->job->on_output(o->job->on_output_user, data, len);
    if (len > TAIL_BYTES) {
        data += len - TAIL_BYTES;
        len = TAIL_BYTES;
    }
    if (o->len + len > TAIL_BYTES) {
        size_t drop = o->len + len - TAIL_BYTES;

        memmove(o->tail, o->tail + drop, o->len - drop);
        o->len -= drop;
    }
    memcpy(o->tail + o->len, data, len);
    o->len += len;
    o->tail[o->len] = 0;
    return true;
}

static int argument_add(struct buf *ret, const struct installer *in,
                        const struct session_dependency *d)
{
    char text[ARG_BYTES];
    bool versioned = d->version && d->version[0];

    snprintf(text, sizeof(text), "%s%s%s", d->name, versioned ? in->separator : "",
             versioned ? d->version : "");
    return fields_add_str(ret, "argv", text);
}

static int request_build(const struct deps_job *job, const struct installer *in,
                         const char *const *command, struct buf *ret, struct error *reterr)
{
    int64_t left = job->deadline - clock_ms();
    int r = 0;

    for (; *command && r == 0; command++)
        r = fields_add_str(ret, "argv", *command);
    for (size_t i = 0; i < job->count && r == 0; i++)
        r = argument_add(ret, in, &job->deps[i]);
    if (r == 0)
        r = buf_append(ret, job->env_fields, job->env_fields_len);
    if (r == 0)
        r = fields_add_str(ret, "cwd", "/workspace");
    if (r == 0)
        r = fields_add_str(ret, "user", job->user);
    if (r == 0)
        r = fields_add_int(ret, "timeout_ms", MAX(left, 1000));
    return r < 0 ? error_no_memory(reterr) : 0;
}

/* The last lines of the installer, on one line and short enough for an error. */
static void tail_squeeze(const struct install_output *o, char *ret, size_t size)
{
    const char *from = o->tail;
    size_t n = 0;

    if (o->len > size - 1)
        from += o->len - (size - 1);
    for (; *from && n + 1 < size; from++) {
        if (*from != '\n')
            ret[n++] = (unsigned char)*from < 0x20 ? ' ' : *from;
        else if (n && ret[n - 1] != ' ')
            ret[n++] = ' ';
    }
    while (n && ret[n - 1] == ' ')
        n--;
    ret[n] = 0;
}

static int command_run(const struct deps_job *job, const struct installer *in,
                       const char *const *command, struct error *reterr)
{
    auto_free struct install_output *o = calloc(1, sizeof(*o));
    auto_buf struct buf payload;
    struct error error;
    char tail[280];
    int r;

    if (!o)
        return error_no_memory(reterr);
    o->job = job;
    buf_init(&payload, MIB);
    if ((r = request_build(job, in, command, &payload, reterr)) < 0)
        return r;
    r = control_call(job->sandbox->control,
                     &(struct control_request){.type = FRAME_SPAWN,
                                               .payload = &payload,
                                               .on_frame = output_collect,
                                               .user = o,
                                               .deadline = job->deadline + 5000},
                     &error);
    if (r == 0)
        return 0;
    tail_squeeze(o, tail, sizeof(tail));
    if (strstr(o->tail, "No space left") || strstr(o->tail, "ENOSPC"))
        return error_set(reterr, ERR_LIMIT,
                         "no space for the packages in /home/sandbox (SANDBOX_PACKAGES_SIZE): %s",
                         tail);
    return error_set(reterr, strstr(error.text, "timeout") ? ERR_TIMEOUT : ERR_UPSTREAM, "%s%s%s",
                     error.text, tail[0] ? ": " : "", tail);
}

int deps_install(const struct deps_job *job, struct error *reterr)
{
    const struct installer *in = installer_find(job->runtime);
    int r;

    if (!in)
        return error_set(reterr, ERR_INVALID, "runtime '%s' has no installer", job->runtime);
    r = command_run(job, in, in->install, reterr);
    if (r < 0)
        return error_wrap(reterr, "cannot install the dependencies");
    r = command_run(job, in, in->verify, reterr);
    if (r < 0)
        return error_wrap(reterr, "the installer ended well, but the packages are not there");
    return 0;
}
