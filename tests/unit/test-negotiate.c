/* SPDX-License-Identifier: MIT */
/* What clients say they would rather have, as browsers and programs write it, and malformed. */
#include "tests/lib/test.h"
#include "wire/negotiate.h"

#include <stdlib.h>

static void type_is(const char *header, const char *type, int quality, int match)
{
    struct preference p = accept_type(header, type);

    test_note("%s of %s", type, header);
    assert_int_eq(p.quality, quality);
    assert_int_eq(p.match, match);
}

TEST(a_browser_wants_html)
{
    static const char header[] =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

    type_is(header, "text/html", 1000, 3);
    type_is(header, "application/json", 800, 1);
}

TEST(programs_take_anything_or_json)
{
    type_is("*/*", "text/html", 1000, 1);
    type_is("application/json, text/plain, */*", "text/html", 1000, 1);
    type_is("application/json, text/plain, */*", "application/json", 1000, 3);
    type_is("", "text/html", 0, 0);
    type_is("application/json", "text/html", 0, 0);
}

TEST(the_closest_range_counts)
{
    type_is("text/*;q=0.3, text/html;q=0.7, */*;q=0.5", "text/html", 700, 3);
    type_is("text/*;q=0.3, */*;q=0.5", "text/html", 300, 2);
    type_is("*/*, text/html;q=0", "text/html", 0, 3);
    type_is("text/html;q=0.2, text/html;level=1", "text/html", 1000, 3);
}

TEST(names_have_any_case_and_white_space)
{
    type_is("\tTEXT/HTML ; Q=0.25 ,", "text/html", 250, 3);
    type_is("text/html;charset=\"a,b;q=0\";q=0.5", "text/html", 500, 3);
    type_is("text/html;q=1.000", "text/html", 1000, 3);
    type_is("text/html;q=1.", "text/html", 1000, 3);
    type_is("text/html;q=0.001", "text/html", 1, 3);
}

TEST(what_cannot_be_read_is_passed_over)
{
    static const char *const bad[] = {
        "text/html;q=2",
        "text/html;q=-1",
        "text/html;q=0.1234",
        "text/html;q=1.1",
        "text/html;q=",
        "text/html;q=.5",
        "text/html;q=a",
        "text/html;q=\"1\"",
        "text/htmlx",
        "text",
        "text/",
        "/html",
        "\"text/html\"",
        "text/html x",
        "*",
        "*/html",
        ";;;,,,;q=1,\"\\",
        "text/html\"",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        type_is(bad[i], "text/html", 0, 0);
    type_is("text/html;q=9, text/*;q=0.5", "text/html", 500, 2);
}

TEST(codings)
{
    assert_int_eq(accept_coding("gzip, deflate, br", "gzip").quality, 1000);
    assert_int_eq(accept_coding("br;q=1, gzip;q=0", "gzip").quality, 0);
    assert_int_eq(accept_coding("*", "gzip").quality, 1000);
    assert_int_eq(accept_coding("*;q=0.5, gzip;q=0", "gzip").quality, 0);
    assert_int_eq(accept_coding("identity", "gzip").quality, 0);
    assert_int_eq(accept_coding("", "gzip").quality, 0);
    assert_int_eq(accept_coding("xgzip, gzipx", "gzip").quality, 0);
}

TEST(entity_tags)
{
    assert_true(etag_is_known("\"a\"", "\"a\""));
    assert_true(etag_is_known("\"x,y\", W/\"a\"", "\"a\""));
    assert_true(etag_is_known(" * ", "\"a\""));
    assert_false(etag_is_known("\"A\"", "\"a\""));
    assert_false(etag_is_known("a", "\"a\""));
    assert_false(etag_is_known("\"b\", \"\"", "\"a\""));
    assert_false(etag_is_known("\"x, \"a\"", "\"a\""));
    assert_false(etag_is_known("w/\"a\"", "\"a\""));
    assert_false(etag_is_known("", "\"a\""));
}
