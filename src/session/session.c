/* SPDX-License-Identifier: MIT */
/*
 * One session: its queue of runs and its state. Lock order: a session's lock is taken before a
 * connection's and never under the manager's; it is recursive, because the loss of the connection
 * can end a run inside the call that starts it.
 */
#include "session/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "session/session-internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum {
    CODE_MAX = 16 * 1024 * 1024,
    QUEUE_MAX = 64,       /* runs that wait in one session */
    DEATH_WAIT_MS = 1000, /* for the keeper's word on why a connection was lost */
    CALL_WAIT_MS = 30000, /* for a place among the calls */
};

/* Init keeps 32 operations open. */
static const unsigned call_places[CALL_KINDS] = {
    [CALL_PROCESS] = UINT_MAX, [CALL_READ] = 16, [CALL_WRITE] = 8, [CALL_ASK] = 8};

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

static void locks_init(struct session *s)
{
    pthread_mutexattr_t recursive;
    pthread_condattr_t monotonic;

    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_mutex_init(&s->close_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->call_over, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct session *session_new(struct session_manager *m, const char *owner, struct error *reterr)
{
    struct session *s = calloc(1, sizeof(*s));
    char *name = strdup(owner ? owner : "");

    if (!s || !name || id_new(s->id, NULL) < 0) {
        free(s);
        free(name);
        error_no_memory(reterr);
        return NULL;
    }
    s->owner = name;
    s->refs = 1;
    s->manager = m;
    s->created_ms = s->last_activity_ms = clock_ms();
    s->created_wall_ms = clock_wall_ms();
    locks_init(s);
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
    for (size_t i = 0; i < s->export_count; i++)
        free(s->exports[i].path);
    free(s->exports);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->close_lock);
    pthread_cond_destroy(&s->call_over);
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

/* ---- state ---- */

enum session_status session_get_status(const struct session *s)
{
    return __atomic_load_n(&s->status, __ATOMIC_ACQUIRE);
}

int64_t session_get_activity(const struct session *s)
{
    return __atomic_load_n(&s->last_activity_ms, __ATOMIC_RELAXED);
}

bool session_is_busy(const struct session *s)
{
    return __atomic_load_n(&s->current, __ATOMIC_RELAXED) ||
           __atomic_load_n(&s->calls, __ATOMIC_RELAXED) ||
           session_get_status(s) == SESSION_STARTING;
}

/* A cell that waits for a line keeps others out, but does nothing. Under the lock. */
static bool session_is_at_work(const struct session *s)
{
    return session_is_busy(s) && (s->calls || !s->current || !s->current->asked_ms);
}

/* The setters below are called under the lock. */

static void status_set(struct session *s, enum session_status status, const char *cause)
{
    if (session_get_status(s) == SESSION_DEAD)
        return;
    if (str_copy(s->death, sizeof(s->death), cause) < 0)
        s->death[0] = 0;
    __atomic_store_n(&s->status, status, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&s->call_over);
}

static void activity_set(struct session *s)
{
    __atomic_store_n(&s->last_activity_ms, clock_ms(), __ATOMIC_RELAXED);
}

void session_set_current(struct session *s, struct run *r)
{
    __atomic_store_n(&s->current, r, __ATOMIC_RELAXED);
}

/* The sandbox may have ended while nothing ran: nobody has told the session then. */
static void death_notice(struct session *s)
{
    char cause[32];

    if (session_get_status(s) != SESSION_RUNNING || !s->sandbox || s->current)
        return;
    /* Its keeper is gone: nobody could end it or tell how it ended, so it is given up. */
    if (!control_is_lost(s->sandbox->control) && !sandbox_wait_ended(s->sandbox, 0, cause))
        return;
    if (!sandbox_wait_ended(s->sandbox, clock_ms() + DEATH_WAIT_MS, cause))
        memcpy(cause, "lost", sizeof("lost"));
    status_set(s, SESSION_DEAD, cause);
    manager_wake(s->manager);
}

/* Whether the session is there for a call of its owner. Under the lock. */
static int alive_check(struct session *s, struct error *reterr)
{
    death_notice(s);
    if (session_get_status(s) == SESSION_DEAD)
        return error_set(reterr, ERR_DIED,
                         "session %s has died (%s): its state is lost; create a new session", s->id,
                         s->death[0] ? s->death : "ended");
    if (session_get_status(s) == SESSION_STARTING)
        return error_set(reterr, ERR_BUSY, "session %s is still starting", s->id);
    return 0;
}

/* Whether another call may begin. Under the lock. */
static int call_check(struct session *s, struct error *reterr)
{
    int r = alive_check(s, reterr);

    if (r == 0 && s->close_when_idle)
        return error_set(reterr, ERR_DIED,
                         "session %s has reached SESSION_MAX_LIFETIME_SECONDS and ends after the "
                         "running call; create a new session",
                         s->id);
    return r;
}

int session_set_sandbox(struct session *s, struct sandbox *sandbox, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    s->sandbox = sandbox;
    if (s->closing)
        r = error_set(reterr, ERR_CANCELLED, "the session was ended while it started");
    pthread_mutex_unlock(&s->lock);
    return r;
}

int session_set_running(struct session *s, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    if (s->closing) {
        r = error_set(reterr, ERR_CANCELLED, "the session was ended while it started");
    } else {
        status_set(s, SESSION_RUNNING, "");
        activity_set(s);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Waits until a call of this kind may begin. Under the lock, which must be held once only. */
static int call_place_await(struct session *s, enum call_kind kind, struct error *reterr)
{
    int64_t deadline = clock_deadline(CALL_WAIT_MS);
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
    int r;

    while ((r = call_check(s, reterr)) == 0 && s->calls_of[kind] >= call_places[kind]) {
        if (pthread_cond_timedwait(&s->call_over, &s->lock, &until) == ETIMEDOUT)
            return error_set(reterr, ERR_BUSY, "session %s: %u files are open already", s->id,
                             call_places[kind]);
    }
    return r;
}

int session_call_begin(struct session *s, enum call_kind kind, struct error *reterr)
{
    int r;

    pthread_mutex_lock(&s->lock);
    r = call_place_await(s, kind, reterr);
    if (r == 0) {
        activity_set(s);
        __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED);
        s->calls_of[kind]++;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

void session_call_end(struct session *s, enum call_kind kind)
{
    bool wake;

    pthread_mutex_lock(&s->lock);
    activity_set(s);
    __atomic_sub_fetch(&s->calls, 1, __ATOMIC_RELAXED);
    s->calls_of[kind]--;
    pthread_cond_broadcast(&s->call_over);
    wake = s->close_when_idle;
    pthread_mutex_unlock(&s->lock);
    if (wake)
        manager_wake(s->manager);
}

void session_fill_info(struct session *s, struct session_info *ret)
{
    pthread_mutex_lock(&s->lock);
    death_notice(s);
    *ret = (struct session_info){
        .status = session_get_status(s),
        .busy = s->current || s->calls,
        .created_wall_ms = s->created_wall_ms,
        .idle_ms = session_is_at_work(s) ? 0 : clock_ms() - s->last_activity_ms,
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
        s->queued--;
    }
    return r;
}

static void queue_append(struct session *s, struct run *r)
{
    if (s->queue_tail)
        s->queue_tail->next_queued = run_ref(r);
    else
        s->queue_head = run_ref(r);
    s->queue_tail = r;
    s->queued++;
}

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
    s->queued--;
    return true;
}

/* Waiting runs will never start. */
static void queue_end(struct session *s, const char *cause)
{
    struct run *r;

    while ((r = queue_pop(s))) {
        run_finish_unstarted(r, RUN_DIED, cause);
        run_unref(r);
    }
}

/* Starts the next waiting run when none is under way. The queue's reference becomes `current`'s. */
static void queue_advance(struct session *s)
{
    auto_run struct run *r = NULL;

    if (s->current || !s->queue_head || session_get_status(s) != SESSION_RUNNING)
        return;
    r = run_ref(s->queue_head);
    session_set_current(s, queue_pop(s));
    run_start(r);
}

void session_run_over(struct session *s, struct run *r, bool sandbox_gone, const char *cause)
{
    bool was_current, wake;

    pthread_mutex_lock(&s->lock);
    was_current = s->current == r;
    if (was_current)
        session_set_current(s, NULL);
    activity_set(s);
    wake = sandbox_gone || s->close_when_idle;
    if (sandbox_gone || (s->close_when_idle && !s->calls)) {
        status_set(s, SESSION_DEAD, sandbox_gone ? cause : "expired");
        queue_end(s, s->death);
    } else if (!s->close_when_idle) {
        queue_advance(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (was_current)
        run_unref(r);
    if (wake)
        manager_wake(s->manager);
}

/* ---- the end ---- */

static void retire_locked(struct session *s, const char *cause)
{
    if (s->closing)
        return;
    s->closing = true;
    status_set(s, SESSION_DEAD, cause);
    queue_end(s, s->death);
    for (size_t i = 0; i < s->adopted_count; i++)
        run_unref(s->adopted[i]);
    s->adopted_count = 0;
    if (s->sandbox)
        sandbox_set_ended(s->sandbox, cause);
}

void session_retire(struct session *s, const char *cause)
{
    pthread_mutex_lock(&s->lock);
    retire_locked(s, cause);
    pthread_mutex_unlock(&s->lock);
}

bool session_retire_idle(struct session *s, const char *cause, int64_t since_ms)
{
    bool idle;

    pthread_mutex_lock(&s->lock);
    /* Calls that wait behind a question want its end, not that of the session. */
    idle = !session_is_at_work(s) && !s->queue_head && s->last_activity_ms <= since_ms;
    if (idle)
        retire_locked(s, cause);
    pthread_mutex_unlock(&s->lock);
    return idle;
}

bool session_expire(struct session *s)
{
    bool now;

    pthread_mutex_lock(&s->lock);
    now = !session_is_at_work(s);
    if (now)
        retire_locked(s, "expired");
    else
        s->close_when_idle = session_get_status(s) == SESSION_RUNNING;
    pthread_mutex_unlock(&s->lock);
    return now;
}

/* ---- questions ---- */

void session_question_open(struct session *s, struct run *r)
{
    pthread_mutex_lock(&s->lock);
    if (!r->asked_ms)
        r->rest_ms = r->backstop == CLOCK_FOREVER ? CLOCK_FOREVER : r->backstop - clock_ms();
    r->asked_ms = clock_ms();
    r->backstop = CLOCK_FOREVER;
    activity_set(s);
    pthread_mutex_unlock(&s->lock);
}

void session_question_close(struct session *s, struct run *r)
{
    pthread_mutex_lock(&s->lock);
    if (r->asked_ms) {
        r->asked_ms = 0;
        if (r->rest_ms != CLOCK_FOREVER)
            r->backstop = clock_deadline(MAX(r->rest_ms, 0));
        activity_set(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Whether a run of a former process is nobody's yet. Under the lock. */
static bool is_orphan(const struct session *s, const struct run *r)
{
    for (size_t i = 0; i < s->adopted_count; i++) {
        if (s->adopted[i] == r)
            return true;
    }
    return false;
}

void session_question_expire(struct session *s, int64_t since_ms)
{
    auto_run struct run *asking = NULL;
    struct error error;

    pthread_mutex_lock(&s->lock);
    if (s->current && s->current->asked_ms &&
        (s->current->asked_ms < since_ms || (s->queue_head && is_orphan(s, s->current))))
        asking = run_ref(s->current);
    pthread_mutex_unlock(&s->lock);
    if (asking && run_input(asking, NULL, 0, &error) < 0)
        log_debug("session %s: a question cannot be answered: %s", s->id, error.text);
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
    n = call_check(s, reterr);
    if (n == 0 && s->queued >= QUEUE_MAX)
        n = error_set(reterr, ERR_LIMIT,
                      "limit_reached: %d calls wait in session %s already; wait for some to end",
                      QUEUE_MAX, s->id);
    if (n == 0) {
        activity_set(s);
        queue_append(s, r);
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

/* Not under the session's lock: init may be slow to read. */
static void run_interrupt(struct run *r)
{
    if (control_send(r->session->sandbox->control, FRAME_INTERRUPT, r->sink.stream, NULL, 0, NULL) <
        0)
        return; /* the connection is lost, so the run is ending anyway */
}

void run_cancel(struct run *r)
{
    struct session *s = r->session;
    bool waiting, running;

    pthread_mutex_lock(&s->lock);
    waiting = queue_remove(s, r);
    running = r->started && !run_log_is_closed(&r->log);
    if (waiting)
        run_finish_unstarted(r, RUN_INTERRUPTED, "user");
    pthread_mutex_unlock(&s->lock);
    if (waiting)
        run_unref(r);
    else if (running)
        run_interrupt(r);
}

int session_interrupt(struct session_manager *m, const char *id, const char *owner,
                      struct error *reterr)
{
    struct session *s = session_find(m, id, owner, reterr);
    auto_run struct run *current = NULL;
    int r;

    if (!s)
        return -ERR_NOT_FOUND;
    pthread_mutex_lock(&s->lock);
    r = alive_check(s, reterr);
    if (r == 0 && s->current)
        current = run_ref(s->current);
    pthread_mutex_unlock(&s->lock);
    if (current)
        run_interrupt(current);
    session_unref(s);
    return r;
}
