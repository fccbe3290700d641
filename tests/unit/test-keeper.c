/* SPDX-License-Identifier: MIT */
/* The daemon's connection to a keeper that is played here: answers by serial, events to all, and a
 * keeper that fails, is slow, talks nonsense or ends. */
#include "engine/native/keeper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engine/native/instance.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { WAIT_MS = 10000 };

#define ID "0123456789abcdef0123456789abcdef"

struct keeper_world {
    int dir, listener, sock; /* `sock`: the played keeper's end */
    struct keeper *k;
    pthread_mutex_t lock;
    unsigned ended, oom, lost;
    char cause[32];
};

static void on_event(void *user, const struct keeper_event *event)
{
    struct keeper_world *w = user;

    pthread_mutex_lock(&w->lock);
    w->ended += event->kind == KEEPER_ENDED;
    w->oom += event->kind == KEEPER_OOM;
    memcpy(w->cause, event->cause, sizeof(w->cause));
    pthread_mutex_unlock(&w->lock);
}

static void on_lost(void *user)
{
    struct keeper_world *w = user;

    pthread_mutex_lock(&w->lock);
    w->lost++;
    pthread_mutex_unlock(&w->lock);
}

static void world_done(struct keeper_world *w)
{
    keeper_free(w->k);
    for (int *fd = &w->dir; fd <= &w->sock; fd++)
        if (*fd >= 0)
            close(*fd);
}

#define auto_world __attribute__((cleanup(world_done)))

