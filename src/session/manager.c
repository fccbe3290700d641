/* SPDX-License-Identifier: MIT */
/*
 * The table of sessions, the limits, and the collector thread that ends what is idle, too old or
 * dead. Ending a session happens on the collector's or a caller's thread, never on a sandbox's
 * reader thread.
 */
#include "session/manager-internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"
#include "engine/native/egress_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    CA_MAX = 4 * 1024 * 1024,
    TOMBSTONES_MAX = 256, /* dead sessions that are remembered until they are stopped */
    TICK_MS = 5000,
};

const struct settings *manager_settings(const struct session_manager *m)
{
    return m->settings;
}

void manager_progress(struct session_manager *m, const char *text)
{
    if (m->options.progress)
        m->options.progress(m->options.progress_user, text);
}

void manager_wake(struct session_manager *m)
{
    pthread_mutex_lock(&m->wake_lock);
    m->woken = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->wake_lock);
}

/* ---- the table ---- */

struct session **manager_snapshot(struct session_manager *m, size_t *ret_count)
{
    struct session **list;

    pthread_mutex_lock(&m->lock);
    list = calloc(m->count + 1, sizeof(*list));
    *ret_count = list ? m->count : 0;
    for (size_t i = 0; i < *ret_count; i++)
        list[i] = session_ref(m->sessions[i]);
    pthread_mutex_unlock(&m->lock);
    return list;
}

void manager_snapshot_free(struct session **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        session_unref(list[i]);
    free(list);
}

/* Whose session it is says who may see it; without an owner it is everybody's. */
static bool owner_may_see(const struct session *s, const char *owner)
{
    return !owner || !s->owner[0] || str_eq(s->owner, owner);
}

struct session *session_find(struct session_manager *m, const char *id, const char *owner,
                             struct error *reterr)
{
    struct session *found = NULL;

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count && !found; i++) {
        if (str_eq(m->sessions[i]->id, id) && owner_may_see(m->sessions[i], owner))
            found = session_ref(m->sessions[i]);
    }
    pthread_mutex_unlock(&m->lock);
    if (!found)
        error_set(reterr, ERR_NOT_FOUND, "unknown session '%.64s'; create one first", id);
    return found;
}

void manager_forget(struct session_manager *m, struct session *s)
{
    bool found = false;

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count && !found; i++) {
        if (m->sessions[i] == s) {
            memmove(m->sessions + i, m->sessions + i + 1, (--m->count - i) * sizeof(*m->sessions));
            found = true;
        }
    }
    pthread_mutex_unlock(&m->lock);
    if (found)
        session_unref(s);
}

/* Ends the sandbox of a session that is out of use, once. */
static int sandbox_end(struct session_manager *m, struct session *s, struct error *reterr)
{
    struct sandbox *sandbox;
    int r = 0;

    pthread_mutex_lock(&s->close_lock);
    pthread_mutex_lock(&s->lock);
    sandbox = s->closed ? NULL : s->sandbox;
    s->closed |= sandbox != NULL;
    pthread_mutex_unlock(&s->lock);
    if (sandbox) {
        r = m->engine->ops->close(m->engine, sandbox, reterr);
        control_cut(sandbox->control);
    }
    pthread_mutex_unlock(&s->close_lock);
    return r;
}

int manager_end(struct session_manager *m, struct session *s, const char *cause,
                struct error *reterr)
{
    int r;

    session_retire(s, cause);
    r = sandbox_end(m, s, reterr);
    manager_forget(m, s);
    return r;
}

/* ---- limits ---- */

struct table_count {
    int64_t live, of_owner;
    const struct session *idle; /* of those that the owner may see, the one idle for longest */
};

static struct table_count table_count(const struct session_manager *m, const char *owner)
{
    struct table_count n = {};

    for (size_t i = 0; i < m->count; i++) {
        const struct session *s = m->sessions[i];

        if (session_get_status(s) == SESSION_DEAD)
            continue;
        n.live++;
        n.of_owner += owner[0] && str_eq(s->owner, owner);
        if (owner_may_see(s, owner) && !session_is_busy(s) &&
            (!n.idle || session_get_activity(s) < session_get_activity(n.idle)))
            n.idle = s;
    }
    return n;
}

