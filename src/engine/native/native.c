/* SPDX-License-Identifier: MIT */
/*
 * The native engine: turns a spec into a launch job, lets the keeper start it, and connects to the
 * sandbox's init. The keeper's events are matched to live sandboxes here.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "engine/native/build.h"
#include "engine/native/egress_config.h"
#include "engine/native/instance.h"
#include "engine/native/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum {
    OPEN_MS = 30000,
    WELCOME_MS = 20000,
    CLOSE_MS = 20000,
    ADOPT_MAX = 100000,
    KEEPERS_MAX = 16, /* one after the other; then something else is wrong with this host */
};

struct native {
    struct engine base;
    struct instance instance;
    /* The last is in use. Those before it have died, and are kept for threads that still use them.
     */
    struct keeper *keepers[KEEPERS_MAX];
    size_t keeper_count;
    bool unprivileged; /* so no other keeper can be started */
    int build_cancel;  /* eventfd */
    const struct settings *settings;

    pthread_mutex_t revive_lock;

    pthread_mutex_t lock;
    struct sandbox **live; /* referenced */
    size_t live_count, live_cap;
};

/* ---- live sandboxes ---- */

static int live_add(struct native *n, struct sandbox *s)
{
    int r = 0;

    pthread_mutex_lock(&n->lock);
    if (n->live_count == n->live_cap) {
        size_t cap = n->live_cap ? n->live_cap * 2 : 16;
        struct sandbox **grown = realloc(n->live, cap * sizeof(*grown));

        r = grown ? 0 : -1;
        if (grown) {
            n->live = grown;
            n->live_cap = cap;
        }
    }
    if (r == 0)
        n->live[n->live_count++] = sandbox_ref(s);
    pthread_mutex_unlock(&n->lock);
    return r;
}

static void live_remove(struct native *n, struct sandbox *s)
{
    bool found = false;

    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < n->live_count && !found; i++) {
        if (n->live[i] == s) {
            n->live[i] = n->live[--n->live_count];
            found = true;
        }
    }
    pthread_mutex_unlock(&n->lock);
    if (found)
        sandbox_unref(s);
}

static struct sandbox *live_find(struct native *n, const char *id)
{
    struct sandbox *s = NULL;

    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < n->live_count; i++) {
        if (str_eq(n->live[i]->id, id))
            s = sandbox_ref(n->live[i]);
    }
    pthread_mutex_unlock(&n->lock);
    return s;
}

static void on_keeper_event(void *user, const struct keeper_event *event)
{
    struct native *n = user;
    auto_sandbox struct sandbox *s = live_find(n, event->id);

    if (!s)
        return;
    /* The keeper ends a sandbox that met its memory limit. The end itself takes a while, and the
     * cell that was killed first is to be told why. */
    if (event->kind == KEEPER_OOM)
        sandbox_set_ended(s, "oom");
    else if (event->kind == KEEPER_ENDED)
        sandbox_set_ended(s, event->cause);
}

static void on_keeper_lost(void *user)
{
    struct native *n = user;

    /* The sandboxes live on until their lease; without a keeper nobody tells how they end. */
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < n->live_count; i++)
        sandbox_set_ended(n->live[i], "lost");
    pthread_mutex_unlock(&n->lock);
}

/* ---- keepers ---- */

static struct keeper *keeper_current(struct native *n)
{
    struct keeper *k;

    pthread_mutex_lock(&n->lock);
    k = n->keeper_count ? n->keepers[n->keeper_count - 1] : NULL;
    pthread_mutex_unlock(&n->lock);
    return k;
}

/* Connects to a keeper that is there, or starts one. */
static int keeper_get(struct native *n, struct keeper **ret, struct error *reterr)
{
    struct keeper_handlers handlers = {
        .on_event = on_keeper_event,
        .on_lost = on_keeper_lost,
        .user = n,
        .image_dir = n->settings->image_dir,
        .drop_privileges = n->unprivileged,
    };
    auto_free struct egress_config *config = calloc(1, sizeof(*config));
    int r = keeper_connect(n->instance.dir, &handlers, ret, reterr);

    if (r != 0)
        return MIN(r, 0);
    if (!config)
        return error_no_memory(reterr);
    r = egress_config_fill(config, n->settings, reterr);
    return r < 0 ? r : keeper_start(n->instance.dir, config, &handlers, ret, reterr);
}

