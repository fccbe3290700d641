/* SPDX-License-Identifier: MIT */
/*
 * Making a session, step by step, and taking over those of a former process. Whatever step fails,
 * the sandbox is closed and the place in the table is free again.
 */
#include "session/manager-internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "engine/native/libexec.h"
#include "session/deps.h"
#include "wire/utf8.h"

#include <fcntl.h>
#include <stdio.h>

enum {
    INSTALL_MS = 600000,
    KERNEL_MS = 60000,
    NOFILE = 4096,
    CPU_PERIOD_US = 100000,
    ENV_BYTES = 512 * 1024,
    ARGV_BYTES = 4096,
    META_REST = 64, /* of a session's record, for what is not the dependencies */
};

#define KERNEL_DIR "/opt/sandbox-agent/kernel"

/* A runtime; its kernel's argument vector is the file `argv` beside the kernel, one argument a
 * line. */
struct runtime_entry {
    const char *name;
    int sigint_delay_ms; /* Node is stopped by its own means first */
};

static const struct runtime_entry runtimes[] = {
    {"python", 0},
    {"node", 150},
    {"r", 0},
};

static const struct runtime_entry *runtime_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        if (str_eq(runtimes[i].name, name))
            return &runtimes[i];
    }
    return NULL;
}

/* ---- the image ---- */

static void image_progress(void *user, const char *line)
{
    manager_progress(user, line);
}

static int image_get(struct session_manager *m, const struct session_options *o,
                     const char *runtime, char ret[PATH_LEN], struct error *reterr)
{
    struct error error;
    int r;

    if (o->image) {
        char *real = realpath(o->image, NULL);

        r = real ? str_copy(ret, PATH_LEN, real) : -1;
        free(real);
        return r < 0 ? error_set(reterr, ERR_INVALID, "'%s' is no image directory", o->image) : 0;
    }
    r = image_find(&m->images, runtime, ret, PATH_LEN, &error);
    if (r < 0 && error.code == ERR_NOT_FOUND && !m->options.no_build) {
        if (!m->engine->ops->build)
            return error_set(reterr, ERR_UNAVAILABLE, "the image of '%s' is missing", runtime);
        r = m->engine->ops->build(m->engine, runtime, image_progress, m, reterr);
        return r < 0 ? r : image_find(&m->images, runtime, ret, PATH_LEN, reterr);
    }
    if (r < 0 && reterr)
        *reterr = error;
    return r;
}

/* ---- the sandbox ---- */

static int mounts_fill(struct session_manager *m, const char *runtime, struct job_mount *mounts,
                       size_t *ret_count, struct error *reterr)
{
    char name[32];
    int r;

    snprintf(name, sizeof(name), "kernels/%s", runtime);
    r = libexec_find(name, mounts[0].source, sizeof(mounts[0].source), reterr);
    if (r < 0)
        return r;
    snprintf(mounts[0].target, sizeof(mounts[0].target), "%s", KERNEL_DIR);
    *ret_count = 1;
    if (m->ca_dir[0]) {
        snprintf(mounts[1].source, sizeof(mounts[1].source), "%s", m->ca_dir);
        snprintf(mounts[1].target, sizeof(mounts[1].target), "/etc/sandbox-agent");
        *ret_count = 2;
    }
    return 0;
}

static char *meta_format(const struct session *s)
{
    auto_buf struct buf b;

    buf_init(&b, JOB_META - 1);
    if (buf_printf(&b, "{\"dependencies\":%s,\"network\":%d}",
                   s->dependencies ? s->dependencies : "{}", (int)s->network) < 0)
        return NULL;
    return buf_take(&b);
}

