/* SPDX-License-Identifier: MIT */
/*
 * One session: its queue of runs and its state. Lock order: a session's lock is taken before a
 * connection's and never under the manager's; it is recursive, because the loss of the connection
 * can end a run inside the call that starts it.
 */
#include "session/session.h"

#include "base/clock.h"
#include "base/str.h"
#include "session/session-internal.h"

#include <stdio.h>

enum { CODE_MAX = 16 * 1024 * 1024 };

static const char *const session_status_names[] = {
    [SESSION_STARTING] = "starting",
    [SESSION_RUNNING] = "running",
    [SESSION_DEAD] = "dead",
};

const char *session_status_name(enum session_status status)
{
    return session_status_names[status];
}

/* ---- life ---- */

struct session *session_new(struct session_manager *m, const char *owner, struct error *reterr)
{
    struct session *s = calloc(1, sizeof(*s));
    pthread_mutexattr_t recursive;

    if (s)
        s->owner = strdup(owner ? owner : "");
    if (!s || !s->owner || id_new(s->id, reterr) < 0) {
        free(s);
        error_no_memory(reterr);
        return NULL;
    }
    s->refs = 1;
    s->manager = m;
    s->created_ms = s->last_activity_ms = clock_ms();
    s->created_wall_ms = clock_wall_ms();
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    return s;
}

struct session *session_ref(struct session *s)
{
    __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

void session_unref(struct session *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
        return;
    sandbox_unref(s->sandbox);
    pthread_mutex_destroy(&s->lock);
    free(s->adopted);
    free(s->env_fields);
    free(s->dependencies);
    free(s->owner);
    free(s);
}

const struct settings *session_settings(const struct session *s)
{
    return manager_settings(s->manager);
}

/* Readable without the lock: the manager counts live sessions under its own. */
enum session_status session_get_status(const struct session *s)
{
    return __atomic_load_n(&s->status, __ATOMIC_ACQUIRE);
}

static void status_set(struct session *s, enum session_status status, const char *cause)
{
    if (str_copy(s->death, sizeof(s->death), cause) < 0)
        s->death[0] = 0;
    __atomic_store_n(&s->status, status, __ATOMIC_RELEASE);
}

void session_touch(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    s->last_activity_ms = clock_ms();
    pthread_mutex_unlock(&s->lock);
}

bool session_is_busy(struct session *s)
{
    bool busy;

    pthread_mutex_lock(&s->lock);
    busy = s->current || session_get_status(s) == SESSION_STARTING;
    pthread_mutex_unlock(&s->lock);
    return busy;
}

/* The sandbox may have ended while nothing ran: nobody has told the session then. */
static void death_notice(struct session *s)
{
    char cause[32];

    if (session_get_status(s) != SESSION_RUNNING || !s->sandbox || s->current)
        return;
    if (!control_is_lost(s->sandbox->control))
        return;
    if (!sandbox_wait_ended(s->sandbox, clock_ms() + 1000, cause))
        memcpy(cause, "lost", sizeof("lost"));
    status_set(s, SESSION_DEAD, cause);
    manager_wake(s->manager);
}

int session_check_alive(struct session *s, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    death_notice(s);
    if (session_get_status(s) == SESSION_DEAD)
        r = error_set(reterr, ERR_DIED,
                      "session %s has died (%s): its state is lost; create a new session", s->id,
                      s->death[0] ? s->death : "ended");
    else if (s->closing)
        r = error_set(reterr, ERR_DIED, "session %s is being ended", s->id);
    else if (session_get_status(s) == SESSION_STARTING)
        r = error_set(reterr, ERR_BUSY, "session %s is still starting", s->id);
    pthread_mutex_unlock(&s->lock);
    return r;
}

void session_fill_info(struct session *s, struct session_info *ret)
{
    pthread_mutex_lock(&s->lock);
    death_notice(s);
    *ret = (struct session_info){
        .status = session_get_status(s),
        .busy = s->current != NULL,
        .created_wall_ms = s->created_wall_ms,
        .idle_ms = s->current ? 0 : clock_ms() - s->last_activity_ms,
        .network = s->network,
        .degraded = s->sandbox ? s->sandbox->degraded : 0,
    };
    memcpy(ret->id, s->id, sizeof(ret->id));
    memcpy(ret->runtime, s->runtime, sizeof(ret->runtime));
    memcpy(ret->death, s->death, sizeof(ret->death));
    snprintf(ret->owner, sizeof(ret->owner), "%s", s->owner);
    if (str_copy(ret->dependencies, sizeof(ret->dependencies),
                 s->dependencies ? s->dependencies : "{}") < 0)
        memcpy(ret->dependencies, "{}", sizeof("{}"));
    pthread_mutex_unlock(&s->lock);
}

/* ---- the queue ---- */

static struct run *queue_pop(struct session *s)
{
    struct run *r = s->queue_head;