/* The next keeper begins with the removal of what the dead one's sandboxes have left. */
static int keeper_replace(struct native *n, struct error *reterr)
{
    struct keeper *k;
    int r;

    if (n->unprivileged || n->keeper_count == KEEPERS_MAX)
        return error_set(reterr, ERR_UNAVAILABLE,
                         "the keeper process has ended; start this program again");
    if ((r = keeper_get(n, &k, reterr)) < 0)
        return r;
    log_warn("the keeper process has ended and was started again; its sandboxes are lost");
    pthread_mutex_lock(&n->lock);
    n->keepers[n->keeper_count++] = k;
    pthread_mutex_unlock(&n->lock);
    return 0;
}

static int keeper_revive(struct native *n, struct error *reterr)
{
    struct keeper *k;
    int r = 0;

    pthread_mutex_lock(&n->revive_lock);
    k = keeper_current(n);
    if (k && keeper_is_lost(k))
        r = keeper_replace(n, reterr);
    pthread_mutex_unlock(&n->revive_lock);
    return r;
}

/* ---- opening ---- */

struct job_text {
    char *to;
    size_t size;
    const char *from;
    const char *what;
};

/* The operator's paths may lead over links, the launcher follows none: so they are resolved here.
 */
static int job_mounts(struct launch_job *job, const struct sandbox_spec *spec, struct error *reterr)
{
    for (size_t i = 0; i < spec->mount_count; i++) {
        auto_free char *real = realpath(spec->mounts[i].source, NULL);

        if (!real)
            return error_sys(reterr, errno, "cannot mount '%s'", spec->mounts[i].source);
        job->mounts[i] = spec->mounts[i];
        if (str_copy(job->mounts[i].source, sizeof(job->mounts[i].source), real) < 0)
            return error_set(reterr, ERR_INVALID, "the path '%s' is too long", real);
    }
    return 0;
}

static int job_texts(struct launch_job *job, const struct sandbox_spec *spec, struct error *reterr)
{
    const struct job_text texts[] = {
        {job->id, sizeof(job->id), spec->id, "id"},
        {job->owner, sizeof(job->owner), spec->owner, "owner"},
        {job->hostname, sizeof(job->hostname), spec->hostname, "host name"},
        {job->runtime, sizeof(job->runtime), spec->runtime, "runtime"},
        {job->rootfs, sizeof(job->rootfs), spec->rootfs, "image path"},
        {job->meta, sizeof(job->meta), spec->meta, "session record"},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].from && str_copy(texts[i].to, texts[i].size, texts[i].from) < 0)
            return error_set(reterr, ERR_INVALID, "the %s is longer than %zu bytes", texts[i].what,
                             texts[i].size - 1);
    }
    return 0;
}

static int job_fill(struct launch_job *job, const struct sandbox_spec *spec, struct error *reterr)
{
    *job = (struct launch_job){
        .magic = JOB_MAGIC,
        .version = JOB_VERSION,
        .flags = (spec->overlay_root ? JOB_OVERLAY_ROOT : 0) | (spec->as_root ? JOB_AS_ROOT : 0) |
                 (spec->install_network ? JOB_INSTALL_NETWORK : 0) |
                 (spec->allow_degraded ? JOB_ALLOW_DEGRADED : 0),
        .network = spec->network,
        .memory_bytes = spec->memory_bytes,
        .tmpfs_bytes = spec->tmpfs_bytes,
        .home_bytes = spec->home_bytes,
        .disk_bytes = spec->disk_bytes,
        .cpu_quota_us = spec->cpu_quota_us,
        .cpu_period_us = spec->cpu_period_us,
        .pids = spec->pids,
        .nofile = spec->nofile,
        .lease_ms = spec->lease_ms,
        .created_ms = clock_wall_ms(),
    };
    if (spec->port_count > JOB_PORTS || spec->mount_count > JOB_MOUNTS)
        return error_set(reterr, ERR_INVALID, "too many ports or mounts");
    job->port_count = (uint32_t)spec->port_count;
    job->mount_count = (uint32_t)spec->mount_count;
    for (size_t i = 0; i < spec->port_count; i++)
        job->ports[i] = spec->ports[i];
    if (job_mounts(job, spec, reterr) < 0)
        return -ERR_INVALID;
    if (job_texts(job, spec, reterr) < 0)
        return -ERR_INVALID;
    return launch_job_check(job, reterr);
}

static int sandbox_connect(struct native *n, struct sandbox *s, struct error *reterr)
{
    char path[JOB_ID + 16];
    int sock;

    snprintf(path, sizeof(path), "sb/%s/control", s->id);
    sock = instance_socket_connect(n->instance.dir, path, SOCK_STREAM);
    if (sock < 0)
        return error_sys(reterr, errno, "cannot connect to the sandbox");
    return control_new(sock, clock_deadline(WELCOME_MS), &s->control, reterr);
}

