/* SPDX-License-Identifier: MIT */
/*
 * multipart/form-data: what clients send and what nobody should (FIL-20), each also a byte at a
 * time, with the same result.
 */
#include "base/buf.h"
#include "base/str.h"
#include "tests/lib/test.h"
#include "wire/multipart.h"

#include <stdio.h>
#include <stdlib.h>

#define TYPE "multipart/form-data; boundary=AaB03x"

/* Parts as text: "name|filename|type=data;". */
static int on_begin(void *user, const struct multipart_part *part, struct error *reterr)
{
    return buf_printf(user, "%s|%s|%s=", part->name, part->filename, part->content_type) < 0
               ? error_no_memory(reterr)
               : 0;
}

static int on_data(void *user, const char *data, size_t len, struct error *reterr)
{
    if (len == 0)
        return error_set(reterr, ERR_INTERNAL, "an empty piece");
    return buf_append(user, data, len) < 0 ? error_no_memory(reterr) : 0;
}

static int on_end(void *user, struct error *reterr)
{
    return buf_append_byte(user, ';') < 0 ? error_no_memory(reterr) : 0;
}

/* The whole input in pieces of `step` bytes. */
static int parse(const char *type, const char *data, size_t len, size_t step, struct buf *ret,
                 struct error *reterr)
{
    struct multipart_sink sink = {on_begin, on_data, on_end, ret};
    auto_multipart struct multipart *m = NULL;
    int r = multipart_new(type, &sink, &m, reterr);

    for (size_t i = 0; r == 0 && i < len; i += step)
        r = multipart_feed(m, data + i, MIN(step, len - i), reterr);
    return r == 0 ? multipart_finish(m, reterr) : r;
}

#define PART(disposition, rest) \
    "--AaB03x\r\nContent-Disposition: form-data; " disposition "\r\n" rest
#define CLOSE "\r\n--AaB03x--\r\n"
#define FILE_(params) PART("name=\"f\"; " params, "\r\nx" CLOSE)

