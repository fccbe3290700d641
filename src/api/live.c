/* SPDX-License-Identifier: MIT */
/*
 * Which runs this process knows, and who takes the next one. A run that was created here is claimed
 * at once by its creator's thread; the dispatcher takes what could not start then (its thread was
 * busy, its time had not come) and what another server left. The store decides who gets it.
 */
#include "api/live.h"

#include "api/live-internal.h"
#include "api/thread_log.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum {
    TICK_MS = 1000,
    LEASE_MS = 30000,
    RENEW_MS = 2000, /* also how soon a cancellation is seen that another server took */
    ATTEMPTS_MAX = 3,
    RUN_ARENA_MAX = 2 << 10, /* less than a block, so that its texts take no more than they are */
    CLAIM_ARENA_MAX = 64 << 20,
    STACK_BYTES = 1 << 20,
};
#define LOG_BYTES (8 * MIB)
#define LOGS_BYTES (256 * MIB) /* of all runs that have ended */

/* ---- the runs that are known ---- */

static struct live_run **bucket_of(struct live *l, const char *id)
{
    uint32_t hash = 2166136261u;

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 16777619u;
    return &l->buckets[hash % LIVE_BUCKETS];
}

struct live_run *live_run_ref(struct live_run *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void live_run_unref(struct live_run *r)
{
    if (!r || atomic_fetch_sub(&r->refs, 1) > 1)
        return;
    frame_log_unref(r->log);
    buf_done(&r->values);
    arena_done(&r->arena);
    if (r->cancel_fd >= 0)
        close(r->cancel_fd);
    free(r);
}

/* A larger number for each run, so that frames of two runs of a thread are in order. */
static int64_t epoch_next(struct live *l)
{
    int64_t now = clock_wall_ms();

    pthread_mutex_lock(&l->lock);
    l->last_epoch_ms = now = MAX(now, l->last_epoch_ms + 1);
    pthread_mutex_unlock(&l->lock);
    return now;
}

static int run_new(struct live *l, const struct store_run *row, uint32_t modes,
                   struct live_run **ret, struct error *reterr)
{
    auto_live_run struct live_run *r = calloc(1, sizeof(*r));
    int n;

    if (!r)
        return error_no_memory(reterr);
    atomic_init(&r->refs, 1);
    arena_init(&r->arena, RUN_ARENA_MAX);
    buf_init(&r->values, API_ANSWER_MAX);
    r->live = l;
    r->modes = modes;
    r->id = arena_strdup(&r->arena, row->id);
    r->thread_id = arena_strdup(&r->arena, row->thread_id);
    r->owner = arena_strdup(&r->arena, row->owner);
    r->epoch_ms = epoch_next(l);
    r->cancel_fd = -1;
    if (!r->id || !r->thread_id || !r->owner)
        return error_no_memory(reterr);
    n = frame_log_new(&(struct frame_log_options){.max_bytes = LOG_BYTES, .epoch_ms = r->epoch_ms},
                      &r->log, reterr);
    if (n < 0)
        return n;
    *ret = TAKE_PTR(r);
    return 0;
}

/* With the lock held. */
static struct live_run *run_find(struct live *l, const char *id)
{
    struct live_run *r = *bucket_of(l, id);

    while (r && !str_eq(r->id, id))
        r = r->next;
    return r;
}

struct live_run *live_run_find(struct live *l, const char *id)
{
    struct live_run *r;

    pthread_mutex_lock(&l->lock);
    r = run_find(l, id);
    if (r)
        live_run_ref(r);
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* The list has a reference of its own. With the lock held. */
static void run_link(struct live *l, struct live_run *r)
{
    struct live_run **bucket = bucket_of(l, r->id);

    r->next = *bucket;
    *bucket = live_run_ref(r);
    l->counts.known++;
}

/* With the lock held. */
static void run_unlink(struct live *l, struct live_run *r)
{
    struct live_run **at = bucket_of(l, r->id);

    while (*at && *at != r)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = r->next;
    l->counts.known--;
    live_run_unref(r);
}

/* Whether those who follow a whole thread are to see it. */
static bool is_of_thread(const struct live_run *r, const char *thread_id)
{
    return !r->creating && !r->past && str_eq(r->thread_id, thread_id);
}

struct live_run *live_thread_next(struct live *l, const char *thread_id, int64_t after_epoch_ms)
{
    struct live_run *best = NULL;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_run *r = l->buckets[i]; r; r = r->next) {
            if (r->epoch_ms > after_epoch_ms && is_of_thread(r, thread_id) &&
                (!best || r->epoch_ms < best->epoch_ms))
                best = r;
        }
    }
    if (best)
        live_run_ref(best);
    pthread_mutex_unlock(&l->lock);
    return best;
}