static int table_append(struct session_manager *m, struct session *s)
{
    if (m->count == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 16;
        struct session **grown = realloc(m->sessions, cap * sizeof(*grown));

        if (!grown)
            return -1;
        m->sessions = grown;
        m->cap = cap;
    }
    m->sessions[m->count++] = session_ref(s);
    return 0;
}

int manager_reserve(struct session_manager *m, struct session *s, struct error *reterr)
{
    struct table_count n;
    int r = 0;

    pthread_mutex_lock(&m->lock);
    n = table_count(m, s->owner);
    if (n.live >= m->settings->max_sessions)
        r = error_set(reterr, ERR_LIMIT,
                      "limit_reached: %lld sessions are open and CONTAINER_MAX_SESSIONS is %lld; "
                      "stop one first%s%s",
                      (long long)n.live, (long long)m->settings->max_sessions,
                      n.idle ? ", the oldest idle one is " : "", n.idle ? n.idle->id : "");
    else if (n.of_owner >= m->settings->max_sessions_per_thread)
        r = error_set(reterr, ERR_LIMIT,
                      "limit_reached: this conversation has %lld sessions and "
                      "CONTAINER_MAX_SESSIONS_PER_THREAD is %lld; stop one first",
                      (long long)n.of_owner, (long long)m->settings->max_sessions_per_thread);
    else if (table_append(m, s) < 0)
        r = error_no_memory(reterr);
    pthread_mutex_unlock(&m->lock);
    return r;
}

/* ---- eviction ---- */

struct owner_use {
    const char *owner;
    int64_t last_ms;
    bool busy;
};

/* The owners with live sessions. `ret` has room for `count`. */
static size_t owners_collect(struct session **list, size_t count, struct owner_use *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        struct session *s = list[i];
        size_t at = 0;

        if (session_get_status(s) == SESSION_DEAD || !s->owner[0])
            continue;
        while (at < n && !str_eq(ret[at].owner, s->owner))
            at++;
        if (at == n)
            ret[n++] = (struct owner_use){.owner = s->owner};
        ret[at].last_ms = MAX(ret[at].last_ms, session_get_activity(s));
        ret[at].busy |= session_is_busy(s);
    }
    return n;
}

/* Ends a session but keeps it in the table, so that its owner is told what became of it. */
static void session_bury(struct session_manager *m, struct session *s, const char *cause)
{
    struct error error;

    session_retire(s, cause);
    if (sandbox_end(m, s, &error) < 0)
        log_warn("session %s could not be ended whole, ignoring: %s", s->id, error.text);
}

static void owner_evict(struct session_manager *m, struct session **list, size_t count,
                        const struct owner_use *use)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(list[i]->owner, use->owner) &&
            session_retire_idle(list[i], "evicted", use->last_ms))
            session_bury(m, list[i], "evicted");
    }
}

/* Owners past SESSION_MAX_ACTIVE_THREADS go, least recently used first, never a busy one. */
static void owners_limit(struct session_manager *m, struct session **list, size_t count)
{
    struct owner_use *owners = calloc(count + 1, sizeof(*owners));
    size_t n = owners ? owners_collect(list, count, owners) : 0;

    for (int64_t over = (int64_t)n - m->settings->max_active_threads; over > 0; over--) {
        struct owner_use *oldest = NULL;

        for (size_t i = 0; i < n; i++) {
            if (owners[i].owner && !owners[i].busy &&
                (!oldest || owners[i].last_ms < oldest->last_ms))
                oldest = &owners[i];
        }
        if (!oldest)
            break;
        owner_evict(m, list, count, oldest);
        oldest->owner = NULL;
    }
    free(owners);
}

/* ---- the collector ---- */

