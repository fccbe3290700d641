/* SPDX-License-Identifier: MIT */
/* Blobs once for all threads and each thread's own; exports by session; sealed settings. */
#include "tests/lib/storetest.h"

#include <pthread.h>

static void make_thread(struct store *s, const char *id)
{
    auto_arena struct arena arena;
    struct store_thread t = {.id = id, .owner = "ann"};
    struct error err;

    arena_init(&arena, MIB);
    assert_ok(store_thread_create(s, &t, false, &arena, &t, &err), err);
}

TEST(a_thread_gets_the_blobs_that_it_has_put)
{
    static const char data[] = "bytes \0 of any kind \xff";
    const struct store_blob blob = {
        .sha256 = "b10b", .mime = "image/png", .data = data, .len = sizeof(data)};
    const struct store_blob empty = {.sha256 = "e", .mime = "text/plain", .data = "", .len = 0};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_blob got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make_thread(t.store, "t1");
    make_thread(t.store, "t2");
    assert_ok(store_blob_put(t.store, "t1", &blob, &err), err);
    assert_ok(store_blob_put(t.store, "t1", &blob, &err), err);
    assert_ok(store_blob_put(t.store, "t1", &empty, &err), err);
    assert_ok(store_blob_get(t.store, "t1", "b10b", &arena, &got, &err), err);
    assert_str_eq(got.mime, "image/png");
    assert_uint_eq(got.len, sizeof(data));
    assert_mem_eq(got.data, data, sizeof(data));
    assert_ok(store_blob_get(t.store, "t1", "e", &arena, &got, &err), err);
    assert_uint_eq(got.len, 0);
    assert_int_eq(store_blob_get(t.store, "t2", "b10b", &arena, &got, &err), -ERR_NOT_FOUND);
    assert_ok(store_blob_put(t.store, "t2", &blob, &err), err);
    assert_ok(store_blob_get(t.store, "t2", "b10b", &arena, &got, &err), err);
    assert_int_eq(store_blob_put(t.store, "none", &blob, &err), -ERR_NOT_FOUND);
}

enum { ROUNDS = 20 };

struct user {
    pthread_t thread;
    struct store *store;
    const char *id;
    int lost, failed;
};

/* A thread that comes and goes with a blob that others have, too. */
static void *use_blob(void *arg)
{
    static const struct store_blob blob = {
        .sha256 = "b10b", .mime = "image/png", .data = "x", .len = 1};
    struct user *u = arg;

    for (int i = 0; i < ROUNDS; i++) {
        auto_arena struct arena arena;
        struct store_thread t = {.id = u->id, .owner = "ann"};
        struct store_blob got;

        arena_init(&arena, MIB);
        u->failed += store_thread_create(u->store, &t, false, &arena, &t, NULL) < 0;
        u->failed += store_blob_put(u->store, u->id, &blob, NULL) < 0;
        u->lost += store_blob_get(u->store, u->id, "b10b", &arena, &got, NULL) < 0;
        u->failed += store_thread_delete(u->store, "ann", u->id, NULL) < 0;
    }
    return NULL;
}

TEST(a_blob_stays_while_any_thread_uses_it)
{
    auto_storetest struct storetest t = {0};
    struct user users[] = {{.id = "t1"}, {.id = "t2"}, {.id = "t3"}};

    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    storetest_open(&t);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        users[i].store = t.store;
        assert_int_eq(pthread_create(&users[i].thread, NULL, use_blob, &users[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(users); i++)
        assert_int_eq(pthread_join(users[i].thread, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        assert_int_eq(users[i].failed, 0);
        assert_int_eq(users[i].lost, 0);
    }
}

TEST(exports_are_listed_by_session)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_export e = {.thread_id = "t1", .session_id = "s1", .path = "/out/a.png"}, *found;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    assert_ok(store_export_put(t.store, &e, &err), err);
    assert_ok(store_export_put(t.store, &e, &err), err);
    e.path = "/out/b.png";
    assert_ok(store_export_put(t.store, &e, &err), err);
    e.session_id = "s2";
    assert_ok(store_export_put(t.store, &e, &err), err);
    assert_ok(store_export_list(t.store, "s1", &arena, &found, &n, &err), err);
    assert_uint_eq(n, 2);
    assert_str_eq(found[0].thread_id, "t1");
    assert_str_eq(found[0].path, "/out/a.png");
    assert_ok(store_export_list(t.store, NULL, &arena, &found, &n, &err), err);
    assert_uint_eq(n, 3);
    assert_ok(store_export_delete(t.store, "s1", &err), err);
    assert_ok(store_export_delete(t.store, "s1", &err), err);
    assert_ok(store_export_list(t.store, NULL, &arena, &found, &n, &err), err);
    assert_uint_eq(n, 1);
    assert_str_eq(found[0].session_id, "s2");
}

TEST(settings_are_kept_for_each_owner)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    const char *got = "something";
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    assert_ok(store_settings_get(t.store, "ann", &arena, &got, &err), err);
    assert_null(got);
    assert_ok(store_settings_put(t.store, "ann", "gAAAA1", &err), err);
    assert_ok(store_settings_put(t.store, "ann", "gAAAA2", &err), err);
    assert_ok(store_settings_put(t.store, "bob", "gAAAA3", &err), err);
    assert_ok(store_settings_get(t.store, "ann", &arena, &got, &err), err);
    assert_str_eq(got, "gAAAA2");
    storetest_reopen(&t);
    assert_ok(store_settings_get(t.store, "bob", &arena, &got, &err), err);
    assert_str_eq(got, "gAAAA3");
}
