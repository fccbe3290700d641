/* SPDX-License-Identifier: MIT */
/* The environment inside a sandbox: all of it is written here, the caller's own wins, nothing of
 * the host's comes through. */
#include "session/session-internal.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <stdio.h>

static const struct settings plain = {
    .pip_index = "", .npm_registry = "", .cran = "", .cpu_quota = 200000};

static void fill(const struct settings *s, const struct session_options *o, bool has_ca,
                 struct buf *ret)
{
    struct error err;

    buf_init(ret, MIB);
    assert_ok(environment_fields(s, o, has_ca, ret, &err), err);
}

/* The value that getenv() would find: the first one. NULL when there is none. */
static const char *value(const struct buf *b, const char *name)
{
    static char text[4096];
    struct fields fields = {.data = buf_str(b), .len = b->len};
    struct field f;
    size_t pos = 0, len = strlen(name);

    while (fields_next(&fields, &pos, &f, NULL) > 0) {
        if (field_is(&f, "env") && f.len > len && memcmp(f.value, name, len) == 0 &&
            f.value[len] == '=') {
            memcpy(text, f.value + len + 1, f.len - len - 1);
            text[f.len - len - 1] = 0;
            return text;
        }
    }
    return NULL;
}

static size_t count(const struct buf *b, const char *start)
{
    struct fields fields = {.data = buf_str(b), .len = b->len};
    struct field f;
    size_t pos = 0, n = 0;

    while (fields_next(&fields, &pos, &f, NULL) > 0)
        n += f.len >= strlen(start) && memcmp(f.value, start, strlen(start)) == 0;
    return n;
}

TEST(what_every_process_finds)
{
    struct session_options o = {};
    auto_buf struct buf b;

    setenv("SECRET_OF_THE_HOST", "x", 1);
    fill(&plain, &o, false, &b);
    assert_str_eq(value(&b, "HOME"), "/home/sandbox");
    assert_str_eq(value(&b, "LANG"), "C.UTF-8");
    assert_str_eq(value(&b, "PIP_BREAK_SYSTEM_PACKAGES"), "1");
    assert_str_eq(value(&b, "OPENBLAS_NUM_THREADS"), "2");
    assert_str_has(value(&b, "PATH"), "/usr/bin");
    assert_null(value(&b, "SECRET_OF_THE_HOST"));
    assert_null(value(&b, "SSL_CERT_FILE"));
    assert_null(value(&b, "PIP_INDEX_URL"));
}

TEST(a_ca_is_named_to_every_tool)
{
    static const char *const names[] = {"PIP_CERT",           "SSL_CERT_FILE",
                                        "GIT_SSL_CAINFO",     "NODE_EXTRA_CA_CERTS",
                                        "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"};
    struct session_options o = {};
    auto_buf struct buf b;

    fill(&plain, &o, true, &b);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_str_eq(value(&b, names[i]), "/etc/sandbox-agent/ca.crt");
}

TEST(indexes_are_given_to_their_tools)
{
    struct settings s = plain;
    struct session_options o = {};
    auto_buf struct buf b;

    s.pip_index = "http://index.test/pip";
    s.npm_registry = "http://index.test/npm";
    s.cran = "http://index.test/cran";
    fill(&s, &o, false, &b);
    assert_str_eq(value(&b, "PIP_INDEX_URL"), "http://index.test/pip");
    assert_str_eq(value(&b, "NPM_CONFIG_REGISTRY"), "http://index.test/npm");
    assert_str_eq(value(&b, "SANDBOX_CRAN"), "http://index.test/cran");
}

TEST(a_plain_http_index_is_trusted_because_it_is_set)
{
    static const struct {
        const char *url, *trusted;
    } cases[] = {{"http://index.test/pip", "index.test"},
                 {"http://index.test:8080", "index.test:8080"},
                 {"http://user:p@ss@index.test:8080/pip", "index.test:8080"},
                 {"https://index.test/pip", NULL}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct settings s = plain;
        struct session_options o = {};
        auto_buf struct buf b;

        s.pip_index = cases[i].url;
        fill(&s, &o, false, &b);
        if (cases[i].trusted)
            assert_str_eq(value(&b, "PIP_TRUSTED_HOST"), cases[i].trusted);
        else
            assert_null(value(&b, "PIP_TRUSTED_HOST"));
    }
}

TEST(threads_follow_the_quota)
{
    static const struct {
        int64_t quota;
        const char *threads;
    } cases[] = {{50000, "1"}, {100000, "1"}, {150000, "2"}, {800000, "8"}, {0, "2"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct session_options o = {.cpu_quota = cases[i].quota};
        auto_buf struct buf b;

        fill(&plain, &o, false, &b);
        assert_str_eq(value(&b, "OMP_NUM_THREADS"), cases[i].threads);
    }
}

TEST(the_callers_own_wins_and_arrives_byte_for_byte)
{
    static const char *const env[] = {
        "HOME=/workspace", "QUOTES=a'b\"$(id)\n\xff", "EMPTY=", "_x1=y", "HOME=/last", NULL};
    struct session_options o = {.env = env};
    auto_buf struct buf b;

    fill(&plain, &o, false, &b);
    assert_str_eq(value(&b, "HOME"), "/last");
    assert_uint_eq(count(&b, "HOME="), 1);
    assert_str_eq(value(&b, "QUOTES"), "a'b\"$(id)\n\xff");
    assert_uint_eq(count(&b, "EMPTY="), 1);
    assert_str_eq(value(&b, "_x1"), "y");
}

TEST(what_is_no_variable_is_refused)
{
    static const char *const bad[] = {"", "=x", "noequals", "1x=y", "a b=c", "a-b=c", "a\n=b"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *env[] = {"fine=1", bad[i], NULL};
        struct session_options o = {.env = env};
        auto_buf struct buf b;
        struct error err;

        buf_init(&b, MIB);
        assert_int_eq(environment_fields(&plain, &o, false, &b, &err), -ERR_INVALID);
    }
}

TEST(too_much_is_refused)
{
    static char names[1001][16];
    auto_free char *large = malloc(300 * 1024);
    const char *one[] = {large, NULL};
    auto_free const char **many = calloc(1002, sizeof(*many));
    struct session_options o = {.env = one};
    auto_buf struct buf b;
    struct error err;

    assert_not_null(large);
    assert_not_null(many);
    memset(large, 'v', 300 * 1024 - 1);
    large[300 * 1024 - 1] = 0;
    large[1] = '=';
    buf_init(&b, MIB);
    assert_int_eq(environment_fields(&plain, &o, false, &b, &err), -ERR_LIMIT);
    for (size_t i = 0; i < 1001; i++) {
        snprintf(names[i], sizeof(names[i]), "v%zu=1", i);
        many[i] = names[i];
    }
    o.env = many;
    buf_clear(&b);
    assert_int_eq(environment_fields(&plain, &o, false, &b, &err), -ERR_LIMIT);
}