static const struct {
    const char *body, *parts; /* NULL: malformed */
} rows[] = {
    {PART("name=\"a\"", "\r\n1") CLOSE, "a||=1;"},
    {PART("name=\"a\"", "\r\n1\r\n") PART("name=\"b\"", "\r\n22") CLOSE, "a||=1;b||=22;"},
    {PART("name=\"a\"", "\r\n") CLOSE, "a||=;"},
    {PART("name=a; filename=x.txt", "Content-Type: text/plain; charset=utf-8\r\n\r\nhi") CLOSE,
     "a|x.txt|text/plain; charset=utf-8=hi;"},
    {PART("name=\"a\"", "X-Other: \"; name=b\r\n\r\n1") CLOSE, "a||=1;"},
    {PART("name=\"a\"", "content-transfer-encoding: BINARY\r\n\r\n1") CLOSE, "a||=1;"},
    {"--AaB03x\r\ncontent-disposition:form-data;name=\"a\" ; x=y;\r\n\r\n1" CLOSE, "a||=1;"},
    {"\r\n" PART("name=\"a\"", "\r\n1") CLOSE, "a||=1;"},
    {PART("name=\"a\"", "\r\n1") "\r\n--AaB03x--", "a||=1;"},
    {PART("name=\"a\"", "\r\n1") CLOSE "anything\r\n--AaB03x\r\n", "a||=1;"},
    {"--AaB03x--\r\n", ""},
    {"--AaB03x \t\r\nContent-Disposition: form-data; name=a\r\n\r\n1" CLOSE, "a||=1;"},
    /* Data that looks like what ends it. */
    {PART("name=\"a\"", "\r\n--AaB03x") CLOSE, "a||=--AaB03x;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03y") CLOSE, "a||=1\r\n--AaB03y;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03xy") CLOSE, "a||=1\r\n--AaB03xy;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x-") CLOSE, "a||=1\r\n--AaB03x-;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x\r") CLOSE, "a||=1\r\n--AaB03x\r;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x \n") CLOSE, "a||=1\r\n--AaB03x \n;"},
    {PART("name=\"a\"", "\r\n1\r\r\r\n\r\n-\r\n--\r\n--AaB03") CLOSE,
     "a||=1\r\r\r\n\r\n-\r\n--\r\n--AaB03;"},
    {PART("name=\"a\"", "\r\n1\n--AaB03x--\n--AaB03x\n") CLOSE, "a||=1\n--AaB03x--\n--AaB03x\n;"},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x                                \r\n2") CLOSE,
     "a||=1\r\n--AaB03x                                \r\n2;"},
    /* File names as they came: what they mean is not known here. */
    {FILE_("filename=\"../../x\""), "f|../../x|=x;"},
    {FILE_("filename=\"/etc/passwd\""), "f|/etc/passwd|=x;"},
    {FILE_("filename=\"C:\\dir\\x.txt\""), "f|C:\\dir\\x.txt|=x;"},
    {FILE_("filename=\"a\\\"b\\\\c\""), "f|a\"b\\c|=x;"},
    {FILE_("filename=\"a%22b%0D%0A%20\""), "f|a\"b%0D%0A%20|=x;"},
    {FILE_("filename=\"a;b=c\""), "f|a;b=c|=x;"},
    {FILE_("filename=\"\""), "f||=x;"},
    {FILE_("filename=\"\xc3\xa4\""), "f|\xc3\xa4|=x;"},
    {FILE_("filename*=UTF-8''%e2%82%ac%20rates"), "f|\xe2\x82\xac rates|=x;"},
    {FILE_("filename*=utf-8'en'..%2F..%2Fx"), "f|../../x|=x;"},
    {FILE_("filename=\"plain\"; filename*=UTF-8''better"), "f|better|=x;"},
    {FILE_("filename*=UTF-8''better; filename=\"plain\""), "f|better|=x;"},
    {FILE_("filename=\"a\"; filename=\"b\""), NULL},
    {FILE_("filename=a; FILENAME=b"), NULL},
    {FILE_("filename*=UTF-8''a; filename*=UTF-8''b"), NULL},
    {FILE_("name=\"g\""), NULL},
    {FILE_("filename*=ISO-8859-1''%e4"), NULL},
    {FILE_("filename*=UTF-8''%ff"), NULL},
    {FILE_("filename*=UTF-8''%0a"), NULL},
    {FILE_("filename*=UTF-8''%00"), NULL},
    {FILE_("filename*=UTF-8''%4"), NULL},
    {FILE_("filename*=a"), NULL},
    {FILE_("filename=\"\xff\""), NULL},
    {FILE_("filename=\"a"), NULL},
    {FILE_("filename=\"a\" b"), NULL},
    {FILE_("filename=a b"), NULL},
    {FILE_("filename="), NULL},
    {FILE_("filename"), NULL},
    /* Parts and lines that are none. */
    {PART("filename=\"a\"", "\r\nx") CLOSE, NULL},
    {PART("name=\"\"", "\r\nx") CLOSE, NULL},
    {"--AaB03x\r\n\r\nx" CLOSE, NULL},
    {"--AaB03x\r\nContent-Type: text/plain\r\n\r\nx" CLOSE, NULL},
    {"--AaB03x\r\nContent-Disposition: attachment; name=a\r\n\r\nx" CLOSE, NULL},
    {PART("name=a", "Content-Disposition: form-data; name=a\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "Content-Type: a/b\r\nContent-Type: a/b\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "Content-Transfer-Encoding: base64\r\n\r\neA==") CLOSE, NULL},
    {PART("name=a", "X: a\r\n b\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "X : a\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "X\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "X: \x01\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "X: a\rb\r\n\r\nx") CLOSE, NULL},
    {PART("name=a", "\nx") CLOSE, NULL},
    {"--AaB03x\nContent-Disposition: form-data; name=a\n\n1\n--AaB03x--\n", NULL},
    {"--AaB03x\r\nContent-Disposition: form-data; name=a\n\r\n1" CLOSE, NULL},
    {"", NULL},
    {"\r\n\r\n" PART("name=\"a\"", "\r\n1") CLOSE, NULL},
    {"preamble\r\n" PART("name=\"a\"", "\r\n1") CLOSE, NULL},
    {"--AaB03y\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--AaB03y--\r\n", NULL},
    {"--AaB03xy\r\nContent-Disposition: form-data; name=a\r\n\r\n1" CLOSE, NULL},
    {PART("name=\"a\"", "\r\n1"), NULL},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x"), NULL},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x-"), NULL},
    {PART("name=\"a\"", "\r\n1\r\n--AaB03x\r\n"), NULL},
    {PART("name=\"a\"", "X: y"), NULL},
};

TEST(forms_are_read_in_any_pieces)
{
    static const size_t steps[] = {SIZE_MAX / 2, 1, 2, 3, 7, 19};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
            auto_buf struct buf parts = {.max = 1 << 16};
            struct error err = {0};
            int r = parse(TYPE, rows[i].body, strlen(rows[i].body), steps[k], &parts, &err);

            if (test_is_torture() && r == -ERR_NO_MEMORY)
                continue;
            if (r != (rows[i].parts ? 0 : -ERR_INVALID) ||
                (rows[i].parts && !str_eq(buf_str(&parts), rows[i].parts)))
                test_fail(__FILE__, __LINE__, "by %zu: '%s' gives %d (%s) and '%s'", steps[k],
                          rows[i].body, r, err.text, buf_str(&parts));
        }
    }
}

static const struct {
    const char *type;
    bool good;
} type_rows[] = {
    {"multipart/form-data; boundary=AaB03x", true},
    {"Multipart/Form-Data;boundary=\"AaB03x\"; charset=utf-8", true},
    {"multipart/form-data; charset=utf-8; BOUNDARY=AaB03x", true},
    {"multipart/form-data", false},
    {"multipart/form-data; boundary=", false},
    {"multipart/form-data; boundary=\"\"", false},
    {"multipart/form-data; boundary=\"AaB03x ", false},
    {"multipart/form-data; boundary=\"AaB03x \"", false},
    {"multipart/form-data; boundary=\"AaB\\03x\r\"", false},
    {"multipart/form-data; boundary=\"AaB03x{}\"", false},
    {"multipart/form-data; boundary=AaB03x; boundary=AaB03x", false},
    {"multipart/form-data, boundary=AaB03x", false},
    {"multipart/form-datax; boundary=AaB03x", false},
    {"multipart/mixed; boundary=AaB03x", false},
    {"application/x-www-form-urlencoded", false},
    {"multipart/form-data; boundary="
     "1234567890123456789012345678901234567890123456789012345678901234567890x",
     false},
    {"", false},
};

