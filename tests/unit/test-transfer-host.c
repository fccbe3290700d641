/* SPDX-License-Identifier: MIT */
/* The walk of the host's folders: FIL-01, FIL-02, case 48. */
#include "session/transfer-internal.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define CANARY "never to be read"

enum { RACE_TRIES = 10000 };

/* A sink that keeps a text of what came: "d name\n", "f name size x|-\n", "l name target\n". */
struct recorder {
    struct tree_sink sink;
    struct tree_budget budget;
    struct buf text, data;
    const char *cut; /* this file is cut when its entry comes */
};

static int recorder_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct recorder *r = (struct recorder *)sink;
    int n = tree_check(&r->budget, e, reterr);

    if (n < 0)
        return n;
    if (e->type == TREE_FILE)
        n = buf_printf(&r->text, "f %s %llu %s\n", e->path, (unsigned long long)e->size,
                       e->executable ? "x" : "-");
    else
        n = buf_printf(&r->text, "%c %s%s%s\n", e->type, e->path, e->target ? " " : "",
                       e->target ? e->target : "");
    if (r->cut && truncate(r->cut, 10) < 0)
        return error_sys(reterr, errno, "cannot cut");
    return n < 0 ? error_no_memory(reterr) : 0;
}

static int recorder_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    struct recorder *r = (struct recorder *)sink;

    return buf_append(&r->data, data, len) < 0 ? error_no_memory(reterr) : 0;
}

static void recorder_init(struct recorder *r)
{
    *r = (struct recorder){.sink = {.entry = recorder_entry, .data = recorder_data}};
    buf_init(&r->text, MIB);
    buf_init(&r->data, 64 * MIB);
}

static void recorder_done(struct recorder *r)
{
    buf_done(&r->text);
    buf_done(&r->data);
}

#define auto_recorder __attribute__((cleanup(recorder_done)))
#define auto_source __attribute__((cleanup(host_source_close)))

/* ---- a place with traps: in/ may be read, in2/ and secret may not ---- */

static char root[512], in[600];

static const char *path_of(const char *rel)
{
    static char paths[4][1200];
    static unsigned next;
    char *p = paths[next++ % 4];

    snprintf(p, sizeof(paths[0]), "%s/%s", root, rel);
    return p;
}

