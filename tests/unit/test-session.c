/* SPDX-License-Identifier: MIT */
/* Life of sessions whose sandboxes are peers: making, limits, eviction, collection, adoption,
 * files, and the end of the manager; also with many threads at once. */
#include "session/session-internal.h"

#include "base/str.h"
#include "tests/lib/fake-engine.h"

/* Ends one by one where a world is too slow for what is counted in seconds. */
static void short_lives(struct world *w)
{
    world_init(w);
    w->settings.gc_interval_s = 1;
}

/* Waits until a session is dead and its sandbox closed; its cause. */
static const char *death_await(struct world *w, const char *id, unsigned closed)
{
    static struct session_info info;

    for (int i = 0; i < 500; i++) {
        struct error err;

        assert_ok(session_get_info(w->m, id, NULL, &info, &err), err);
        if (info.status == SESSION_DEAD &&
            __atomic_load_n(&w->engine.closed, __ATOMIC_RELAXED) >= closed)
            return info.death;
        usleep(20000);
    }
    return "it lives";
}

static int cell_open(struct world *w, const char *id, struct run **ret, struct error *reterr)
{
    return run_open(
        w->m, id, NULL,
        &(struct run_options){
            .size = sizeof(struct run_options), .kind = RUN_CODE, .text = "x", .len = 1},
        ret, reterr);
}

static size_t session_count(struct world *w, const char *owner)
{
    auto_free struct session_info *list = NULL;
    struct error err;
    size_t count;

    assert_ok(session_list(w->m, owner, &list, &count, &err), err);
    return count;
}

/* ---- making and stopping ---- */

TEST(a_session_is_made_listed_and_stopped)
{
    static const struct session_dependency none[1];
    auto_world struct world w = {};
    struct session_info s, seen;
    struct peer_frame *kernel;
    struct error err;

    world_init(&w);
    world_start(&w);
    assert_ok(session_create(w.m,
                             &(struct session_options){.size = sizeof(struct session_options),
                                                       .owner = "me",
                                                       .image = w.image,
                                                       .network = -1,
                                                       .dependencies = none},
                             &s, &err),
              err);
    assert_true(id_check(s.id));
    assert_str_eq(s.runtime, "python");
    assert_int_eq(s.status, SESSION_RUNNING);
    assert_str_eq(session_status_name(s.status), "running");
    assert_int_eq(s.network, JOB_NETWORK_PUBLIC);
    assert_str_eq(s.dependencies, "{}");
    kernel = peer_take(&w.engine.peers[0], FRAME_KERNEL);
    assert_str_eq(peer_field(kernel, "argv"), "python3");
    assert_str_eq(peer_field(kernel, "user"), "sandbox");
    assert_ok(session_get_info(w.m, s.id, "me", &seen, &err), err);
    assert_str_eq(seen.owner, "me");
    assert_false(seen.busy);
    assert_uint_eq(session_count(&w, "me"), 1);
    assert_ok(session_stop(w.m, s.id, "me", &err), err);
    assert_uint_eq(w.engine.closed, 1);
    assert_uint_eq(session_count(&w, NULL), 0);
    assert_int_eq(session_stop(w.m, s.id, "me", &err), -ERR_NOT_FOUND);
    assert_int_eq(session_get_info(w.m, s.id, NULL, &seen, NULL), -ERR_NOT_FOUND);
    assert_int_eq(session_interrupt(w.m, s.id, NULL, NULL), -ERR_NOT_FOUND);
}