static void event_copy(struct sandbox *s, const struct keeper_event *event)
{
    s->degraded = event->degraded;
    s->pid = event->pid;
    s->uid = event->uid;
    memcpy(s->pids_events, event->pids_events, sizeof(s->pids_events));
    memcpy(s->pids_current, event->pids_current, sizeof(s->pids_current));
    memcpy(s->memory_events, event->memory_events, sizeof(s->memory_events));
    memcpy(s->memory_current, event->memory_current, sizeof(s->memory_current));
}

static int native_close(struct engine *e, struct sandbox *s, struct error *reterr)
{
    struct native *n = (struct native *)e;
    struct keeper *k = keeper_current(n);
    struct error error;
    int r = keeper_call(
        k,
        &(struct keeper_call){
            .op = KEEPER_CLOSE, .id = s->id, .fd = -1, .deadline = clock_deadline(CLOSE_MS)},
        NULL, &error);

    if (r < 0 && keeper_is_lost(k))
        r = keeper_revive(n, &error);
    sandbox_set_ended(s, "closed");
    live_remove(n, s);
    /* Ended by itself a moment before: just what was wanted. */
    if (r < 0 && error.code == ERR_NOT_FOUND)
        return 0;
    if (r < 0 && reterr)
        *reterr = error;
    return r;
}

static int native_open(struct engine *e, const struct sandbox_spec *spec, struct sandbox **ret,
                       struct error *reterr)
{
    struct native *n = (struct native *)e;
    auto_sandbox struct sandbox *s = sandbox_new(e, spec->id);
    struct keeper_event event;
    auto_fd int memfd = -1;
    int r;

    if (!s)
        return error_no_memory(reterr);
    if ((r = job_fill(s->job, spec, reterr)) < 0)
        return r;
    memfd = fd_memfd_sealed("job", s->job, sizeof(*s->job));
    if (memfd < 0)
        return error_sys(reterr, errno, "cannot make a memfd");
    if ((r = keeper_revive(n, reterr)) < 0)
        return r;
    if (live_add(n, s) < 0)
        return error_no_memory(reterr);
    r = keeper_call(
        keeper_current(n),
        &(struct keeper_call){
            .op = KEEPER_OPEN, .id = spec->id, .fd = memfd, .deadline = clock_deadline(OPEN_MS)},
        &event, reterr);
    if (r < 0) {
        /* A keeper that is slow may still start it. */
        if (r == -ERR_TIMEOUT && native_close(e, s, NULL) < 0)
            log_debug("sandbox %s could not be closed", s->id);
        live_remove(n, s);
        return r;
    }
    event_copy(s, &event);
    if ((r = sandbox_connect(n, s, reterr)) < 0) {
        if (native_close(e, s, NULL) < 0)
            log_debug("sandbox %s could not be closed", s->id);
        return r;
    }
    *ret = TAKE_PTR(s);
    return 0;
}

static void native_unbuild(struct engine *e)
{
    struct native *n = (struct native *)e;
    struct error error;

    eventfd_write(n->build_cancel, 1);
    if (n->unprivileged &&
        keeper_call(keeper_current(n),
                    &(struct keeper_call){
                        .op = KEEPER_UNBUILD, .fd = -1, .deadline = clock_deadline(OPEN_MS)},
                    NULL, &error) < 0)
        log_debug("builds cannot be stopped: %s", error.text);
}

