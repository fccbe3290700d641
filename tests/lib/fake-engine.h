/* SPDX-License-Identifier: MIT */
/*
 * A manager over an engine without sandboxes: each of its "sandboxes" is a peer (peer.h). A test
 * makes a world, changes its settings, starts it, and looks at the peers.
 */
#pragma once

#include "engine/engine.h"
#include "session/session.h"
#include "tests/lib/peer.h"

#include <errno.h>
#include <sys/stat.h>

enum { FAKE_SANDBOXES = 128 };

struct fake_engine {
    struct engine base;
    pthread_mutex_t lock;
    struct peer peers[FAKE_SANDBOXES];
    struct sandbox *sandboxes[FAKE_SANDBOXES]; /* borrowed */
    bool connected[FAKE_SANDBOXES];
    size_t count, adopted;
    unsigned open_ms, close_ms; /* how long it takes */
    bool fail_open, fail_kernel, ends_cells;
    unsigned opened, closed, sealed;
    bool freed, freed_all;
};

struct world {
    struct fake_engine engine;
    struct settings settings;
    struct session_manager *m;
    bool keep_sessions, no_build;
    char image[256];
    char progress[1024];
};

/* A sandbox whose peer has said nothing yet. */
static inline struct sandbox *fake_sandbox(struct fake_engine *e, const char *id, int *ret_fd)
{
    struct sandbox *s = sandbox_new(&e->base, id);
    size_t at;

    pthread_mutex_lock(&e->lock);
    at = e->count++;
    pthread_mutex_unlock(&e->lock);
    if (!s || at >= FAKE_SANDBOXES || (*ret_fd = peer_init(&e->peers[at])) < 0)
        abort();
    s->uid = (uint32_t)at;
    e->sandboxes[at] = s;
    e->peers[at].no_kernel = e->fail_kernel;
    e->peers[at].ends_cells = e->ends_cells;
    peer_welcome_add(&e->peers[at], "version", PROTOCOL_VERSION);
    return s;
}

static inline int fake_connect(struct fake_engine *e, struct sandbox *s, int fd,
                               struct error *reterr)
{
    int r;

    peer_start(&e->peers[s->uid]);
    r = control_new(fd, clock_deadline(PEER_WAIT_MS), &s->control, reterr);
    pthread_mutex_lock(&e->lock);
    e->connected[s->uid] = true;
    pthread_mutex_unlock(&e->lock);
    return r;
}

/* The peer of a sandbox that another thread is making; NULL when it does not come. */
static inline struct peer *fake_peer(struct fake_engine *e, size_t at)
{
    bool there = false;

    for (int i = 0; i < PEER_WAIT_MS && !there; i++) {
        pthread_mutex_lock(&e->lock);
        there = e->connected[at];
        pthread_mutex_unlock(&e->lock);
        if (!there)
            usleep(1000);
    }
    return there ? &e->peers[at] : NULL;
}

static inline int fake_open(struct engine *base, const struct sandbox_spec *spec,
                            struct sandbox **ret, struct error *reterr)
{
    struct fake_engine *e = (struct fake_engine *)base;
    struct sandbox *s;
    int fd;

    __atomic_add_fetch(&e->opened, 1, __ATOMIC_RELAXED);
    usleep(e->open_ms * 1000);
    if (e->fail_open) {
        __atomic_add_fetch(&e->closed, 1, __ATOMIC_RELAXED);
        return error_set(reterr, ERR_UNAVAILABLE, "no sandbox today");
    }
    s = fake_sandbox(e, spec->id, &fd);
    peer_welcome_add(&e->peers[s->uid], "kernel", "none");
    s->job->network = spec->network;
    if (fake_connect(e, s, fd, reterr) < 0)
        abort();
    *ret = s;
    return 0;
}

static inline int fake_close(struct engine *base, struct sandbox *s, struct error *reterr)
{
    struct fake_engine *e = (struct fake_engine *)base;

    usleep(e->close_ms * 1000);
    peer_hang_up(&e->peers[s->uid]);
    sandbox_set_ended(s, "closed");
    __atomic_add_fetch(&e->closed, 1, __ATOMIC_RELAXED);
    return 0;
}

static inline int fake_seal(struct engine *base, struct sandbox *s, struct error *reterr)
{
    __atomic_add_fetch(&((struct fake_engine *)base)->sealed, 1, __ATOMIC_RELAXED);
    return 0;
}

/* What the test made before the start. */
static inline int fake_adopt(struct engine *base, struct sandbox ***ret, size_t *ret_count,
                             struct error *reterr)
{
    struct fake_engine *e = (struct fake_engine *)base;

    *ret = calloc(e->adopted + 1, sizeof(**ret));
    if (!*ret)
        return error_no_memory(reterr);
    memcpy(*ret, e->sandboxes, e->adopted * sizeof(**ret));
    *ret_count = e->adopted;
    return 0;
}

