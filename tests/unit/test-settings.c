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
