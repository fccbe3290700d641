/* SPDX-License-Identifier: MIT */
/* The server's life: its context for tools, and a thread that looks after calls once a second. */
#include "mcp/mcp-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "mcp/ask-internal.h"
#include "mcp/call-internal.h"
#include "mcp/displays.h"

enum { STACK_BYTES = 512 * 1024, TICK_MS = 1000, STOP_MS = 10000, ENDING_MS = 500 };

/* Waits on `changed`; under the lock. */
static void server_wait(struct mcp_server *s, int64_t ms)
{
    int64_t until = clock_ms() + ms;
    struct timespec ts = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

    pthread_cond_timedwait(&s->changed, &s->lock, &ts);
}

static void *ticker_main(void *arg)
{
    struct mcp_server *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        server_wait(s, TICK_MS);
        pthread_mutex_unlock(&s->lock);
        mcp_calls_tick(s);
        mcp_sessions_tick(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- threads ---- */

struct thread {
    struct mcp_server *server;
    mcp_thread_fn *main;
    void *user;
};

static void thread_leave(struct mcp_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->threads--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int thread_enter(struct mcp_server *s, struct error *reterr)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    if (s->stopping)
        r = error_set(reterr, ERR_CANCELLED, "the server is stopping");
    else if (s->threads >= MCP_THREADS_MAX)
        r = error_set(reterr, ERR_LIMIT, "limit_reached: %u calls are running; wait for one",
                      s->threads);
    else
        s->threads++;
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void *thread_main(void *arg)
{
    struct thread thread = *(struct thread *)arg;

    free(arg);
    thread.main(thread.user);
    thread_leave(thread.server);
    return NULL;
}

int mcp_thread_start(struct mcp_server *s, mcp_thread_fn *main, void *user, struct error *reterr)
{
    struct thread *thread = malloc(sizeof(*thread));
    pthread_attr_t attr;
    pthread_t id;
    int r, e;

    if (!thread)
        return error_no_memory(reterr);
    *thread = (struct thread){s, main, user};
    if ((r = thread_enter(s, reterr)) < 0) {
        free(thread);
        return r;
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    e = pthread_create(&id, &attr, thread_main, thread);
    pthread_attr_destroy(&attr);
    if (!e)
        return 0;
    free(thread);
    thread_leave(s);
    return error_sys(reterr, e, "cannot start a thread");
}

/* ---- life ---- */

static void lock_init(struct mcp_server *s)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
}

int mcp_server_new(const struct mcp_server_options *options, struct mcp_server **ret,
                   struct error *reterr)
{
    struct mcp_server *s = calloc(1, sizeof(*s));
    int r, e;

    if (!s)
        return error_no_memory(reterr);
    s->settings = options->settings;
    s->manager = options->manager;
    s->owner = options->owner;
    s->fixture = options->conformance_fixture;
    s->context = (struct tool_context){
        .manager = s->manager, .owner = s->owner, .download_base = options->download_base};
    arena_init(&s->arena, MIB);
    lock_init(s);
    s->state_key = mcp_state_key_new();
    r = s->state_key ? displays_new(DISPLAYS_BYTES, &s->displays, reterr) : error_no_memory(reterr);
    if (r == 0)
        r = tool_roots(s->settings, s->owner, &s->arena, &s->context.roots, reterr);
    if (r == 0 && (e = pthread_create(&s->ticker, NULL, ticker_main, s)) != 0)
        r = error_sys(reterr, e, "cannot start a thread");
    s->ticker_started = r == 0;
    if (r < 0)
        mcp_server_free(s);
    else
        *ret = s;
    return r;
}

void mcp_server_set_network_off(struct mcp_server *s, bool off)
{
    __atomic_store_n(&s->context.network_off, off, __ATOMIC_RELEASE);
}

/* Whether all calls have ended. */
static bool calls_wait(struct mcp_server *s, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);
    bool over;

    pthread_mutex_lock(&s->lock);
    while (s->threads && clock_ms() < deadline)
        server_wait(s, deadline - clock_ms());
    over = s->threads == 0;
    pthread_mutex_unlock(&s->lock);
    return over;
}

/* Its sessions are the last thing that a call can still wait for. */
static void sessions_stop(struct mcp_server *s)
{
    auto_free struct session_info *list = NULL;
    size_t count = 0;

    session_manager_cancel_builds(s->manager);
    if (session_list(s->manager, s->owner, &list, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (session_stop(s->manager, list[i].id, s->owner, NULL) < 0)
            log_debug("session %s was gone", list[i].id);
    }
}

bool mcp_server_stop(struct mcp_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->ticker_started)
        pthread_join(s->ticker, NULL);
    s->ticker_started = false;
    mcp_listen_end(s, NULL);
    mcp_calls_cancel(s);
    if (calls_wait(s, ENDING_MS))
        return true;
    sessions_stop(s);
    return calls_wait(s, STOP_MS);
}

void mcp_server_free(struct mcp_server *s)
{
    struct mcp_call *call;

    if (!s)
        return;
    if (s->ticker_started && !mcp_server_stop(s))
        return;
    while ((call = s->calls)) {
        s->calls = call->next;
        mcp_call_unref(call);
    }
    displays_free(s->displays);
    free(s->watch);
    mcp_state_key_free(s->state_key);
    arena_done(&s->arena);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void mcp_server_progress(struct mcp_server *s, const char *text)
{
    mcp_calls_progress(s, text);
}
