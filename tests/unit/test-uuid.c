/* SPDX-License-Identifier: MIT */
/* UUIDs: their form, that they grow with time and under threads, and what is one. */
#include "base/uuid.h"

#include "tests/lib/test.h"

#include <pthread.h>

enum { THREADS = 4, PER_THREAD = 2000 };

static void check_form(const char *id, char version)
{
    assert_true(uuid_check(id));
    assert_int_eq(id[14], version);
    assert_true(strchr("89ab", id[19]));
}

TEST(each_version_has_its_form)
{
    char id[UUID_LEN + 1];
    struct error err;

    assert_ok(uuid_v4(id, &err), err);
    check_form(id, '4');
    assert_ok(uuid_v6(NULL, id, &err), err);
    check_form(id, '6');
    assert_ok(uuid_v7(id, &err), err);
    check_form(id, '7');
}

TEST(ids_with_time_grow)
{
    char last6[UUID_LEN + 1] = "", last7[UUID_LEN + 1] = "";

    for (int i = 0; i < 2000; i++) {
        char id[UUID_LEN + 1];
        struct error err;

        assert_ok(uuid_v6(NULL, id, &err), err);
        assert_true(strcmp(id, last6) > 0);
        memcpy(last6, id, sizeof(id));
        assert_ok(uuid_v7(id, &err), err);
        assert_true(strcmp(id, last7) > 0);
        memcpy(last7, id, sizeof(id));
    }
}

TEST(an_id_is_larger_than_the_one_it_follows)
{
    /* Two centuries from now, as a server with a wrong clock would make it. */
    static const char future[] = "2c6bd3a0-3e80-6fff-bfff-ffffffffffff";
    char id[UUID_LEN + 1], next[UUID_LEN + 1];
    struct error err;

    assert_ok(uuid_v6(future, id, &err), err);
    assert_true(strcmp(id, future) > 0);
    check_form(id, '6');
    assert_ok(uuid_v6(NULL, next, &err), err);
    assert_true(strcmp(next, id) > 0);
}

TEST(what_cannot_be_followed_is_refused)
{
    static const char *const bad[] = {
        "ffffffff-ffff-6fff-bfff-ffffffffffff",
        "2c6bd3a0-3e80-4fff-bfff-ffffffffffff",
        "x",
        "",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char id[UUID_LEN + 1];
        struct error err;

        assert_int_eq(uuid_v6(bad[i], id, &err), -ERR_INVALID);
    }
}

TEST(other_texts_are_no_uuids)
{
    assert_true(uuid_check("01234567-89ab-cdef-0123-456789abcdef"));
    assert_true(uuid_check("01234567-89AB-CDEF-0123-456789ABCDEF"));
    assert_false(uuid_check("01234567-89ab-cdef-0123-456789abcde"));
    assert_false(uuid_check("01234567-89ab-cdef-0123-456789abcdef0"));
    assert_false(uuid_check("0123456789ab-cdef-0123-456789abcdef--"));
    assert_false(uuid_check("01234567-89ab-cdef-0123-456789abcdeg"));
    assert_false(uuid_check("0123456789abcdef0123456789abcdef"));
    assert_false(uuid_check("{1234567-89ab-cdef-0123-456789abcdef"));
    assert_false(uuid_check("01234567\n89ab-cdef-0123-456789abcdef"));
    assert_false(uuid_check(""));
}

struct maker {
    pthread_t thread;
    char id[PER_THREAD][UUID_LEN + 1];
    bool seven, failed;
};

static void *make_ids(void *arg)
{
    struct maker *m = arg;

    for (int i = 0; i < PER_THREAD; i++)
        if ((m->seven ? uuid_v7(m->id[i], NULL) : uuid_v6(NULL, m->id[i], NULL)) < 0)
            m->failed = true;
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Within a thread they grow; over all threads no time is given out twice. */
static void check_threads(struct maker *makers, char (*all)[UUID_LEN + 1], bool seven)
{
    for (int t = 0; t < THREADS; t++) {
        makers[t].seven = seven;
        assert_int_eq(pthread_create(&makers[t].thread, NULL, make_ids, &makers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        assert_int_eq(pthread_join(makers[t].thread, NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        assert_false(makers[t].failed);
        for (int i = 1; i < PER_THREAD; i++)
            assert_true(strcmp(makers[t].id[i], makers[t].id[i - 1]) > 0);
        memcpy(all[t * PER_THREAD], makers[t].id, sizeof(makers[t].id));
    }
    qsort(all, (size_t)THREADS * PER_THREAD, sizeof(*all), compare_ids);
    for (int i = 1; i < THREADS * PER_THREAD; i++)
        assert_true(memcmp(all[i], all[i - 1], 18) != 0);
}

TEST(threads_never_get_the_same_time)
{
    auto_free struct maker *makers = calloc(THREADS, sizeof(*makers));
    auto_free char(*all)[UUID_LEN + 1] = calloc((size_t)THREADS * PER_THREAD, sizeof(*all));

    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    assert_not_null(makers);
    assert_not_null(all);
    check_threads(makers, all, false);
    check_threads(makers, all, true);
}