static void file_make(const char *rel, const char *text, mode_t mode)
{
    int fd = open(path_of(rel), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

static void dir_make(const char *rel)
{
    assert_true(mkdir(path_of(rel), 0755) == 0 || errno == EEXIST);
}

static void link_make(const char *target, const char *rel)
{
    (void)!unlink(path_of(rel));
    assert_int_eq(symlink(target, path_of(rel)), 0);
}

static struct import_roots place_make(void)
{
    static const char *dirs[1];

    snprintf(root, sizeof(root), "%s", test_dir());
    snprintf(in, sizeof(in), "%s/in", root);
    dirs[0] = in;
    dir_make("in");
    dir_make("in2");
    dir_make("etc");
    file_make("etc/secret", CANARY, 0600);
    file_make("in2/secret", CANARY, 0600);
    file_make("in/f", "content", 0644);
    return (struct import_roots){.dirs = dirs, .count = 1};
}

static int open_code(const struct import_roots *roots, const char *path, struct error *err)
{
    auto_source struct host_source h = {.fd = -1};
    int r = host_source_open(roots, path, &h, err);

    return r;
}

/* ---- named sources ---- */

TEST(fil_01_case_48_nothing_without_a_root)
{
    const struct import_roots none = {};
    struct error err;

    assert_int_eq(open_code(&none, "/etc/passwd", &err), -ERR_DENIED);
    assert_str_has(err.text, "not below a folder that the operator allows (IMPORT_ALLOWED_DIRS)");
    assert_int_eq(open_code(&none, "/nonexist", &err), -ERR_DENIED);
}

TEST(fil_01_case_48_only_what_is_below_a_root)
{
    struct import_roots roots = place_make();
    static const char *const denied[] = {
        "in2/secret", "in/../in2/secret", "in/../etc/secret", "in/x/../../etc/secret", "in2", ".",
        "in/.."};
    static const char *const fine[] = {"in/f", "in//f", "in/./f", "in/../in/f", "in2/../in/f"};
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        assert_int_eq(open_code(&roots, path_of(denied[i]), &err), -ERR_DENIED);
        assert_str_has(err.text, "not below");
    }
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        assert_ok(open_code(&roots, path_of(fine[i]), &err), err);
    assert_ok(open_code(&roots, path_of("in"), &err), err);
    assert_ok(open_code(&roots, path_of("in/"), &err), err);
    assert_int_eq(open_code(&roots, path_of("in/none"), &err), -ERR_SYSTEM);
    assert_int_eq(err.sys, ENOENT);
    assert_int_eq(open_code(&roots, path_of("in/f/"), &err), -ERR_INVALID);
    assert_int_eq(open_code(&roots, path_of("in/f/x"), &err), -ERR_SYSTEM);
    assert_int_eq(open_code(&roots, "in/f", &err), -ERR_INVALID);
    assert_int_eq(open_code(&roots, "", &err), -ERR_INVALID);
}

TEST(fil_01_a_root_is_found_however_it_is_written)
{
    struct import_roots roots = place_make();
    char sloppy[700];
    const char *dirs[] = {"relative", "/nonexist", sloppy};
    const struct import_roots others = {.dirs = dirs, .count = 3};
    struct error err;

    snprintf(sloppy, sizeof(sloppy), "%s//./", roots.dirs[0]);
    assert_ok(open_code(&others, path_of("in/f"), &err), err);
    assert_int_eq(open_code(&others, path_of("in2/secret"), &err), -ERR_DENIED);
}

TEST(fil_01_only_files_and_folders)
{
    struct import_roots roots = place_make();
    const char *slash[] = {"/"};
    const struct import_roots every = {.everything = true}, all = {.dirs = slash, .count = 1};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    auto_fd int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct error err;

    (void)!unlink(path_of("in/fifo"));
    assert_int_eq(mkfifo(path_of("in/fifo"), 0600), 0);
    assert_int_eq(open_code(&roots, path_of("in/fifo"), &err), -ERR_DENIED);
    assert_str_has(err.text, "neither a file nor a folder");
    assert_int_eq(open_code(&every, path_of("in/fifo"), &err), -ERR_DENIED);
    if (strlen(root) + 4 < sizeof(name.sun_path)) {
        snprintf(name.sun_path, sizeof(name.sun_path), "%.90s/in/s", root);
        (void)!unlink(name.sun_path);
        assert_int_eq(bind(sock, (struct sockaddr *)&name, sizeof(name)), 0);
        assert_int_eq(open_code(&roots, path_of("in/s"), &err), -ERR_DENIED);
    }
    /* Also where the whole host may be read. */
    assert_int_eq(open_code(&all, "/dev/zero", &err), -ERR_DENIED);
    assert_int_eq(open_code(&every, "/dev/zero", &err), -ERR_DENIED);
    assert_int_eq(open_code(&all, "/proc/self/environ", &err), -ERR_DENIED);
    assert_int_eq(open_code(&every, "/proc/self/environ", &err), -ERR_DENIED);
    assert_int_eq(open_code(&every, "/proc/self/fd/0", &err), -ERR_DENIED);
    assert_int_eq(open_code(&all, "/proc", &err), -ERR_DENIED);
    assert_int_eq(open_code(&all, "/sys/kernel", &err), -ERR_DENIED);
    assert_ok(open_code(&all, "/etc/passwd", &err), err);
}

TEST(fil_02_no_link_is_followed)
{
    struct import_roots roots = place_make();
    const struct import_roots every = {.everything = true};
    struct error err;
    char name[16];

    link_make("../etc", "in/l");
    link_make("f", "in/inner");
    link_make("/", "in/slash");
    link_make("/proc/self/root", "in/magic");
    for (int i = 0; i < 41; i++) {
        char rel[24], target[16];

        snprintf(rel, sizeof(rel), "in/c%d", i);
        snprintf(target, sizeof(target), "c%d", i + 1);
        link_make(target, rel);
    }
    link_make("../etc/secret", "in/c41");
    assert_int_eq(open_code(&roots, path_of("in/l"), &err), -ERR_DENIED);
    assert_str_has(err.text, "link");
    assert_int_eq(open_code(&roots, path_of("in/l/secret"), &err), -ERR_DENIED);
    assert_int_eq(open_code(&roots, path_of("in/inner"), &err), -ERR_DENIED);
    assert_int_eq(open_code(&roots, path_of("in/slash/etc/passwd"), &err), -ERR_DENIED);
    assert_int_eq(open_code(&roots, path_of("in/magic/etc/passwd"), &err), -ERR_DENIED);
    snprintf(name, sizeof(name), "in/c0");
    assert_int_eq(open_code(&roots, path_of(name), &err), -ERR_DENIED);
    /* The host's own program names what it wants. */
    assert_ok(open_code(&every, path_of("in/inner"), &err), err);
}

/* ---- folders ---- */

static int walk(const struct import_roots *roots, const char *path, struct recorder *r,
                struct error *err)
{
    auto_source struct host_source h = {.fd = -1};
    int n;

    recorder_init(r);
    n = host_source_open(roots, path, &h, err);
    return n < 0 ? n : host_walk_push(&h, &r->sink, err);
}

TEST(a_folder_comes_with_its_links_and_plain_modes)
{
    struct import_roots roots = place_make();
    auto_recorder struct recorder r;
    struct error err;

    dir_make("in/t");
    dir_make("in/t/sub");
    dir_make("in/t/empty");
    file_make("in/t/sub/suid", "1234", 04755);
    file_make("in/t/\xe8\xb2\xa9\xff", "x", 0600);
    link_make("../sub/suid", "in/t/sub/l");
    assert_ok(walk(&roots, path_of("in/t"), &r, &err), err);
    assert_str_has(buf_str(&r.text), "d sub\n");
    assert_str_has(buf_str(&r.text), "d empty\n");
    assert_str_has(buf_str(&r.text), "f sub/suid 4 x\n");
    assert_str_has(buf_str(&r.text), "f \xe8\xb2\xa9\xff 1 -\n");
    assert_str_has(buf_str(&r.text), "l sub/l ../sub/suid\n");
    assert_uint_eq(r.data.len, 5);
    assert_uint_eq(r.budget.entries, 5);
}

TEST(fil_02_a_folder_with_a_link_out_of_it_is_refused)
{
    static const char *const targets[] = {"/etc/passwd", "../../etc/secret", "..", "a/../../../x"};
    struct import_roots roots = place_make();
    struct error err;

    dir_make("in/t2");
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        auto_recorder struct recorder r;

        link_make(targets[i], "in/t2/l");
        assert_int_eq(walk(&roots, path_of("in/t2"), &r, &err), -ERR_INVALID);
        assert_str_has(err.text, "'l'");
        assert_uint_eq(r.data.len, 0);
    }
}

