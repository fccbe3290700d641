/* SPDX-License-Identifier: MIT */
/* Crons: kept and found, and taken by one server each time that they are due. */
#include "tests/lib/storetest.h"

#include "base/str.h"

#include <pthread.h>

static struct store_cron cron(const char *id, const char *owner)
{
    return (struct store_cron){.id = id,
                               .owner = owner,
                               .assistant_id = "a1",
                               .schedule = "* * * * *",
                               .payload = "{\"input\":{}}",
                               .enabled = true,
                               .next_us = 1000};
}

static void put(struct store *s, const struct store_cron *c)
{
    struct error err;

    assert_ok(store_cron_put(s, c, &err), err);
}

TEST(a_cron_is_made_replaced_and_removed)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_cron c = cron("c1", "ann"), first, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, &c);
    assert_ok(store_cron_get(t.store, "ann", "c1", &arena, &first, &err), err);
    assert_str_eq(first.payload, "{\"input\":{}}");
    assert_str_eq(first.metadata, "{}");
    assert_null(first.thread_id);
    assert_null(first.timezone);
    assert_null(first.on_run_completed);
    assert_true(first.enabled);
    assert_int_eq(first.next_us, 1000);
    c.schedule = "0 0 * * *";
    c.timezone = "Europe/Berlin";
    c.enabled = false;
    put(t.store, &c);
    assert_ok(store_cron_get(t.store, "ann", "c1", &arena, &got, &err), err);
    assert_str_eq(got.schedule, "0 0 * * *");
    assert_str_eq(got.timezone, "Europe/Berlin");
    assert_false(got.enabled);
    assert_int_eq(got.created_us, first.created_us);
    assert_true(got.updated_us > first.updated_us);
    assert_ok(store_cron_delete(t.store, "ann", "c1", &err), err);
    assert_int_eq(store_cron_delete(t.store, "ann", "c1", &err), -ERR_NOT_FOUND);
    assert_int_eq(store_cron_get(t.store, "ann", "c1", &arena, &got, &err), -ERR_NOT_FOUND);
}

TEST(another_owner_cannot_reach_a_cron_or_a_thread_by_one)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_cron c = cron("c1", "ann"), got;
    struct store_thread thread = {.id = "t1", .owner = "ann"};
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    assert_ok(store_thread_create(t.store, &thread, false, &arena, &thread, &err), err);
    c.thread_id = "t1";
    put(t.store, &c);
    assert_int_eq(store_cron_get(t.store, "bob", "c1", &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_cron_delete(t.store, "bob", "c1", &err), -ERR_NOT_FOUND);
    c.owner = "bob";
    assert_int_eq(store_cron_put(t.store, &c, &err), -ERR_NOT_FOUND);
    c.thread_id = NULL;
    assert_int_eq(store_cron_put(t.store, &c, &err), -ERR_EXISTS);
    c = cron("c2", "ann");
    c.thread_id = "none";
    assert_int_eq(store_cron_put(t.store, &c, &err), -ERR_NOT_FOUND);
}

TEST(crons_are_searched)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_cron c = cron("c1", "ann"), *found;
    struct store_cron_filter filter = {.enabled = -1};
    struct store_page page = {.limit = 10, .sort_by = "next_run_date", .ascending = true};
    int64_t total;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    c.next_us = 3000;
    put(t.store, &c);
    c = cron("c2", "ann");
    c.assistant_id = "a2";
    c.enabled = false;
    put(t.store, &c);
    c = cron("c3", "bob");
    put(t.store, &c);
    assert_ok(store_cron_search(t.store, "ann", &filter, &page, &arena, &found, &n, &total, &err),
              err);
    assert_uint_eq(n, 2);
    assert_int_eq(total, 2);
    assert_str_eq(found[0].id, "c2");
    filter.enabled = 1;
    assert_ok(store_cron_search(t.store, "ann", &filter, &page, &arena, &found, &n, &total, &err),
              err);
    assert_uint_eq(n, 1);
    assert_str_eq(found[0].id, "c1");
    filter = (struct store_cron_filter){.assistant_id = "a2", .enabled = 0};
    assert_ok(store_cron_search(t.store, "ann", &filter, &page, NULL, NULL, NULL, &total, &err),
              err);
    assert_int_eq(total, 1);
    filter = (struct store_cron_filter){.thread_id = "t", .enabled = -1};
    assert_ok(store_cron_search(t.store, "ann", &filter, &page, NULL, NULL, NULL, &total, &err),
              err);
    assert_int_eq(total, 0);
}