/* A run that init should have stopped long ago: the sandbox is stuck, so it is ended whole. */
static bool run_is_stuck(struct session *s)
{
    bool stuck;

    pthread_mutex_lock(&s->lock);
    stuck = s->current && s->current->started && clock_ms() > s->current->backstop;
    pthread_mutex_unlock(&s->lock);
    return stuck;
}

static void session_collect(struct session_manager *m, struct session *s)
{
    const struct settings *settings = m->settings;
    int64_t now = clock_ms();
    struct session_info info;

    session_fill_info(s, &info); /* notices a death */
    if (info.status == SESSION_DEAD)
        session_bury(m, s, info.death);
    else if (run_is_stuck(s))
        session_bury(m, s, "timeout");
    else if ((now - s->created_ms > settings->max_lifetime_s * 1000 && session_expire(s)) ||
             session_retire_idle(s, "expired", now - settings->idle_ttl_s * 1000 - 1))
        session_bury(m, s, "expired");
    else
        session_question_expire(s, now - settings->idle_ttl_s * 1000);
}

static void tombstones_limit(struct session_manager *m, struct session **list, size_t count)
{
    size_t dead = 0;

    for (size_t i = count; i-- > 0;) {
        if (session_get_status(list[i]) == SESSION_DEAD && ++dead > TOMBSTONES_MAX)
            manager_forget(m, list[i]);
    }
}

static void collect(struct session_manager *m)
{
    size_t count;
    struct session **list = manager_snapshot(m, &count);

    for (size_t i = 0; i < count; i++)
        session_collect(m, list[i]);
    if (list)
        owners_limit(m, list, count);
    tombstones_limit(m, list, count);
    manager_snapshot_free(list, count);
}

static bool collector_wait(struct session_manager *m)
{
    int64_t until = clock_ms() + MIN(m->settings->gc_interval_s * 1000, (int64_t)TICK_MS);
    struct timespec ts = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    bool stopping;

    pthread_mutex_lock(&m->wake_lock);
    while (!m->woken && !m->stopping && pthread_cond_timedwait(&m->wake, &m->wake_lock, &ts) == 0)
        ;
    m->woken = false;
    stopping = m->stopping;
    pthread_mutex_unlock(&m->wake_lock);
    return !stopping;
}

static void *collector_main(void *arg)
{
    struct session_manager *m = arg;

    while (collector_wait(m))
        collect(m);
    return NULL;
}

/* ---- start and end ---- */

/*
 * The CA file is copied into a directory of its own, named by its content: a sandbox sees just this
 * one file, and a later change of the file does not change running sessions.
 */
static int ca_prepare(struct session_manager *m, struct error *reterr)
{
    auto_free char *text = NULL;
    char hex[2 * SHA256_SIZE + 1];
    auto_fd int dir = -1;
    struct sha256 sha;
    size_t len;
    int r;

    if (!m->settings->extra_ca[0])
        return 0;
    if ((r = fd_read_file(AT_FDCWD, m->settings->extra_ca, CA_MAX, &text, &len, reterr)) < 0)
        return error_wrap(reterr, "EXTRA_CA");
    sha256_init(&sha);
    sha256_update(&sha, text, len);
    sha256_finish_hex(&sha, hex);
    snprintf(m->ca_dir, sizeof(m->ca_dir), "%.400s/ca/%.16s", m->settings->state_dir, hex);
    if ((r = path_make_dirs(m->ca_dir, 0755, reterr)) < 0)
        return r;
    dir = path_open_dir(AT_FDCWD, m->ca_dir, reterr);
    if (dir < 0)
        return dir;
    if (faccessat(dir, "ca.crt", R_OK, 0) == 0)
        return 0;
    if ((r = fd_write_file_atomic(dir, "ca.crt", text, len, reterr)) < 0)
        return r;
    return fchmodat(dir, "ca.crt", 0644, 0) < 0
               ? error_sys(reterr, errno, "cannot share the CA file")
               : 0;
}