static int sandbox_start(struct session *s, const struct session_options *o, const char *rootfs,
                         struct error *reterr)
{
    struct session_manager *m = s->manager;
    const struct settings *settings = m->settings;
    auto_free struct job_mount *mounts = calloc(2, sizeof(*mounts));
    auto_free char *meta = meta_format(s);
    struct sandbox *sandbox = NULL;
    size_t mount_count;
    struct sandbox_spec spec = {
        .id = s->id,
        .owner = s->owner,
        .runtime = s->runtime,
        .rootfs = rootfs,
        .hostname = "sandbox",
        .meta = meta,
        .as_root = settings->execute_as_root,
        .allow_degraded = settings->allow_degraded,
        .install_network =
            o->dependency_count && s->network == JOB_NETWORK_NONE && settings->network_enabled,
        .network = s->network,
        .memory_bytes = s->memory_bytes,
        .tmpfs_bytes = s->tmpfs_bytes,
        .home_bytes = s->home_bytes,
        .disk_bytes = settings->disk,
        .cpu_quota_us = (uint32_t)(o->cpu_quota ? o->cpu_quota : settings->cpu_quota),
        .cpu_period_us = CPU_PERIOD_US,
        .pids = s->pids,
        .nofile = NOFILE,
        .lease_ms = (uint32_t)MIN(
            (m->options.keep_sessions ? settings->idle_ttl_s : settings->lease_s) * 1000,
            (int64_t)INT32_MAX),
        .ports = m->ports,
        .port_count = m->port_count,
        .mounts = mounts,
    };
    int r;

    if (!mounts)
        return error_no_memory(reterr);
    if (!meta)
        return error_no_memory(reterr);
    if ((r = mounts_fill(m, s->runtime, mounts, &mount_count, reterr)) < 0)
        return r;
    spec.mount_count = mount_count;
    r = m->engine->ops->open(m->engine, &spec, &sandbox, reterr);
    if (r == 0 && !(sandbox->degraded & DEGRADED_NO_QUOTA))
        s->disk_bytes = spec.disk_bytes;
    return r < 0 ? r : session_set_sandbox(s, sandbox, reterr);
}

static void install_output(void *user, const char *data, size_t len)
{
    struct session_manager *m = user;
    char line[200];

    while (len) {
        const char *end = memchr(data, '\n', len);
        size_t n = end ? (size_t)(end - data) : len;

        snprintf(line, sizeof(line), "%.*s", (int)MIN(n, sizeof(line) - 1), data);
        if (n)
            manager_progress(m, line);
        data += n + (end != NULL);
        len -= n + (end != NULL);
    }
}

static int dependencies_install(struct session *s, const struct session_options *o,
                                struct error *reterr)
{
    struct session_manager *m = s->manager;
    auto_cleanup(text_keep_done) struct text_keep err;
    struct deps_job job = {
        .sandbox = s->sandbox,
        .runtime = s->runtime,
        .deps = o->dependencies,
        .count = o->dependency_count,
        .env_fields = s->env_fields,
        .env_fields_len = s->env_fields_len,
        .user = m->settings->execute_as_root ? "root" : "sandbox",
        .deadline = clock_deadline(INSTALL_MS),
        .on_output = install_output,
        .on_output_user = m,
        .err = &err,
    };
    int r;

    text_keep_init(&err, (size_t)m->settings->max_stderr_chars);
    if (!o->dependency_count)
        return 0;
    if (!m->settings->network_enabled)
        return error_set(reterr, ERR_INVALID,
                         "dependencies need a network, and CONTAINER_NETWORK_ENABLED is false");
    r = deps_install(&job, reterr);
    if (o->installer_stderr)
        text_keep_format(&err, o->installer_stderr);
    if (r < 0 || s->network != JOB_NETWORK_NONE)
        return r;
    return m->engine->ops->seal(m->engine, s->sandbox, reterr);
}

static int kernel_argv(const char *runtime, struct buf *ret, struct error *reterr)
{
    char name[48], path[PATH_LEN], *line, *rest;
    auto_free char *text = NULL;
    int r;

    snprintf(name, sizeof(name), "kernels/%s/argv", runtime);
    if ((r = libexec_find(name, path, sizeof(path), reterr)) < 0 ||
        (r = fd_read_file(AT_FDCWD, path, ARGV_BYTES, &text, NULL, reterr)) < 0)
        return r;
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (fields_add_str(ret, "argv", line) < 0)
            return error_no_memory(reterr);
    }
    return 0;
}

