/* SPDX-License-Identifier: MIT */
/* Items of the long-term store: replaced, found below a namespace, over in time; and no one else's.
 */
#include "tests/lib/storetest.h"

#include "base/str.h"
#include "base/timestamp.h"

#include <stdio.h>

static void put(struct store *s, const char *owner, const char *namespace, const char *key,
                const char *value)
{
    struct error err;

    assert_ok(store_item_put(
                  s, owner,
                  &(struct store_item){.namespace = namespace, .key = key, .value = value}, &err),
              err);
}

TEST(an_item_is_made_replaced_and_removed)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_item first, second;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, "ann", "a.b", "k", "{\"v\":1}");
    assert_ok(store_item_get(t.store, "ann", "a.b", "k", true, &arena, &first, &err), err);
    assert_str_eq(first.namespace, "a.b");
    assert_str_eq(first.key, "k");
    assert_str_eq(first.value, "{\"v\":1}");
    assert_int_eq(first.expires_us, 0);
    put(t.store, "ann", "a.b", "k", "{\"v\":2}");
    assert_ok(store_item_get(t.store, "ann", "a.b", "k", false, &arena, &second, &err), err);
    assert_str_eq(second.value, "{\"v\":2}");
    assert_int_eq(second.created_us, first.created_us);
    assert_true(second.updated_us > first.updated_us);
    assert_ok(store_item_delete(t.store, "ann", "a.b", "k", &err), err);
    assert_int_eq(store_item_delete(t.store, "ann", "a.b", "k", &err), -ERR_NOT_FOUND);
    assert_int_eq(store_item_get(t.store, "ann", "a.b", "k", false, &arena, &second, &err),
                  -ERR_NOT_FOUND);
}

struct expected {
    const char *prefix, *filter, *query;
    const char *keys; /* in order of keys */
};

static void check_search(struct store *s, const struct expected *e, size_t number)
{
    auto_arena struct arena arena;
    struct store_page page = {.limit = 100, .sort_by = "key", .ascending = true};
    char keys[100] = "";
    struct store_item *items;
    size_t n, used = 0;
    struct error err;

    arena_init(&arena, MIB);
    assert_ok(store_item_search(s, "ann", e->prefix, e->filter, e->query, &page, &arena, &items, &n,
                                &err),
              err);
    for (size_t i = 0; i < n && used < sizeof(keys); i++)
        used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s ", items[i].key);
    if (!str_eq(keys, e->keys))
        test_fail(__FILE__, __LINE__, "search %zu gives '%s'", number, keys);
}

TEST(searches_go_below_a_namespace_and_into_values)
{
    static const struct expected cases[] = {
        {"", NULL, NULL, "k1 k2 k3 k4 k5 "},
        {"a", NULL, NULL, "k1 k2 "},
        {"a.b", NULL, NULL, "k2 "},
        {"ab", NULL, NULL, "k3 "},
        {"%", NULL, NULL, "k5 "},
        {"A", NULL, NULL, ""},
        {"", "{\"kind\":\"note\"}", NULL, "k1 k3 "},
        {"a", "{\"kind\":\"note\"}", NULL, "k1 "},
        {"", NULL, "TEA", "k1 k2 "},
        {"", NULL, "100%", "k4 "},
        {"", NULL, "1_0", ""},
        {"", NULL, "", "k1 k2 k3 k4 k5 "},
        {"", "{\"kind\":\"note\"}", "tea", "k1 "},
    };
    auto_storetest struct storetest t = {0};

    storetest_open(&t);
    put(t.store, "ann", "a", "k1", "{\"kind\":\"note\",\"text\":\"green tea\"}");
    put(t.store, "ann", "a.b", "k2", "{\"text\":\"Tea again\"}");
    put(t.store, "ann", "ab", "k3", "{\"kind\":\"note\"}");
    put(t.store, "ann", "z.y.x", "k4", "{\"text\":\"100% 1.0\"}");
    put(t.store, "ann", "%.q", "k5", "{\"kind\":\"other\"}");
    put(t.store, "bob", "a", "k6", "{\"kind\":\"note\",\"text\":\"tea\"}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_search(t.store, &cases[i], i);
}

TEST(searches_are_paged_newest_first)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_page page = {.limit = 2};
    struct store_item *items;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, "ann", "a", "k1", "{}");
    put(t.store, "ann", "a", "k2", "{}");
    put(t.store, "ann", "a", "k3", "{}");
    assert_ok(store_item_search(t.store, "ann", "", NULL, NULL, &page, &arena, &items, &n, &err),
              err);
    assert_uint_eq(n, 2);
    assert_str_eq(items[0].key, "k3");
    page.offset = 2;
    assert_ok(store_item_search(t.store, "ann", "", NULL, NULL, &page, &arena, &items, &n, &err),
              err);
    assert_uint_eq(n, 1);
    assert_str_eq(items[0].key, "k1");
    page.sort_by = "value";
    assert_int_eq(
        store_item_search(t.store, "ann", "", NULL, NULL, &page, &arena, &items, &n, &err),
        -ERR_INVALID);
}

