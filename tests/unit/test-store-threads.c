/* SPDX-License-Identifier: MIT */
/* Threads: made once, changed member by member, found, copied, over in time, and gone as a whole.
 */
#include "store/runs.h"
#include "tests/lib/storetest.h"

#include "base/str.h"
#include "base/timestamp.h"

#include <pthread.h>
#include <stdio.h>

#define MINUTE_US 60000000

static struct store_thread new_thread(struct arena *arena, const char *owner, const char *metadata)
{
    char id[UUID_LEN + 1];
    struct error err;

    assert_ok(uuid_v4(id, &err), err);
    return (struct store_thread){
        .id = arena_strdup(arena, id), .owner = owner, .metadata = metadata};
}

static struct store_thread make(struct store *s, struct arena *arena, const char *owner,
                                const char *metadata)
{
    struct store_thread t = new_thread(arena, owner, metadata), ret;
    struct error err;

    assert_ok(store_thread_create(s, &t, false, arena, &ret, &err), err);
    return ret;
}

static size_t count_of(struct store *s, const char *owner, const struct store_thread_filter *filter)
{
    struct store_page page = {.limit = 100};
    int64_t total;
    struct error err;

    assert_ok(store_thread_search(s, owner, filter, &page, NULL, NULL, NULL, &total, &err), err);
    return (size_t)total;
}

TEST(a_thread_is_made_once_and_read_back)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread new, made, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    new = new_thread(&arena, "ann", "{\"a\":1}");
    new.config = "{\"c\":[]}";
    assert_ok(store_thread_create(t.store, &new, false, &arena, &made, &err), err);
    assert_ok(store_thread_get(t.store, "ann", new.id, &arena, &got, &err), err);
    assert_str_eq(got.id, new.id);
    assert_str_eq(got.owner, "ann");
    assert_str_eq(got.metadata, "{\"a\":1}");
    assert_str_eq(got.config, "{\"c\":[]}");
    assert_str_eq(got.status, "idle");
    assert_str_eq(got.interrupts, "{}");
    assert_null(got.error);
    assert_null(got.head);
    assert_null(got.ttl);
    assert_int_eq(got.expires_us, 0);
    assert_int_eq(got.created_us, made.created_us);
    assert_true(got.created_us > 0 && got.created_us == got.updated_us);
    assert_int_eq(store_thread_create(t.store, &new, false, &arena, &made, &err), -ERR_EXISTS);
    new.metadata = "{\"other\":2}";
    assert_ok(store_thread_create(t.store, &new, true, &arena, &made, &err), err);
    assert_str_eq(made.metadata, "{\"a\":1}");
}