static int kernel_start(struct session *s, struct error *reterr)
{
    const struct runtime_entry *runtime = runtime_find(s->runtime);
    auto_buf struct buf b;
    int r;

    buf_init(&b, MIB);
    if ((r = kernel_argv(s->runtime, &b, reterr)) < 0)
        return r;
    if (buf_append(&b, s->env_fields, s->env_fields_len) < 0 ||
        fields_add_str(&b, "cwd", "/workspace") < 0 || fields_add_str(&b, "user", "sandbox") < 0 ||
        fields_add_int(&b, "sigint_delay_ms", runtime->sigint_delay_ms) < 0 ||
        fields_add_int(&b, "ready_ms", KERNEL_MS) < 0)
        return error_no_memory(reterr);
    r = control_call(s->sandbox->control,
                     &(struct control_request){.type = FRAME_KERNEL,
                                               .payload = &b,
                                               .deadline = clock_deadline(KERNEL_MS + 5000)},
                     reterr);
    return r < 0 ? error_wrap(reterr, "the %s kernel did not start", s->runtime) : 0;
}

/* ---- create ---- */

static char *dependencies_json(const struct session_options *o)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf b;

    buf_init(&b, JOB_META - META_REST);
    for (size_t i = 0; i < o->dependency_count; i++) {
        const char *version = o->dependencies[i].version;

        yyjson_mut_obj_add_strcpy(doc, root, o->dependencies[i].name, version ? version : "");
    }
    yyjson_mut_doc_set_root(doc, root);
    return json_mut_write(doc, &b, NULL) < 0 ? NULL : buf_take(&b);
}

static int network_choose(const struct settings *settings, int wanted, enum job_network *ret,
                          struct error *reterr)
{
    if (wanted < 0)
        *ret = settings->network_enabled ? JOB_NETWORK_PUBLIC : JOB_NETWORK_NONE;
    else if (wanted == JOB_NETWORK_NONE || wanted == JOB_NETWORK_PUBLIC)
        *ret = (enum job_network)wanted;
    else
        return error_set(reterr, ERR_INVALID, "network is 'none' or 'public'");
    if (*ret != JOB_NETWORK_NONE && !settings->network_enabled)
        return error_set(reterr, ERR_DENIED,
                         "CONTAINER_NETWORK_ENABLED is false: no session may have a network");
    return 0;
}

/* For a caller who may ask for less than the operator allows, but not for more. */
static int limits_compare(const struct settings *settings, const struct session_options *o,
                          struct error *reterr)
{
    if (o->memory_bytes > settings->memory_limit)
        return error_set(reterr, ERR_INVALID,
                         "memory_limit is above CONTAINER_MEMORY_LIMIT, which is %llu MiB",
                         (unsigned long long)(settings->memory_limit / MIB));
    if (o->tmpfs_bytes > settings->tmpfs_size)
        return error_set(reterr, ERR_INVALID,
                         "tmpfs_size is above CONTAINER_TMPFS_SIZE, which is %llu MiB",
                         (unsigned long long)(settings->tmpfs_size / MIB));
    if (settings->cpu_quota && o->cpu_quota > settings->cpu_quota)
        return error_set(reterr, ERR_INVALID,
                         "cpu_quota is above CONTAINER_CPU_QUOTA, which is %lld",
                         (long long)settings->cpu_quota);
    if (o->pids > settings->pids_limit)
        return error_set(reterr, ERR_INVALID,
                         "pids_limit is above CONTAINER_PIDS_LIMIT, which is %lld",
                         (long long)settings->pids_limit);
    return 0;
}

static int limits_choose(struct session *s, const struct session_options *o, struct error *reterr)
{
    const struct settings *settings = s->manager->settings;

    s->memory_bytes = o->memory_bytes ? o->memory_bytes : settings->memory_limit;
    s->tmpfs_bytes = o->tmpfs_bytes ? o->tmpfs_bytes : settings->tmpfs_size;
    s->home_bytes = settings->packages_size ? settings->packages_size : s->memory_bytes / 2;
    s->pids = (uint32_t)(o->pids ? o->pids : settings->pids_limit);
    if (s->memory_bytes < 32 * MIB)
        return error_set(reterr, ERR_INVALID, "a memory limit below 32 MiB starts no interpreter");
    /* As for the settings of these names. */
    if (o->cpu_quota && (o->cpu_quota < 1000 || o->cpu_quota > 100000000))
        return error_set(reterr, ERR_INVALID, "the CPU quota is not from 1000 to 100000000");
    if (o->pids && (o->pids < 8 || o->pids > 1000000))
        return error_set(reterr, ERR_INVALID, "the limit of processes is not from 8 to 1000000");
    return o->lowers_limits ? limits_compare(settings, o, reterr) : 0;
}

