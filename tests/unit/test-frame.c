/* SPDX-License-Identifier: MIT */
/* Frames and fields: what is written is read again, and what is malformed is refused. */
#include "wire/fields.h"
#include "wire/frame.h"

#include "tests/lib/test.h"

static const unsigned every_side =
    FRAME_FROM_CLIENT | FRAME_FROM_INIT | FRAME_TO_KERNEL | FRAME_FROM_KERNEL;

TEST(a_frame_is_read_as_it_was_written)
{
    auto_buf struct buf b;
    struct error err;
    struct frame f;

    buf_init(&b, 1000);
    assert_int_eq(frame_append(&b, FRAME_EXEC, 0x01020304, "payload", 7), 0);
    assert_uint_eq(b.len, FRAME_HEADER + 7);
    assert_mem_eq(b.data, "\7\0\0\0\x03\4\3\2\1payload", 16);
    assert_int_eq(frame_next(b.data, b.len, FRAME_FROM_CLIENT, &f, &err), 16);
    assert_uint_eq(f.stream, 0x01020304);
    assert_uint_eq(f.len, 7);
    assert_mem_eq(f.payload, "payload", 7);
}

TEST(a_part_of_a_frame_waits_for_more)
{
    auto_buf struct buf b;
    struct error err;
    struct frame f;

    buf_init(&b, 1000);
    assert_int_eq(frame_append(&b, FRAME_ACK, 5, "xyz", 3), 0);
    for (size_t len = 0; len < b.len; len++)
        assert_int_eq(frame_next(b.data, len, FRAME_FROM_CLIENT, &f, &err), 0);
}

TEST(a_type_belongs_to_its_directions)
{
    for (unsigned type = 0; type < 256; type++) {
        char header[FRAME_HEADER];
        struct error err;
        struct frame f;

        frame_header_format(header, (uint8_t)type, 1, 0);
        for (unsigned side = 1; side <= FRAME_FROM_KERNEL; side <<= 1) {
            bool known = frame_name((uint8_t)type, side) != NULL;
            ssize_t r = frame_next(header, sizeof(header), side, &f, &err);

            assert_int_eq(r, known ? FRAME_HEADER : -ERR_PROTOCOL);
        }
    }
    assert_null(frame_name(FRAME_EXEC, FRAME_FROM_INIT));
    assert_null(frame_name(0, every_side));
}

TEST(a_length_above_the_limit_is_refused_at_once)
{
    char header[FRAME_HEADER];
    struct error err;
    struct frame f;

    frame_header_format(header, FRAME_EXEC, 1, FRAME_PAYLOAD_MAX);
    assert_int_eq(frame_next(header, sizeof(header), FRAME_FROM_CLIENT, &f, &err), 0);
    frame_header_format(header, FRAME_EXEC, 1, FRAME_PAYLOAD_MAX + 1);
    assert_int_eq(frame_next(header, sizeof(header), FRAME_FROM_CLIENT, &f, &err), -ERR_PROTOCOL);
}

static void fields_make(struct buf *b)
{
    buf_init(b, 1000);
    assert_int_eq(fields_add_str(b, "argv", "ls"), 0);
    assert_int_eq(fields_add_int(b, "ms", -5), 0);
    assert_int_eq(fields_add(b, "raw", "a\0b", 3), 0);
    assert_int_eq(fields_add_str(b, "argv", ""), 0);
}

TEST(fields_are_found_by_key)
{
    auto_buf struct buf b;
    struct fields f;
    struct field field;
    struct error err;
    int64_t number;
    auto_free char *text = NULL;
    auto_free char **argv = NULL;
    size_t count;

    fields_make(&b);
    f = (struct fields){b.data, b.len};
    assert_ok(fields_check(&f, &err), err);
    assert_ok(fields_get_int(&f, "ms", 0, &number, &err), err);
    assert_int_eq(number, -5);
    assert_ok(fields_get_int(&f, "none", 9, &number, &err), err);
    assert_int_eq(number, 9);
    assert_ok(fields_get_strv(&f, "argv", &argv, &count, &err), err);
    assert_uint_eq(count, 2);
    assert_str_eq(argv[0], "ls");
    assert_str_eq(argv[1], "");
    assert_null(argv[2]);
    assert_true(fields_find(&f, "raw", &field));
    assert_uint_eq(field.len, 3);
    assert_false(fields_find(&f, "arg", &field));
    assert_ok(fields_get_str(&f, "argv", &text, &err), err);
    assert_str_eq(text, "ls");
}

TEST(a_field_of_the_wrong_kind_is_refused)
{
    auto_buf struct buf b;
    struct fields f;
    struct error err;
    char *text = NULL;
    int64_t number;

    fields_make(&b);
    f = (struct fields){b.data, b.len};
    assert_int_eq(fields_get_int(&f, "argv", 0, &number, &err), -ERR_PROTOCOL);
    assert_int_eq(fields_get_str(&f, "raw", &text, &err), -ERR_PROTOCOL);
    assert_int_eq(fields_get_str(&f, "none", &text, &err), -ERR_NOT_FOUND);
    assert_null(text);
}

TEST(every_cut_of_a_payload_is_whole_fields_or_refused)
{
    auto_buf struct buf b;
    int whole = 0;

    fields_make(&b);
    for (size_t len = 0; len < b.len; len++) {
        auto_free char *copy = malloc(len > 0 ? len : 1);
        struct fields f = {copy, len};
        struct error err;

        assert_not_null(copy);
        memcpy(copy, b.data, len);
        whole += fields_check(&f, &err) == 0;
    }
    assert_int_eq(whole, 4);
}

TEST(keys_have_a_length)
{
    auto_buf struct buf b;

    buf_init(&b, 1000);
    assert_int_eq(fields_add_str(&b, "", "x"), -1);
    assert_int_eq(fields_add_str(&b, "12345678901234567890123456789012", "x"), 0);
    assert_int_eq(fields_add_str(&b, "123456789012345678901234567890123", "x"), -1);
}