TEST(namespaces_are_told_once_each)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    const char **names;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    assert_ok(store_item_namespaces(t.store, "ann", &arena, &names, &n, &err), err);
    assert_uint_eq(n, 0);
    put(t.store, "ann", "b", "k1", "{}");
    put(t.store, "ann", "a.b", "k1", "{}");
    put(t.store, "ann", "a.b", "k2", "{}");
    put(t.store, "bob", "c", "k1", "{}");
    assert_ok(store_item_namespaces(t.store, "ann", &arena, &names, &n, &err), err);
    assert_uint_eq(n, 2);
    assert_str_eq(names[0], "a.b");
    assert_str_eq(names[1], "b");
}

static int shift_body(void *user, struct store_tx *tx, struct error *reterr)
{
    int64_t r = STORE_RUN(tx, "UPDATE items SET expires_us = expires_us - $1 WHERE expires_us > 0",
                          reterr, STORE_I(*(const int64_t *)user));

    return r < 0 ? (int)r : 0;
}

/* As if so much time had gone by. */
static void wait_for(struct store *s, int64_t us)
{
    struct error err;

    assert_ok(store_write(s, shift_body, &us, &err), err);
}

TEST(items_are_over_at_their_time_and_reading_refreshes)
{
    const int64_t hour = 3600000000, minute = 60000000;
    const struct store_item item = {.namespace = "a", .key = "k", .value = "{}", .ttl_us = hour};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_item got, again, *items;
    struct store_page page = {.limit = 10};
    const char **names;
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, "ann", "b", "stays", "{}");
    assert_ok(store_item_put(t.store, "ann", &item, &err), err);
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    assert_int_eq(got.ttl_us, hour);
    assert_int_eq(got.expires_us, got.updated_us + hour);
    wait_for(t.store, hour - minute);
    assert_ok(store_item_get(t.store, "ann", "a", "k", true, &arena, &again, &err), err);
    assert_true(again.expires_us > got.expires_us - minute);
    assert_int_eq(again.updated_us, got.updated_us);
    wait_for(t.store, hour - minute);
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    wait_for(t.store, 2 * minute);
    assert_int_eq(store_item_get(t.store, "ann", "a", "k", true, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_item_delete(t.store, "ann", "a", "k", &err), -ERR_NOT_FOUND);
    assert_ok(store_item_search(t.store, "ann", "", NULL, NULL, &page, &arena, &items, &n, &err),
              err);
    assert_uint_eq(n, 1);
    assert_ok(store_item_namespaces(t.store, "ann", &arena, &names, &n, &err), err);
    assert_uint_eq(n, 1);
    /* What is put in its place is new. */
    put(t.store, "ann", "a", "k", "{}");
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    assert_int_eq(got.created_us, got.updated_us);
    assert_int_eq(got.expires_us, 0);
}

TEST(the_sweep_removes_only_what_is_over)
{
    const struct store_item item = {.namespace = "a", .key = "k", .value = "{}", .ttl_us = 1000000};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_item got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, "ann", "b", "stays", "{}");
    assert_ok(store_item_put(t.store, "ann", &item, &err), err);
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    assert_ok(store_item_expire(t.store, got.expires_us - 1, &err), err);
    wait_for(t.store, -3600000000);
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    assert_ok(store_item_expire(t.store, got.expires_us, &err), err);
    wait_for(t.store, -3600000000);
    assert_int_eq(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_ok(store_item_get(t.store, "ann", "b", "stays", false, &arena, &got, &err), err);
}

TEST(another_owner_has_items_of_his_own)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_item got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    put(t.store, "ann", "a", "k", "{\"of\":\"ann\"}");
    assert_int_eq(store_item_get(t.store, "bob", "a", "k", false, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_item_delete(t.store, "bob", "a", "k", &err), -ERR_NOT_FOUND);
    put(t.store, "bob", "a", "k", "{\"of\":\"bob\"}");
    assert_ok(store_item_get(t.store, "ann", "a", "k", false, &arena, &got, &err), err);
    assert_str_eq(got.value, "{\"of\":\"ann\"}");
}
