/* SPDX-License-Identifier: MIT */
/* Assistants: made once, each change a version, the system's for all to see, searches. */
#include "tests/lib/storetest.h"

#include "base/str.h"

#include <pthread.h>

static struct store_assistant assistant(const char *id, const char *owner, const char *name)
{
    return (struct store_assistant){
        .id = id, .owner = owner, .graph_id = "sandbox-agent", .name = name, .metadata = "{}"};
}

static void make(struct store *s, const struct store_assistant *a)
{
    auto_arena struct arena arena;
    struct store_assistant ret;
    struct error err;

    arena_init(&arena, MIB);
    assert_ok(store_assistant_create(s, a, false, &arena, &ret, &err), err);
}

TEST(an_assistant_is_made_once_and_read_back)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant a = assistant("a1", "ann", "First"), made, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    a.description = "what it is for";
    a.config = "{\"recursion_limit\":5}";
    a.version = 77;
    assert_ok(store_assistant_create(t.store, &a, false, &arena, &made, &err), err);
    assert_ok(store_assistant_get(t.store, "ann", "a1", &arena, &got, &err), err);
    assert_str_eq(got.graph_id, "sandbox-agent");
    assert_str_eq(got.name, "First");
    assert_str_eq(got.description, "what it is for");
    assert_str_eq(got.config, "{\"recursion_limit\":5}");
    assert_str_eq(got.context, "{}");
    assert_int_eq(got.version, 1);
    assert_int_eq(got.created_us, made.created_us);
    a.name = "Second";
    assert_int_eq(store_assistant_create(t.store, &a, false, &arena, &made, &err), -ERR_EXISTS);
    assert_ok(store_assistant_create(t.store, &a, true, &arena, &made, &err), err);
    assert_str_eq(made.name, "First");
    assert_int_eq(store_assistant_get(t.store, "ann", "a2", &arena, &got, &err), -ERR_NOT_FOUND);
}