TEST(a_type_has_one_legal_boundary)
{
    for (size_t i = 0; i < ARRAY_LEN(type_rows); i++) {
        auto_buf struct buf parts = {.max = 1 << 16};
        struct error err = {0};
        int r = parse(type_rows[i].type, rows[0].body, strlen(rows[0].body), 100, &parts, &err);

        if (test_is_torture() && r == -ERR_NO_MEMORY)
            continue;
        if (r != (type_rows[i].good ? 0 : -ERR_INVALID))
            test_fail(__FILE__, __LINE__, "'%s' gives %d", type_rows[i].type, r);
    }
}

TEST(a_boundary_may_have_seventy_odd_characters)
{
    static const char type[] = "multipart/form-data; boundary=\"'()+_,-./:=?0123456789 "
                               "0123456789012345678901234567890123456789 012345\"";
    const char *boundary = strchr(type, '"') + 1;
    auto_buf struct buf body = {.max = 1 << 16}, parts = {.max = 1 << 16};
    struct error err = {0};
    int len = (int)strlen(boundary) - 1;
    int r =
        buf_printf(&body, "--%.*s\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--%.*s--",
                   len, boundary, len, boundary);

    assert_int_eq(len, 70);
    if (r < 0)
        return; /* out of memory, on purpose */
    r = parse(type, body.data, body.len, 3, &parts, &err);
    if (test_is_torture() && r < 0)
        return;
    assert_ok(r, err);
    assert_str_eq(buf_str(&parts), "a||=1;");
}

/* `count` parts, or one part with a header of `header` bytes, or a name of `name`. */
static int form_parse(size_t count, size_t header, size_t name, struct error *reterr)
{
    auto_buf struct buf body = {.max = 64 << 20}, parts = {.max = 64 << 20};
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = buf_append_str(&body, "--AaB03x\r\nContent-Disposition: form-data; name=\"a");
        for (size_t k = 1; r == 0 && k < name; k++)
            r = buf_append_byte(&body, 'a');
        r = r < 0 ? r : buf_append_str(&body, header ? "\"\r\nX: " : "\"");
        for (size_t k = 0; r == 0 && k < header; k++)
            r = buf_append_byte(&body, 'x');
        r = r < 0 ? r : buf_append_str(&body, "\r\n\r\n1\r\n");
    }
    r = r < 0 ? r : buf_append_str(&body, "--AaB03x--\r\n");
    return r < 0 ? error_no_memory(reterr) : parse(TYPE, body.data, body.len, 4096, &parts, reterr);
}

TEST(parts_headers_and_names_are_bounded)
{
    static const struct {
        size_t count, header, name;
        int r;
    } bounds[] = {
        {MULTIPART_PARTS_MAX, 0, 1, 0},    {MULTIPART_PARTS_MAX + 1, 0, 1, -ERR_LIMIT},
        {100000, 0, 1, -ERR_LIMIT},        {1, 8000, 1, 0},
        {1, 8192, 1, -ERR_LIMIT},          {1, 1 << 20, 1, -ERR_LIMIT},
        {1, 0, MULTIPART_NAME_MAX - 1, 0}, {1, 0, MULTIPART_NAME_MAX, -ERR_LIMIT},
        {1, 0, 5000, -ERR_LIMIT},
    };

    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        struct error err = {0};
        int r = form_parse(bounds[i].count, bounds[i].header, bounds[i].name, &err);

        if (test_is_torture() && r == -ERR_NO_MEMORY)
            continue;
        if (r != bounds[i].r)
            test_fail(__FILE__, __LINE__, "row %zu gives %d %s", i, r, err.text);
    }
}

static int on_data_fail(void *user, const char *data, size_t len, struct error *reterr)
{
    return error_set(reterr, ERR_DISK, "full");
}

TEST(a_failure_of_the_sink_ends_it)
{
    auto_buf struct buf parts = {.max = 1 << 16};
    struct multipart_sink sink = {on_begin, on_data_fail, on_end, &parts};
    auto_multipart struct multipart *m = NULL;
    struct error err = {0};
    int r = multipart_new(TYPE, &sink, &m, &err);

    if (test_is_torture() && r < 0)
        return;
    assert_ok(r, err);
    r = multipart_feed(m, rows[0].body, strlen(rows[0].body), &err);
    if (test_is_torture() && r == -ERR_NO_MEMORY)
        return;
    assert_int_eq(r, -ERR_DISK);
    assert_int_eq(multipart_feed(m, "x", 1, &err), -ERR_INVALID);
    assert_int_eq(multipart_finish(m, &err), -ERR_INVALID);
    assert_null(strchr(buf_str(&parts), ';'));
}