TEST(another_owner_sees_nothing_of_a_thread)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread ann, bob, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    ann = make(t.store, &arena, "ann", "{\"secret\":1}");
    assert_int_eq(store_thread_get(t.store, "bob", ann.id, &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_thread_update(t.store, "bob", ann.id, "{}", NULL, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    assert_int_eq(store_thread_delete(t.store, "bob", ann.id, &err), -ERR_NOT_FOUND);
    bob = new_thread(&arena, "bob", "{}");
    assert_int_eq(store_thread_copy(t.store, "bob", ann.id, bob.id, &arena, &got, &err),
                  -ERR_NOT_FOUND);
    bob.id = ann.id;
    assert_int_eq(store_thread_create(t.store, &bob, true, &arena, &got, &err), -ERR_EXISTS);
    assert_null(strstr(err.text, "secret"));
    assert_null(strstr(err.text, "ann"));
    assert_uint_eq(count_of(t.store, "bob", &(struct store_thread_filter){0}), 0);
    assert_uint_eq(count_of(t.store, "ann", &(struct store_thread_filter){0}), 1);
}

TEST(metadata_is_merged_member_by_member)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread made, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    made = make(t.store, &arena, "ann", "{\"a\":1,\"b\":{\"x\":1}}");
    assert_ok(store_thread_update(t.store, "ann", made.id, "{\"b\":{\"y\":2},\"c\":null}", NULL,
                                  &arena, &got, &err),
              err);
    assert_str_eq(got.metadata, "{\"a\":1,\"b\":{\"y\":2},\"c\":null}");
    assert_true(got.updated_us > made.updated_us);
    assert_int_eq(got.created_us, made.created_us);
    assert_ok(store_thread_update(t.store, "ann", made.id, NULL, NULL, &arena, &got, &err), err);
    assert_str_eq(got.metadata, "{\"a\":1,\"b\":{\"y\":2},\"c\":null}");
    assert_int_eq(store_thread_update(t.store, "ann", made.id, "[]", NULL, &arena, &got, &err),
                  -ERR_INVALID);
}

TEST(texts_come_back_as_they_were)
{
    static const char hostile[] = "{\"q\":\"'; DROP TABLE threads; -- \\\" \\u0000 $1 ? % _ "
                                  "\xf0\x9f\x90\xb1\",\"n\":1e400,\"i\":12345678901234567890}";
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread made, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    made = make(t.store, &arena, "o'wner \" $1", hostile);
    assert_ok(store_thread_get(t.store, "o'wner \" $1", made.id, &arena, &got, &err), err);
    assert_str_eq(got.metadata, hostile);
    assert_int_eq(store_thread_get(t.store, "ann", "' OR 1=1 --", &arena, &got, &err),
                  -ERR_NOT_FOUND);
}

struct expected {
    struct store_thread_filter filter;
    size_t count;
};

TEST(searches_filter_by_all_that_is_given)
{
    static const struct expected cases[] = {
        {{.metadata = NULL}, 3},
        {{.metadata = "{\"g\":\"agent\"}"}, 2},
        {{.metadata = "{\"g\":\"agent\",\"n\":2}"}, 1},
        {{.metadata = "{\"deep\":{\"a\":1}}"}, 1},
        {{.metadata = "{\"n\":3}"}, 0},
        {{.metadata = "{\"b\":true}"}, 1},
        {{.metadata = "{\"b\":\"true\"}"}, 0},
        {{.metadata = "{}"}, 3},
        {{.status = "idle"}, 3},
        {{.status = "busy"}, 0},
        {{.status = "idle' OR '1'='1"}, 0},
    };
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    const char *ids[3];

    arena_init(&arena, MIB);
    storetest_open(&t);
    ids[0] = make(t.store, &arena, "ann", "{\"g\":\"agent\",\"n\":1,\"b\":true}").id;
    ids[1] = make(t.store, &arena, "ann", "{\"g\":\"agent\",\"n\":2}").id;
    ids[2] = make(t.store, &arena, "ann", "{\"deep\":{\"a\":1,\"b\":2}}").id;
    make(t.store, &arena, "bob", "{\"g\":\"agent\"}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (count_of(t.store, "ann", &cases[i].filter) != cases[i].count)
            test_fail(__FILE__, __LINE__, "case %zu", i);
    assert_uint_eq(
        count_of(t.store, "ann", &(struct store_thread_filter){.ids = ids, .id_count = 2}), 2);
    assert_uint_eq(
        count_of(t.store, "bob", &(struct store_thread_filter){.ids = ids, .id_count = 3}), 0);
    assert_uint_eq(
        count_of(t.store, "ann", &(struct store_thread_filter){.ids = ids, .id_count = 0}), 0);
}

/* All ids in order of their pages, of two each. */
static void read_pages(struct store *s, struct store_page page, const char **ret, size_t count)
{
    static struct arena arena;
    size_t seen = 0;

    arena_done(&arena);
    arena_init(&arena, MIB);
    for (page.limit = 2; page.offset < (int64_t)count; page.offset += 2) {
        struct store_thread *threads;
        int64_t total;
        size_t n;
        struct error err;

        assert_ok(store_thread_search(s, "ann", &(struct store_thread_filter){0}, &page, &arena,
                                      &threads, &n, &total, &err),
                  err);
        assert_int_eq(total, (long long)count);
        for (size_t i = 0; i < n; i++)
            ret[seen++] = threads[i].id;
    }
    assert_uint_eq(seen, count);
}

TEST(pages_follow_each_other_also_over_ties)
{
    enum { COUNT = 7 };
    static const char *const names[] = {NULL,         "thread_id",  "status",
                                        "created_at", "updated_at", "state_updated_at"};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;

    arena_init(&arena, MIB);
    storetest_open(&t);
    for (int i = 0; i < COUNT; i++)
        make(t.store, &arena, "ann", "{}");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *seen[COUNT];

        read_pages(t.store, (struct store_page){.sort_by = names[i], .ascending = i % 2}, seen,
                   COUNT);
        for (size_t a = 0; a < COUNT; a++)
            for (size_t b = 0; b < a; b++)
                assert_true(strcmp(seen[a], seen[b]) != 0);
    }
}

TEST(order_is_by_what_was_asked)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread first, second, got, *threads;
    struct store_page page = {.limit = 10};
    struct store_thread_filter all = {0};
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    first = make(t.store, &arena, "ann", "{}");
    second = make(t.store, &arena, "ann", "{}");
    assert_ok(store_thread_update(t.store, "ann", first.id, NULL, NULL, &arena, &got, &err), err);
    assert_ok(store_thread_search(t.store, "ann", &all, &page, &arena, &threads, &n, NULL, &err),
              err);
    assert_uint_eq(n, 2);
    assert_str_eq(threads[0].id, first.id);
    page.sort_by = "created_at";
    assert_ok(store_thread_search(t.store, "ann", &all, &page, &arena, &threads, &n, NULL, &err),
              err);
    assert_str_eq(threads[0].id, second.id);
    page.ascending = true;
    assert_ok(store_thread_search(t.store, "ann", &all, &page, &arena, &threads, &n, NULL, &err),
              err);
    assert_str_eq(threads[0].id, first.id);
    page.sort_by = "owner; DROP TABLE threads";
    assert_int_eq(
        store_thread_search(t.store, "ann", &all, &page, &arena, &threads, &n, NULL, &err),
        -ERR_INVALID);
    assert_str_has(err.text, "created_at");
    page = (struct store_page){.limit = -1, .offset = -1};
    assert_ok(store_thread_search(t.store, "ann", &all, &page, &arena, &threads, &n, NULL, &err),
              err);
    assert_uint_eq(n, 0);
}