TEST(another_owner_sees_nothing_of_an_assistant)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant a = assistant("a1", "ann", "Hers"), got;
    struct store_assistant *versions;
    struct store_page page = {.limit = 10};
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make(t.store, &a);
    a.owner = "bob";
    assert_int_eq(store_assistant_create(t.store, &a, true, &arena, &got, &err), -ERR_EXISTS);
    assert_null(strstr(err.text, "ann"));
    assert_int_eq(store_assistant_get(t.store, "bob", "a1", &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_assistant_update(t.store, "bob", &a, &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_assistant_delete(t.store, "bob", "a1", &err), -ERR_NOT_FOUND);
    assert_int_eq(store_assistant_set_version(t.store, "bob", "a1", 1, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(
        store_assistant_versions(t.store, "bob", "a1", NULL, &page, &arena, &versions, &n, &err),
        -ERR_NOT_FOUND);
}

TEST(the_systems_assistant_is_seen_and_not_changed)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant a = assistant("sys", "", "Ours"), got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make(t.store, &a);
    assert_ok(store_assistant_get(t.store, "bob", "sys", &arena, &got, &err), err);
    assert_ok(store_assistant_create(t.store, &a, true, &arena, &got, &err), err);
    assert_int_eq(store_assistant_update(t.store, "bob", &a, &arena, &got, &err), -ERR_DENIED);
    assert_int_eq(store_assistant_delete(t.store, "bob", "sys", &err), -ERR_DENIED);
    assert_int_eq(store_assistant_set_version(t.store, "bob", "sys", 1, &arena, &got, &err),
                  -ERR_DENIED);
    assert_ok(store_assistant_update(t.store, "", &a, &arena, &got, &err), err);
}

static void check_version(const struct store_assistant *a, int64_t version, const char *name)
{
    assert_int_eq(a->version, version);
    assert_str_eq(a->name, name);
}

TEST(each_change_is_a_version_that_one_can_go_back_to)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant a = assistant("a1", "ann", "one"), got, *versions;
    struct store_page page = {.limit = 10, .sort_by = "no such", .ascending = true};
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make(t.store, &a);
    a.name = "two";
    a.metadata = "{\"k\":2}";
    assert_ok(store_assistant_update(t.store, "ann", &a, &arena, &got, &err), err);
    check_version(&got, 2, "two");
    assert_ok(store_assistant_set_version(t.store, "ann", "a1", 1, &arena, &got, &err), err);
    check_version(&got, 1, "one");
    assert_ok(store_assistant_get(t.store, "ann", "a1", &arena, &got, &err), err);
    check_version(&got, 1, "one");
    /* A change after going back is the newest version all the same. */
    a.name = "three";
    a.metadata = "{\"k\":3}";
    assert_ok(store_assistant_update(t.store, "ann", &a, &arena, &got, &err), err);
    check_version(&got, 3, "three");
    assert_ok(
        store_assistant_versions(t.store, "ann", "a1", NULL, &page, &arena, &versions, &n, &err),
        err);
    assert_uint_eq(n, 3);
    check_version(&versions[0], 3, "three");
    check_version(&versions[2], 1, "one");
    assert_str_eq(versions[2].owner, "ann");
    assert_ok(store_assistant_versions(t.store, "ann", "a1", "{\"k\":2}", &page, &arena, &versions,
                                       &n, &err),
              err);
    assert_uint_eq(n, 1);
    check_version(&versions[0], 2, "two");
    page = (struct store_page){.limit = 1, .offset = 1};
    assert_ok(
        store_assistant_versions(t.store, "ann", "a1", NULL, &page, &arena, &versions, &n, &err),
        err);
    assert_uint_eq(n, 1);
    check_version(&versions[0], 2, "two");
    assert_int_eq(store_assistant_set_version(t.store, "ann", "a1", 4, &arena, &got, &err),
                  -ERR_NOT_FOUND);
}

TEST(an_assistant_goes_with_versions_and_crons)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant a = assistant("a1", "ann", "one"), got;
    struct store_cron c = {.id = "c1",
                           .owner = "ann",
                           .assistant_id = "a1",
                           .schedule = "* * * * *",
                           .enabled = true},
                      cron;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make(t.store, &a);
    assert_ok(store_cron_put(t.store, &c, &err), err);
    assert_ok(store_assistant_delete(t.store, "ann", "a1", &err), err);
    assert_int_eq(store_assistant_get(t.store, "ann", "a1", &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_cron_get(t.store, "ann", "c1", &arena, &cron, &err), -ERR_NOT_FOUND);
    make(t.store, &a);
    assert_ok(store_assistant_get(t.store, "ann", "a1", &arena, &got, &err), err);
    assert_int_eq(got.version, 1);
}

struct expected {
    struct store_assistant_filter filter;
    int64_t count;
};

TEST(searches_filter_by_all_that_is_given)
{
    static const struct expected cases[] = {
        {{.name = NULL}, 4},
        {{.name = "HELP"}, 2},
        {{.name = "100%"}, 1},
        {{.name = "%"}, 1},
        {{.name = "_"}, 1},
        {{.name = "!"}, 0},
        {{.name = ""}, 4},
        {{.name = "'"}, 0},
        {{.graph_id = "other"}, 1},
        {{.graph_id = "sandbox-agent", .name = "help"}, 2},
        {{.metadata = "{\"created_by\":\"system\"}"}, 1},
    };
    auto_storetest struct storetest t = {0};
    struct store_assistant a;

    storetest_open(&t);
    a = assistant("a1", "ann", "My helper");
    make(t.store, &a);
    a = assistant("a2", "ann", "Help_er 100%");
    make(t.store, &a);
    a = assistant("a3", "ann", "Third");
    a.graph_id = "other";
    make(t.store, &a);
    a = assistant("a4", "", "Default");
    a.metadata = "{\"created_by\":\"system\"}";
    make(t.store, &a);
    a = assistant("a5", "bob", "Help of another");
    make(t.store, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err;
        int64_t total;

        assert_ok(store_assistant_search(t.store, "ann", &cases[i].filter, &(struct store_page){0},
                                         NULL, NULL, NULL, &total, &err),
                  err);
        if (total != cases[i].count)
            test_fail(__FILE__, __LINE__, "case %zu: %lld", i, (long long)total);
    }
}

TEST(searches_are_sorted_and_paged)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_assistant_filter all = {0};
    struct store_page page = {.limit = 2, .sort_by = "name", .ascending = true};
    struct store_assistant a, *found;
    int64_t total;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    a = assistant("a1", "ann", "b");
    make(t.store, &a);
    a = assistant("a2", "ann", "a");
    make(t.store, &a);
    a = assistant("a3", "ann", "a");
    make(t.store, &a);
    assert_ok(store_assistant_search(t.store, "ann", &all, &page, &arena, &found, &n, &total, &err),
              err);
    assert_int_eq(total, 3);
    assert_uint_eq(n, 2);
    assert_str_eq(found[0].id, "a2");
    assert_str_eq(found[1].id, "a3");
    page.offset = 2;
    assert_ok(store_assistant_search(t.store, "ann", &all, &page, &arena, &found, &n, NULL, &err),
              err);
    assert_uint_eq(n, 1);
    assert_str_eq(found[0].id, "a1");
    page = (struct store_page){.limit = 10};
    assert_ok(store_assistant_search(t.store, "ann", &all, &page, &arena, &found, &n, NULL, &err),
              err);
    assert_str_eq(found[0].id, "a3");
    page.sort_by = "metadata";
    assert_int_eq(
        store_assistant_search(t.store, "ann", &all, &page, &arena, &found, &n, NULL, &err),
        -ERR_INVALID);
}