static int64_t next_after(const struct store_cron *c, int64_t after_us)
{
    if (str_eq(c->schedule, "never"))
        return 0;
    return after_us / 1000 * 1000 + 1000;
}

TEST(what_is_due_is_taken_once_and_moved)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_cron c = cron("c1", "ann"), got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, &c);
    c = cron("c2", "bob");
    c.next_us = 500;
    put(t.store, &c);
    c = cron("c3", "bob");
    c.enabled = false;
    put(t.store, &c);
    assert_int_eq(store_cron_take(t.store, 499, next_after, &arena, &got, &err), 0);
    assert_int_eq(store_cron_take(t.store, 1500, next_after, &arena, &got, &err), 1);
    assert_str_eq(got.id, "c2");
    assert_int_eq(got.next_us, 500);
    assert_int_eq(store_cron_take(t.store, 1500, next_after, &arena, &got, &err), 1);
    assert_str_eq(got.id, "c1");
    assert_int_eq(store_cron_take(t.store, 1500, next_after, &arena, &got, &err), 0);
    assert_ok(store_cron_get(t.store, "bob", "c2", &arena, &got, &err), err);
    assert_int_eq(got.next_us, 2000);
}

TEST(a_cron_ends)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_cron c = cron("c1", "ann"), got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    c.schedule = "never";
    put(t.store, &c);
    c = cron("c2", "ann");
    c.end_us = 1999;
    put(t.store, &c);
    c = cron("c3", "ann");
    c.end_us = 999;
    put(t.store, &c);
    assert_int_eq(store_cron_take(t.store, 1000, next_after, &arena, &got, &err), 1);
    assert_int_eq(store_cron_take(t.store, 1000, next_after, &arena, &got, &err), 1);
    assert_int_eq(store_cron_take(t.store, 1000000, next_after, &arena, &got, &err), 0);
    assert_ok(store_cron_get(t.store, "ann", "c1", &arena, &got, &err), err);
    assert_false(got.enabled);
    assert_ok(store_cron_get(t.store, "ann", "c2", &arena, &got, &err), err);
    assert_false(got.enabled);
}

/* ---- at once ---- */

enum { SERVERS = 4, DUE = 12 };

struct server {
    pthread_t thread;
    struct store *store;
    int taken, failed;
};

static void *take_all(void *arg)
{
    struct server *s = arg;
    int r;

    do {
        auto_arena struct arena arena;
        struct store_cron got;

        arena_init(&arena, MIB);
        r = store_cron_take(s->store, 1500, next_after, &arena, &got, NULL);
        s->taken += r > 0;
        s->failed += r < 0;
    } while (r > 0);
    return NULL;
}

TEST(of_several_servers_one_takes_each)
{
    auto_storetest struct storetest t = {0};
    struct server servers[SERVERS] = {0};
    int taken = 0;

    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    storetest_open(&t);
    for (int i = 0; i < DUE; i++) {
        const char id[] = {'c', (char)('a' + i), 0};
        struct store_cron c = cron(id, "ann");

        put(t.store, &c);
    }
    for (int i = 0; i < SERVERS; i++) {
        servers[i].store = t.store;
        assert_int_eq(pthread_create(&servers[i].thread, NULL, take_all, &servers[i]), 0);
    }
    for (int i = 0; i < SERVERS; i++)
        assert_int_eq(pthread_join(servers[i].thread, NULL), 0);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_eq(servers[i].failed, 0);
        taken += servers[i].taken;
    }
    assert_int_eq(taken, DUE);
}
