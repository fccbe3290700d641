/* SPDX-License-Identifier: MIT */
/* What a line of the log may hold: stderr is a pipe for the time of one line. */
#include "base/log.h"

#include "base/fd.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>

static void line_of(const char *text, char *ret, size_t size)
{
    auto_fd int old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    int ends[2];
    ssize_t n;

    if (test_is_torture())
        test_skip("stderr is moved, which may not fail half way");
    assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    log_info("%s", text);
    assert_int_eq(dup2(old, STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    n = read(ends[0], ret, size - 1);
    close(ends[0]);
    ret[n > 0 ? n : 0] = 0;
}

TEST(lines_hold_text_only)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"plain", "plain"},
        {"caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"},
        {"a\r\nb\x1b[31m\x7f", "a\\u000d\\u000ab\\u001b[31m\\u007f"},
        {"\x96 \xc0\xaf \xed\xa0\x80", "\\u0096 \\u00c0\\u00af \\u00ed\\u00a0\\u0080"},
        {"\xc2\x85 \xc2\xa0", "\\u00c2\\u0085 \xc2\xa0"},
        {"\xe2\x80\xa8 \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\x93",
         "\\u00e2\\u0080\\u00a8 \\u00e2\\u0080\\u00ae \\u00e2\\u0081\\u00a6 \xe2\x80\x93"},
        {"cut \xe4\xb8", "cut \\u00e4\\u00b8"},
    };
    char line[512], want[512];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(want, sizeof(want), "sandbox-agent: info: %s\n", rows[i].shown);
        line_of(rows[i].text, line, sizeof(line));
        assert_str_eq(line, want);
    }
}

TEST(long_texts_are_cut)
{
    char text[8192], line[8192];

    memset(text, '\x96', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    line_of(text, line, sizeof(line));
    assert_true(strlen(line) < 2200);
    assert_int_eq(line[strlen(line) - 1], '\n');
}