int64_t live_thread_epoch(struct live *l, const char *thread_id)
{
    int64_t epoch = 0;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_run *r = l->buckets[i]; r; r = r->next) {
            if (r->done && is_of_thread(r, thread_id))
                epoch = MAX(epoch, r->epoch_ms);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return epoch;
}

struct frame_log *live_idle_log(struct live *l)
{
    return l->idle;
}

struct frame_log *live_run_log(struct live_run *r)
{
    return r->log;
}

const char *live_run_id(const struct live_run *r)
{
    return r->id;
}

const char *live_run_thread(const struct live_run *r)
{
    return r->thread_id;
}

const char *live_run_owner(const struct live_run *r)
{
    return r->owner;
}

int64_t live_run_epoch(const struct live_run *r)
{
    return r->epoch_ms;
}

bool live_run_is_done(struct live_run *r)
{
    bool done;

    pthread_mutex_lock(&r->live->lock);
    done = r->done;
    pthread_mutex_unlock(&r->live->lock);
    return done;
}

bool live_run_values(struct live_run *r, struct buf *ret)
{
    bool done;

    pthread_mutex_lock(&r->live->lock);
    done = r->done && buf_append(ret, buf_str(&r->values), r->values.len) == 0;
    pthread_mutex_unlock(&r->live->lock);
    return done;
}

/* ---- the end of a run ---- */

int live_run_on_end(struct live_run *r, void (*wake)(void *user), void *user)
{
    struct end_waiter *w = malloc(sizeof(*w));
    bool done;

    if (!w)
        return -1;
    *w = (struct end_waiter){.wake = wake, .user = user};
    pthread_mutex_lock(&r->live->lock);
    done = r->done;
    w->next = r->waiters;
    r->waiters = w;
    pthread_mutex_unlock(&r->live->lock);
    if (done)
        wake(user);
    return 0;
}

void live_run_off_end(struct live_run *r, void *user)
{
    pthread_mutex_lock(&r->live->lock);
    for (struct end_waiter **w = &r->waiters; *w;) {
        struct end_waiter *gone = *w;

        if (gone->user == user) {
            *w = gone->next;
            free(gone);
        } else {
            w = &gone->next;
        }
    }
    pthread_mutex_unlock(&r->live->lock);
}

void live_run_finish(struct live_run *r, struct buf *values)
{
    r->done = true;
    r->active = false;
    /* Runs are known for long after their end, and would be too many for their descriptors. */
    if (r->cancel_fd >= 0)
        close(r->cancel_fd);
    r->cancel_fd = -1;
    r->since_ms = clock_ms();
    r->values = *values;
    buf_init(values, values->max);
    for (struct end_waiter *w = r->waiters; w; w = w->next)
        w->wake(w->user);
    frame_log_close(r->log);
    pthread_cond_broadcast(&r->live->changed);
}

static void run_signal(struct live_run *r)
{
    uint64_t one = 1;

    /* Fails only when it is readable already. */
    if (r->cancel_fd >= 0)
        (void)!write(r->cancel_fd, &one, sizeof(one));
}

void live_run_stop(struct live_run *r, const char *action)
{
    if (r->done || r->action)
        return;
    r->action = action;
    run_signal(r);
}

/* Of a run that never became active: as its worker would have done. With the lock held. */
static void pending_end(struct live_run *r)
{
    struct buf values;

    if (r->done || r->active || r->telling)
        return;
    buf_init(&values, 16);
    if (buf_append_str(&values, "{}") < 0)
        buf_clear(&values);
    frame_log_append(
        r->log,
        &(struct log_frame){.event = "end", .data = "{\"status\":\"interrupted\"}", .len = 24});
    live_run_finish(r, &values);
    buf_done(&values);
}

/* ---- starting ---- */