static inline void fake_free(struct engine *base, bool end_all)
{
    struct fake_engine *e = (struct fake_engine *)base;

    e->freed = true;
    e->freed_all = end_all;
    for (size_t i = 0; end_all && i < e->count; i++)
        peer_hang_up(&e->peers[i]);
}

static const struct engine_vtable fake_ops = {
    .name = "fake",
    .open = fake_open,
    .seal = fake_seal,
    .close = fake_close,
    .adopt = fake_adopt,
    .free = fake_free,
};

/* A sandbox that was there before the start; `runs` as in WELCOME, up to NULL. */
static inline struct sandbox *fake_adopted(struct fake_engine *e, const char *id,
                                           const char *kernel, const char *const *runs)
{
    struct error err;
    struct sandbox *s;
    int fd;

    s = fake_sandbox(e, id, &fd);
    peer_welcome_add(&e->peers[s->uid], "last_stream", "100");
    peer_welcome_add(&e->peers[s->uid], "kernel", kernel);
    for (; *runs; runs++)
        peer_welcome_add(&e->peers[s->uid], "run", *runs);
    snprintf(s->job->runtime, sizeof(s->job->runtime), "python");
    snprintf(s->job->meta, sizeof(s->job->meta), "{\"dependencies\":{\"six\":\"\"}}");
    s->job->memory_bytes = 64 * MIB;
    s->job->created_ms = clock_wall_ms();
    assert_ok(fake_connect(e, s, fd, &err), err);
    e->adopted++;
    return s;
}

static inline void world_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void world_init(struct world *w)
{
    static const char *const dirs[] = {"images", "kernels", "kernels/python"};
    char state[300], path[400];
    const char *env[] = {state, NULL};
    struct error err;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    snprintf(state, sizeof(state), "SANDBOX_STATE_DIR=%s/state", test_dir());
    snprintf(w->image, sizeof(w->image), "%s", test_dir());
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", test_dir(), dirs[i]);
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    snprintf(path, sizeof(path), "%s/kernels/python/argv", test_dir());
    world_file(path, "python3\n/opt/sandbox-agent/kernel/kernel.py\n");
    setenv("SANDBOX_AGENT_LIBEXEC", test_dir(), 1);
    assert_ok(
        settings_load(&w->settings, &(struct settings_source){.env = (char *const *)env}, &err),
        err);
    w->engine.base.ops = &fake_ops;
    pthread_mutex_init(&w->engine.lock, NULL);
}

static inline void world_progress(void *user, const char *text)
{
    struct world *w = user;
    size_t used = strlen(w->progress);

    snprintf(w->progress + used, sizeof(w->progress) - used, "%s\n", text);
}

static inline void world_start(struct world *w)
{
    struct error err;

    assert_ok(session_manager_new(
                  &(struct session_manager_options){.size = sizeof(struct session_manager_options),
                                                    .settings = &w->settings,
                                                    .instance = "test",
                                                    .keep_sessions = w->keep_sessions,
                                                    .no_build = w->no_build,
                                                    .progress = world_progress,
                                                    .progress_user = w,
                                                    .engine = &w->engine.base},
                  &w->m, &err),
              err);
}

static inline void world_end(struct world *w)
{
    session_manager_free(TAKE_PTR(w->m));
    for (size_t i = 0; i < w->engine.count; i++)
        peer_done(&w->engine.peers[i]);
    settings_done(&w->settings);
    w->engine.count = 0;
}

#define auto_world __attribute__((cleanup(world_end)))

static inline int world_create(struct world *w, const char *owner, struct session_info *ret,
                               struct error *reterr)
{
    return session_create(w->m,
                          &(struct session_options){.size = sizeof(struct session_options),
                                                    .owner = owner,
                                                    .image = w->image,
                                                    .network = JOB_NETWORK_NONE},
                          ret, reterr);
}

static inline struct session_info world_session(struct world *w, const char *owner)
{
    struct session_info info = {};
    struct error err;

    assert_ok(world_create(w, owner, &info, &err), err);
    return info;
}

static inline struct run *world_run(struct world *w, const char *id, enum run_kind kind,
                                    const char *text)
{
    struct run *run = NULL;
    struct error err;

    assert_ok(run_open(w->m, id, NULL,
                       &(struct run_options){.size = sizeof(struct run_options),
                                             .kind = kind,
                                             .text = text,
                                             .len = strlen(text)},
                       &run, &err),
              err);
    return run;
}

static inline struct run_outcome world_wait(struct run *run)
{
    struct run_outcome outcome = {};
    struct error err;

    assert_ok(run_wait(run, clock_deadline(PEER_WAIT_MS), &outcome, &err), err);
    return outcome;
}
