/* SPDX-License-Identifier: MIT */
/* Settings: defaults, where a value comes from, and what is said of a bad or unknown one. */
#include "base/settings.h"

#include "base/buf.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>

static char warnings[1024];

static void warning_keep(void *user, const char *text)
{
    size_t used = strlen(warnings);

    (void)user;
    snprintf(warnings + used, sizeof(warnings) - used, "%s\n", text);
}

static int load(struct settings *ret, const char *const *env, const char *file, struct error *err)
{
    struct settings_source source = {
        .env = (char *const *)env, .env_file = file, .warn = warning_keep};

    warnings[0] = 0;
    return settings_load(ret, &source, err);
}

static const char *file_make(const char *text)
{
    static char path[200];
    auto_fd int fd = -1;

    snprintf(path, sizeof(path), "%s/env", test_dir());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return path;
}

TEST(defaults_hold_without_anything)
{
    const char *env[] = {"HOME=/nonexistent", NULL};
    auto_settings struct settings s = {0};
    struct error err;

    assert_ok(load(&s, env, NULL, &err), err);
    assert_uint_eq(s.memory_limit, 2048 * MIB);
    assert_int_eq(s.execution_timeout_s, 30);
    assert_int_eq(s.max_sessions, 5);
    assert_true(s.network_enabled);
    assert_false(s.allow_degraded);
    assert_str_eq(s.network_ports, "80,443");
    assert_str_has(s.image_dir, "/images");
    assert_str_eq(warnings, "");
}

TEST(the_environment_wins_over_the_file)
{
    const char *env[] = {"HOME=/nonexistent", "CONTAINER_MAX_SESSIONS=7", NULL};
    auto_settings struct settings s = {0};
    struct error err;
    const char *file = file_make("# a comment\n\nCONTAINER_MAX_SESSIONS=3\n"
                                 "export CONTAINER_PIDS_LIMIT = \"64\" # why\n"
                                 "NETWORK_PORTS='80,8080'\nCONTAINER_TMPFS_SIZE=64m # small\n");

    assert_ok(load(&s, env, file, &err), err);
    assert_int_eq(s.max_sessions, 7);
    assert_int_eq(s.pids_limit, 64);
    assert_str_eq(s.network_ports, "80,8080");
    assert_uint_eq(s.tmpfs_size, 64 * MIB);
}

TEST(an_alias_is_read_when_the_name_is_not_set)
{
    const char *env[] = {"HOME=/nonexistent", "https_proxy=http://p:1", NULL};
    const char *both[] = {"HOME=/nonexistent", "https_proxy=http://p:1", "SANDBOX_PROXY=http://q:2",
                          NULL};
    auto_settings struct settings s = {0}, t = {0};
    struct error err;

    assert_ok(load(&s, env, NULL, &err), err);
    assert_str_eq(s.proxy, "http://p:1");
    assert_ok(load(&t, both, NULL, &err), err);
    assert_str_eq(t.proxy, "http://q:2");
}

TEST(a_bad_value_is_refused_by_name)
{
    static const char *const bad[] = {
        "CONTAINER_MAX_SESSIONS=0",    "CONTAINER_MAX_SESSIONS=x",
        "CONTAINER_MEMORY_LIMIT=lots", "CONTAINER_NETWORK_ENABLED=maybe",
        "CONTAINER_PIDS_LIMIT=1.5",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *env[] = {"HOME=/nonexistent", bad[i], NULL};
        auto_settings struct settings s = {0};
        struct error err;
        char name[64] = "";

        assert_int_eq(load(&s, env, NULL, &err), -ERR_INVALID);
        memcpy(name, bad[i], strcspn(bad[i], "="));
        assert_str_has(err.text, name);
    }
}

TEST(an_unknown_name_of_ours_is_told)
{
    const char *env[] = {"HOME=/nonexistent", "SANDBOX_MEMROY=1g", "PATH=/bin", NULL};
    auto_settings struct settings s = {0};
    struct error err;

    assert_ok(load(&s, env, file_make("SESSION_IDEL=1\nOTHER=2\n"), &err), err);
    assert_str_has(warnings, "SANDBOX_MEMROY");
    assert_str_has(warnings, "SESSION_IDEL");
    assert_null(strstr(warnings, "OTHER"));
    assert_null(strstr(warnings, "PATH"));
}

TEST(a_line_that_is_no_setting_is_refused)
{
    const char *env[] = {"HOME=/nonexistent", NULL};
    auto_settings struct settings s = {0};
    struct error err;

    assert_int_eq(load(&s, env, file_make("CONTAINER_MAX_SESSIONS 7\n"), &err), -ERR_INVALID);
    assert_str_has(err.text, "CONTAINER_MAX_SESSIONS 7");
}

TEST(a_missing_file_matters_only_where_it_was_asked_for)
{
    const char *env[] = {"HOME=/nonexistent", NULL};
    auto_settings struct settings s = {0}, t = {0};
    struct settings_source source = {
        .env = (char *const *)env, .env_file = "/nonexistent/.env", .required = true};
    struct error err;

    assert_ok(load(&s, env, "/nonexistent/.env", &err), err);
    assert_true(settings_load(&t, &source, &err) < 0);
}

TEST(the_example_names_every_setting)
{
    auto_free char *text = NULL;
    size_t len, count;
    const struct setting_entry *table = setting_table(&count);
    FILE *f = open_memstream(&text, &len);

    assert_not_null(f);
    settings_print_example(f);
    fclose(f);
    for (size_t i = 0; i < count; i++) {
        assert_str_has(text, table[i].name);
        assert_true(strlen(table[i].help) > 0);
    }
}