static void *run_main(void *arg)
{
    struct claimed *c = arg;
    struct live *l = c->run->live;

    worker_run(c);
    pthread_mutex_lock(&l->lock);
    l->counts.active--;
    l->kicked = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    live_run_unref(c->run);
    arena_done(&c->arena);
    free(c);
    return NULL;
}

static int thread_start(struct claimed *c, struct error *reterr)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    r = pthread_create(&thread, &attr, run_main, c);
    pthread_attr_destroy(&attr);
    return r ? error_sys(reterr, r, "cannot start a thread for a run") : 0;
}

/* Makes a place for a run: false when there is none, or the server stops. */
static bool place_take(struct live *l)
{
    bool taken;

    pthread_mutex_lock(&l->lock);
    taken = l->started && !l->stopping &&
            l->counts.active < (size_t)l->api->settings->max_parallel_runs;
    l->counts.active += taken;
    pthread_mutex_unlock(&l->lock);
    return taken;
}

static void place_give(struct live *l)
{
    pthread_mutex_lock(&l->lock);
    l->counts.active--;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* What is kept of a run whose creator's wishes are not known here. */
enum { MODES_USUAL = MODE_VALUES | MODE_UPDATES | MODE_MESSAGES_TUPLE | MODE_CUSTOM };

static void metadata_put(struct live_run *r, int64_t attempt)
{
    char text[100];
    int len = snprintf(text, sizeof(text), "{\"run_id\":\"%s\",\"attempt\":%lld}", r->id,
                       (long long)attempt);

    frame_log_append(r->log,
                     &(struct log_frame){.event = "metadata", .data = text, .len = (size_t)len});
}

bool run_row_has_ended(const struct store_run *row)
{
    return !str_eq(row->status, "pending") && !str_eq(row->status, "running");
}

int live_run_mirror(struct live *l, const struct store_run *row, bool tell, struct live_run **ret,
                    struct error *reterr)
{
    struct live_run *run = NULL, *known;
    int r = run_new(l, row, MODES_USUAL, &run, reterr);

    if (r < 0)
        return r;
    run->mirror = true;
    run->past = run_row_has_ended(row);
    if (tell)
        metadata_put(run, MAX(row->attempt, 1));
    pthread_mutex_lock(&l->lock);
    known = run_find(l, row->id);
    if (known)
        live_run_ref(known);
    else
        run_link(l, run);
    pthread_mutex_unlock(&l->lock);
    if (known)
        live_run_unref(run);
    *ret = known ? known : run;
    return 0;
}

/*
 * The run of a row that was claimed: known from its creation, or of another server or a former
 * life. One that was told to have been taken over comes back as a new one. Referenced. Further
 * attempts tell their beginning themselves.
 */
static int run_of_row(struct live *l, const struct store_run *row, struct live_run **ret,
                      struct error *reterr)
{
    struct live_run *known;

    pthread_mutex_lock(&l->lock);
    known = run_find(l, row->id);
    if (known && (known->done || known->active))
        run_unlink(l, known);
    pthread_mutex_unlock(&l->lock);
    return live_run_mirror(l, row, row->attempt <= 1, ret, reterr);
}

static int run_activate(struct live *l, struct live_run *r, struct error *reterr)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return error_sys(reterr, errno, "cannot make an event descriptor");
    pthread_mutex_lock(&l->lock);
    r->cancel_fd = fd;
    r->active = true;
    r->since_ms = clock_ms();
    l->counts.started++;
    if (r->action)
        run_signal(r); /* it was asked before there was something to signal */
    else if (l->stopping)
        live_run_stop(r, "stop");
    pthread_mutex_unlock(&l->lock);
    return 0;
}

/* What was claimed and cannot be run: the next look may find more threads and memory. */
static void claim_undo(struct live *l, struct claimed *c)
{
    struct store_fence fence = {.run_id = c->row.id, .attempt = c->row.attempt};
    struct error error;

    if (c->run) {
        pthread_mutex_lock(&l->lock);
        c->run->active = false;
        if (c->run->cancel_fd >= 0)
            close(c->run->cancel_fd);
        c->run->cancel_fd = -1;
        pthread_mutex_unlock(&l->lock);
    }
    if (store_run_release(l->api->store, &fence, &error) < 0)
        log_warn("run %s cannot be given back: %s", c->row.id, error.text);
}

