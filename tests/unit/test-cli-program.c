/* SPDX-License-Identifier: MIT */
/* Where a program is found, and where it is not looked for. */
#include "cli/program.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

TEST(a_program_is_looked_for_in_absolute_directories_only)
{
    static const struct {
        const char *path, *name, *found;
    } cases[] = {
        {"/nonexistent:/bin:/usr/bin", "sh", "/bin/sh"},
        {"/bin/", "sh", "/bin/sh"},
        {"::bin:.:/bin", "sh", "/bin/sh"},
        {"/bin", "/bin/sh", "/bin/sh"},
        {"", "/bin/sh", "/bin/sh"},
        {"/bin", "no-such-program-here", NULL},
        {"/", "bin/sh", NULL}, /* a path of the working directory, which has no shell */
        {".:bin::", "sh", NULL},
        {"", "sh", NULL},
    };
    char path[PATH_LEN];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error error = {};
        int r;

        assert_int_eq(setenv("PATH", cases[i].path, 1), 0);
        r = program_find(cases[i].name, path, &error);
        assert_int_eq(r, cases[i].found ? 0 : -ERR_NOT_FOUND);
        if (cases[i].found)
            assert_str_eq(path, cases[i].found);
    }
}

TEST(a_path_that_is_too_long_is_no_program)
{
    char name[PATH_LEN + 8], path[PATH_LEN];
    struct error error = {};

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    assert_int_eq(program_find(name, path, &error), -ERR_NOT_FOUND);
    name[0] = '/';
    assert_int_eq(program_find(name, path, &error), -ERR_NOT_FOUND);
}
