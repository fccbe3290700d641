/* SPDX-License-Identifier: MIT */
/* Uploads: names, what is left after each way to end, and what files are called in answers. */
#include "api/files.h"
#include "api/upload.h"
#include "base/path.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define TYPE "multipart/form-data; boundary=b"
#define PART(name) \
    "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"" name "\"\r\n\r\n"
#define END "\r\n--b--\r\n"

/* ---- names ---- */

static const struct name_case {
    const char *given, *want; /* want NULL: refused */
} name_cases[] = {
    {"a.txt", "a.txt"},
    {"../../etc/passwd", "etc/passwd"},
    {"/etc/passwd", "etc/passwd"},
    {"a//b/./c/../d", "a/b/c/d"},
    {"..", NULL},
    {"/", NULL},
    {"", NULL},
    {"././", NULL},
    {"...", "..."},
    {"a/", "a"},
    {"..\\x", "..\\x"},
    {"a\nb", NULL},
    {"a\x7f", NULL},
    {"\xc3\xa4 %2e%2e.csv", "\xc3\xa4 %2e%2e.csv"},
};

TEST(names)
{
    for (size_t i = 0; i < ARRAY_LEN(name_cases); i++) {
        const struct name_case *c = &name_cases[i];
        char name[UPLOAD_NAME_MAX];
        struct error err = {0};
        int r = upload_name(c->given, name, &err);

        if (c->want) {
            assert_ok(r, err);
            assert_str_eq(name, c->want);
        } else {
            assert_int_eq(r, -ERR_INVALID);
        }
    }
}

TEST(names_have_bounds)
{
    char given[3000], name[UPLOAD_NAME_MAX];
    struct error err;

    memset(given, 'x', sizeof(given));
    given[255] = 0;
    assert_int_eq(upload_name(given, name, &err), 0);
    given[255] = 'x';
    given[256] = 0;
    assert_int_eq(upload_name(given, name, &err), -ERR_INVALID);
    for (int i = 0; i < UPLOAD_DEPTH_MAX; i++)
        memcpy(given + (size_t)i * 2, "d/", 2);
    memcpy(given + (size_t)UPLOAD_DEPTH_MAX * 2 - 1, "", 1);
    assert_int_eq(upload_name(given, name, &err), 0);
    memcpy(given + (size_t)UPLOAD_DEPTH_MAX * 2 - 1, "/d", 3);
    assert_int_eq(upload_name(given, name, &err), -ERR_INVALID);
    for (size_t i = 0; i < 6; i++) {
        memset(given + i * 201, 'y', 200);
        given[i * 201 + 200] = '/';
    }
    given[6 * 201] = 0;
    assert_int_eq(upload_name(given, name, &err), -ERR_INVALID);
}

/* ---- on the disk ---- */

static int seen_files;
static char seen_names[2000];

static int on_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    if (type == FTW_F) {
        seen_files++;
        assert_int_eq(st->st_mode & 07777, 0600);
    } else if (type == FTW_D && at->level > 0) {
        assert_int_eq(st->st_mode & 07777, 0700);
    }
    return 0;
}

/* How many files there are anywhere below the storage. */
static int files_count(const char *storage)
{
    seen_files = 0;
    (void)nftw(storage, on_entry, 16, FTW_PHYS);
    return seen_files;
}

static void on_found(void *user, const struct upload_found *file)
{
    size_t len = strlen(seen_names);

    snprintf(seen_names + len, sizeof(seen_names) - len, "%s:%llu ", file->name,
             (unsigned long long)file->size);
}

static const char *listed(const char *storage)
{
    seen_names[0] = 0;
    upload_list(storage, "t", on_found, NULL);
    return seen_names;
}

struct form {
    const char *text;
    size_t piece;   /* fed so many bytes at a time; 0: at once */
    uint64_t bytes; /* the limit; 0: enough */
};

/* The outcome of feeding and committing; the upload is gone when it returns. */
static int form_send(const char *storage, const struct form *f)
{
    struct upload *u = NULL;
    size_t len = strlen(f->text), piece = f->piece ? f->piece : len;
    struct error err = {0};
    int r = upload_new(storage, TYPE, f->bytes ? f->bytes : 1000000, &u, &err);

    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = upload_feed(u, f->text + at, MIN(piece, len - at), &err);
    if (r == 0)
        r = upload_commit(u, "t", &err);
    upload_free(u);
    return r;
}