/* Takes a place over. 1 when a run was started, 0 when there was none; the place is given back
 * then. */
static int claim_one(struct live *l, const char *id, struct error *reterr)
{
    struct claimed *c = calloc(1, sizeof(*c));
    int r = c ? 0 : error_no_memory(reterr);

    if (c) {
        arena_init(&c->arena, CLAIM_ARENA_MAX);
        r = store_run_claim(l->api->store, &l->worker, id, &c->arena, &c->row, reterr);
    }
    if (r == 1) {
        if (run_of_row(l, &c->row, &c->run, reterr) == 0 && run_activate(l, c->run, reterr) == 0 &&
            thread_start(c, reterr) == 0)
            return 1;
        claim_undo(l, c);
        r = -1;
    }
    if (c) {
        live_run_unref(c->run);
        arena_done(&c->arena);
        free(c);
    }
    place_give(l);
    return r;
}

static void claim_all(struct live *l)
{
    struct error error;

    while (place_take(l)) {
        int r = claim_one(l, NULL, &error);

        if (r < 0)
            log_warn("cannot take a run: %s, retrying", error.text);
        if (r <= 0)
            return;
    }
}

/* Those that another server's caller asked to cancel, and those that this one has lost. */
static void leases_renew(struct live *l)
{
    auto_arena struct arena arena;
    struct store_run *rows;
    struct error error;
    int64_t asked = clock_ms();
    size_t count;

    arena_init(&arena, CLAIM_ARENA_MAX);
    if (store_run_renew(l->api->store, &l->worker, &arena, &rows, &count, &error) < 0) {
        log_warn("cannot renew the leases of runs: %s, retrying", error.text);
        return;
    }
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_run *r = l->buckets[i]; r; r = r->next) {
            size_t at = 0;

            while (r->active && at < count && !str_eq(rows[at].id, r->id))
                at++;
            if (r->active && at < count && rows[at].cancel)
                live_run_stop(r, str_eq(rows[at].cancel, "rollback") ? "rollback" : "interrupt");
            else if (r->active && at == count && r->since_ms < asked)
                live_run_stop(r, "lost");
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* Runs that take too long; and those that nobody asks for any more. With the lock held. */
static void runs_sweep(struct live *l)
{
    int64_t now = clock_ms(), keep = l->api->settings->event_retention_s * 1000;
    size_t bytes = 0;

    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_run **at = &l->buckets[i]; *at;) {
            struct live_run *r = *at;
            size_t size =
                r->done ? frame_log_bytes(r->log) + r->values.len + sizeof(*r) + RUN_ARENA_MAX : 0;

            if (r->active && now - r->since_ms > l->api->settings->run_timeout_s * 1000)
                live_run_stop(r, "timeout");
            bytes += size;
            if (r->done && (now - r->since_ms > keep || bytes > LOGS_BYTES)) {
                bytes -= size;
                *at = r->next;
                l->counts.known--;
                live_run_unref(r);
            } else {
                at = &r->next;
            }
        }
    }
}

static bool has_active(const struct live *l)
{
    return l->counts.active > 0;
}

static void dispatcher_wait(struct live *l)
{
    struct timespec until;
    int64_t deadline = clock_ms() + TICK_MS;

    until.tv_sec = deadline / 1000;
    until.tv_nsec = deadline % 1000 * 1000000;
    while (!l->kicked && !l->stopping && clock_ms() < deadline)
        pthread_cond_timedwait(&l->changed, &l->lock, &until);
    l->kicked = false;
}

static void *dispatcher_main(void *arg)
{
    struct live *l = arg;
    int64_t renewed = 0, swept = 0;

    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        bool renew = has_active(l) && clock_ms() - renewed >= RENEW_MS;
        bool sweep = clock_ms() - swept >= TICK_MS;

        if (sweep) {
            runs_sweep(l);
            swept = clock_ms();
        }
        pthread_mutex_unlock(&l->lock);
        if (renew) {
            leases_renew(l);
            renewed = clock_ms();
        }
        claim_all(l);
        if (sweep) {
            mirrors_look(l);
            thread_logs_sweep(l->api->threads);
        }
        pthread_mutex_lock(&l->lock);
        dispatcher_wait(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- creating and cancelling ---- */

/* The runs that have to make way: those of other servers see it when they renew their lease. */
static void make_way(struct live *l, const struct store_run *active, size_t count)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < count; i++) {
        struct live_run *r = run_find(l, active[i].id);

        if (r)
            live_run_stop(r, active[i].cancel && str_eq(active[i].cancel, "rollback")
                                 ? "rollback"
                                 : "interrupt");
    }
    pthread_mutex_unlock(&l->lock);
}

