/* SPDX-License-Identifier: MIT */
/*
 * Sealed values: the vectors of the Fernet specification, tokens that were changed or are of
 * another time, keys that change, and the file a key is kept in.
 */
#include "store/sealed.h"

#include "base/fd.h"
#include "base/settings.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#define SECRET "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4="
#define SECRET2 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

/* 1985-10-26T01:20:00-07:00 */
enum { MADE = 499162800, SMALL = 4096 };

static const char hello[] =
    "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobw"
    "Oz7JcbmrR64jVmpU4IwqDA==";

static int keys_from(const char *text, struct sealed_keys *ret, struct error *err)
{
    return sealed_keys_load(&(struct settings){.encryption_key = text, .state_dir = "/nonexistent"},
                            ret, err);
}

static struct sealed_keys keys_of(const char *text)
{
    struct sealed_keys k;
    struct error err;

    assert_ok(keys_from(text, &k, &err), err);
    return k;
}

static int open_hello(const char *token, int64_t now_s, int64_t ttl_s)
{
    auto_sealed_keys struct sealed_keys k = keys_of(SECRET);
    auto_buf struct buf plain;
    struct error err;
    int r;

    buf_init(&plain, SMALL);
    r = sealed_open_at(&k, now_s, token, strlen(token), ttl_s, &plain, &err);
    if (r == 0)
        assert_str_eq(buf_str(&plain), "hello");
    else
        assert_uint_eq(plain.len, 0);
    return r;
}

TEST(the_vector_of_generation_comes_out)
{
    auto_sealed_keys struct sealed_keys k = keys_of(SECRET);
    struct sealed_moment at = {.now_s = MADE};
    auto_buf struct buf token;
    struct error err;

    for (size_t i = 0; i < sizeof(at.iv); i++)
        at.iv[i] = (unsigned char)i;
    buf_init(&token, SMALL);
    assert_ok(sealed_seal_at(&k, &at, "hello", 5, &token, &err), err);
    assert_str_eq(buf_str(&token), hello);
}

TEST(the_vector_of_verification_opens)
{
    assert_int_eq(open_hello(hello, MADE + 1, 60), 0);
}