TEST(files_come_to_their_names)
{
    static const char text[] = PART("../a.txt") "one\r\n" PART(
        "d/e/b.txt") "two!\r\n"
                     "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nno file" END;
    const char *storage = test_dir();

    if (test_is_torture())
        test_skip("whole results are asked for");
    for (size_t piece = 0; piece < 40; piece += 13) {
        assert_int_eq(form_send(storage, &(struct form){text, piece, 0}), 0);
        assert_str_eq(listed(storage), "a.txt:3 d/e/b.txt:4 ");
    }
    assert_int_eq(files_count(storage), 2);
    /* The same name again takes the place of what was there. */
    assert_int_eq(form_send(storage, &(struct form){PART("a.txt") "longer" END, 1, 0}), 0);
    assert_str_eq(listed(storage), "a.txt:6 d/e/b.txt:4 ");
}

TEST(nothing_is_left_of_what_is_not_whole)
{
    static const char text[] = PART("a.txt") "one\r\n" PART("b.txt") "two" END;
    const char *storage = test_dir();
    char cut[sizeof(text)];

    for (size_t len = 0; len < sizeof(text) - 3; len++) {
        memcpy(cut, text, len);
        cut[len] = 0;
        assert_true(form_send(storage, &(struct form){cut, 0, 0}) < 0);
        assert_int_eq(files_count(storage), 0);
    }
}

TEST(limits_and_conflicts)
{
    const char *storage = test_dir();

    if (test_is_torture())
        test_skip("other failures come first");
    assert_int_eq(form_send(storage, &(struct form){PART("a") "12345" END, 0, 5}), 0);
    assert_int_eq(form_send(storage, &(struct form){PART("b") "123456" END, 0, 5}), -ERR_LIMIT);
    assert_int_eq(form_send(storage, &(struct form){PART("b") "123\r\n" PART("c") "456" END, 0, 5}),
                  -ERR_LIMIT);
    assert_int_eq(form_send(storage, &(struct form){PART("..") "1" END, 0, 0}), -ERR_INVALID);
    /* A part that is no file counts. */
    assert_int_eq(
        form_send(storage,
                  &(struct form){
                      "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n123456" END, 0, 5}),
        -ERR_LIMIT);
    assert_int_eq(
        form_send(
            storage,
            &(struct form){"--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1" END, 0, 5}),
        -ERR_INVALID);
    assert_int_eq(form_send(storage, &(struct form){PART("d/x") "1" END, 0, 0}), 0);
    assert_int_eq(form_send(storage, &(struct form){PART("n") "1\r\n" PART("d") "1" END, 0, 0}),
                  -ERR_EXISTS);
    assert_int_eq(form_send(storage, &(struct form){PART("n") "1\r\n" PART("a/x") "1" END, 0, 0}),
                  -ERR_EXISTS);
    assert_str_eq(listed(storage), "a:5 d/x:1 ");
    assert_int_eq(files_count(storage), 2);
}

TEST(too_many_files)
{
    auto_buf struct buf text;
    const char *storage = test_dir();

    buf_init(&text, MIB);
    if (test_is_torture())
        test_skip("other failures come first");
    for (int i = 0; i <= UPLOAD_FILES_MAX; i++)
        assert_int_eq(buf_printf(&text, PART("f%d") "x\r\n", i), 0);
    assert_int_eq(form_send(storage, &(struct form){buf_str(&text), 0, 0}), -ERR_LIMIT);
    assert_int_eq(files_count(storage), 0);
}