int live_run_create(struct live *l, const struct live_create *create, struct arena *arena,
                    struct store_run *ret_row, struct live_run **ret, struct error *reterr)
{
    struct live_run *run = NULL;
    struct store_run *active = NULL;
    struct error ignored;
    size_t count = 0;
    int r;

    if (live_is_stopping(l))
        return error_set(reterr, ERR_UNAVAILABLE, "the server is stopping");
    /* Known before anybody can claim it, so that no frame is missed. */
    r = run_new(l, &create->new.run, create->modes, &run, reterr);
    if (r < 0)
        return r;
    run->v2 = create->v2;
    run->creating = true;
    metadata_put(run, 1);
    pthread_mutex_lock(&l->lock);
    run_link(l, run);
    pthread_mutex_unlock(&l->lock);
    r = store_run_create(l->api->store, &create->new, arena, ret_row, &active, &count, reterr);
    pthread_mutex_lock(&l->lock);
    run->creating = false;
    if (r < 0)
        run_unlink(l, run);
    pthread_mutex_unlock(&l->lock);
    if (r < 0) {
        live_run_unref(run);
        return r;
    }
    make_way(l, active, count);
    frame_log_wake(l->idle);
    if (create->new.run.start_us <= timestamp_now() && place_take(l) &&
        claim_one(l, run->id, &ignored) < 0)
        log_warn("cannot start a run at once: %s, retrying", ignored.text);
    *ret = run;
    return 0;
}

static bool is_done(void *run)
{
    return ((struct live_run *)run)->done;
}

static bool wait_until(struct live *l, bool (*done)(void *user), void *user, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};

    while (!done(user) && clock_ms() < deadline)
        pthread_cond_timedwait(&l->changed, &l->lock, &until);
    return done(user);
}

int live_cancel(struct live *l, const char *owner, const char *thread_id, const char *run_id,
                const char *action, unsigned wait_ms, struct error *reterr)
{
    auto_arena struct arena arena;
    auto_live_run struct live_run *run = live_run_find(l, run_id);
    struct store_run row;
    int r;

    arena_init(&arena, CLAIM_ARENA_MAX);
    r = store_run_cancel(l->api->store, owner, thread_id, run_id, action, &arena, &row, reterr);
    if (r < 0 || !run)
        return r;
    pthread_mutex_lock(&l->lock);
    if (str_eq(row.status, "running"))
        live_run_stop(run, str_eq(action, "rollback") ? "rollback" : "interrupt");
    else if (str_eq(row.status, "interrupted"))
        pending_end(run);
    if (wait_ms)
        wait_until(l, is_done, run, wait_ms);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

struct thread_rest {
    struct live *live;
    const struct live_run *but;
};

static bool is_thread_quiet(void *user)
{
    const struct thread_rest *rest = user;
    bool quiet = true;

    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (const struct live_run *r = rest->live->buckets[i]; r; r = r->next)
            quiet &= r == rest->but || !r->active || !str_eq(r->thread_id, rest->but->thread_id);
    }
    return quiet;
}

void live_thread_wait(struct live_run *r)
{
    enum { FORMER_MS = 5000 };
    struct thread_rest rest = {r->live, r};

    pthread_mutex_lock(&r->live->lock);
    (void)!wait_until(r->live, is_thread_quiet, &rest, FORMER_MS);
    pthread_mutex_unlock(&r->live->lock);
}

void live_cancel_thread(struct live *l, const char *owner, const char *thread_id)
{
    enum { THREAD_END_MS = 10000 };
    auto_arena struct arena arena;
    struct store_run *rows = NULL;
    size_t count = 0;
    static const char *const states[] = {"pending", "running"};

    arena_init(&arena, CLAIM_ARENA_MAX);
    for (size_t s = 0; s < ARRAY_LEN(states); s++) {
        if (store_run_list_brief(l->api->store, owner, thread_id, states[s],
                                 &(struct store_page){.limit = 1000}, &arena, &rows, &count,
                                 NULL) < 0)
            continue;
        for (size_t i = 0; i < count; i++)
            (void)!live_cancel(l, owner, thread_id, rows[i].id, "interrupt", THREAD_END_MS, NULL);
    }
}

