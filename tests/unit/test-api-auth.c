/* SPDX-License-Identifier: MIT */
/* Keys and their owners, the file of keys and how it changes, and the limit of requests. */
#include "api/auth.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct keys {
    struct settings settings;
    struct key_table *table;
    char path[512];
};

static void keys_done(struct keys *k)
{
    key_table_free(k->table);
}
#define auto_keys __attribute__((cleanup(keys_done)))

static void file_write(struct keys *k, const char *text, mode_t mode)
{
    auto_fd int fd = -1;

    snprintf(k->path, sizeof(k->path), "%s/keys", test_dir());
    (void)!unlink(k->path);
    fd = open(k->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && test_is_torture())
        test_skip("no file");
    assert_true(fd >= 0);
    assert_int_eq(write(fd, text, strlen(text)), (long long)strlen(text));
    assert_int_eq(fchmod(fd, mode), 0);
}

static int keys_open(struct keys *k, const char *key, struct error *reterr)
{
    k->settings = (struct settings){.api_key = key, .api_keys_file = k->path};
    return key_table_new(&k->settings, &k->table, reterr);
}

static bool owner_is(struct keys *k, const char *key, const char *owner)
{
    char name[65] = "";

    return key_table_find(k->table, key, name) && str_eq(name, owner);
}

TEST(keys_have_owners)
{
    auto_keys struct keys k = {};
    struct error err = {0};

    file_write(&k, "# people\n\nann:key-of-ann\r\nbob:key:of:bob\nann:second-of-ann\n", 0600);
    assert_ok(keys_open(&k, "key-of-all", &err), err);
    assert_false(key_table_is_open(k.table));
    assert_true(owner_is(&k, "key-of-all", "default"));
    assert_true(owner_is(&k, "key-of-ann", "ann"));
    assert_true(owner_is(&k, "second-of-ann", "ann"));
    assert_true(owner_is(&k, "key:of:bob", "bob"));
    assert_false(owner_is(&k, "", ""));
    assert_false(owner_is(&k, "key-of-an", "ann"));
    assert_false(owner_is(&k, "key-of-ann ", "ann"));
    assert_false(owner_is(&k, "ann:key-of-ann", "ann"));
}

TEST(without_a_key_it_is_open)
{
    auto_keys struct keys k = {};
    struct error err = {0};

    assert_ok(keys_open(&k, "", &err), err);
    assert_true(key_table_is_open(k.table));
    assert_false(owner_is(&k, "anything-at-all", ""));
}

static const struct {
    const char *text;
    mode_t mode;
    const char *says;
} bad_files[] = {
    {"ann:key-of-ann\n", 0644, "chmod 600"},   {"ann:key-of-ann\n", 0620, "chmod 600"},
    {"ann key-of-ann\n", 0600, "name:key"},    {"ann:short\n", 0600, "characters"},
    {":key-without-name\n", 0600, "a name"},   {"a b:key-of-a-b\n", 0600, "a name"},
    {"anonymous:key-key-key\n", 0600, "name"}, {"a/b:key-of-a-b\n", 0600, "a name"},
};

TEST(bad_files_are_refused_without_their_keys)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
        auto_keys struct keys k = {};
        struct error err = {0};

        file_write(&k, bad_files[i].text, bad_files[i].mode);
        assert_true(keys_open(&k, "", &err) < 0);
        if (test_is_torture())
            continue;
        assert_str_has(err.text, bad_files[i].says);
        assert_null(strstr(err.text, "key-of"));
        assert_null(strstr(err.text, "short"));
    }
}

/* Whether the key is, or is no more, somebody's before some seconds have passed. */
static bool comes_to(struct keys *k, const char *key, bool known)
{
    int64_t deadline = clock_deadline(10000);
    char name[65];

    while (key_table_find(k->table, key, name) != known && clock_ms() < deadline)
        (void)!fd_wait(-1, 0, clock_deadline(50));
    return key_table_find(k->table, key, name) == known;
}

TEST(a_changed_file_is_read_again)
{
    auto_keys struct keys k = {};
    struct error err = {0};

    if (test_is_torture())
        test_skip("it takes some seconds");
    file_write(&k, "ann:key-of-ann\n", 0600);
    assert_ok(keys_open(&k, "key-of-all", &err), err);
    file_write(&k, "bob:key-of-bob\n", 0600);
    assert_true(comes_to(&k, "key-of-bob", true));
    assert_true(comes_to(&k, "key-of-ann", false));
    assert_true(owner_is(&k, "key-of-all", "default"));
    /* One that cannot be used leaves them as they are. */
    file_write(&k, "carl:short\n", 0600);
    assert_true(comes_to(&k, "key-of-bob", true));
    (void)!unlink(k.path);
    assert_true(owner_is(&k, "key-of-bob", "bob"));
}

/* ---- the limit ---- */

static void limiter_clear(struct limiter **l)
{
    limiter_free(*l);
}
#define auto_limiter __attribute__((cleanup(limiter_clear)))

static struct limiter *limiter_make(double per_second)
{
    struct limiter *l = NULL;
    struct error err = {0};

    assert_ok(limiter_new(per_second, &l, &err), err);
    return l;
}

static int takes(struct limiter *l, const char *who, double cost, int most)
{
    int n = 0;

    while (n < most && limiter_take(l, who, cost))
        n++;
    return n;
}

TEST(each_owner_has_a_limit_of_its_own)
{
    auto_limiter struct limiter *l = limiter_make(5);
    int64_t since = clock_ms();
    int n = takes(l, "ann", 1, 100);

    assert_true(n >= 10);
    assert_true(n <= 11 + 5 * (clock_ms() - since) / 1000);
    assert_true(takes(l, "bob", 1, 10) == 10);
    assert_true(takes(l, "bob", 10, 1) == 0);
}

TEST(a_limit_fills_up_again)
{
    auto_limiter struct limiter *l = limiter_make(50);
    int64_t deadline = clock_deadline(5000);

    (void)takes(l, "ann", 1, 1000);
    while (!limiter_take(l, "ann", 1) && clock_ms() < deadline)
        (void)!fd_wait(-1, 0, clock_deadline(5));
    assert_true(clock_ms() < deadline);
}

TEST(zero_is_no_limit)
{
    auto_limiter struct limiter *l = limiter_make(0);

    assert_int_eq(takes(l, "ann", 1000, 10000), 10000);
}
