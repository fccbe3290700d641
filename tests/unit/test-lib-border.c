/* SPDX-License-Identifier: MIT */
/* The public library checks what it is given before it goes inwards. */
#include <sandbox_agent.h>

#include "tests/lib/test.h"

#include <stdlib.h>

#define ID "0123456789abcdef0123456789abcdef"

/* Never looked into: every call below misses something else. */
static struct sa *const sa = (struct sa *)1;
static struct sa_run *const run = (struct sa_run *)1;

static int take_nothing(void *user, const void *data, size_t len)
{
    return 0;
}

TEST(what_is_missing_is_refused)
{
    struct sa_import_options import = {.size = sizeof(import)};
    const struct sa_event *event;
    struct sa_run *opened;
    struct sa_error err;
    char id[SA_ID_SIZE], *json;
    size_t len;
    void *data;

    assert_int_eq(sa_open(NULL, NULL, &err), -SA_INVALID);
    assert_str_has(err.text, "missing");
    assert_int_eq(sa_session_create(NULL, NULL, id, &err), -SA_INVALID);
    assert_int_eq(sa_session_create(sa, NULL, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_session_stop(NULL, ID, &err), -SA_INVALID);
    assert_int_eq(sa_session_stop(sa, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_session_interrupt(sa, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_session_list(NULL, &json, &err), -SA_INVALID);
    assert_int_eq(sa_session_list(sa, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_run_open(NULL, ID, NULL, &opened, &err), -SA_INVALID);
    assert_int_eq(sa_run_open(sa, NULL, NULL, &opened, &err), -SA_INVALID);
    assert_int_eq(sa_run_open(sa, ID, NULL, &opened, &err), -SA_INVALID);
    assert_int_eq(sa_run_open(sa, ID, NULL, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_run_adopted(sa, NULL, &opened, &err), -SA_INVALID);
    assert_int_eq(sa_run_next(NULL, 0, &event, &err), -SA_INVALID);
    assert_int_eq(sa_run_next(run, 0, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_run_result(NULL, 0, &json, &err), -SA_INVALID);
    assert_int_eq(sa_run_result(run, 0, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_run_input(NULL, "x", &err), -SA_INVALID);
    assert_int_eq(sa_execute(sa, ID, NULL, 0, &json, &err), -SA_INVALID);
    assert_int_eq(sa_execute(sa, ID, "1", 0, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_terminal(NULL, ID, "ls", 0, &json, &err), -SA_INVALID);
    assert_int_eq(sa_file_read(sa, ID, NULL, &data, &len, &err), -SA_INVALID);
    assert_int_eq(sa_file_read(sa, ID, "x", NULL, &len, &err), -SA_INVALID);
    assert_int_eq(sa_file_write(sa, ID, "x", NULL, 5, &err), -SA_INVALID);
    assert_int_eq(sa_file_list(sa, NULL, "x", &json, &err), -SA_INVALID);
    assert_int_eq(sa_file_remove(sa, ID, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_import(sa, ID, NULL, &json, &err), -SA_INVALID);
    assert_int_eq(sa_import(sa, ID, &import, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_import(sa, ID, &import, &json, &err), -SA_INVALID); /* without a source */
    import.kind = 7;
    assert_int_eq(sa_import(sa, ID, &import, &json, &err), -SA_INVALID);
    assert_str_has(err.text, "7");
    assert_int_eq(sa_export(sa, ID, NULL, &json, &err), -SA_INVALID);
    assert_int_eq(sa_export(NULL, ID, "x", &json, &err), -SA_INVALID);
    assert_int_eq(sa_download(sa, ID, "x", 0, NULL, NULL, &err), -SA_INVALID);
    assert_int_eq(sa_download(sa, ID, "x", 9, take_nothing, NULL, &err), -SA_INVALID);
    /* Nobody has to want the reason. */
    assert_int_eq(sa_session_stop(NULL, NULL, NULL), -SA_INVALID);
}

TEST(what_may_be_missing_may)
{
    sa_close(NULL);
    sa_free(NULL);
    sa_run_close(NULL);
    sa_run_cancel(NULL);
}

TEST(arguments_are_checked_before_anything_is_done)
{
    const struct sa_dependency unnamed = {NULL, "1"};
    const struct sa_session_options bad[] = {
        {.size = sizeof(bad[0]), .network = "bridge"},
        {.size = sizeof(bad[0]), .dependency_count = 1},
        {.size = sizeof(bad[0]), .dependencies = &unnamed, .dependency_count = 1},
    };
    const struct sa_run_options kind = {.size = sizeof(kind), .kind = 7, .text = "x"};
    struct sa_error err;
    struct sa_run *opened;
    char id[SA_ID_SIZE];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_eq(sa_session_create(sa, &bad[i], id, &err), -SA_INVALID);
    assert_int_eq(sa_run_open(sa, ID, &kind, &opened, &err), -SA_INVALID);
}

TEST(a_setting_that_is_wrong_is_named)
{
    struct sa_options options = {.size = sizeof(options), .env_file = "/nonexistent/env"};
    struct sa_error err;
    struct sa *opened = NULL;

    assert_true(sa_open(&options, &opened, &err) < 0);
    assert_str_has(err.text, "/nonexistent/env");
    setenv("SANDBOX_STATE_DIR", test_dir(), 1);
    options = (struct sa_options){.size = sizeof(options), .instance = "../up"};
    assert_true(sa_open(&options, &opened, &err) < 0);
    unsetenv("SANDBOX_STATE_DIR");
    assert_null(opened);
}

TEST(codes_have_names)
{
    assert_str_eq(sa_error_name(SA_LIMIT), "LIMIT_REACHED");
    assert_str_eq(sa_error_name(12345), "INTERNAL");
    assert_str_eq(sa_version(), PACKAGE_VERSION);
}
