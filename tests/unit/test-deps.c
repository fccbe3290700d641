/* SPDX-License-Identifier: MIT */
/* Names and versions of packages: what each runtime takes, and that nothing else gets near an
 * installer. */
#include "session/deps.h"

#include "base/str.h"
#include "tests/lib/test.h"

static int check(const char *runtime, const char *name, const char *version, struct error *reterr)
{
    return deps_check(runtime, &(struct session_dependency){name, version}, 1, reterr);
}

TEST(packages_that_people_want_are_taken)
{
    static const char *const good[][3] = {
        {"python", "six", NULL},
        {"python", "six", ""},
        {"python", "pandas", "2.2.3"},
        {"python", "ruamel.yaml", "0.18.*"},
        {"python", "zope.interface", "7.0.post1"},
        {"python", "typing_extensions", "4.0.0rc1"},
        {"python", "torch", "2.3.0+cpu"},
        {"python", "x", "1!2.0"},
        {"node", "lodash", "4.17.21"},
        {"node", "lodash", "^4.17.0"},
        {"node", "lodash", "~4"},
        {"node", "lodash", "latest"},
        {"node", "@types/node", "20.1.0"},
        {"node", "socket.io", "4.x"},
        {"r", "data.table", "1.15.4"},
        {"r", "readr", NULL},
        {"r", "Matrix", "1.6-5"},
    };

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct error err;

        assert_ok(check(good[i][0], good[i][1], good[i][2], &err), err);
    }
}

TEST(whatever_is_no_name_is_refused_by_name)
{
    static const char *const bad[][2] = {
        {"python", ""},
        {"python", "six; touch /tmp/pwn"},
        {"python", "--index-url=http://evil"},
        {"python", "-e"},
        {"python", "../../etc"},
        {"python", "./local"},
        {"python", "/abs"},
        {"python", "x[extra]"},
        {"python", "x @ http://evil/x.zip"},
        {"python", "git+https://evil/x"},
        {"python", " x"},
        {"python", "x.whl/"},
        {"python", "@scope/name"},
        {"python", "pa\xc3\xa4kchen"},
        {"python", "x."},
        {"python", "$(id)"},
        {"node", "@/name"},
        {"node", "@scope"},
        {"node", "@scope/"},
        {"node", "@scope/a/b"},
        {"node", "a/b"},
        {"node", "file:x"},
        {"node", "@-x/y"},
        {"r", "@a/b"},
        {"r", "x,y"},
        {"r", "x'); system('id"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;

        assert_int_eq(check(bad[i][0], bad[i][1], NULL, &err), -ERR_INVALID);
        assert_str_has(err.text, bad[i][1]);
    }
}

TEST(a_line_break_is_no_part_of_a_name)
{
    struct error err;

    assert_int_eq(check("python", "x\n", NULL, &err), -ERR_INVALID);
    assert_str_has(err.text, "'x?'");
}

TEST(whatever_is_no_version_is_refused)
{
    static const char *const bad[][2] = {
        {"python", "1.0; id"},
        {"python", ">=1.0"},
        {"python", "1.0 --pre"},
        {"python", "http://evil"},
        {"python", "-1"},
        {"python", "~1"},
        {"python", "^1.0"},
        {"python", "../x"},
        {"python", "1\n2"},
        {"node", "file:../x"},
        {"node", "git+ssh://x"},
        {"node", "user/repo"},
        {"node", "~"},
        {"node", "^^1"},
        {"node", "1 || 2"},
        {"r", "1.0+x"},
        {"r", ">1"},
        {"r", "*"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;

        assert_int_eq(check(bad[i][0], "x", bad[i][1], &err), -ERR_INVALID);
        assert_str_has(err.text, "no version of package 'x'");
    }
}

TEST(lengths_and_counts_have_limits)
{
    static struct session_dependency many[101];
    struct error err;
    char name[300];

    memset(name, 'n', sizeof(name));
    name[214] = 0;
    assert_ok(check("python", name, NULL, &err), err);
    name[214] = 'n';
    name[215] = 0;
    assert_int_eq(check("python", name, NULL, &err), -ERR_INVALID);
    name[64] = 0;
    assert_ok(check("node", "x", name, &err), err);
    name[64] = 'n';
    name[65] = 0;
    assert_int_eq(check("node", "x", name, &err), -ERR_INVALID);
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i].name = "x";
    assert_ok(deps_check("r", many, 100, &err), err);
    assert_int_eq(deps_check("r", many, 101, &err), -ERR_INVALID);
    assert_ok(deps_check("ruby", NULL, 0, &err), err);
    assert_int_eq(deps_check("ruby", many, 1, &err), -ERR_INVALID);
    assert_int_eq(deps_check("ruby", many, 1, NULL), -ERR_INVALID);
}