    if (r) {
        s->queue_head = r->next_queued;
        if (!s->queue_head)
            s->queue_tail = NULL;
        r->next_queued = NULL;
    }
    return r;
}

/* Runs that will never start. */
static void queue_end(struct session *s, enum run_status status, const char *cause)
{
    struct run *r;

    while ((r = queue_pop(s))) {
        run_finish_unstarted(r, status, cause, NULL);
        run_unref(r);
    }
}

/* Starts waiting runs until one is under way. The queue's reference becomes `current`'s. */
static void queue_advance(struct session *s)
{
    while (!s->current && s->queue_head && session_get_status(s) == SESSION_RUNNING) {
        s->current = queue_pop(s);
        /* A failure ends the connection, and that ends the run: see run_start(). */
        if (run_start(s->current, NULL) < 0)
            return;
    }
}

void session_run_over(struct session *s, struct run *r, bool sandbox_gone, const char *cause)
{
    bool was_current;

    pthread_mutex_lock(&s->lock);
    was_current = s->current == r;
    if (was_current)
        s->current = NULL;
    s->last_activity_ms = clock_ms();
    if (sandbox_gone) {
        if (session_get_status(s) != SESSION_DEAD)
            status_set(s, SESSION_DEAD, cause);
        queue_end(s, RUN_DIED, cause);
    } else {
        queue_advance(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (was_current)
        run_unref(r);
    if (sandbox_gone || s->close_when_idle)
        manager_wake(s->manager);
}

bool session_retire(struct session *s, const char *cause)
{
    bool first;

    pthread_mutex_lock(&s->lock);
    first = !s->closing;
    s->closing = true;
    if (first) {
        if (session_get_status(s) != SESSION_DEAD)
            status_set(s, SESSION_DEAD, cause);
        queue_end(s, RUN_DIED, cause);
        for (size_t i = 0; i < s->adopted_count; i++)
            run_unref(s->adopted[i]);
        s->adopted_count = 0;
        if (s->sandbox)
            sandbox_set_ended(s->sandbox, cause);
    }
    pthread_mutex_unlock(&s->lock);
    return first;
}

/* ---- opening runs ---- */

static int code_request(struct run *r, const struct run_options *o, struct error *reterr)
{
    if (fields_add(&r->request, "code", o->text, o->len) < 0 ||
        fields_add_int(&r->request, "timeout_ms", r->timeout_ms) < 0 ||
        fields_add_int(&r->request, "stdin", o->stdin_answers) < 0)
        return error_no_memory(reterr);
    return 0;
}

static int command_request(struct run *r, const struct run_options *o, struct error *reterr)
{
    const struct session *s = r->session;
    const char *user = session_settings(s)->execute_as_root ? "root" : "sandbox";

    if (memchr(o->text, 0, o->len))
        return error_set(reterr, ERR_INVALID, "the command holds a NUL byte");
    if (fields_add_str(&r->request, "argv", "/bin/sh") < 0 ||
        fields_add_str(&r->request, "argv", "-c") < 0 ||
        fields_add(&r->request, "argv", o->text, o->len) < 0 ||
        buf_append(&r->request, s->env_fields, s->env_fields_len) < 0 ||
        fields_add_str(&r->request, "cwd", o->cwd ? o->cwd : "/workspace") < 0 ||
        fields_add_str(&r->request, "user", user) < 0 ||
        fields_add_int(&r->request, "timeout_ms", r->timeout_ms) < 0 ||
        fields_add_int(&r->request, "stdin", o->stdin_answers) < 0)
        return error_no_memory(reterr);
    return 0;
}

static int options_check(const struct run_options *o, struct error *reterr)
{
    const char *what = o->kind == RUN_CODE ? "code" : "command";

    if (o->len == 0)
        return error_set(reterr, ERR_INVALID, "the %s is empty", what);
    if (o->len > (o->kind == RUN_CODE ? CODE_MAX : 128 * KIB))
        return error_set(reterr, ERR_INVALID,
                         "the %s has %zu bytes, the limit is %llu; put data into a file", what,
                         o->len, o->kind == RUN_CODE ? (unsigned long long)CODE_MAX : 128 * KIB);
    if (o->timeout_ms < 0 || o->timeout_ms > 86400000)
        return error_set(reterr, ERR_INVALID, "the time-out must be above 0 and at most a day");
    return 0;
}

static int run_enqueue(struct session *s, struct run *r, struct error *reterr)
{
    int n;

    pthread_mutex_lock(&s->lock);
    n = session_check_alive(s, reterr);
    if (n == 0) {
        s->last_activity_ms = clock_ms();
        if (s->queue_tail)
            s->queue_tail->next_queued = run_ref(r);
        else
            s->queue_head = run_ref(r);
        s->queue_tail = r;
        queue_advance(s);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

int run_open(struct session_manager *m, const char *id, const char *owner,
             const struct run_options *o, struct run **ret, struct error *reterr)
{
    struct session *s;
    auto_run struct run *r = NULL;
    int n = options_check(o, reterr);

    if (n < 0)
        return n;
    s = session_find(m, id, owner, reterr);
    if (!s)
        return -ERR_NOT_FOUND;
    r = run_new(s, o->kind, reterr);
    session_unref(s);
    if (!r)
        return -ERR_NO_MEMORY;
    r->timeout_ms = o->timeout_ms ? o->timeout_ms : session_settings(s)->execution_timeout_s * 1000;
    n = o->kind == RUN_CODE ? code_request(r, o, reterr) : command_request(r, o, reterr);
    if (n == 0)
        n = run_enqueue(r->session, r, reterr);
    if (n == 0)
        *ret = TAKE_PTR(r);
    return n;
}

int run_open_adopted(struct session_manager *m, const char *id, const char *owner, struct run **ret,
                     struct error *reterr)
{
    struct session *s = session_find(m, id, owner, reterr);
    int n = 0;

    if (!s)
        return -ERR_NOT_FOUND;
    pthread_mutex_lock(&s->lock);
    if (s->adopted_count) {
        *ret = s->adopted[0];
        memmove(s->adopted, s->adopted + 1, --s->adopted_count * sizeof(*s->adopted));
    } else {
        n = error_set(reterr, ERR_NOT_FOUND, "no run of before is left");
    }
    pthread_mutex_unlock(&s->lock);
    session_unref(s);
    return n;
}

/* ---- stopping runs ---- */

/* Takes a waiting run out of the queue; whether it was there. Its reference goes to the caller. */
static bool queue_remove(struct session *s, struct run *r)
{
    struct run **p = &s->queue_head, *before = NULL;

    for (; *p && *p != r; p = &(*p)->next_queued)
        before = *p;
    if (!*p)
        return false;
    *p = r->next_queued;
    if (s->queue_tail == r)
        s->queue_tail = before;
    r->next_queued = NULL;
    return true;
}

static void run_interrupt(struct run *r)
{
    /* When the connection is lost the run is ending anyway. */
    if (control_send(r->session->sandbox->control, FRAME_INTERRUPT, r->sink.stream, NULL, 0, NULL) <
        0)
        return;
}

void run_cancel(struct run *r)
{
    struct session *s = r->session;
    bool waiting;

    pthread_mutex_lock(&s->lock);
    waiting = queue_remove(s, r);
    if (waiting) {
        run_finish_unstarted(r, RUN_INTERRUPTED, "user", NULL);
        run_unref(r);
    } else if (r->started && !run_log_is_closed(&r->log)) {
        run_interrupt(r);
    }
    pthread_mutex_unlock(&s->lock);
}

int session_interrupt(struct session_manager *m, const char *id, const char *owner,
                      struct error *reterr)
{
    struct session *s = session_find(m, id, owner, reterr);
    int r;

    if (!s)
        return -ERR_NOT_FOUND;
    pthread_mutex_lock(&s->lock);
    r = session_check_alive(s, reterr);
    if (r == 0 && s->current)
        run_interrupt(s->current);
    pthread_mutex_unlock(&s->lock);
    session_unref(s);
    return r;
}