/* Links that stand below the storage lead nowhere. */
TEST(links_are_not_followed)
{
    const char *dir = test_dir();
    char storage[PATH_LEN], other[PATH_LEN], link[PATH_LEN + 32];

    if (test_is_torture())
        test_skip("other failures come first");
    snprintf(storage, sizeof(storage), "%s/storage", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    assert_int_eq(mkdir(other, 0700), 0);
    assert_int_eq(form_send(storage, &(struct form){PART("keep") "1" END, 0, 0}), 0);
    snprintf(link, sizeof(link), "%s/t/uploads/out", storage);
    assert_int_eq(symlink(other, link), 0);
    assert_true(form_send(storage, &(struct form){PART("out/x") "1" END, 0, 0}) < 0);
    assert_int_eq(files_count(other), 0);
    assert_str_eq(listed(storage), "keep:1 ");
    /* A link in the place of a file is replaced, not written through. */
    assert_int_eq(form_send(storage, &(struct form){PART("out") "1" END, 0, 0}), 0);
    assert_int_eq(files_count(other), 0);
    assert_str_eq(listed(storage), "keep:1 out:1 ");
}

static void age(const char *path)
{
    const struct timeval old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    assert_int_eq(utimes(path, old), 0);
}

/* What nobody holds is swept; what an upload holds is not. */
TEST(the_sweep_takes_what_is_left)
{
    const char *storage = test_dir();
    char staging[PATH_LEN], left[PATH_LEN + 32];
    struct upload *u = NULL;
    struct error err = {0};

    if (test_is_torture())
        test_skip("other failures come first");
    assert_ok(upload_new(storage, TYPE, 100, &u, &err), err);
    assert_ok(upload_feed(u, PART("a") "1", strlen(PART("a") "1"), &err), err);
    snprintf(staging, sizeof(staging), "%s/.staging", storage);
    snprintf(left, sizeof(left), "%s/left", staging);
    assert_int_eq(mkdir(left, 0700), 0);
    upload_sweep(storage);
    assert_int_eq(access(left, F_OK), 0);
    age(left);
    upload_sweep(storage);
    assert_int_eq(access(left, F_OK), -1);
    assert_ok(upload_feed(u, END, strlen(END), &err), err);
    assert_ok(upload_commit(u, "t", &err), err);
    upload_free(u);
    assert_str_eq(listed(storage), "a:1 ");
}

/* ---- answers ---- */

static const struct header_case {
    const char *name, *want;
} header_cases[] = {
    {"a.txt", "attachment; filename=\"a.txt\""},
    {"a b;c.txt", "attachment; filename=\"a b;c.txt\""},
    {"a\"b\\.txt", "attachment; filename=\"a_b_.txt\"; filename*=UTF-8''a%22b%5C.txt"},
    {"\xc3\xa4.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A4.txt"},
    {"a\r\nX: y", "attachment; filename=\"a__X: y\"; filename*=UTF-8''a%0D%0AX%3A%20y"},
    {"50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"},
    {"\xff.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%EF%BF%BD.txt"},
};

TEST(names_in_headers)
{
    for (size_t i = 0; i < ARRAY_LEN(header_cases); i++) {
        auto_buf struct buf b;

        buf_init(&b, 4096);
        if (attachment_write(header_cases[i].name, &b) < 0 && test_is_torture())
            test_skip("no memory");
        assert_str_eq(buf_str(&b), header_cases[i].want);
    }
}

static const struct kind_case {
    const char *mime, *type;
    bool base64, attachment;
} kind_cases[] = {
    {"image/png", "image/png", true, false},
    {"image/svg+xml", "image/svg+xml", false, true},
    {"IMAGE/SVG+xml", "IMAGE/SVG+xml", false, true},
    {"text/html", "text/html; charset=utf-8", false, true},
    {"text/plain", "text/plain; charset=utf-8", false, false},
    {"application/json", "application/json", false, false},
    {"application/pdf", "application/pdf", true, true},
    {"application/xhtml+xml", "application/xhtml+xml", false, true},
    {"audio/wav", "audio/wav", true, false},
    {"image/png\r\nX: y", "application/octet-stream", true, false},
    {"", "application/octet-stream", false, true},
};

TEST(kinds_of_displays)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_cases); i++) {
        struct blob_kind kind = blob_kind_of(kind_cases[i].mime);

        assert_str_eq(kind.content_type, kind_cases[i].type);
        assert_int_eq(kind.base64, kind_cases[i].base64);
        assert_int_eq(kind.attachment, kind_cases[i].attachment);
    }
}
