/* SPDX-License-Identifier: MIT */
/* Displays become numbered files: names of ours only, and no link is followed. */
#include "cli/display.h"

#include "base/fd.h"
#include "base/macro.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>

static void sink_open(struct display_sink *d, char *path, size_t size)
{
    struct error err;

    snprintf(path, size, "%s/out/deep", test_dir());
    assert_ok(display_sink_open(d, path, &err), err);
}

static char *file_read(const struct display_sink *d, const char *name)
{
    char *text = NULL;
    struct error err;

    assert_ok(fd_read_file(d->dir, name, 1000, &text, NULL, &err), err);
    return text;
}

TEST(each_kind_has_its_suffix_and_binary_ones_are_decoded)
{
    static const char *const cases[][3] = {
        {"{\"type\":\"image/png\",\"data\":\"aGVsbG8=\"}", "display-001.png", "hello"},
        {"{\"type\":\"text/html\",\"data\":\"<b>\"}", "display-002.html", "<b>"},
        {"{\"type\":\"image/svg+xml\",\"data\":\"<svg/>\"}", "display-003.svg", "<svg/>"},
        {"{\"type\":\"application/json\",\"data\":{\"a\":1}}", "display-004.json", "{\"a\":1}"},
        {"{\"type\":\"../../etc/x\",\"data\":\"x\"}", "display-005.bin", "x"},
        {"{\"type\":\"text/plain\",\"data\":\"\"}", "display-006.txt", ""},
    };
    struct display_sink d;
    char path[300];

    sink_open(&d, path, sizeof(path));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_free char *text = NULL;

        display_save(&d, cases[i][0], strlen(cases[i][0]));
        text = file_read(&d, cases[i][1]);
        assert_str_eq(text, cases[i][2]);
    }
    display_sink_done(&d);
}

TEST(what_is_malformed_writes_nothing)
{
    static const char *const bad[] = {
        "no JSON",
        "{\"type\":\"image/png\",\"data\":\"***\"}",
    };
    struct display_sink d;
    char path[300];

    sink_open(&d, path, sizeof(path));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        display_save(&d, bad[i], strlen(bad[i]));
    assert_true(faccessat(d.dir, "display-001.png", F_OK, 0) < 0);
    display_sink_done(&d);
}

TEST(a_link_in_the_way_is_not_followed)
{
    struct display_sink d;
    char path[300], target[300];
    const char *json = "{\"type\":\"text/plain\",\"data\":\"x\"}";

    sink_open(&d, path, sizeof(path));
    snprintf(target, sizeof(target), "%s/precious", test_dir());
    assert_int_eq(symlinkat(target, d.dir, "display-001.txt"), 0);
    display_save(&d, json, strlen(json));
    assert_true(access(target, F_OK) < 0);
    display_sink_done(&d);
}

TEST(without_a_directory_nothing_is_written)
{
    struct display_sink d;
    struct error err;

    assert_ok(display_sink_open(&d, NULL, &err), err);
    assert_int_eq(d.dir, -1);
    assert_uint_eq(d.count, 0);
    display_sink_done(&d);
    assert_true(display_sink_open(&d, "/dev/null/x", &err) < 0);
    display_sink_done(&d);
}