TEST(an_owner_sees_its_own_and_nobodys_sessions)
{
    auto_world struct world w = {};
    struct session_info mine, nobodys, info;
    struct run *run = NULL;
    struct error err;

    world_init(&w);
    world_start(&w);
    mine = world_session(&w, "a");
    nobodys = world_session(&w, NULL);
    assert_uint_eq(session_count(&w, "a"), 2);
    assert_uint_eq(session_count(&w, "b"), 1);
    assert_ok(session_get_info(w.m, nobodys.id, "b", &info, &err), err);
    assert_int_eq(session_get_info(w.m, mine.id, "b", &info, &err), -ERR_NOT_FOUND);
    assert_int_eq(session_stop(w.m, mine.id, "b", &err), -ERR_NOT_FOUND);
    assert_int_eq(session_interrupt(w.m, mine.id, "b", &err), -ERR_NOT_FOUND);
    assert_int_eq(run_open(w.m, mine.id, "b",
                           &(struct run_options){.kind = RUN_CODE, .text = "x", .len = 1}, &run,
                           &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(session_file_remove(w.m, &(struct session_path){mine.id, "b", "x"}, false, &err),
                  -ERR_NOT_FOUND);
}

TEST(a_create_that_fails_leaves_nothing_behind)
{
    auto_world struct world w = {};
    struct session_info info;
    struct error err;

    world_init(&w);
    w.settings.max_sessions = 1;
    world_start(&w);
    w.engine.fail_open = true;
    assert_int_eq(world_create(&w, NULL, &info, &err), -ERR_UNAVAILABLE);
    w.engine.fail_open = false;
    w.engine.fail_kernel = true;
    assert_int_eq(world_create(&w, NULL, &info, &err), -ERR_DIED);
    assert_str_has(err.text, "the python kernel did not start");
    assert_uint_eq(w.engine.closed, 2);
    assert_uint_eq(session_count(&w, NULL), 0);
    w.engine.fail_kernel = false;
    world_session(&w, NULL);
}

TEST(arguments_are_checked_before_a_sandbox_starts)
{
    static const struct session_dependency bad[] = {{"--index-url=http://evil", NULL}};
    static const char *const env[] = {"no equals sign", NULL};
    auto_world struct world w = {};
    char owner[200];
    const struct session_options cases[] = {
        {.runtime = "ruby"},
        {.runtime = "python --version"},
        {.image = "/nonexistent"},
        {.network = JOB_NETWORK_ALLOWLIST},
        {.network = 77},
        {.memory_bytes = MIB},
        {.pids = -1},
        {.pids = 1 << 30},
        {.cpu_quota = -5},
        {.dependencies = bad, .dependency_count = 1},
        {.env = env},
        {.owner = owner},
    };

    memset(owner, 'o', sizeof(owner) - 1);
    owner[sizeof(owner) - 1] = 0;
    world_init(&w);
    world_start(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct session_info info;
        struct error err;

        assert_int_eq(session_create(w.m, &cases[i], &info, &err), -ERR_INVALID);
        assert_uint_eq(session_count(&w, NULL), 0);
    }
    assert_uint_eq(w.engine.opened, 0);
}

TEST(a_network_that_is_off_is_off_for_all)
{
    static const struct session_dependency dep = {"six", NULL};
    auto_world struct world w = {};
    struct session_info info;
    struct error err;

    world_init(&w);
    w.settings.network_enabled = false;
    world_start(&w);
    assert_int_eq(
        session_create(w.m,
                       &(struct session_options){.image = w.image, .network = JOB_NETWORK_PUBLIC},
                       &info, &err),
        -ERR_DENIED);
    assert_int_eq(session_create(w.m,
                                 &(struct session_options){.image = w.image,
                                                           .network = -1,
                                                           .dependencies = &dep,
                                                           .dependency_count = 1},
                                 &info, &err),
                  -ERR_INVALID);
    assert_str_has(err.text, "CONTAINER_NETWORK_ENABLED");
    assert_uint_eq(session_count(&w, NULL), 0);
    assert_int_eq(world_session(&w, NULL).network, JOB_NETWORK_NONE);
}

/* ---- threads that make and stop ---- */

struct maker {
    struct world *w;
    pthread_t thread;
    const char *owner;
    int result;
    struct session_info info;
    struct error error;
};

static void *maker_main(void *arg)
{
    struct maker *m = arg;

    m->result = world_create(m->w, m->owner, &m->info, &m->error);
    return NULL;
}

static void maker_start(struct maker *m, struct world *w, const char *owner)
{
    *m = (struct maker){.w = w, .owner = owner};
    assert_int_eq(pthread_create(&m->thread, NULL, maker_main, m), 0);
}

TEST(a_race_of_creates_makes_exactly_as_many_as_the_limit)
{
    enum { MAKERS = 50, LIMIT = 5 };
    auto_world struct world w = {};
    static struct maker makers[MAKERS];
    int made = 0;

    world_init(&w);
    w.settings.max_sessions = LIMIT;
    w.engine.open_ms = 20;
    world_start(&w);
    for (size_t i = 0; i < MAKERS; i++)
        maker_start(&makers[i], &w, NULL);
    for (size_t i = 0; i < MAKERS; i++) {
        pthread_join(makers[i].thread, NULL);
        made += makers[i].result == 0;
    }
    for (size_t i = 0; i < MAKERS; i++) {
        if (makers[i].result < 0) {
            assert_int_eq(makers[i].result, -ERR_LIMIT);
            assert_str_has(makers[i].error.text, "CONTAINER_MAX_SESSIONS is 5");
        }
    }
    assert_int_eq(made, LIMIT);
    assert_uint_eq(w.engine.opened, LIMIT);
    assert_uint_eq(session_count(&w, NULL), LIMIT);
}

TEST(a_session_that_is_stopped_while_it_starts_is_gone)
{
    auto_world struct world w = {};
    auto_free struct session_info *list = NULL;
    struct maker maker;
    struct error err;
    size_t count = 0;

    world_init(&w);
    w.engine.open_ms = 300;
    world_start(&w);
    maker_start(&maker, &w, NULL);
    while (count == 0) {
        free(TAKE_PTR(list));
        assert_ok(session_list(w.m, NULL, &list, &count, &err), err);
    }
    assert_int_eq(list[0].status, SESSION_STARTING);
    assert_ok(session_stop(w.m, list[0].id, NULL, &err), err);
    pthread_join(maker.thread, NULL);
    assert_int_eq(maker.result, -ERR_CANCELLED);
    assert_uint_eq(w.engine.closed, 1);
    assert_uint_eq(session_count(&w, NULL), 0);
}

struct stopper {
    struct world *w;
    const char *id;
    pthread_t thread;
    int result;
    unsigned closed; /* when it came back */
};

static void *stopper_main(void *arg)
{
    struct stopper *s = arg;

    s->result = session_stop(s->w->m, s->id, NULL, NULL);
    s->closed = __atomic_load_n(&s->w->engine.closed, __ATOMIC_RELAXED);
    return NULL;
}

TEST(whoever_stops_a_session_comes_back_when_it_is_gone)
{
    auto_world struct world w = {};
    struct stopper stoppers[4];
    struct session_info s;

    world_init(&w);
    w.engine.close_ms = 100;
    world_start(&w);
    s = world_session(&w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(stoppers); i++) {
        stoppers[i] = (struct stopper){.w = &w, .id = s.id};
        assert_int_eq(pthread_create(&stoppers[i].thread, NULL, stopper_main, &stoppers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(stoppers); i++)
        pthread_join(stoppers[i].thread, NULL);
    for (size_t i = 0; i < ARRAY_LEN(stoppers); i++) {
        assert_true(stoppers[i].result == 0 || stoppers[i].result == -ERR_NOT_FOUND);
        assert_uint_eq(stoppers[i].closed, 1);
    }
    assert_uint_eq(w.engine.closed, 1);
}

struct busybody {
    struct world *w;
    pthread_t thread;
    int unended; /* runs that did not end */
};

/* Everything at once, for ThreadSanitizer and AddressSanitizer to watch. */
static void *busybody_main(void *arg)
{
    struct busybody *b = arg;
    struct world *w = b->w;

    for (int i = 0; i < 20; i++) {
        auto_free struct session_info *list = NULL;
        auto_run struct run *run = NULL;
        struct session_info info;
        size_t count = 0;

        if (world_create(w, i % 2 ? "odd" : "even", &info, NULL) < 0 && i % 5)
            continue;
        if (session_list(w->m, NULL, &list, &count, NULL) < 0)
            continue;
        for (size_t n = 0; n < count; n++) {
            struct session_file_info file;
            struct run_outcome outcome;

            if (cell_open(w, list[n].id, &run, NULL) == 0) {
                if (n % 2)
                    run_cancel(run);
                b->unended += run_wait(run, clock_deadline(5000), &outcome, NULL) < 0;
                run_unref(TAKE_PTR(run));
            }
            if (session_interrupt(w->m, list[n].id, NULL, NULL) == 0 && i % 4 == 3 &&
                session_stop(w->m, list[n].id, NULL, NULL) == 0)
                continue;
            if (i % 7 == 0 && session_file_stat(w->m, &(struct session_path){list[n].id, NULL, ""},
                                                &file, NULL) != -ERR_INVALID)
                continue;
        }
    }
    return NULL;
}

TEST(calls_of_many_threads_get_along)
{
    auto_world struct world w = {};
    struct busybody busybodies[4];

    world_init(&w);
    w.settings.max_sessions = 4;
    w.settings.max_active_threads = 1;
    w.engine.ends_cells = true;
    world_start(&w);
    for (size_t i = 0; i < ARRAY_LEN(busybodies); i++) {
        busybodies[i] = (struct busybody){.w = &w};
        assert_int_eq(pthread_create(&busybodies[i].thread, NULL, busybody_main, &busybodies[i]),
                      0);
    }
    for (size_t i = 0; i < ARRAY_LEN(busybodies); i++)
        pthread_join(busybodies[i].thread, NULL);
    for (size_t i = 0; i < ARRAY_LEN(busybodies); i++)
        assert_int_eq(busybodies[i].unended, 0);
}

/* ---- limits ---- */

TEST(an_owner_has_a_limit_of_its_own)
{
    auto_world struct world w = {};
    struct session_info info;
    struct error err;

    world_init(&w);
    w.settings.max_sessions_per_thread = 2;
    world_start(&w);
    world_session(&w, "a");
    world_session(&w, "a");
    assert_int_eq(world_create(&w, "a", &info, &err), -ERR_LIMIT);
    assert_str_has(err.text, "CONTAINER_MAX_SESSIONS_PER_THREAD is 2");
    world_session(&w, "b");
    world_session(&w, NULL);
    world_session(&w, NULL);
}

TEST(the_limit_names_the_oldest_idle_session_that_the_caller_may_see)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info other, busy, idle, info;
    struct error err;

    world_init(&w);
    w.settings.max_sessions = 3;
    world_start(&w);
    other = world_session(&w, "b");
    busy = world_session(&w, "a");
    idle = world_session(&w, "a");
    assert_ok(cell_open(&w, busy.id, &run, &err), err);
    assert_int_eq(world_create(&w, "a", &info, &err), -ERR_LIMIT);
    assert_str_has(err.text, "limit_reached");
    assert_str_has(err.text, idle.id);
    assert_null(strstr(err.text, other.id));
    assert_int_eq(world_create(&w, "c", &info, &err), -ERR_LIMIT);
    assert_null(strstr(err.text, "oldest"));
    assert_ok(session_stop(w.m, idle.id, "a", &err), err);
    world_session(&w, "c");
}

TEST(a_dead_session_keeps_no_place)
{
    auto_world struct world w = {};
    struct session_info s, info;
    struct error err;

    world_init(&w);
    w.settings.max_sessions = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    sandbox_set_ended(w.engine.sandboxes[0], "exit:1");
    peer_hang_up(&w.engine.peers[0]);
    for (int i = 0; i < 500 && session_get_info(w.m, s.id, NULL, &info, &err) == 0 &&
                    info.status != SESSION_DEAD;
         i++)
        usleep(20000);
    world_session(&w, NULL);
    assert_str_eq(death_await(&w, s.id, 1), "exit:1");
    assert_ok(session_stop(w.m, s.id, NULL, &err), err);
    assert_uint_eq(w.engine.closed, 1);
}

TEST(owners_past_the_limit_are_evicted_but_never_a_busy_one)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *refused = NULL;
    struct session_info a, b, c, info;
    struct error err;

    world_init(&w);
    w.settings.max_active_threads = 2;
    world_start(&w);
    a = world_session(&w, "a");
    assert_ok(cell_open(&w, a.id, &run, &err), err);
    usleep(2000);
    b = world_session(&w, "b");
    usleep(2000);
    c = world_session(&w, "c");
    assert_str_eq(death_await(&w, b.id, 1), "evicted");
    assert_int_eq(cell_open(&w, b.id, &refused, &err), -ERR_DIED);
    assert_str_has(err.text, "evicted");
    assert_ok(session_get_info(w.m, a.id, "a", &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
    assert_true(info.busy);
    assert_ok(session_get_info(w.m, c.id, "c", &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
}

/* ---- collection ---- */

TEST(an_idle_session_expires_but_not_while_a_call_runs)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info busy, idle, info;
    struct peer_frame *exec;
    struct error err;

    short_lives(&w);
    w.settings.idle_ttl_s = 1;
    world_start(&w);
    busy = world_session(&w, NULL);
    idle = world_session(&w, NULL);
    assert_ok(cell_open(&w, busy.id, &run, &err), err);
    exec = peer_take(&w.engine.peers[0], FRAME_EXEC);
    assert_str_eq(death_await(&w, idle.id, 1), "expired");
    usleep(1500000);
    assert_ok(session_get_info(w.m, busy.id, NULL, &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
    assert_int_eq(info.idle_ms, 0);
    peer_end_with(&w.engine.peers[0], exec->stream, "status=ok", "state=kept");
    assert_int_eq(world_wait(run).status, RUN_OK);
    assert_str_eq(death_await(&w, busy.id, 2), "expired");
}

struct reader {
    struct world *w;
    const char *id;
    pthread_t thread;
    int result;
    struct error error;
    struct buf data;
};

static void *reader_main(void *arg)
{
    struct reader *r = arg;

    r->result =
        session_file_read(r->w->m, &(struct session_path){r->id, NULL, "big"}, &r->data, &r->error);
    return NULL;
}

static void reader_start(struct reader *r, struct world *w, const char *id, size_t max)
{
    *r = (struct reader){.w = w, .id = id};
    buf_init(&r->data, max);
    assert_int_eq(pthread_create(&r->thread, NULL, reader_main, r), 0);
}

TEST(a_file_on_its_way_is_a_call_too)
{
    auto_world struct world w = {};
    struct session_info s, info;
    struct reader reader;
    struct peer_frame *read;
    struct error err;

    short_lives(&w);
    w.settings.idle_ttl_s = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    reader_start(&reader, &w, s.id, MIB);
    read = peer_take(&w.engine.peers[0], FRAME_FILE_READ);
    usleep(2500000);
    assert_ok(session_get_info(w.m, s.id, NULL, &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
    assert_true(info.busy);
    peer_send_text(&w.engine.peers[0], FRAME_DATA, read->stream, "content");
    peer_end_with(&w.engine.peers[0], read->stream, "status=ok");
    pthread_join(reader.thread, NULL);
    assert_int_eq(reader.result, 0);
    assert_str_eq(buf_str(&reader.data), "content");
    buf_done(&reader.data);
    assert_str_eq(death_await(&w, s.id, 1), "expired");
}

TEST(a_life_time_ends_after_the_running_call)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *waiting = NULL, *late = NULL;
    struct session_info s, info;
    struct peer_frame *exec;
    struct error err;
    int r = 0;

    short_lives(&w);
    w.settings.max_lifetime_s = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    assert_ok(cell_open(&w, s.id, &waiting, &err), err);
    exec = peer_take(&w.engine.peers[0], FRAME_EXEC);
    for (int i = 0; i < 500 && r == 0; i++) {
        usleep(20000);
        r = cell_open(&w, s.id, &late, &err);
        if (r == 0) {
            run_cancel(late);
            run_unref(TAKE_PTR(late));
        }
    }
    assert_int_eq(r, -ERR_DIED);
    assert_str_has(err.text, "SESSION_MAX_LIFETIME_SECONDS");
    assert_ok(session_get_info(w.m, s.id, NULL, &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
    peer_end_with(&w.engine.peers[0], exec->stream, "status=ok", "state=kept");
    assert_int_eq(world_wait(run).status, RUN_OK);
    assert_str_eq(world_wait(waiting).cause, "expired");
    assert_str_eq(death_await(&w, s.id, 1), "expired");
    assert_null(peer_take_within(&w.engine.peers[0], FRAME_EXEC, 0));
}

/* ---- questions ---- */

static void question_send(struct peer *p, uint32_t stream)
{
    peer_send_text(p, FRAME_INPUT_REQUEST, stream, "{\"prompt\":\"?\"}");
}

/* Follows a run to its next question. */
static void question_await(struct run *run, struct run_cursor *cursor)
{
    struct run_event event = {};
    struct error err;

    buf_init(&event.data, MIB);
    assert_int_eq(run_next(run, cursor, clock_deadline(PEER_WAIT_MS), &event, &err), 1);
    assert_int_eq(event.type, RUN_EVENT_INPUT);
    buf_done(&event.data);
}

static void assert_no_answer(struct peer *p, uint32_t stream)
{
    struct peer_frame *input = peer_take(p, FRAME_INPUT);

    assert_uint_eq(input->stream, stream);
    assert_uint_eq(input->len, 1);
    assert_int_eq(input->text[0], 0);
}

static int64_t backstop_of(struct run *run)
{
    int64_t backstop;

    pthread_mutex_lock(&run->session->lock);
    backstop = run->backstop;
    pthread_mutex_unlock(&run->session->lock);
    return backstop;
}

TEST(the_backstop_stands_still_while_a_cell_waits_for_a_line)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct run_cursor cursor = {};
    struct session_info s;
    struct peer *p;
    int64_t before, begin;
    uint32_t stream;
    struct error err;

    world_init(&w);
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    stream = peer_take(p, FRAME_EXEC)->stream;
    before = backstop_of(run);
    begin = clock_ms();
    for (int i = 0; i < 2; i++) {
        int64_t after;

        question_send(p, stream);
        question_await(run, &cursor);
        assert_true(backstop_of(run) == CLOCK_FOREVER);
        usleep(50000);
        assert_ok(run_input(run, "x", 1, &err), err);
        after = backstop_of(run);
        assert_true(after >= before + 50 && after <= before + clock_ms() - begin);
        peer_send(p, FRAME_INPUT_TAKEN, stream, NULL, 0);
        before = after;
    }
    peer_end_with(p, stream, "status=ok", "state=kept");
    assert_int_eq(world_wait(run).status, RUN_OK);
}

TEST(a_session_whose_cell_waits_for_a_line_expires_as_an_idle_one)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct run_cursor cursor = {};
    struct session_info s;
    struct peer *p;
    int64_t asked;
    uint32_t stream;
    struct error err;

    short_lives(&w);
    w.settings.idle_ttl_s = 2;
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    stream = peer_take(p, FRAME_EXEC)->stream;
    usleep(1500000); /* so that an idle time counted from the call would be over too early */
    asked = clock_ms();
    question_send(p, stream);
    question_await(run, &cursor);
    assert_str_eq(death_await(&w, s.id, 1), "expired");
    assert_true(clock_ms() - asked >= 2000);
    assert_int_eq(world_wait(run).status, RUN_DIED);
    assert_str_eq(world_wait(run).cause, "expired");
}

TEST(a_life_time_ends_while_a_cell_waits_for_a_line)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct run_cursor cursor = {};
    struct session_info s;
    struct error err;

    short_lives(&w);
    w.settings.max_lifetime_s = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    question_send(&w.engine.peers[0], peer_take(&w.engine.peers[0], FRAME_EXEC)->stream);
    question_await(run, &cursor);
    assert_str_eq(death_await(&w, s.id, 1), "expired");
    assert_str_eq(world_wait(run).cause, "expired");
}

TEST(a_forgotten_question_ends_in_a_session_that_others_use)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct run_cursor cursor = {};
    struct peer_frame *input = NULL;
    struct session_info s, info;
    struct peer *p;
    uint32_t stream;
    int64_t asked;
    struct error err;

    short_lives(&w);
    w.settings.idle_ttl_s = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    stream = peer_take(p, FRAME_EXEC)->stream;
    asked = clock_ms();
    question_send(p, stream);
    question_await(run, &cursor);
    for (int i = 0; i < 200 && !input; i++) {
        auto_run struct run *other = NULL;

        assert_ok(cell_open(&w, s.id, &other, &err), err);
        run_cancel(other);
        input = peer_take_within(p, FRAME_INPUT, 50);
    }
    assert_not_null(input);
    assert_int_eq(input->text[0], 0);
    assert_true(clock_ms() - asked >= 1000);
    assert_true(backstop_of(run) != CLOCK_FOREVER);
    assert_ok(session_get_info(w.m, s.id, NULL, &info, &err), err);
    assert_int_eq(info.status, SESSION_RUNNING);
    peer_send(p, FRAME_INPUT_TAKEN, stream, NULL, 0);
    peer_end_with(p, stream, "status=error", "state=kept");
    assert_int_eq(world_wait(run).status, RUN_ERROR);
}

TEST(calls_that_wait_behind_a_question_come_after_it)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL, *next = NULL;
    struct session_info s;
    struct peer *p;
    uint32_t stream;
    struct error err;

    short_lives(&w);
    w.settings.idle_ttl_s = 1;
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    assert_ok(cell_open(&w, s.id, &next, &err), err);
    stream = peer_take(p, FRAME_EXEC)->stream;
    question_send(p, stream);
    assert_no_answer(p, stream);
    peer_send(p, FRAME_INPUT_TAKEN, stream, NULL, 0);
    peer_end_with(p, stream, "status=error", "state=kept");
    peer_end_with(p, peer_take(p, FRAME_EXEC)->stream, "status=ok", "state=kept");
    assert_int_eq(world_wait(next).status, RUN_OK);
}

TEST(a_question_that_nobody_can_read_is_answered_at_once)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct peer *p;
    uint32_t stream;
    struct error err;

    world_init(&w);
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    stream = peer_take(p, FRAME_EXEC)->stream;
    peer_send_text(p, FRAME_INPUT_REQUEST, stream, "no JSON");
    assert_no_answer(p, stream);
    assert_true(backstop_of(run) != CLOCK_FOREVER);
}

TEST(a_run_that_init_should_have_stopped_takes_the_sandbox_with_it)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    struct session_info s;
    struct error err;

    short_lives(&w);
    world_start(&w);
    s = world_session(&w, NULL);
    assert_ok(cell_open(&w, s.id, &run, &err), err);
    peer_take(&w.engine.peers[0], FRAME_EXEC);
    pthread_mutex_lock(&run->session->lock);
    assert_true(run->backstop > clock_ms() + 30000);
    run->backstop = clock_ms();
    pthread_mutex_unlock(&run->session->lock);
    assert_int_eq(world_wait(run).status, RUN_DIED);
    assert_str_eq(world_wait(run).cause, "timeout");
    assert_str_eq(death_await(&w, s.id, 1), "timeout");
}

/* ---- adoption ---- */

#define ADOPTED "0123456789abcdef0123456789abcdef"

TEST(runs_of_a_former_process_are_taken_over)
{
    auto_world struct world w = {};
    auto_run struct run *done = NULL, *running = NULL, *none = NULL;
    const char *runs[] = {"7:spawn:done:100", "9:exec:running:50", NULL};
    struct session_info info;
    struct error err;
    struct peer *p;

    world_init(&w);
    fake_adopted(&w.engine, ADOPTED, "ready", runs);
    world_start(&w);
    p = &w.engine.peers[0];
    assert_ok(session_get_info(w.m, ADOPTED, NULL, &info, &err), err);
    assert_true(info.busy);
    assert_str_eq(info.runtime, "python");
    assert_str_eq(info.dependencies, "{\"six\":\"\"}");
    assert_ok(run_open_adopted(w.m, ADOPTED, NULL, &done, &err), err);
    assert_ok(run_open_adopted(w.m, ADOPTED, NULL, &running, &err), err);
    assert_int_eq(run_open_adopted(w.m, ADOPTED, NULL, &none, &err), -ERR_NOT_FOUND);
    assert_int_eq(run_kind(done), RUN_COMMAND);
    assert_int_eq(run_kind(running), RUN_CODE);
    for (int i = 0; i < 2; i++) {
        struct peer_frame *attach = peer_take(p, FRAME_ATTACH);

        assert_str_eq(peer_field(attach, "offset"), "0");
        assert_true(attach->stream == 7 || attach->stream == 9);
    }
    peer_send_text(p, FRAME_STDOUT, 7, "old");
    peer_end_with(p, 7, "status=ok", "exit_code=0");
    assert_int_eq(world_wait(done).status, RUN_OK);
    assert_uint_eq(peer_take(p, FRAME_ACK)->stream, 7);
    assert_ok(session_get_info(w.m, ADOPTED, NULL, &info, &err), err);
    assert_true(info.busy);
    run_cancel(running);
    assert_uint_eq(peer_take(p, FRAME_INTERRUPT)->stream, 9);
    peer_end_with(p, 9, "status=timeout", "state=kept", "cause=timeout");
    assert_str_eq(world_wait(running).message, "timed out");
    assert_ok(session_get_info(w.m, ADOPTED, NULL, &info, &err), err);
    assert_false(info.busy);
    assert_ok(cell_open(&w, ADOPTED, &none, &err), err);
    assert_true(peer_take(p, FRAME_EXEC)->stream > 100);
}

TEST(a_call_waits_for_the_run_that_was_taken_over)
{
    auto_world struct world w = {};
    auto_run struct run *next = NULL;
    const char *runs[] = {"9:exec:running:50", NULL};
    struct error err;
    struct peer *p;

    world_init(&w);
    fake_adopted(&w.engine, ADOPTED, "ready", runs);
    world_start(&w);
    p = &w.engine.peers[0];
    assert_ok(cell_open(&w, ADOPTED, &next, &err), err);
    assert_null(peer_take_within(p, FRAME_EXEC, 50));
    peer_end_with(p, 9, "status=ok", "state=kept");
    peer_take(p, FRAME_EXEC);
}

TEST(a_question_of_a_former_process_gives_way_to_a_call)
{
    auto_world struct world w = {};
    auto_run struct run *next = NULL;
    const char *runs[] = {"9:exec:running:50", NULL};
    struct error err;
    struct peer *p;

    world_init(&w);
    fake_adopted(&w.engine, ADOPTED, "ready", runs);
    world_start(&w);
    p = &w.engine.peers[0];
    question_send(p, 9);
    peer_send(p, FRAME_INPUT_TAKEN, 9, NULL, 0);
    question_send(p, 9);
    /* Somebody may still come for it. */
    assert_null(peer_take_within(p, FRAME_INPUT, 1500));
    assert_ok(cell_open(&w, ADOPTED, &next, &err), err);
    assert_no_answer(p, 9);
    peer_send(p, FRAME_INPUT_TAKEN, 9, NULL, 0);
    peer_end_with(p, 9, "status=error", "state=kept");
    peer_take(p, FRAME_EXEC);
}

TEST(what_cannot_be_taken_over_is_ended)
{
    static const char *const runs[][2] = {{NULL}, {"x", NULL}, {"0:exec:done:1", NULL}};
    auto_world struct world w = {};
    char id[ID_LEN + 1] = ADOPTED;

    world_init(&w);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        id[0] = (char)('a' + i);
        fake_adopted(&w.engine, id, i ? "ready" : "none", runs[i]);
    }
    id[0] = '0';
    fake_adopted(&w.engine, id, "ready", runs[0]);
    world_start(&w);
    assert_uint_eq(w.engine.closed, ARRAY_LEN(runs));
    assert_uint_eq(session_count(&w, NULL), 1);
}

TEST(a_sandbox_that_dies_during_adoption_is_a_dead_session)
{
    auto_world struct world w = {};
    auto_run struct run *run = NULL;
    const char *runs[] = {"9:exec:running:50", NULL};
    struct error err;

    world_init(&w);
    sandbox_set_ended(fake_adopted(&w.engine, ADOPTED, "ready", runs), "oom");
    peer_hang_up(&w.engine.peers[0]);
    world_start(&w);
    if (run_open_adopted(w.m, ADOPTED, NULL, &run, &err) == 0)
        assert_str_eq(world_wait(run).cause, "oom");
    assert_str_eq(death_await(&w, ADOPTED, 1), "oom");
}

/* ---- dependencies ---- */

struct installer {
    struct fake_engine *engine;
    size_t sandbox;
    pthread_t thread;
    const char *output;     /* of the first program */
    const char *ends[2][3]; /* of the two programs */
    char argv[2][64];
};

static void *installer_main(void *arg)
{
    struct installer *in = arg;
    struct peer *p = fake_peer(in->engine, in->sandbox);

    for (int i = 0; p && i < 2; i++) {
        struct peer_frame *spawn = peer_take_within(p, FRAME_SPAWN, PEER_WAIT_MS);

        if (!spawn)
            break;
        snprintf(in->argv[i], sizeof(in->argv[i]), "%s", peer_field(spawn, "argv"));
        if (i == 0)
            peer_send_text(p, FRAME_STDERR, spawn->stream, in->output);
        peer_end(p, spawn->stream, in->ends[i]);
        if (!str_eq(in->ends[i][0], "status=ok"))
            break;
    }
    return NULL;
}

static int install(struct world *w, struct installer *in, struct error *reterr)
{
    static const struct session_dependency deps[] = {{"six", "1.16.0"}, {"tabulate", NULL}};
    struct session_info info;
    int r;

    in->engine = &w->engine;
    in->sandbox = w->engine.count;
    assert_int_eq(pthread_create(&in->thread, NULL, installer_main, in), 0);
    r = session_create(w->m,
                       &(struct session_options){.image = w->image,
                                                 .network = JOB_NETWORK_NONE,
                                                 .dependencies = deps,
                                                 .dependency_count = 2},
                       &info, reterr);
    pthread_join(in->thread, NULL);
    if (r == 0)
        assert_str_eq(info.dependencies, "{\"six\":\"1.16.0\",\"tabulate\":\"\"}");
    return r;
}

TEST(packages_are_installed_and_looked_for_and_the_network_sealed)
{
    auto_world struct world w = {};
    struct installer in = {.output = "Collecting six\nDone\n",
                           .ends = {{"status=ok"}, {"status=ok"}}};
    struct error err;

    world_init(&w);
    world_start(&w);
    assert_ok(install(&w, &in, &err), err);
    assert_str_eq(in.argv[0], "python3");
    assert_uint_eq(w.engine.sealed, 1);
    assert_str_eq(w.progress, "Collecting six\nDone\n");
    peer_take(&w.engine.peers[0], FRAME_ACK);
    peer_take(&w.engine.peers[0], FRAME_ACK);
}

TEST(a_failed_install_fails_the_create_with_its_last_lines)
{
    static const struct {
        struct installer in;
        int code;
        const char *text;
    } cases[] = {
        {{.output = "ERROR: no matching distribution\n",
          .ends = {{"status=error", "cause=exit:1"}}},
         ERR_UPSTREAM,
         "no matching distribution"},
        {{.output = "OSError: [Errno 28] No space left on device",
          .ends = {{"status=error", "cause=exit:1"}}},
         ERR_LIMIT,
         "SANDBOX_PACKAGES_SIZE"},
        {{.output = "", .ends = {{"status=timeout", "cause=timeout"}}}, ERR_TIMEOUT, "timeout"},
        {{.output = "Done", .ends = {{"status=ok"}, {"status=error", "cause=exit:1"}}},
         ERR_UPSTREAM,
         "the packages are not there"},
    };
    auto_world struct world w = {};

    world_init(&w);
    world_start(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct installer in = cases[i].in;
        struct error err;

        assert_int_eq(install(&w, &in, &err), -cases[i].code);
        assert_str_has(err.text, cases[i].text);
        assert_uint_eq(w.engine.closed, i + 1);
    }
    assert_uint_eq(session_count(&w, NULL), 0);
    assert_uint_eq(w.engine.sealed, 0);
}

/* ---- files ---- */

TEST(a_file_that_is_too_large_is_not_read_to_its_end)
{
    auto_world struct world w = {};
    struct session_info s;
    struct reader reader;
    struct peer_frame *read;
    struct peer *p;

    world_init(&w);
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    reader_start(&reader, &w, s.id, 10);
    read = peer_take(p, FRAME_FILE_READ);
    assert_str_eq(peer_field(read, "path"), "big");
    peer_send_text(p, FRAME_DATA, read->stream, "more than ten bytes");
    peer_take(p, FRAME_KILL);
    peer_end_with(p, read->stream, "status=interrupted", "cause=user");
    pthread_join(reader.thread, NULL);
    assert_int_eq(reader.result, -ERR_LIMIT);
    buf_done(&reader.data);
}

static void *answer_main(void *arg)
{
    struct peer *p = arg;
    struct peer_frame *f;
    auto_buf struct buf stat;

    buf_init(&stat, 1024);
    if ((f = peer_take_within(p, FRAME_FILE_WRITE, PEER_WAIT_MS)))
        peer_end_with(p, f->stream, "status=error", "errno=28", "message=no space left");
    if (fields_add_str(&stat, "type", "dir") == 0 && fields_add_str(&stat, "mode", "755") == 0 &&
        fields_add_str(&stat, "size", "4096") == 0 && fields_add_str(&stat, "name", "a") == 0 &&
        (f = peer_take_within(p, FRAME_FILE_STAT, PEER_WAIT_MS))) {
        peer_send(p, FRAME_REPORT, f->stream, stat.data, stat.len);
        peer_end_with(p, f->stream, "status=ok");
    }
    if ((f = peer_take_within(p, FRAME_FILE_LIST, PEER_WAIT_MS))) {
        peer_send(p, FRAME_REPORT, f->stream, stat.data, stat.len);
        peer_send_text(p, FRAME_REPORT, f->stream, "\377malformed");
        peer_end_with(p, f->stream, "status=ok");
    }
    if ((f = peer_take_within(p, FRAME_FILE_REMOVE, PEER_WAIT_MS)))
        peer_end_with(p, f->stream, "status=error", "errno=2", "message=no such file");
    return NULL;
}

static void entry_count(void *user, const char *name, const struct session_file_info *info)
{
    *(int *)user += str_eq(name, "a") && info->type == 'd' && info->mode == 0755;
}

TEST(files_go_through_init)
{
    static char data[FRAME_BULK_MAX * 2 + 5];
    auto_world struct world w = {};
    struct session_file_info info;
    struct session_info s;
    struct error err;
    pthread_t thread;
    struct peer *p;
    int count = 0;

    world_init(&w);
    world_start(&w);
    s = world_session(&w, NULL);
    p = &w.engine.peers[0];
    assert_int_eq(pthread_create(&thread, NULL, answer_main, p), 0);
    assert_int_eq(
        session_file_write(w.m, &(struct session_path){s.id, NULL, "f"}, data, sizeof(data), &err),
        -ERR_DISK);
    assert_ok(session_file_stat(w.m, &(struct session_path){s.id, NULL, "d"}, &info, &err), err);
    assert_int_eq(info.type, 'd');
    assert_uint_eq(info.size, 4096);
    assert_ok(
        session_file_list(w.m, &(struct session_path){s.id, NULL, "d"}, entry_count, &count, &err),
        err);
    assert_int_eq(count, 1);
    assert_int_eq(session_file_remove(w.m, &(struct session_path){s.id, NULL, "f"}, true, &err),
                  -ERR_NOT_FOUND);
    pthread_join(thread, NULL);
    assert_uint_eq(peer_take(p, FRAME_WRITE_DATA)->len, FRAME_BULK_MAX);
    assert_uint_eq(peer_take(p, FRAME_WRITE_DATA)->len, FRAME_BULK_MAX);
    assert_uint_eq(peer_take(p, FRAME_WRITE_DATA)->len, 5);
    assert_uint_eq(peer_take(p, FRAME_WRITE_DATA)->len, 0);
    assert_int_eq(session_file_remove(w.m, &(struct session_path){s.id, NULL, ""}, true, &err),
                  -ERR_INVALID);
}

/* ---- the end of the manager ---- */

TEST(the_end_takes_all_sessions_unless_they_are_to_be_kept)
{
    for (int keep = 0; keep < 2; keep++) {
        auto_world struct world w = {.keep_sessions = keep};

        world_init(&w);
        world_start(&w);
        world_session(&w, "a");
        world_session(&w, "b");
        session_manager_free(TAKE_PTR(w.m));
        assert_true(w.engine.freed);
        assert_int_eq(w.engine.freed_all, !keep);
        assert_uint_eq(w.engine.closed, 0);
        assert_null(peer_take_within(&w.engine.peers[0], FRAME_SHUTDOWN, 0));
    }
}