TEST(too_many_ids_are_refused)
{
    auto_storetest struct storetest t = {0};
    const char *ids[1001];
    int64_t total;
    struct error err;

    storetest_open(&t);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ids[i] = "x";
    assert_uint_eq(
        count_of(t.store, "ann", &(struct store_thread_filter){.ids = ids, .id_count = 1000}), 0);
    assert_int_eq(store_thread_search(t.store, "ann",
                                      &(struct store_thread_filter){.ids = ids, .id_count = 1001},
                                      &(struct store_page){0}, NULL, NULL, NULL, &total, &err),
                  -ERR_INVALID);
}

/* ---- what belongs to a thread ---- */

static const char picture[] = "aGVsbG8=";

static void fill(struct store *s, const struct store_thread *t, const char *cron,
                 const char *session)
{
    const struct store_cron c = {.id = cron,
                                 .owner = t->owner,
                                 .assistant_id = "a",
                                 .thread_id = t->id,
                                 .schedule = "* * * * *",
                                 .enabled = true};
    const struct store_export e = {.thread_id = t->id, .session_id = session, .path = "/p"};
    const struct store_blob b = {
        .sha256 = "b10b", .mime = "image/png", .data = picture, .len = sizeof(picture) - 1};
    struct store_message m[2] = {{.json = "{\"m\":1}", .len = 7}, {.json = "{\"m\":2}", .len = 7}};
    struct store_checkpoint k = {.thread_id = t->id,
                                 .id = "1f000000-0000-6000-8000-000000000001",
                                 .step = -1,
                                 .source = "input",
                                 .next = "[]",
                                 .tasks = "[]",
                                 .metadata = "{}",
                                 .created_us = 1};
    struct error err;

    assert_ok(store_cron_put(s, &c, &err), err);
    assert_ok(store_export_put(s, &e, &err), err);
    assert_ok(store_blob_put(s, t->id, &b, &err), err);
    assert_ok(store_checkpoint_put(s, NULL, &k, m, 2, &err), err);
    k.id = "1f000000-0000-6000-8000-000000000002";
    k.parent = "1f000000-0000-6000-8000-000000000001";
    assert_ok(store_checkpoint_put(s, NULL, &k, m, 1, &err), err);
}

