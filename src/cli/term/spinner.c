/* SPDX-License-Identifier: MIT */
/* The thread sleeps on a condition while nothing is shown, so an idle chat costs nothing. */
#include "cli/term/spinner.h"

#include "base/clock.h"
#include "base/str.h"
#include "cli/term/clean.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

enum { FRAME_MS = 100, WHAT_COLUMNS = 60 };

struct spinner {
    struct term *term;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_on, is_over; /* under the lock, as is what follows */
    int64_t since;
    struct buf what;
};

/* 59.9 s, 2:05, 1:02:05 */
static void elapsed_write(int64_t ms, char *ret, size_t size)
{
    long long seconds = ms / 1000;

    if (seconds < 60)
        snprintf(ret, size, "%lld.%lld s", seconds, (long long)(ms / 100 % 10));
    else if (seconds < 3600)
        snprintf(ret, size, "%lld:%02lld", seconds / 60, seconds % 60);
    else
        snprintf(ret, size, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void frame_draw(struct spinner *s)
{
    static const char *const signs[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    enum term_color color = term_color(s->term);
    int64_t ms = clock_ms() - s->since;
    const char *sign = signs[(size_t)(ms / FRAME_MS) % ARRAY_LEN(signs)];
    auto_buf struct buf line;
    char time[32];

    buf_init(&line, 4096);
    elapsed_write(ms, time, sizeof(time));
    if (style_text(&line, STYLE_RUNNING, color, sign, strlen(sign)) < 0 ||
        buf_printf(&line, " %s ", buf_str(&s->what)) < 0 ||
        style_text(&line, STYLE_FAINT, color, time, strlen(time)) < 0)
        return;
    term_status_set(s->term, buf_str(&line), line.len);
}

static void *spin(void *arg)
{
    struct spinner *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->is_over) {
        struct timespec until;

        if (!s->is_on) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        frame_draw(s);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += FRAME_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals are for the threads that expect them. */
static int thread_start(struct spinner *s)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&s->thread, NULL, spin, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int spinner_new(struct term *t, struct spinner **ret, struct error *reterr)
{
    struct spinner *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;
    int r = 0;

    if (!s)
        return error_no_memory(reterr);
    s->term = t;
    buf_init(&s->what, 1024);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (term_caps(t)->is_tty && (r = thread_start(s)) == 0)
        s->has_thread = true;
    if (r != 0) {
        spinner_free(s);
        return error_sys(reterr, r, "cannot start a thread");
    }
    *ret = s;
    return 0;
}

void spinner_free(struct spinner *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_over = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    term_status_set(s->term, "", 0);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    buf_done(&s->what);
    free(s);
}

void spinner_start(struct spinner *s, const char *what)
{
    pthread_mutex_lock(&s->lock);
    buf_clear(&s->what);
    if (clean_line(what, WHAT_COLUMNS, &s->what) < 0)
        buf_clear(&s->what);
    if (!s->is_on)
        s->since = clock_ms();
    s->is_on = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void spinner_stop(struct spinner *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_on = false;
    term_status_set(s->term, "", 0);
    pthread_mutex_unlock(&s->lock);
}
