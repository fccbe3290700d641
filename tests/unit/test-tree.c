/* SPDX-License-Identifier: MIT */
/* tree_check() and the guard in front of a sink. */
#include "session/tree.h"

#include "session/transfer.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct list {
    struct tree_sink sink; /* first */
    char text[2048];
};

static int list_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct list *l = (struct list *)sink;
    size_t len = strlen(l->text);

    snprintf(l->text + len, sizeof(l->text) - len, "%c %s\n", e->type, e->path);
    return 0;
}

static int list_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    return 0;
}

static int check(enum tree_type type, const char *path, const char *target, struct error *reterr)
{
    struct tree_budget budget = {};
    const struct tree_entry e = {.type = type, .path = path, .target = target};

    return tree_check(&budget, &e, reterr);
}

TEST(tree_names_stay_in_the_tree)
{
    static const char *const good[] = {"a", "a/b", "...", "a\\b", "-", "\xff\xfe", "a/..b", "C:x"};
    static const char *const bad[] = {"",     "/",  "/a",   ".",    "..",    "./a",   "a/.",
                                      "a//b", "a/", "../a", "a/..", "a/../", "a/../b"};
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_ok(check(TREE_FILE, good[i], NULL, &err), err);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_eq(check(TREE_FILE, bad[i], NULL, &err), -ERR_INVALID);
}

TEST(tree_links_stay_in_the_tree)
{
    static const struct {
        const char *path, *target;
        bool good;
    } links[] = {
        {"l", "a", true},       {"l", ".", true},          {"l", "./a//b/", true},
        {"d/l", "..", true},    {"d/l", "../x", true},     {"d/e/l", ".././../x", true},
        {"l", "..", false},     {"l", "../x", false},      {"d/l", "../../x", false},
        {"l", "/etc", false},   {"l", "", false},          {"l", NULL, false},
        {"d/l", "x/..", false}, {"d/l", "../x/..", false}, {"l", "a/../../x", false},
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        test_note("%s -> %s", links[i].path, links[i].target ? links[i].target : "(none)");
        assert_int_eq(check(TREE_LINK, links[i].path, links[i].target, &err),
                      links[i].good ? 0 : -ERR_INVALID);
    }
}

TEST(tree_limits_are_named)
{
    char path[TREE_PATH_MAX + 2];
    struct tree_budget budget = {.entries = TREE_ENTRIES_MAX};
    struct tree_entry e = {.type = TREE_FILE, .path = "big"};
    struct error err;

    assert_int_eq(tree_check(&budget, &e, &err), -ERR_LIMIT);
    assert_str_has(err.text, "'big': more than 100000 entries");
    budget = (struct tree_budget){};
    e.size = TREE_BYTES_MAX;
    assert_ok(tree_check(&budget, &e, &err), err);
    e.size = 1;
    assert_int_eq(tree_check(&budget, &e, &err), -ERR_LIMIT);
    assert_str_has(err.text, "4294967296 bytes");

    memset(path, 'x', sizeof(path));
    path[256] = 0;
    assert_int_eq(check(TREE_FILE, path, NULL, &err), -ERR_INVALID);
    assert_str_has(err.text, "more than 255 bytes");
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 200 == 199 ? '/' : 'x';
    path[TREE_PATH_MAX] = 0;
    assert_int_eq(check(TREE_FILE, path, NULL, &err), -ERR_LIMIT);
    path[TREE_PATH_MAX - 1] = 0;
    assert_ok(check(TREE_FILE, path, NULL, &err), err);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? '/' : 'x';
    path[2 * TREE_DEPTH_MAX - 1] = 0;
    assert_ok(check(TREE_FILE, path, NULL, &err), err);
    path[2 * TREE_DEPTH_MAX - 1] = '/';
    path[2 * TREE_DEPTH_MAX + 1] = 0;
    assert_int_eq(check(TREE_FILE, path, NULL, &err), -ERR_LIMIT);
    assert_str_has(err.text, "more than 64 components of path");
}

TEST(tree_errors_show_names_that_a_terminal_can_bear)
{
    struct error err;

    assert_int_eq(check(TREE_FILE, "/\x1b[31m\n\xff\xc3\xa9\xe2\x80\xae", NULL, &err),
                  -ERR_INVALID);
    assert_str_eq(err.text, "entry '/?[31m?\xef\xbf\xbd\xc3\xa9?' has an absolute name");
}