static int count_keep(void *user, const struct store_value *row, size_t count, struct error *reterr)
{
    *(int64_t *)user = row[0].integer;
    return 0;
}

struct rows {
    const char *table;
    int64_t count;
};

static int rows_body(void *user, struct store_tx *tx, struct error *reterr)
{
    struct rows *rows = user;
    char sql[80];
    int64_t r;

    snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM %s", rows->table);
    r = store_exec(tx,
                   &(struct store_statement){.sql = sql, .each = count_keep, .user = &rows->count},
                   reterr);
    return r < 0 ? (int)r : 0;
}

static void check_rows(struct store *s, const char *table, int64_t want)
{
    struct rows rows = {.table = table};
    struct error err;

    assert_ok(store_read(s, rows_body, &rows, &err), err);
    if (rows.count != want)
        test_fail(__FILE__, __LINE__, "%s has %lld rows, not %lld", table, (long long)rows.count,
                  (long long)want);
}

TEST(a_thread_goes_with_all_that_belongs_to_it)
{
    static const char *const tables[] = {"threads", "runs",         "checkpoints", "messages",
                                         "blobs",   "thread_blobs", "crons",       "exports"};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread one, two, got;
    struct store_blob blob;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    one = make(t.store, &arena, "ann", "{}");
    two = make(t.store, &arena, "ann", "{}");
    fill(t.store, &one, "cron1", "s1");
    fill(t.store, &two, "cron2", "s2");
    check_rows(t.store, "blobs", 1);
    check_rows(t.store, "messages", 4);
    assert_ok(store_thread_delete(t.store, "ann", one.id, &err), err);
    assert_int_eq(store_thread_get(t.store, "ann", one.id, &arena, &got, &err), -ERR_NOT_FOUND);
    assert_int_eq(store_blob_get(t.store, one.id, "b10b", &arena, &blob, &err), -ERR_NOT_FOUND);
    assert_ok(store_blob_get(t.store, two.id, "b10b", &arena, &blob, &err), err);
    check_rows(t.store, "messages", 2);
    check_rows(t.store, "crons", 1);
    assert_ok(store_thread_delete(t.store, "ann", two.id, &err), err);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        check_rows(t.store, tables[i], 0);
    assert_int_eq(store_thread_delete(t.store, "ann", two.id, &err), -ERR_NOT_FOUND);
}

