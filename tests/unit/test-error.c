/* SPDX-License-Identifier: MIT */
/* Errors: the code that is returned, the text that people read, and the table for the doors. */
#include "base/error.h"

#include "tests/lib/test.h"

#include <errno.h>

TEST(set_returns_the_negative_code)
{
    struct error err;

    assert_int_eq(error_set(&err, ERR_LIMIT, "too many %s", "x"), -ERR_LIMIT);
    assert_int_eq(err.code, ERR_LIMIT);
    assert_int_eq(err.sys, 0);
    assert_str_eq(err.text, "too many x");
}

TEST(sys_tells_the_reason)
{
    struct error err;

    assert_int_eq(error_sys(&err, ENOENT, "cannot open '%s'", "f"), -ERR_SYSTEM);
    assert_int_eq(err.sys, ENOENT);
    assert_str_eq(err.text, "cannot open 'f': No such file or directory");
}

TEST(full_disks_and_memory_have_their_own_code)
{
    assert_int_eq(error_sys(NULL, ENOSPC, "x"), -ERR_DISK);
    assert_int_eq(error_sys(NULL, EDQUOT, "x"), -ERR_DISK);
    assert_int_eq(error_sys(NULL, ENOMEM, "x"), -ERR_NO_MEMORY);
}

TEST(wrap_puts_the_context_first)
{
    struct error err;

    error_set(&err, ERR_DENIED, "no");
    assert_int_eq(error_wrap(&err, "run %d", 3), -ERR_DENIED);
    assert_str_eq(err.text, "run 3: no");
    assert_true(error_wrap(NULL, "x") < 0);
}

TEST(a_long_text_is_cut)
{
    struct error err;
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    error_set(&err, ERR_INVALID, "%s", text);
    assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
    assert_int_eq(error_wrap(&err, "%s", text), -ERR_INVALID);
    assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
    error_sys(&err, EIO, "%s", text);
    assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
}

TEST(the_table_knows_every_code)
{
    for (enum error_code code = ERR_OK; code < ERR_CODE_COUNT; code++) {
        const struct error_entry *entry = error_entry(code);

        assert_not_null(entry->name);
        assert_not_null(entry->python_class);
        assert_true(entry->http_status >= 200 && entry->http_status < 600);
        assert_true(code == ERR_OK || entry->exit_status != 0);
    }
    assert_ptr_eq(error_entry(9999), error_entry(ERR_INTERNAL));
}

TEST(a_text_is_one_line_of_utf8_whatever_it_quotes)
{
    static const char *const cases[][2] = {
        {"caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82", "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82"},
        {"two\nlines\t\x1b[31m\x7f", "two?lines??[31m?"},
        {"\xff\xfe \xc0\xaf \xed\xa0\x80", "?? ?? ???"},
        {"\xe4\xb8", "??"},
        {"\xf4\x90\x80\x80", "????"},
    };
    struct error err;
    char text[1000];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        error_set(&err, ERR_INVALID, "%s", cases[i][0]);
        assert_str_eq(err.text, cases[i][1]);
    }
    for (size_t i = 0; i + 2 < sizeof(text); i += 3)
        memcpy(text + i, "\xe4\xb8\xad", 3);
    text[sizeof(text) - 1] = 0;
    error_sys(&err, EIO, "x%s", text);
    assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
    assert_mem_eq(err.text + sizeof(err.text) - 3, "??", 3);
}