static bool build_is_cancelled(const struct native *n)
{
    struct pollfd p = {.fd = n->build_cancel, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int native_build(struct engine *e, const char *runtime, image_progress_fn *progress,
                        void *user, struct error *reterr)
{
    struct native *n = (struct native *)e;
    struct image_build_options build = {
        .size = sizeof(build), .progress = progress, .user = user, .cancel_fd = n->build_cancel};
    struct image_store store;
    eventfd_t count;
    int r;

    /* What was stopped before says nothing about this one. */
    (void)eventfd_read(n->build_cancel, &count);
    if (n->unprivileged) {
        r = keeper_build(keeper_current(n), runtime, progress, user, reterr);
        return r < 0 && build_is_cancelled(n)
                   ? error_set(reterr, ERR_CANCELLED, "building the %s image was stopped", runtime)
                   : r;
    }
    r = image_store_init(&store, n->settings->image_dir, reterr);
    return r < 0 ? r : image_build(&store, runtime, &build, reterr);
}

static int native_seal(struct engine *e, struct sandbox *s, struct error *reterr)
{
    struct native *n = (struct native *)e;

    return keeper_call(
        keeper_current(n),
        &(struct keeper_call){
            .op = KEEPER_SEAL, .id = s->id, .fd = -1, .deadline = clock_deadline(OPEN_MS)},
        NULL, reterr);
}

/* ---- adoption ---- */

struct adoption {
    struct native *native;
    struct sandbox **list;
    size_t count, cap;
};

/* Runs on the keeper's reader thread: only collects, the connections are made afterwards. */
static void adoption_collect(void *user, const struct keeper_event *event, int job_fd)
{
    struct adoption *a = user;
    auto_fd int fd = job_fd;
    auto_sandbox struct sandbox *s = sandbox_new(&a->native->base, event->id);

    if (!s || a->count == ADOPT_MAX)
        return;
    if (fd < 0 || pread(fd, s->job, sizeof(*s->job), 0) != (ssize_t)sizeof(*s->job) ||
        launch_job_check(s->job, NULL) < 0)
        return;
    event_copy(s, event);
    if (a->count == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 16;
        struct sandbox **grown = realloc(a->list, cap * sizeof(*grown));

        if (!grown)
            return;
        a->list = grown;
        a->cap = cap;
    }
    a->list[a->count++] = TAKE_PTR(s);
}

static int native_adopt(struct engine *e, struct sandbox ***ret, size_t *ret_count,
                        struct error *reterr)
{
    struct native *n = (struct native *)e;
    struct adoption a = {.native = n};
    size_t kept = 0;
    int r = keeper_call(keeper_current(n),
                        &(struct keeper_call){.op = KEEPER_LIST,
                                              .fd = -1,
                                              .deadline = clock_deadline(OPEN_MS),
                                              .on_sandbox = adoption_collect,
                                              .user = &a},
                        NULL, reterr);

    if (r < 0) {
        for (size_t i = 0; i < a.count; i++)
            sandbox_unref(a.list[i]);
        free(a.list);
        return r;
    }
    for (size_t i = 0; i < a.count; i++) {
        struct sandbox *s = a.list[i];
        struct error error = {};

        if (live_add(n, s) == 0 && sandbox_connect(n, s, &error) == 0) {
            a.list[kept++] = s;
            continue;
        }
        log_warn("sandbox %.8s cannot be adopted, ending it: %s", s->id, error.text);
        if (native_close(e, s, NULL) < 0)
            log_warn("sandbox %.8s could not be ended, ignoring", s->id);
        sandbox_unref(s);
    }
    *ret = a.list;
    *ret_count = kept;
    return 0;
}

/* ---- the engine ---- */

static void native_free(struct engine *e, bool end_all)
{
    struct native *n = (struct native *)e;
    struct error error;

    if (end_all && n->keeper_count &&
        (keeper_revive(n, &error) < 0 ||
         keeper_call(keeper_current(n),
                     &(struct keeper_call){
                         .op = KEEPER_STOP, .fd = -1, .deadline = clock_deadline(CLOSE_MS)},
                     NULL, &error) < 0))
        log_warn("the sandboxes could not all be ended: %s", error.text);
    for (size_t i = 0; i < n->keeper_count; i++)
        keeper_free(n->keepers[i]);
    while (n->live_count)
        live_remove(n, n->live[0]);
    free(n->live);
    close(n->build_cancel);
    instance_release(&n->instance, n->settings->state_dir);
    pthread_mutex_destroy(&n->lock);
    pthread_mutex_destroy(&n->revive_lock);
    free(n);
}

static const struct engine_vtable native_ops = {
    .name = "native",
    .open = native_open,
    .build = native_build,
    .unbuild = native_unbuild,
    .seal = native_seal,
    .close = native_close,
    .adopt = native_adopt,
    .free = native_free,
};

int native_engine_new(const struct engine_options *options, struct engine **ret,
                      struct error *reterr)
{
    struct native *n = calloc(1, sizeof(*n));
    int r;

    if (!n)
        return error_no_memory(reterr);
    n->base.ops = &native_ops;
    n->settings = options->settings;
    n->unprivileged = options->drop_privileges;
    pthread_mutex_init(&n->lock, NULL);
    pthread_mutex_init(&n->revive_lock, NULL);
    n->build_cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = n->build_cancel < 0
            ? error_sys(reterr, errno, "cannot make an eventfd")
            : instance_take(options->settings->state_dir, options->instance, &n->instance, reterr);
    if (r < 0) {
        if (n->build_cancel >= 0)
            close(n->build_cancel);
        pthread_mutex_destroy(&n->lock);
        pthread_mutex_destroy(&n->revive_lock);
        free(n);
        return r;
    }
    if ((r = keeper_get(n, &n->keepers[0], reterr)) < 0) {
        native_free(&n->base, false);
        return r;
    }
    n->keeper_count = 1;
    *ret = &n->base;
    return 0;
}