TEST(a_copy_has_checkpoints_and_messages_of_its_own)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread one, copy, source;
    struct store_checkpoint *checkpoints;
    struct store_message messages[2];
    struct store_blob blob;
    char metadata[200];
    size_t n;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    one = make(t.store, &arena, "ann", "{\"a\":1}");
    fill(t.store, &one, "cron1", "s1");
    assert_ok(store_thread_copy(t.store, "ann", one.id, "copy", &arena, &copy, &err), err);
    snprintf(metadata, sizeof(metadata), "{\"a\":1,\"thread_id\":\"%s\"}", one.id);
    assert_str_eq(copy.id, "copy");
    assert_str_eq(copy.metadata, metadata);
    assert_ok(store_thread_delete(t.store, "ann", one.id, &err), err);
    assert_ok(store_thread_get(t.store, "ann", "copy", &arena, &source, &err), err);
    assert_str_eq(source.head, "1f000000-0000-6000-8000-000000000002");
    assert_ok(
        store_checkpoint_list(t.store, "copy", NULL, NULL, 10, &arena, &checkpoints, &n, &err),
        err);
    assert_uint_eq(n, 2);
    assert_str_eq(checkpoints[0].parent, "1f000000-0000-6000-8000-000000000001");
    assert_uint_eq(checkpoints[1].ref_count, 2);
    assert_ok(store_messages_get(t.store, "copy", checkpoints[1].refs, 2, &arena, messages, &err),
              err);
    assert_str_eq(messages[1].json, "{\"m\":2}");
    assert_ok(store_blob_get(t.store, "copy", "b10b", &arena, &blob, &err), err);
    assert_mem_eq(blob.data, picture, sizeof(picture) - 1);
}

TEST(a_copy_goes_on_with_numbers_of_messages)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread one, copy;
    struct store_message m = {.json = "{\"m\":3}", .len = 7};
    struct store_checkpoint k = {.thread_id = "copy",
                                 .id = "1f000000-0000-6000-8000-000000000003",
                                 .source = "update",
                                 .next = "[]",
                                 .tasks = "[]",
                                 .metadata = "{}"};
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    one = make(t.store, &arena, "ann", "{}");
    fill(t.store, &one, "cron1", "s1");
    assert_ok(store_thread_copy(t.store, "ann", one.id, "copy", &arena, &copy, &err), err);
    assert_ok(store_checkpoint_put(t.store, NULL, &k, &m, 1, &err), err);
    assert_int_eq(m.ref, 3);
    assert_int_eq(store_thread_copy(t.store, "ann", one.id, "copy", &arena, &copy, &err),
                  -ERR_EXISTS);
}

/* ---- time to live ---- */

static size_t sweep(struct store *s, int64_t now_us, struct arena *arena, struct store_thread **ret)
{
    size_t n;
    struct error err;

    assert_ok(store_thread_expired(s, now_us, arena, ret, &n, &err), err);
    return n;
}

TEST(threads_are_over_when_nothing_was_done_with_them)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread new, made, got, *over;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    make(t.store, &arena, "ann", "{}");
    new = new_thread(&arena, "ann", "{}");
    new.ttl = "{\"ttl\":2,\"strategy\":\"delete\"}";
    assert_ok(store_thread_create(t.store, &new, false, &arena, &made, &err), err);
    assert_int_eq(made.expires_us, made.created_us + 2 * MINUTE_US);
    assert_str_eq(made.ttl, new.ttl);
    assert_uint_eq(sweep(t.store, made.expires_us - 1, &arena, &over), 0);
    assert_uint_eq(sweep(t.store, made.expires_us, &arena, &over), 1);
    assert_str_eq(over[0].id, new.id);
    assert_str_eq(over[0].owner, "ann");
    /* Used since: it lives on, and the sweep has noted until when. */
    assert_ok(store_thread_update(t.store, "ann", new.id, "{\"x\":1}", NULL, &arena, &got, &err),
              err);
    assert_uint_eq(sweep(t.store, made.expires_us, &arena, &over), 0);
    assert_ok(store_thread_get(t.store, "ann", new.id, &arena, &made, &err), err);
    assert_int_eq(made.expires_us, got.updated_us + 2 * MINUTE_US);
    assert_uint_eq(sweep(t.store, made.expires_us, &arena, &over), 1);
}