/* Pushes "d path", "f path", "l path target" lines and returns what came out, or the error. */
#define auto_guard __attribute__((cleanup(tree_guard_done)))

static const char *guard_run(struct list *l, const struct tree_entry *e, size_t count)
{
    static struct error err;
    auto_guard struct tree_guard g;
    int r = 0;

    *l = (struct list){.sink = {list_entry, list_data}};
    tree_guard_init(&g, &l->sink);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = g.sink.entry(&g.sink, &e[i], &err);
    if (r == 0)
        r = tree_guard_finish(&g, &err);
    return r < 0 ? err.text : l->text;
}

#define RUN(...) \
    guard_run(&list, (struct tree_entry[]){__VA_ARGS__}, \
              sizeof((struct tree_entry[]){__VA_ARGS__}) / sizeof(struct tree_entry))
#define DIR(p) {.type = TREE_DIR, .path = (p)}
#define FILE_(p) {.type = TREE_FILE, .path = (p)}
#define LINK(p, t) {.type = TREE_LINK, .path = (p), .target = (t)}

TEST(guard_puts_folders_first_and_once)
{
    struct list list;

    assert_str_eq(RUN(FILE_("a/b/c"), DIR("a"), FILE_("a/d"), DIR("a/b"), DIR("a")),
                  "d a\nd a/b\nf a/b/c\nf a/d\n");
}

TEST(guard_refuses_names_that_collide)
{
    struct list list;

    assert_str_eq(RUN(FILE_("a"), FILE_("a")), "entry 'a' is there twice");
    assert_str_eq(RUN(FILE_("a"), DIR("a")), "entry 'a' is there as two kinds");
    assert_str_eq(RUN(DIR("a"), FILE_("a")), "entry 'a' is there as two kinds");
    assert_str_eq(RUN(FILE_("a/b"), LINK("a", "b")), "entry 'a' is there as two kinds");
    assert_str_eq(RUN(LINK("l", "d"), FILE_("l/x")), "entry 'l/x' is below a link");
    assert_str_eq(RUN(FILE_("f"), DIR("f/x")), "entry 'f/x' is below a file");
    assert_str_eq(RUN(FILE_("A"), FILE_("a"), FILE_("\xc3\xa9"), FILE_("e\xcc\x81")),
                  "f A\nf a\nf \xc3\xa9\nf e\xcc\x81\n");
}

TEST(guard_refuses_escapes_of_other_systems)
{
    static const char *const bad[] = {"..\\x", "a\\..\\x", "a/..\\x", "a\\..",
                                      "C:\\x", "c:/x",     "\\x",     "\\\\h\\s"};
    struct list list;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_str_has(RUN(FILE_(bad[i])), "leaves its folder on another system");
    assert_str_eq(RUN(FILE_("a\\b"), FILE_("C:x")), "f a\\b\nf C:x\n");
}

TEST(guard_counts_folders_that_nobody_named)
{
    struct list list = {.sink = {list_entry, list_data}};
    auto_guard struct tree_guard g;
    struct error err;

    tree_guard_init(&g, &list.sink);
    g.budget.entries = TREE_ENTRIES_MAX - 2;
    assert_int_eq(g.sink.entry(&g.sink, &(struct tree_entry)FILE_("a/b/c"), &err), -ERR_LIMIT);
}

TEST(guard_wants_exactly_the_data_of_a_file)
{
    struct list list = {.sink = {list_entry, list_data}};
    const struct tree_entry two = {.type = TREE_FILE, .path = "a", .size = 2};
    auto_guard struct tree_guard g;
    struct error err;

    tree_guard_init(&g, &list.sink);
    assert_int_eq(g.sink.data(&g.sink, "x", 1, &err), -ERR_PROTOCOL);
    assert_ok(g.sink.entry(&g.sink, &two, &err), err);
    assert_int_eq(g.sink.data(&g.sink, "xyz", 3, &err), -ERR_PROTOCOL);
    assert_ok(g.sink.data(&g.sink, "x", 1, &err), err);
    assert_int_eq(tree_guard_finish(&g, &err), -ERR_PROTOCOL);
    assert_int_eq(g.sink.entry(&g.sink, &(struct tree_entry)FILE_("b"), &err), -ERR_PROTOCOL);
    assert_ok(g.sink.data(&g.sink, "y", 1, &err), err);
    assert_ok(tree_guard_finish(&g, &err), err);
}