void live_counts_get(struct live *l, struct live_counts *ret)
{
    pthread_mutex_lock(&l->lock);
    *ret = l->counts;
    pthread_mutex_unlock(&l->lock);
}

/* ---- the whole ---- */

/* Who claims: the same name in each life of this server, so that what a former one left running is
 * known as its own, and can be taken up at once. */
static int worker_id_load(struct live *l, struct error *reterr)
{
    const char *dir = l->api->settings->state_dir;
    auto_fd int fd = path_open_dir(AT_FDCWD, dir, reterr);
    auto_free char *text = NULL;
    size_t len;
    int r;

    if (fd < 0)
        return fd;
    if (fd_read_file(fd, "server-id", 64, &text, &len, NULL) == 0 && len == UUID_LEN &&
        uuid_check(text))
        return str_copy(l->worker_id, sizeof(l->worker_id), text);
    r = uuid_v4(l->worker_id, reterr);
    return r < 0 ? r : fd_write_file_atomic(fd, "server-id", l->worker_id, UUID_LEN, reterr);
}

int live_new(struct api *api, struct live **ret, struct error *reterr)
{
    struct live *l = calloc(1, sizeof(*l));
    pthread_condattr_t attr;
    int r;

    if (!l)
        return error_no_memory(reterr);
    l->api = api;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    l->worker = (struct store_worker){
        .id = l->worker_id, .lease_us = LEASE_MS * 1000LL, .attempts_max = ATTEMPTS_MAX};
    r = worker_id_load(l, reterr);
    if (r == 0)
        r = frame_log_new(&(struct frame_log_options){}, &l->idle, reterr);
    if (r < 0) {
        live_free(l);
        return r;
    }
    frame_log_close(l->idle);
    *ret = l;
    return 0;
}

/* What a former process of this server was running has nobody any more: its leases end now. */
static int leases_drop(struct live *l, struct error *reterr)
{
    struct store_worker ended = l->worker;
    auto_arena struct arena arena;
    struct store_run *rows;
    size_t count = 0;
    int r;

    arena_init(&arena, CLAIM_ARENA_MAX);
    ended.lease_us = 0;
    r = store_run_renew(l->api->store, &ended, &arena, &rows, &count, reterr);
    if (r == 0 && count > 0)
        log_info("%zu runs of a former process are taken up again", count);
    return r;
}

int live_start(struct live *l, struct error *reterr)
{
    int r = leases_drop(l, reterr);

    if (r < 0)
        return r;
    l->started = true;
    r = pthread_create(&l->dispatcher, NULL, dispatcher_main, l);
    if (r) {
        l->started = false;
        return error_sys(reterr, r, "cannot start the thread that takes runs");
    }
    return 0;
}

static bool is_idle(void *live)
{
    return ((struct live *)live)->counts.active == 0;
}

bool live_is_stopping(struct live *l)
{
    bool stopping;

    pthread_mutex_lock(&l->lock);
    stopping = l->stopping;
    pthread_mutex_unlock(&l->lock);
    return stopping;
}

bool live_stop(struct live *l, unsigned grace_ms)
{
    enum { STOP_MS = 10000 };
    bool started, ended;

    pthread_mutex_lock(&l->lock);
    started = l->started;
    l->stopping = true;
    l->started = false;
    pthread_cond_broadcast(&l->changed);
    wait_until(l, is_idle, l, grace_ms);
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_run *r = l->buckets[i]; r; r = r->next) {
            if (r->active)
                live_run_stop(r, "stop");
        }
    }
    ended = wait_until(l, is_idle, l, STOP_MS);
    if (!ended)
        log_warn("%zu runs do not end; they are taken up by the next start", l->counts.active);
    pthread_mutex_unlock(&l->lock);
    if (started)
        pthread_join(l->dispatcher, NULL);
    return ended;
}

void live_free(struct live *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        while (l->buckets[i]) {
            struct live_run *r = l->buckets[i];

            l->buckets[i] = r->next;
            live_run_unref(r);
        }
    }
    frame_log_unref(l->idle);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