TEST(the_invalid_vectors_are_refused)
{
    static const struct {
        const char *what, *token;
        int64_t now_s;
    } bad[] = {
        {"incorrect mac",
         "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-"
         "szkFVzXTuGb4hR8AKtwcaX1YdykQUFBQUFB"
         "QUFBQQ==",
         MADE + 1},
        {"too short", "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPA==", MADE + 1},
        {"invalid base64",
         "%%%%%%%%%%%%%AECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-"
         "szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1"
         "YsUD2Q==",
         MADE + 1},
        {"payload size not multiple of block size",
         "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPOm73QeoCk9uGib28Xe5vz6oxq5nmxbx_"
         "v7mrfyu"
         "dzUm",
         MADE + 1},
        {"payload padding error",
         "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0ODz4LEpdELGQAad7aNEHbf-"
         "JkLPIpuiYRLQ3RtXatOYREu2FWke6CnJNYIbku"
         "KNqOhw==",
         MADE + 1},
        {"far-future TS (unacceptable clock skew)",
         "gAAAAAAdwStRAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAnja1xKYyhd-Y6mSkTOyTGJmw2Xc2a6kBd-"
         "iX9b"
         "_qXQcw==",
         MADE + 1},
        {"expired TTL",
         "gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-"
         "szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1"
         "YsUD2Q==",
         MADE + 91},
        {"incorrect IV (causes padding error)",
         "gAAAAAAdwJ6xBQECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-"
         "fWPAkLhFLHpGtDBRLRTZeUfWgHSv49TF2AUEZ1TIvc"
         "ZjK1zQ==",
         MADE + 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int r = open_hello(bad[i].token, bad[i].now_s, 60);

        if (r != -ERR_DENIED)
            test_fail(__FILE__, __LINE__, "%s: %d", bad[i].what, r);
    }
}

TEST(age_counts_only_where_it_is_asked_for)
{
    assert_int_eq(open_hello(hello, MADE + 60, 60), 0);
    assert_int_eq(open_hello(hello, MADE + 61, 60), -ERR_DENIED);
    assert_int_eq(open_hello(hello, MADE, 0), 0);
    assert_int_eq(open_hello(hello, MADE + 1, 0), -ERR_DENIED);
    assert_int_eq(open_hello(hello, MADE - 60, 60), 0);
    assert_int_eq(open_hello(hello, MADE - 61, 60), -ERR_DENIED);
    assert_int_eq(open_hello(hello, MADE - 61, -1), 0);
    assert_int_eq(open_hello(hello, MADE + 100000000, -1), 0);
    assert_int_eq(open_hello(hello, MADE + 61, INT64_MAX), 0);
}

TEST(each_changed_bit_is_noticed)
{
    char token[sizeof(hello)];

    for (size_t i = 0; i < sizeof(hello) - 1; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(token, hello, sizeof(hello));
            token[i] ^= (char)(1 << bit);
            assert_int_eq(open_hello(token, MADE, -1), -ERR_DENIED);
        }
}

TEST(each_shorter_or_longer_token_is_refused)
{
    char token[sizeof(hello) + 4];

    for (size_t len = 0; len < sizeof(hello) - 1; len++) {
        memcpy(token, hello, sizeof(hello));
        token[len] = 0;
        assert_int_eq(open_hello(token, MADE, -1), -ERR_DENIED);
    }
    snprintf(token, sizeof(token), "%sAAAA", hello);
    assert_int_eq(open_hello(token, MADE, -1), -ERR_DENIED);
    snprintf(token, sizeof(token), "%s\n", hello);
    assert_int_eq(open_hello(token, MADE, -1), -ERR_DENIED);
}

static void round_trip(const struct sealed_keys *k, size_t len)
{
    auto_buf struct buf token, plain;
    char data[100];
    struct error err;

    memset(data, 'x', sizeof(data));
    data[0] = 0;
    buf_init(&token, SMALL);
    buf_init(&plain, SMALL);
    assert_int_eq(buf_append(&plain, "before", 6), 0);
    assert_ok(sealed_seal(k, data, len, &token, &err), err);
    assert_ok(sealed_open(k, token.data, token.len, 60, &plain, &err), err);
    assert_uint_eq(plain.len, 6 + len);
    assert_mem_eq(plain.data, "before", 6);
    assert_mem_eq(plain.data + 6, data, len);
}

TEST(all_lengths_come_back)
{
    auto_sealed_keys struct sealed_keys k = keys_of(SECRET);

    for (size_t len = 0; len <= 100; len++)
        round_trip(&k, len);
}

TEST(the_same_text_is_never_sealed_twice_alike)
{
    auto_sealed_keys struct sealed_keys k = keys_of(SECRET);
    auto_buf struct buf a, b;
    struct error err;

    buf_init(&a, SMALL);
    buf_init(&b, SMALL);
    assert_ok(sealed_seal(&k, "x", 1, &a, &err), err);
    assert_ok(sealed_seal(&k, "x", 1, &b, &err), err);
    assert_true(strcmp(a.data, b.data) != 0);
}

TEST(keys_are_rotated_newest_first)
{
    auto_sealed_keys struct sealed_keys old = keys_of(SECRET), new = keys_of(SECRET2);
    auto_sealed_keys struct sealed_keys both = keys_of(" " SECRET2 " ,\t" SECRET "\n");
    auto_buf struct buf token, plain;
    struct error err;

    buf_init(&token, SMALL);
    buf_init(&plain, SMALL);
    assert_ok(sealed_seal(&old, "a", 1, &token, &err), err);
    assert_ok(sealed_open(&both, token.data, token.len, -1, &plain, &err), err);
    assert_int_eq(sealed_open(&new, token.data, token.len, -1, &plain, &err), -ERR_DENIED);
    buf_clear(&token);
    assert_ok(sealed_seal(&both, "b", 1, &token, &err), err);
    assert_ok(sealed_open(&new, token.data, token.len, -1, &plain, &err), err);
    assert_int_eq(sealed_open(&old, token.data, token.len, -1, &plain, &err), -ERR_DENIED);
    assert_str_eq(plain.data, "ab");
}

TEST(a_bad_key_is_told_by_its_setting_and_not_shown)
{
    static const char *const bad[] = {
        "short",
        "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4",  /* without padding */
        "cw/0x689RpI+jtRR7oE8h/eQsKImvJapLeSbXpwF4e4=", /* of the other alphabet */
        "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e==", /* 31 bytes */
        "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e5=", /* bits that do not count */
        SECRET ",",
        "," SECRET,
        SECRET ",short",
        SECRET "," SECRET "," SECRET "," SECRET "," SECRET,
        " ",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sealed_keys k, none = {0};
        struct error err;

        assert_int_eq(keys_from(bad[i], &k, &err), -ERR_INVALID);
        assert_str_has(err.text, "ENCRYPTION_KEY");
        assert_null(strstr(err.text, "short"));
        assert_null(strstr(err.text, "cw"));
        assert_mem_eq(&k, &none, sizeof(k));
    }
}

TEST(keys_are_wiped)
{
    struct sealed_keys k = keys_of(SECRET), none = {0};
    auto_buf struct buf token;

    sealed_keys_clear(&k);
    assert_mem_eq(&k, &none, sizeof(k));
    buf_init(&token, SMALL);
    assert_true(sealed_seal(&k, "x", 1, &token, NULL) < 0);
    assert_int_eq(sealed_open(&k, hello, strlen(hello), -1, &token, NULL), -ERR_DENIED);
}

static const char *key_path(void)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/state/" SEALED_KEY_FILE, test_dir());
    return path;
}