TEST(names_and_defaults_are_those_of_the_program_before)
{
    static const char *const wanted[][2] = {
        {"CONTAINER_MEMORY_LIMIT", "2048m"},
        {"CONTAINER_CPU_QUOTA", "200000"},
        {"CONTAINER_PIDS_LIMIT", "512"},
        {"CONTAINER_TMPFS_SIZE", "200m"},
        {"CONTAINER_ORPHAN_MIN_AGE_SECONDS", "300"},
        {"CONTAINER_EXECUTION_TIMEOUT_SECONDS", "30"},
        {"CONTAINER_MAX_SESSIONS", "5"},
        {"CONTAINER_MAX_SESSIONS_PER_THREAD", "3"},
        {"CONTAINER_EXECUTE_AS_ROOT", "false"},
        {"CONTAINER_NETWORK_ENABLED", "true"},
        {"SESSION_IDLE_TTL_SECONDS", "1800"},
        {"SESSION_MAX_LIFETIME_SECONDS", "7200"},
        {"SESSION_GC_INTERVAL_SECONDS", "60"},
        {"SESSION_MAX_ACTIVE_THREADS", "10"},
        {"MAX_STDOUT_CHARS", "50000"},
        {"MAX_STDERR_CHARS", "120000"},
        {"MAX_RESULT_CHARS", "30000"},
        {"MAX_TRACEBACK_CHARS", "8000"},
    };
    size_t count, found = 0;
    const struct setting_entry *table = setting_table(&count);

    for (size_t i = 0; i < count; i++) {
        for (size_t w = 0; w < ARRAY_LEN(wanted); w++) {
            if (!str_eq(table[i].name, wanted[w][0]))
                continue;
            assert_str_eq(table[i].fallback, wanted[w][1]);
            found++;
        }
    }
    assert_uint_eq(found, ARRAY_LEN(wanted));
}

TEST(every_fallback_is_a_value_that_may_be_given)
{
    size_t count;
    const struct setting_entry *table = setting_table(&count);

    for (size_t i = 0; i < count; i++) {
        char text[200];
        const char *env[] = {"HOME=/nonexistent", text, NULL};
        auto_settings struct settings s = {0};
        struct error err;

        snprintf(text, sizeof(text), "%s=%s", table[i].name, table[i].fallback);
        assert_ok(load(&s, env, NULL, &err), err);
        for (size_t other = 0; other < i; other++)
            assert_false(str_eq(table[i].name, table[other].name));
    }
}

TEST(a_file_is_read_as_it_is_written)
{
    static const char *const cases[][2] = {
        {"NETWORK_ALLOW=a b\r\n", "a b"},
        {"  export  NETWORK_ALLOW = x  \n", "x"},
        {"NETWORK_ALLOW=\"a # b\" # c\n", "a # b"},
        {"NETWORK_ALLOW='$HOME `id`'\n", "$HOME `id`"},
        {"NETWORK_ALLOW=$HOME\n", "$HOME"},
        {"NETWORK_ALLOW=a#b\n", "a#b"},
        {"NETWORK_ALLOW=\"open\n", "\"open"},
        {"NETWORK_ALLOW=first\nNETWORK_ALLOW=last", "last"},
        {"NETWORK_ALLOW=\n", ""},
        {"NETWORK_ALLOW=a=b\n", "a=b"},
        {"#NETWORK_ALLOW=no\n   # nor this\n", ""},
    };
    const char *env[] = {"HOME=/nonexistent", NULL};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_settings struct settings s = {0};
        struct error err;

        assert_ok(load(&s, env, file_make(cases[i][0]), &err), err);
        assert_str_eq(s.network_allow, cases[i][1]);
    }
}

TEST(files_that_are_too_much_are_refused)
{
    const char *env[] = {"HOME=/nonexistent", NULL};
    auto_settings struct settings s = {0}, t = {0};
    auto_buf struct buf text;
    struct error err;

    buf_init(&text, MIB);
    for (int i = 0; i < 600; i++)
        assert_int_eq(buf_printf(&text, "X%d=1\n", i), 0);
    assert_int_eq(load(&s, env, file_make(buf_str(&text)), &err), -ERR_LIMIT);
    buf_clear(&text);
    for (int i = 0; i < 70000; i++)
        assert_int_eq(buf_append_byte(&text, '#'), 0);
    assert_true(load(&t, env, file_make(buf_str(&text)), &err) < 0);
}

TEST(directories_are_absolute_and_images_are_below)
{
    const char *own[] = {"SANDBOX_STATE_DIR=/srv/state", NULL};
    const char *both[] = {"SANDBOX_STATE_DIR=/srv/state", "SANDBOX_IMAGE_DIR=/srv/images", NULL};
    const char *relative[] = {"SANDBOX_STATE_DIR=state", NULL};
    auto_settings struct settings s = {0}, t = {0}, u = {0};
    struct error err;

    assert_ok(load(&s, own, NULL, &err), err);
    assert_str_eq(s.image_dir, "/srv/state/images");
    assert_ok(load(&t, both, NULL, &err), err);
    assert_str_eq(t.image_dir, "/srv/images");
    assert_int_eq(load(&u, relative, NULL, &err), -ERR_INVALID);
}