TEST(a_name_that_is_too_long_is_no_search)
{
    auto_storetest struct storetest t = {0};
    char name[10000];
    int64_t total;
    struct error err;

    storetest_open(&t);
    memset(name, '%', sizeof(name));
    name[8192] = 0;
    assert_ok(store_assistant_search(t.store, "ann", &(struct store_assistant_filter){.name = name},
                                     &(struct store_page){0}, NULL, NULL, NULL, &total, &err),
              err);
    name[8192] = '%';
    name[8193] = 0;
    assert_int_eq(store_assistant_search(t.store, "ann",
                                         &(struct store_assistant_filter){.name = name},
                                         &(struct store_page){0}, NULL, NULL, NULL, &total, &err),
                  -ERR_INVALID);
}

/* ---- at once ---- */

enum { CHANGERS = 4, CHANGES = 5 };

struct changer {
    pthread_t thread;
    struct store *store;
    int made, failed;
};

static void *change(void *arg)
{
    struct changer *c = arg;

    for (int i = 0; i < CHANGES; i++) {
        auto_arena struct arena arena;
        struct store_assistant a = assistant("a1", "ann", "n"), ret;

        arena_init(&arena, MIB);
        if (i == 0)
            c->made += store_assistant_create(c->store, &a, false, &arena, &ret, NULL) == 0;
        if (store_assistant_update(c->store, "ann", &a, &arena, &ret, NULL) < 0)
            c->failed++;
    }
    return NULL;
}

TEST(changes_at_once_are_versions_one_after_another)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct changer changers[CHANGERS] = {0};
    struct store_page page = {.limit = 100};
    struct store_assistant *versions;
    int made = 0;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    storetest_open(&t);
    for (int i = 0; i < CHANGERS; i++) {
        changers[i].store = t.store;
        assert_int_eq(pthread_create(&changers[i].thread, NULL, change, &changers[i]), 0);
    }
    for (int i = 0; i < CHANGERS; i++)
        assert_int_eq(pthread_join(changers[i].thread, NULL), 0);
    for (int i = 0; i < CHANGERS; i++) {
        made += changers[i].made;
        assert_int_eq(changers[i].failed, 0);
    }
    assert_int_eq(made, 1);
    assert_ok(
        store_assistant_versions(t.store, "ann", "a1", NULL, &page, &arena, &versions, &n, &err),
        err);
    assert_uint_eq(n, 1 + CHANGERS * CHANGES);
    for (size_t i = 0; i < n; i++)
        assert_int_eq(versions[i].version, (long long)(n - i));
}