/* It stands in the list of sessions, which is JSON. */
static int owner_check(const char *owner, struct error *reterr)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;
    size_t len = owner ? strlen(owner) : 0;

    if (len > 128)
        return error_set(reterr, ERR_INVALID, "the owner's name is longer than 128 bytes");
    buf_init(&text, 4 * KIB);
    if (utf8_repair_feed(&repair, owner ? owner : "", len, &text) < 0 ||
        utf8_repair_finish(&repair, &text) < 0)
        return error_no_memory(reterr);
    if (text.len != len || memcmp(buf_str(&text), owner ? owner : "", len) != 0)
        return error_set(reterr, ERR_INVALID, "the owner's name is no UTF-8");
    return 0;
}

static int session_prepare(struct session *s, const struct session_options *o, struct error *reterr)
{
    const char *runtime = o->runtime ? o->runtime : "python";
    auto_buf struct buf env;
    int r;

    if (!runtime_find(runtime))
        return error_set(reterr, ERR_INVALID,
                         "runtime '%.32s' is not supported; there are python, node and r", runtime);
    if (str_copy(s->runtime, sizeof(s->runtime), runtime) < 0)
        return error_set(reterr, ERR_INVALID, "runtime '%.32s' is not supported", runtime);
    if ((r = owner_check(o->owner, reterr)) < 0 ||
        (r = deps_check(runtime, o->dependencies, o->dependency_count, reterr)) < 0 ||
        (r = network_choose(s->manager->settings, o->network, &s->network, reterr)) < 0 ||
        (r = limits_choose(s, o, reterr)) < 0)
        return r;
    s->dependencies = dependencies_json(o);
    if (!s->dependencies)
        return error_set(reterr, ERR_INVALID, "too many dependencies to record");
    buf_init(&env, ENV_BYTES);
    r = environment_fields(s->manager->settings, o, s->manager->ca_dir[0], &env, reterr);
    if (r < 0)
        return r;
    s->env_fields_len = env.len;
    s->env_fields = buf_take(&env);
    return s->env_fields ? 0 : error_no_memory(reterr);
}

static int session_bring_up(struct session *s, const struct session_options *o,
                            struct error *reterr)
{
    char rootfs[PATH_LEN];
    int r = image_get(s->manager, o, s->runtime, rootfs, reterr);

    if (r < 0 || (r = sandbox_start(s, o, rootfs, reterr)) < 0 ||
        (r = dependencies_install(s, o, reterr)) < 0 || (r = kernel_start(s, reterr)) < 0)
        return r;
    return session_set_running(s, reterr);
}

/* A sandbox that died of a limit while it started, or under its installer, is told as that. */
static int bring_up_failed(struct session *s, int r, struct error *reterr)
{
    char cause[32];

    if (!s->sandbox || (r != -ERR_DIED && !control_is_lost(s->sandbox->control)))
        return r;
    if (sandbox_wait_ended(s->sandbox, clock_ms() + 1000, cause) && str_eq(cause, "oom"))
        return error_set(reterr, ERR_LIMIT,
                         "the session does not start within its memory limit of %llu MiB",
                         (unsigned long long)(s->memory_bytes / MIB));
    return r;
}

int session_create(struct session_manager *m, const struct session_options *o,
                   struct session_info *ret, struct error *reterr)
{
    struct session *s = session_new(m, o->owner, reterr);
    int r;

    if (!s)
        return -ERR_NO_MEMORY;
    r = session_prepare(s, o, reterr);
    if (r == 0)
        r = manager_reserve(m, s, reterr);
    if (r == 0) {
        if (o->on_id)
            o->on_id(o->on_id_user, s->id);
        r = session_bring_up(s, o, reterr);
        if (r < 0) {
            r = bring_up_failed(s, r, reterr);
            if (manager_end(m, s, "lost", NULL) < 0)
                log_warn("a sandbox that failed to start could not be removed whole, ignoring");
        }
    }
    if (r == 0) {
        session_fill_info(s, ret);
        manager_wake(m); /* owners past the limit are evicted now */
    }
    session_unref(s);
    return r;
}

/* ---- adoption ---- */