static int keys_of_file(struct sealed_keys *ret, struct error *err)
{
    char state[512];

    snprintf(state, sizeof(state), "%s/state", test_dir());
    return sealed_keys_load(&(struct settings){.encryption_key = "", .state_dir = state}, ret, err);
}

TEST(a_missing_key_file_is_made_once)
{
    struct sealed_keys a, b;
    struct stat st;
    struct error err;

    assert_ok(keys_of_file(&a, &err), err);
    assert_uint_eq(a.count, 1);
    assert_int_eq(stat(key_path(), &st), 0);
    assert_uint_eq(st.st_mode & 07777, 0600);
    assert_uint_eq(st.st_nlink, 1);
    assert_ok(keys_of_file(&b, &err), err);
    assert_mem_eq(&a, &b, sizeof(a));
}

static void write_key_file(const char *text)
{
    char state[512];
    auto_fd int fd = -1;

    snprintf(state, sizeof(state), "%s/state", test_dir());
    assert_int_eq(mkdir(state, 0700), 0);
    fd = open(key_path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_eq(write(fd, text, strlen(text)), (long long)strlen(text));
}

TEST(a_key_file_may_hold_several)
{
    auto_sealed_keys struct sealed_keys k = {0};
    struct error err;

    write_key_file(SECRET2 "," SECRET "\n");
    assert_ok(keys_of_file(&k, &err), err);
    assert_uint_eq(k.count, 2);
}

TEST(a_damaged_key_file_is_an_error_and_stays)
{
    struct sealed_keys k;
    struct error err;
    struct stat st;

    write_key_file("garbage\n");
    assert_int_eq(keys_of_file(&k, &err), -ERR_INVALID);
    assert_str_has(err.text, SEALED_KEY_FILE);
    assert_null(strstr(err.text, "garbage"));
    assert_int_eq(stat(key_path(), &st), 0);
    assert_int_eq(st.st_size, 8);
}

TEST(an_empty_key_file_is_an_error)
{
    struct sealed_keys k;
    struct error err;

    write_key_file("");
    assert_int_eq(keys_of_file(&k, &err), -ERR_INVALID);
}

TEST(a_key_file_that_others_can_use_is_refused)
{
    struct sealed_keys k;
    struct error err;

    write_key_file(SECRET "\n");
    assert_int_eq(chmod(key_path(), 0640), 0);
    assert_int_eq(keys_of_file(&k, &err), -ERR_DENIED);
    assert_str_has(err.text, "0600");
    if (geteuid() != 0)
        return;
    assert_int_eq(chmod(key_path(), 0600), 0);
    assert_int_eq(chown(key_path(), 65534, 65534), 0);
    assert_int_eq(keys_of_file(&k, &err), -ERR_DENIED);
    assert_str_has(err.text, "65534");
}

TEST(a_link_is_no_key_file)
{
    char target[512];
    struct sealed_keys k;
    struct error err;

    write_key_file(SECRET "\n");
    snprintf(target, sizeof(target), "%s/elsewhere", test_dir());
    assert_int_eq(rename(key_path(), target), 0);
    assert_int_eq(symlink(target, key_path()), 0);
    assert_true(keys_of_file(&k, &err) < 0);
    assert_int_eq(unlink(key_path()), 0);
    assert_int_eq(mkfifo(key_path(), 0600), 0);
    assert_int_eq(keys_of_file(&k, &err), -ERR_DENIED);
}

struct starter {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const char *state;
    struct sealed_keys keys;
    int result;
};

static void *start_server(void *arg)
{
    struct starter *s = arg;

    pthread_barrier_wait(s->barrier);
    s->result = sealed_keys_load(&(struct settings){.encryption_key = "", .state_dir = s->state},
                                 &s->keys, NULL);
    return NULL;
}

TEST(servers_that_start_at_once_agree)
{
    enum { COUNT = 8 };
    struct starter starters[COUNT] = {0};
    pthread_barrier_t barrier;
    char state[512];

    if (test_is_torture())
        test_skip("threads whose calls fail show nothing here");
    snprintf(state, sizeof(state), "%s/state", test_dir());
    assert_int_eq(pthread_barrier_init(&barrier, NULL, COUNT), 0);
    for (int i = 0; i < COUNT; i++) {
        starters[i] = (struct starter){.barrier = &barrier, .state = state};
        assert_int_eq(pthread_create(&starters[i].thread, NULL, start_server, &starters[i]), 0);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_eq(pthread_join(starters[i].thread, NULL), 0);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < COUNT; i++) {
        assert_int_eq(starters[i].result, 0);
        assert_mem_eq(&starters[i].keys, &starters[0].keys, sizeof(starters[0].keys));
    }
}
