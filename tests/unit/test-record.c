/* SPDX-License-Identifier: MIT */
/* Records of every kind, and what the parser does not take. */
#include "wire/record.h"

#include "tests/lib/test.h"

static const struct record examples[] = {
    {.kind = RECORD_DIR, .path = "d", .mtime_ms = -5},
    {.kind = RECORD_FILE, .path = "d/f", .size = 3, .executable = true, .mtime_ms = 1700000000123},
    {.kind = RECORD_DATA, .body = "a\0b", .len = 3},
    {.kind = RECORD_LINK, .path = "l", .body = "d/f", .len = 4},
    {.kind = RECORD_ERROR, .code = ERR_LIMIT, .body = "no", .len = 3},
    {.kind = RECORD_END},
};

TEST(record_comes_back_as_it_was)
{
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        const struct record *in = &examples[i];
        auto_buf struct buf b = {.max = RECORD_MAX};
        struct record out;
        struct error err;

        assert_int_eq(record_append(&b, in), 0);
        for (size_t cut = 0; cut < b.len; cut++)
            assert_int_eq(record_next(b.data, cut, &out, &err), 0);
        assert_int_eq(record_next(b.data, b.len, &out, &err), (int)b.len);
        assert_int_eq(out.kind, in->kind);
        assert_true(out.executable == in->executable && out.code == in->code);
        assert_uint_eq(out.size, in->size);
        assert_int_eq(out.mtime_ms, in->mtime_ms);
        if (in->path)
            assert_str_eq(out.path, in->path);
        assert_uint_eq(out.len, in->len);
        if (in->len)
            assert_mem_eq(out.body, in->body, in->len);
    }
}

TEST(record_with_a_part_too_many_is_refused)
{
    static const struct {
        const char *what;
        unsigned char at, value;
    } changes[] = {
        {"an unknown kind", 0, 'x'},  {"a flag of a folder", 1, 1}, {"no path", 2, 0},
        {"an empty path", 2, 1},      {"a long path", 3, 0xff},     {"a body", 4, 1},
        {"a size of a folder", 8, 1}, {"a NUL in the path", 24, 0}, {"no NUL behind it", 26, 'x'},
    };

    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        auto_buf struct buf b = {.max = RECORD_MAX};
        struct record out;
        struct error err;

        test_note("%s", changes[i].what);
        assert_int_eq(record_append(&b, &(struct record){.kind = RECORD_DIR, .path = "dd"}), 0);
        b.data[changes[i].at] = (char)changes[i].value;
        assert_int_eq(record_next(b.data, b.len, &out, &err), -ERR_PROTOCOL);
    }
}

TEST(record_too_long_is_not_made)
{
    static char path[RECORD_TEXT_MAX + 1];
    auto_buf struct buf b = {.max = RECORD_MAX};

    memset(path, 'x', RECORD_TEXT_MAX);
    assert_int_eq(record_append(&b, &(struct record){.kind = RECORD_DIR, .path = path}), -1);
    assert_int_eq(record_append(&b, &(struct record){.kind = RECORD_DIR, .path = ""}), -1);
    assert_int_eq(record_append(&b, &(struct record){.kind = RECORD_DATA, .body = path}), -1);
    path[RECORD_TEXT_MAX - 1] = 0;
    assert_int_eq(record_append(&b, &(struct record){.kind = RECORD_DIR, .path = path}), 0);
}

TEST(record_shows_long_names_without_their_middle)
{
    char shown[20];

    record_show(shown, sizeof(shown), "abcdefghijklmnopqrstuvwxyz", 26);
    assert_str_eq(shown, "abcdefgh...stuvwxyz");
    record_show(shown, sizeof(shown), "abcdefg\xc3\xa9-------------\xc3\xa9yzabcde", 31);
    assert_str_eq(shown, "abcdefg...yzabcde");
    record_show(shown, sizeof(shown), "a\0b", 3);
    assert_str_eq(shown, "a?b");
    record_show(shown, sizeof(shown), "", 0);
    assert_str_eq(shown, "");
}