static void meta_parse(struct session *s)
{
    const char *meta = s->sandbox->job->meta;
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root, *deps;
    auto_buf struct buf b;

    s->network = (enum job_network)s->sandbox->job->network;
    if (json_parse(meta, strlen(meta), &doc, NULL) < 0)
        return;
    root = yyjson_doc_get_root(doc);
    deps = yyjson_obj_get(root, "dependencies");
    buf_init(&b, JOB_META);
    if (yyjson_is_obj(deps) && json_write(deps, &b, NULL) == 0)
        s->dependencies = buf_take(&b);
}

/* "stream:kind:state:offset" of WELCOME. */
static int run_adopt_entry(struct session *s, const struct field *f, struct error *reterr)
{
    char text[64], *colon;
    struct run *r, **grown;
    int64_t stream;
    bool running;

    if (f->len >= sizeof(text))
        return error_set(reterr, ERR_PROTOCOL, "bad run in WELCOME");
    memcpy(text, f->value, f->len);
    text[f->len] = 0;
    colon = strchr(text, ':');
    if (!colon)
        return error_set(reterr, ERR_PROTOCOL, "bad run in WELCOME");
    *colon++ = 0;
    if (str_parse_int(text, 1, UINT32_MAX, &stream) < 0)
        return error_set(reterr, ERR_PROTOCOL, "bad run in WELCOME");
    running = strstr(colon, ":running:") != NULL;
    r = run_new(s, str_starts(colon, "exec:") ? RUN_CODE : RUN_COMMAND, reterr);
    grown = realloc(s->adopted, (s->adopted_count + 1) * sizeof(*grown));
    if (grown)
        s->adopted = grown;
    if (!r || !grown) {
        run_unref(r);
        return error_no_memory(reterr);
    }
    s->adopted[s->adopted_count++] = r;
    if (running) {
        pthread_mutex_lock(&s->lock);
        session_set_current(s, run_ref(r));
        pthread_mutex_unlock(&s->lock);
    }
    run_adopt(r, (uint32_t)stream);
    return 0;
}

static int session_adopt(struct session_manager *m, struct sandbox *sandbox, struct session *s,
                         struct error *reterr)
{
    const struct launch_job *job = sandbox->job;
    struct fields welcome = control_welcome(sandbox->control);
    auto_free char *kernel = NULL;
    struct field f;
    size_t pos = 0;
    int r;

    memcpy(s->id, sandbox->id, sizeof(s->id));
    memcpy(s->runtime, job->runtime, sizeof(s->runtime));
    if ((r = session_set_sandbox(s, sandbox_ref(sandbox), reterr)) < 0)
        return r;
    s->memory_bytes = job->memory_bytes;
    s->tmpfs_bytes = job->tmpfs_bytes;
    s->disk_bytes = s->sandbox->degraded & DEGRADED_NO_QUOTA ? 0 : job->disk_bytes;
    s->home_bytes = job->home_bytes;
    s->pids = job->pids;
    s->created_wall_ms = job->created_ms;
    s->created_ms = clock_ms() - MAX(clock_wall_ms() - job->created_ms, 0);
    meta_parse(s);
    if (fields_get_str(&welcome, "kernel", &kernel, reterr) < 0 || str_eq(kernel, "none"))
        return error_set(reterr, ERR_DIED, "its creation was not finished");
    /* No environment of ours: commands get the kernel's, which its caller had chosen. */
    if ((r = session_set_running(s, reterr)) < 0)
        return r;
    while (fields_next(&welcome, &pos, &f, reterr) > 0) {
        if (field_is(&f, "run") && (r = run_adopt_entry(s, &f, reterr)) < 0)
            return r;
    }
    return manager_reserve(m, s, reterr);
}

int manager_adopt(struct session_manager *m, struct error *reterr)
{
    struct sandbox **list = NULL;
    size_t count = 0;
    int r = m->engine->ops->adopt(m->engine, &list, &count, reterr);

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct error error = {};
        struct session *s = session_new(m, list[i]->job->owner, &error);

        if (s && session_adopt(m, list[i], s, &error) < 0) {
            log_warn("session %s cannot be taken over, ending it: %s", list[i]->id, error.text);
            if (manager_end(m, s, "lost", NULL) < 0)
                log_warn("session %s could not be ended whole, ignoring", list[i]->id);
        }
        session_unref(s);
    }
    for (size_t i = 0; i < count; i++)
        sandbox_unref(list[i]);
    free(list);
    return r;
}
