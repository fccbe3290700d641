/* SPDX-License-Identifier: MIT */
/* What was typed comes back as it was, the newest of it, and the file does not grow for ever. */
#include "cli/term/history.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void entry_add(void *user, const char *text)
{
    struct buf *b = user;

    /* No assertion here: it would leave history_load() in the middle. What is missing is seen. */
    (void)!(buf_append_str(b, text) == 0 && buf_append_byte(b, '|') == 0);
}

/* The entries, each with a bar behind it. */
static const char *loaded(const char *path, unsigned max, struct buf *ret)
{
    struct error error;

    buf_init(ret, MIB);
    assert_ok(history_load(path, max, entry_add, ret, &error), error);
    return buf_str(ret);
}

static void numbers_append(const char *path, unsigned from, unsigned to)
{
    struct error error;
    char text[16];

    for (unsigned i = from; i < to; i++) {
        snprintf(text, sizeof(text), "m%u", i);
        assert_ok(history_append(path, text, &error), error);
    }
}

static size_t size_of(const char *path)
{
    struct stat st;

    assert_int_eq(stat(path, &st), 0);
    return (size_t)st.st_size;
}

static const char *place(char path[PATH_LEN])
{
    assert_int_eq(path_join(path, PATH_LEN, test_dir(), "state/history", NULL), 0);
    return path;
}

TEST(messages_come_back_as_they_were_typed)
{
    static const char *const texts[] = {"one", "two\nlines\n", "C:\\new \\n \\\\", "日本", ""};
    char path[PATH_LEN];
    auto_buf struct buf got, want;
    struct error error;
    struct stat st;

    buf_init(&want, MIB);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_ok(history_append(place(path), texts[i], &error), error);
        entry_add(&want, texts[i]);
    }
    assert_str_eq(loaded(path, 10, &got), buf_str(&want));
    assert_int_eq(stat(path, &st), 0);
    assert_int_eq(st.st_mode & 0777, 0600);
}

TEST(a_missing_file_has_none)
{
    auto_buf struct buf got;
    char path[PATH_LEN];

    assert_str_eq(loaded(place(path), 10, &got), "");
}

TEST(the_newest_are_given_and_a_long_file_is_trimmed_to_them)
{
    char path[PATH_LEN];
    auto_buf struct buf some, all, trimmed, again;
    size_t size;

    numbers_append(place(path), 0, 6);
    size = size_of(path);
    assert_str_eq(loaded(path, 3, &some), "m3|m4|m5|");
    assert_uint_eq(size_of(path), size);
    assert_str_eq(loaded(path, 10, &all), "m0|m1|m2|m3|m4|m5|");
    numbers_append(path, 6, 7);
    assert_str_eq(loaded(path, 3, &trimmed), "m4|m5|m6|");
    assert_uint_eq(size_of(path), strlen("m4\nm5\nm6\n"));
    numbers_append(path, 7, 8);
    assert_str_eq(loaded(path, 10, &again), "m4|m5|m6|m7|");
}

TEST(a_line_that_was_cut_by_a_crash_is_passed_over)
{
    static const char text[] = "one\ntwo\\\nhalf";
    char path[PATH_LEN];
    auto_buf struct buf got;
    struct error error;

    assert_int_eq(path_join(path, sizeof(path), test_dir(), "history", NULL), 0);
    assert_ok(fd_write_file_atomic(AT_FDCWD, path, text, strlen(text), &error), error);
    assert_str_eq(loaded(path, 10, &got), "one|two\\|");
}

TEST(what_cannot_be_kept_is_refused)
{
    auto_buf struct buf long_text, got;
    char path[PATH_LEN];
    struct error error;

    buf_init(&long_text, HISTORY_BYTES_MAX);
    for (size_t i = 0; i < HISTORY_BYTES_MAX / 4; i++)
        assert_int_eq(buf_append_byte(&long_text, '\n'), 0);
    assert_true(history_append(place(path), buf_str(&long_text), &error) == -ERR_LIMIT ||
                test_is_torture());
    assert_str_eq(loaded(path, 10, &got), "");
}