static int manager_start(struct session_manager *m, struct error *reterr)
{
    const struct session_manager_options *o = &m->options;
    int r;

    if ((r = path_make_dirs(m->settings->state_dir, 0700, reterr)) < 0 ||
        (r = egress_ports_fill(m->settings, m->ports, &m->port_count, reterr)) < 0 ||
        (r = ca_prepare(m, reterr)) < 0 ||
        (r = image_store_init(&m->images, m->settings->image_dir, reterr)) < 0)
        return r;
    if (!m->engine)
        r = native_engine_new(&(struct engine_options){.size = sizeof(struct engine_options),
                                                       .settings = m->settings,
                                                       .instance = o->instance,
                                                       .drop_privileges = o->drop_privileges},
                              &m->engine, reterr);
    if (r < 0 || (r = manager_adopt(m, reterr)) < 0)
        return r;
    r = pthread_create(&m->collector, NULL, collector_main, m);
    if (r)
        return error_sys(reterr, r, "cannot start a thread");
    m->collector_started = true;
    return 0;
}

int session_manager_new(const struct session_manager_options *options, struct session_manager **ret,
                        struct error *reterr)
{
    struct session_manager *m = calloc(1, sizeof(*m));
    pthread_condattr_t attr;
    int r;

    if (!m)
        return error_no_memory(reterr);
    m->options = *options;
    m->settings = options->settings;
    m->engine = options->engine;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->wake_lock, NULL);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    r = manager_start(m, reterr);
    if (r < 0) {
        session_manager_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void session_manager_cancel_builds(struct session_manager *m)
{
    if (m->engine->ops->unbuild)
        m->engine->ops->unbuild(m->engine);
}

static void collector_stop(struct session_manager *m)
{
    if (!m->collector_started)
        return;
    pthread_mutex_lock(&m->wake_lock);
    m->stopping = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->wake_lock);
    pthread_join(m->collector, NULL);
}

void session_manager_keep(struct session_manager *m)
{
    m->options.keep_sessions = true;
}

void session_manager_free(struct session_manager *m)
{
    size_t count;
    struct session **list;

    if (!m)
        return;
    collector_stop(m);
    list = manager_snapshot(m, &count);
    for (size_t i = 0; i < count; i++)
        session_retire(list[i], m->options.keep_sessions ? "lost" : "user");
    /* All at once by the keeper; the sessions are only forgotten afterwards. */
    if (m->engine)
        m->engine->ops->free(m->engine, !m->options.keep_sessions);
    /* Runs may be held longer than the manager: from here on nothing of theirs calls into it. */
    for (size_t i = 0; i < count; i++) {
        if (list[i]->sandbox)
            control_cut(list[i]->sandbox->control);
        manager_forget(m, list[i]);
    }
    manager_snapshot_free(list, count);
    free(m->sessions);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->wake_lock);
    pthread_cond_destroy(&m->wake);
    free(m);
}

/* ---- calls ---- */

int session_stop(struct session_manager *m, const char *id, const char *owner, struct error *reterr)
{
    struct session *s = session_find(m, id, owner, reterr);
    int r;

    if (!s)
        return -ERR_NOT_FOUND;
    r = manager_end(m, s, "user", reterr);
    session_unref(s);
    return r;
}

int session_get_info(struct session_manager *m, const char *id, const char *owner,
                     struct session_info *ret, struct error *reterr)
{
    struct session *s = session_find(m, id, owner, reterr);

    if (!s)
        return -ERR_NOT_FOUND;
    session_fill_info(s, ret);
    session_unref(s);
    return 0;
}

int session_list(struct session_manager *m, const char *owner, struct session_info **ret,
                 size_t *ret_count, struct error *reterr)
{
    size_t count, n = 0;
    struct session **list = manager_snapshot(m, &count);
    struct session_info *infos = calloc(count + 1, sizeof(*infos));

    for (size_t i = 0; infos && i < count; i++) {
        if (owner_may_see(list[i], owner))
            session_fill_info(list[i], &infos[n++]);
    }
    manager_snapshot_free(list, count);
    if (!infos)
        return error_no_memory(reterr);
    *ret = infos;
    *ret_count = n;
    return 0;
}