TEST(fil_01_a_folder_with_a_fifo_in_it_is_refused)
{
    struct import_roots roots = place_make();
    auto_recorder struct recorder r;
    struct error err;

    dir_make("in/t3");
    assert_int_eq(mkfifo(path_of("in/t3/p"), 0600), 0);
    assert_int_eq(walk(&roots, path_of("in/t3"), &r, &err), -ERR_DENIED);
    assert_str_has(err.text, "'p'");
}

TEST(fil_01_a_folder_without_end_ends)
{
    struct import_roots roots = place_make();
    auto_recorder struct recorder r;
    char rel[512] = "in/deep";
    struct error err;

    dir_make(rel);
    for (int i = 0; i < TREE_DEPTH_MAX + 1; i++) {
        assert_int_eq(str_copy(rel + strlen(rel), sizeof(rel) - strlen(rel), "/d"), 0);
        dir_make(rel);
    }
    assert_int_eq(walk(&roots, path_of("in/deep"), &r, &err), -ERR_LIMIT);
    assert_str_has(err.text, "more than 64 components of path");
}

TEST(a_file_that_is_cut_short_is_an_error)
{
    struct import_roots roots = place_make();
    auto_source struct host_source h = {.fd = -1};
    auto_recorder struct recorder r;
    struct error err;

    dir_make("in/t4");
    file_make("in/t4/f", "0123456789abcdef", 0600);
    recorder_init(&r);
    r.cut = path_of("in/t4/f");
    assert_ok(host_source_open(&roots, path_of("in/t4"), &h, &err), err);
    assert_int_eq(host_walk_push(&h, &r.sink, &err), -ERR_SYSTEM);
    assert_str_has(err.text, "cut short");
}

/* ---- races ---- */

static atomic_bool race_over;

/* A folder and a link to what is outside take turns under one name; so do a file and a link. */
static void *swapper_main(void *arg)
{
    const char *dir = arg;
    auto_fd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    while (!atomic_load(&race_over)) {
        (void)!renameat2(at, "real", at, "link", RENAME_EXCHANGE);
        (void)!renameat2(at, "plain", at, "file-link", RENAME_EXCHANGE);
    }
    return NULL;
}

TEST(fil_02_links_that_are_swapped_while_they_are_copied)
{
    struct import_roots roots = place_make();
    unsigned good = 0, refused = 0;
    char dir[700];
    pthread_t swapper;
    struct error err;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    dir_make("in/race");
    dir_make("in/race/real");
    file_make("in/race/real/secret", "inside", 0600);
    link_make("../../etc", "in/race/link");
    file_make("in/race/plain", "inside", 0600);
    link_make("../../etc/secret", "in/race/file-link");
    snprintf(dir, sizeof(dir), "%s/race", in);
    assert_int_eq(pthread_create(&swapper, NULL, swapper_main, dir), 0);
    for (int i = 0; i < RACE_TRIES; i++) {
        static const char *const names[] = {"in/race/real/secret", "in/race/real", "in/race/plain",
                                            "in/race/link"};
        auto_source struct host_source h = {.fd = -1};
        auto_recorder struct recorder r;
        int n;

        recorder_init(&r);
        n = host_source_open(&roots, path_of(names[i % 4]), &h, &err);
        if (n == 0 && h.is_dir)
            n = host_walk_push(&h, &r.sink, &err);
        else if (n == 0)
            n = copy_from_fd(h.fd, h.size, (copy_fn *)(void *)recorder_data, &r, &err);
        good += n == 0;
        refused += n < 0;
        assert_false(r.data.len && memmem(r.data.data, r.data.len, CANARY, strlen(CANARY)));
    }
    atomic_store(&race_over, true);
    pthread_join(swapper, NULL);
    printf("# %u copied, %u refused, 0 leaks\n", good, refused);
    assert_true(good > 10 && refused > 10);
}