TEST(a_ttl_is_set_changed_and_taken_away)
{
    static const char *const bad[] = {"0", "-1", "\"5\"", "{\"ttl\":true}", "[5]", "{", "1e999"};
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread made, got;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    made = make(t.store, &arena, "ann", "{}");
    assert_ok(store_thread_update(t.store, "ann", made.id, NULL, "0.5", &arena, &got, &err), err);
    assert_int_eq(got.expires_us, got.updated_us + MINUTE_US / 2);
    assert_ok(store_thread_update(t.store, "ann", made.id, NULL, "1e300", &arena, &got, &err), err);
    assert_true(got.expires_us > got.updated_us);
    assert_ok(store_thread_update(t.store, "ann", made.id, NULL, "null", &arena, &got, &err), err);
    assert_int_eq(got.expires_us, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (store_thread_update(t.store, "ann", made.id, NULL, bad[i], &arena, &got, &err) >= 0)
            test_fail(__FILE__, __LINE__, "%s was taken", bad[i]);
}

TEST(what_is_kept_is_told_once_and_gets_its_time_anew)
{
    auto_storetest struct storetest t = {0};
    auto_arena struct arena arena;
    struct store_thread new, made, *over;
    struct error err;

    arena_init(&arena, MIB);
    storetest_open(&t);
    new = new_thread(&arena, "ann", "{}");
    new.ttl = "{\"ttl\":1,\"strategy\":\"keep_latest\"}";
    assert_ok(store_thread_create(t.store, &new, false, &arena, &made, &err), err);
    assert_uint_eq(sweep(t.store, made.expires_us, &arena, &over), 1);
    assert_uint_eq(sweep(t.store, made.expires_us, &arena, &over), 0);
    assert_uint_eq(sweep(t.store, made.expires_us + MINUTE_US, &arena, &over), 1);
}

/* ---- at once ---- */

enum { MAKERS = 8, ROUNDS = 5 };

struct maker {
    pthread_t thread;
    struct store *store;
    pthread_barrier_t *barrier;
    char (*ids)[UUID_LEN + 1];
    const char *owner;
    bool exists_ok;
    int result[ROUNDS];
};

static void *make_all(void *arg)
{
    struct maker *m = arg;

    for (int i = 0; i < ROUNDS; i++) {
        auto_arena struct arena arena;
        struct store_thread new = {.id = m->ids[i], .owner = m->owner}, made;

        arena_init(&arena, MIB);
        pthread_barrier_wait(m->barrier);
        m->result[i] = store_thread_create(m->store, &new, m->exists_ok, &arena, &made, NULL);
    }
    return NULL;
}

static void race(struct maker makers[MAKERS], struct store *s, bool exists_ok)
{
    char ids[ROUNDS][UUID_LEN + 1];
    pthread_barrier_t barrier;
    struct error err;

    for (int i = 0; i < ROUNDS; i++)
        assert_ok(uuid_v4(ids[i], &err), err);
    assert_int_eq(pthread_barrier_init(&barrier, NULL, MAKERS), 0);
    for (int i = 0; i < MAKERS; i++) {
        makers[i] = (struct maker){
            .store = s, .barrier = &barrier, .ids = ids, .owner = "ann", .exists_ok = exists_ok};
        assert_int_eq(pthread_create(&makers[i].thread, NULL, make_all, &makers[i]), 0);
    }
    for (int i = 0; i < MAKERS; i++)
        assert_int_eq(pthread_join(makers[i].thread, NULL), 0);
    pthread_barrier_destroy(&barrier);
}

TEST(of_several_that_make_a_thread_at_once_one_does)
{
    auto_storetest struct storetest t = {0};
    struct maker makers[MAKERS];

    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    storetest_open(&t);
    race(makers, t.store, false);
    for (int round = 0; round < ROUNDS; round++) {
        int won = 0;

        for (int i = 0; i < MAKERS; i++) {
            won += makers[i].result[round] == 0;
            if (makers[i].result[round] != 0)
                assert_int_eq(makers[i].result[round], -ERR_EXISTS);
        }
        assert_int_eq(won, 1);
    }
    race(makers, t.store, true);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < MAKERS; i++)
            assert_int_eq(makers[i].result[round], 0);
    check_rows(t.store, "threads", 2 * (int64_t)ROUNDS);
}