static void world_open(struct keeper_world *w)
{
    struct keeper_handlers handlers = {.on_event = on_event, .on_lost = on_lost, .user = w};
    struct sockaddr_un address;
    struct error err;

    *w = (struct keeper_world){.dir = -1, .listener = -1, .sock = -1};
    pthread_mutex_init(&w->lock, NULL);
    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    w->dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(w->dir >= 0);
    assert_int_eq(keeper_connect(w->dir, &handlers, &w->k, &err), 0);
    w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    instance_socket_address(w->dir, "keeper.sock", &address);
    assert_int_eq(bind(w->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_eq(listen(w->listener, 4), 0);
    assert_int_eq(keeper_connect(w->dir, &handlers, &w->k, &err), 1);
    w->sock = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(w->sock >= 0);
}

struct caller {
    struct keeper *k;
    struct keeper_call call;
    pthread_t thread;
    int result;
    struct keeper_event event;
    struct error error;
};

static void *caller_main(void *arg)
{
    struct caller *c = arg;

    c->result = keeper_call(c->k, &c->call, &c->event, &c->error);
    return NULL;
}

static void caller_start(struct caller *c, struct keeper_world *w, enum keeper_op op)
{
    c->k = w->k;
    c->call.op = op;
    c->call.id = ID;
    c->call.deadline = c->call.deadline ? c->call.deadline : clock_deadline(WAIT_MS);
    if (!c->call.fd)
        c->call.fd = -1;
    assert_int_eq(pthread_create(&c->thread, NULL, caller_main, c), 0);
}

static struct keeper_request request_take(struct keeper_world *w, int *ret_fd)
{
    struct keeper_request req;
    struct error err;
    size_t fds = 1;
    int fd = -1;

    assert_int_eq(fd_recv(w->sock, &req, sizeof(req), &fd, &fds), (ssize_t)sizeof(req));
    assert_ok(keeper_request_check(&req, sizeof(req), &err), err);
    if (ret_fd)
        *ret_fd = fds ? fd : -1;
    else
        fd_close_all(&fd, fds);
    return req;
}

static struct keeper_event event_make(enum keeper_kind kind, uint64_t serial)
{
    return (struct keeper_event){.magic = KEEPER_MAGIC, .kind = kind, .serial = serial, .id = ID};
}

static void event_send(struct keeper_world *w, const struct keeper_event *event, int fd)
{
    assert_int_eq(fd_send(w->sock, event, sizeof(*event), &fd, fd >= 0), 0);
}

static void await(struct keeper_world *w, const unsigned *what)
{
    unsigned seen = 0;

    for (int i = 0; i < WAIT_MS && !seen; i++) {
        pthread_mutex_lock(&w->lock);
        seen = *what;
        pthread_mutex_unlock(&w->lock);
        if (!seen)
            usleep(1000);
    }
    assert_uint_eq(seen, 1);
}

TEST(answers_find_their_callers_in_any_order)
{
    auto_world struct keeper_world w;
    struct caller callers[3] = {};
    struct keeper_event events[3];

    world_open(&w);
    for (size_t i = 0; i < 3; i++) {
        caller_start(&callers[i], &w, KEEPER_SEAL);
        events[i] = event_make(KEEPER_DONE, request_take(&w, NULL).serial);
        events[i].slot = (uint32_t)i + 10;
    }
    for (size_t i = 3; i-- > 0;)
        event_send(&w, &events[i], -1);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_eq(callers[i].result, 0);
        assert_uint_eq(callers[i].event.slot, i + 10);
    }
}

TEST(a_job_goes_along_with_its_request)
{
    auto_world struct keeper_world w;
    struct caller c = {};
    struct keeper_event event;
    auto_fd int job = fd_memfd_sealed("job", "content", 7), got = -1;
    struct keeper_request req;
    char text[8] = "";

    world_open(&w);
    assert_true(job >= 0);
    c.call.fd = job;
    caller_start(&c, &w, KEEPER_OPEN);
    req = request_take(&w, &got);
    assert_uint_eq(req.op, KEEPER_OPEN);
    assert_str_eq(req.id, ID);
    assert_int_eq(pread(got, text, 7, 0), 7);
    assert_str_eq(text, "content");
    event = event_make(KEEPER_FAILED, req.serial);
    event.code = ERR_UNAVAILABLE;
    event.sys = 38;
    memcpy(event.text, "no such kernel", sizeof("no such kernel"));
    event_send(&w, &event, -1);
    pthread_join(c.thread, NULL);
    assert_int_eq(c.result, -ERR_UNAVAILABLE);
    assert_int_eq(c.error.sys, 38);
    assert_str_eq(c.error.text, "no such kernel");
}

static void job_count(void *user, const struct keeper_event *event, int job_fd)
{
    char c;

    *(int *)user += job_fd >= 0 && pread(job_fd, &c, 1, 0) == 1;
    if (job_fd >= 0)
        close(job_fd);
}

TEST(a_list_is_told_one_by_one)
{
    auto_world struct keeper_world w;
    auto_fd int job = fd_memfd_sealed("job", "x", 1);
    struct caller c = {};
    struct keeper_event event;
    int count = 0;

    world_open(&w);
    c.call.on_sandbox = job_count;
    c.call.user = &count;
    caller_start(&c, &w, KEEPER_LIST);
    event = event_make(KEEPER_SANDBOX, request_take(&w, NULL).serial);
    event_send(&w, &event, job);
    event_send(&w, &event, job);
    event_send(&w, &event, -1);
    event.kind = KEEPER_DONE;
    event_send(&w, &event, -1);
    pthread_join(c.thread, NULL);
    assert_int_eq(c.result, 0);
    assert_int_eq(count, 2);
}

TEST(events_without_a_serial_go_to_the_handler)
{
    auto_world struct keeper_world w;
    auto_fd int stray = fd_memfd_sealed("stray", "x", 1);
    struct keeper_event event = event_make(KEEPER_OOM, 0);

    world_open(&w);
    event_send(&w, &event, stray);
    await(&w, &w.oom);
    event.kind = KEEPER_ENDED;
    memcpy(event.cause, "oom", sizeof("oom"));
    event_send(&w, &event, -1);
    await(&w, &w.ended);
    assert_str_eq(w.cause, "oom");
    assert_false(keeper_is_lost(w.k));
}

TEST(a_slow_keeper_is_waited_for_until_the_deadline)
{
    auto_world struct keeper_world w;
    struct caller slow = {}, next = {};
    struct keeper_event event;

    world_open(&w);
    slow.call.deadline = clock_deadline(50);
    caller_start(&slow, &w, KEEPER_CLOSE);
    event = event_make(KEEPER_ENDED, request_take(&w, NULL).serial);
    pthread_join(slow.thread, NULL);
    assert_int_eq(slow.result, -ERR_TIMEOUT);
    event_send(&w, &event, -1); /* too late, and nobody's any more */
    caller_start(&next, &w, KEEPER_INFO);
    event = event_make(KEEPER_IS, request_take(&w, NULL).serial);
    event_send(&w, &event, -1);
    pthread_join(next.thread, NULL);
    assert_int_eq(next.result, 0);
    assert_uint_eq(w.ended, 0);
}

TEST(a_keeper_that_ends_fails_all_calls)
{
    auto_world struct keeper_world w;
    struct caller callers[3] = {};
    struct error err;

    world_open(&w);
    for (size_t i = 0; i < 3; i++) {
        caller_start(&callers[i], &w, KEEPER_SEAL);
        request_take(&w, NULL);
    }
    close(w.sock);
    w.sock = -1;
    for (size_t i = 0; i < 3; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_eq(callers[i].result, -ERR_UNAVAILABLE);
    }
    await(&w, &w.lost);
    assert_true(keeper_is_lost(w.k));
    assert_int_eq(keeper_call(w.k,
                              &(struct keeper_call){
                                  .op = KEEPER_INFO, .fd = -1, .deadline = clock_deadline(WAIT_MS)},
                              NULL, &err),
                  -ERR_UNAVAILABLE);
    assert_int_eq(keeper_call(w.k,
                              &(struct keeper_call){.op = KEEPER_INFO,
                                                    .id = "an id that is longer than any may be",
                                                    .fd = -1},
                              NULL, NULL),
                  -ERR_INVALID);
}

TEST(a_keeper_that_talks_nonsense_is_left)
{
    for (int i = 0; i < 3; i++) {
        auto_world struct keeper_world w;
        struct keeper_event event = event_make(KEEPER_OOM, 0);

        world_open(&w);
        if (i == 0)
            event.magic = 1;
        else if (i == 1)
            memset(event.cause, 'c', sizeof(event.cause));
        if (i == 2)
            assert_int_eq(fd_send(w.sock, "short", 5, NULL, 0), 0);
        else
            event_send(&w, &event, -1);
        await(&w, &w.lost);
        assert_uint_eq(w.oom, 0);
        unlinkat(w.dir, "keeper.sock", 0);
    }
}
