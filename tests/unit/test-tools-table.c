/* SPDX-License-Identifier: MIT */
/* What a model reads of the tools: their order, texts and schemas, each pinned, so that a change of
 * them is meant; and the folders that imports may read. */
#include "tools/tool.h"

#include "base/sha256.h"
#include "base/str.h"
#include "tests/lib/test.h"
#include "tools/schema.h"

struct pin {
    const char *name, *sha256; /* of description, input schema and output schema */
};

/* In the order of the list. A wrong one is printed as it is now. */
static const struct pin pins[] = {
    {"create_session", "7ddcb9927bf21939f310974ce776961a34f84b031fd549cb623638069a52bff8"},
    {"execute_code", "ffdaee2c0738acb7866085a2cd4935e80d93502ebb72cb182066cc020e5ff945"},
    {"execute_terminal", "17d7d718435d3b9051b67bd2b2b0506ad12f3ebe8b05a08ee9c0b7b55896ecfc"},
    {"import_files", "883c088fbb56ea2c0a4cc9c7bdae44095ee22dbe19a69d313e2327ab28aa48ac"},
    {"export_files", "66cb75d14cd5ca5427ecc0ab5bcd9dde928c2cf191fd7d6479e5ed672d2b327c"},
    {"stop_session", "1fb9dfd17159df4d597b56cb1bc0031f11ace015074bbdc9c5923f3b141171af"},
    {"list_sessions", "96293c28ffcfdec3ff7a1dd7d16a3086df2f9fee255faf5a49c2ff57e959a995"},
    {"interrupt_session", "03a62e780cd026bede2b5b90c4a59fbde6d968662af02637e05ecde4ac07cb01"},
};

static void entry_hash(const struct tool_entry *e, char ret[2 * SHA256_SIZE + 1])
{
    const char *const texts[] = {e->name, e->title, e->description, e->input_schema,
                                 e->output_schema};
    struct sha256 s;

    sha256_init(&s);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        sha256_update(&s, texts[i], strlen(texts[i]) + 1);
    sha256_finish_hex(&s, ret);
}

TEST(agt_12_descriptions_are_static_and_their_order_is_fixed)
{
    char hash[2 * SHA256_SIZE + 1];
    bool same = true;

    for (size_t i = 0; i < ARRAY_LEN(pins); i++) {
        assert_not_null(tool_table[i]);
        assert_str_eq(tool_table[i]->name, pins[i].name);
        entry_hash(tool_table[i], hash);
        if (!str_eq(hash, pins[i].sha256)) {
            test_note("{\"%s\", \"%s\"},", pins[i].name, hash);
            same = false;
        }
    }
    assert_null(tool_table[ARRAY_LEN(pins)]);
    if (!same)
        test_fail(__FILE__, __LINE__, "a tool says something else now: read it again, then pin it");
}

TEST(a_tool_is_found_by_its_name)
{
    for (size_t i = 0; tool_table[i]; i++)
        assert_ptr_eq(tool_find(tool_table[i]->name), tool_table[i]);
    assert_null(tool_find("execute_cod"));
    assert_null(tool_find(""));
}

static size_t sentences(const char *text)
{
    size_t n = 0;

    for (const char *p = text; *p; p++)
        n += *p == '.' && (p[1] == ' ' || !p[1]);
    return n;
}

TEST(descriptions_are_of_a_length_that_is_read)
{
    for (size_t i = 0; tool_table[i]; i++) {
        const char *text = tool_table[i]->description;
        size_t n = sentences(text);

        if (n < 3 || n > 9 || strlen(text) > 1400)
            test_fail(__FILE__, __LINE__, "%s: %zu sentences, %zu bytes", tool_table[i]->name, n,
                      strlen(text));
    }
}

static yyjson_doc *schema_parse(const char *text)
{
    yyjson_doc *doc = NULL;
    struct error err;

    assert_ok(json_parse(text, strlen(text), &doc, &err), err);
    return doc;
}

/* Every property, also of entries of a list, says what it is for. */
static void properties_check(const char *tool, yyjson_val *schema)
{
    yyjson_val *key, *property, *required;
    size_t i, max;

    yyjson_obj_foreach(yyjson_obj_get(schema, "properties"), i, max, key, property)
    {
        if (strlen(json_get_str(property, "description", "")) < 10)
            test_fail(__FILE__, __LINE__, "%s: '%s' has no description", tool, yyjson_get_str(key));
        properties_check(tool, yyjson_obj_get(property, "items"));
    }
    yyjson_arr_foreach(yyjson_obj_get(schema, "required"), i, max, required)
    {
        if (!yyjson_obj_get(yyjson_obj_get(schema, "properties"), yyjson_get_str(required)))
            test_fail(__FILE__, __LINE__, "%s: '%s' is required and unknown", tool,
                      yyjson_get_str(required));
    }
}

TEST(schemas_are_objects_and_every_argument_is_described)
{
    for (size_t i = 0; tool_table[i]; i++) {
        auto_json yyjson_doc *in = schema_parse(tool_table[i]->input_schema);
        auto_json yyjson_doc *out = schema_parse(tool_table[i]->output_schema);

        assert_str_eq(json_get_str(yyjson_doc_get_root(in), "type", ""), "object");
        assert_str_eq(json_get_str(yyjson_doc_get_root(out), "type", ""), "object");
        properties_check(tool_table[i]->name, yyjson_doc_get_root(in));
        assert_not_null(yyjson_ptr_get(yyjson_doc_get_root(out), "/properties/success"));
        assert_not_null(yyjson_ptr_get(yyjson_doc_get_root(out), "/properties/active_sessions"));
    }
}

TEST(hints_do_not_contradict_each_other)
{
    for (size_t i = 0; tool_table[i]; i++)
        assert_false(tool_table[i]->read_only && tool_table[i]->destructive);
}

/* ---- roots ---- */

static struct settings settings = {.storage_dir = "/srv/storage"};

static void assert_roots(const char *owner, const char *allowed, const char *want)
{
    auto_arena struct arena arena;
    struct import_roots roots;
    auto_buf struct buf got;
    struct error err;

    arena_init(&arena, MIB);
    buf_init(&got, 64 * KIB);
    settings.import_allowed_dirs = allowed;
    assert_ok(tool_roots(&settings, owner, &arena, &roots, &err), err);
    assert_false(roots.everything);
    for (size_t i = 0; i < roots.count; i++)
        assert_int_eq(buf_printf(&got, "%s;", roots.dirs[i]), 0);
    assert_str_eq(buf_str(&got), want);
}

static void assert_roots_fail(const char *allowed, const char *why)
{
    auto_arena struct arena arena;
    struct import_roots roots;
    struct error err;

    arena_init(&arena, MIB);
    settings.import_allowed_dirs = allowed;
    assert_int_eq(tool_roots(&settings, "me", &arena, &roots, &err), -ERR_INVALID);
    assert_str_has(err.text, why);
}

/* Weakness 15: the reference did not load such a list. */
TEST(w15_allowed_folders_are_a_plain_comma_list)
{
    assert_roots("me", "", "/srv/storage/me;");
    assert_roots("me", "/a", "/srv/storage/me;/a;");
    assert_roots("me", "/a/,/b/c//, /d e ,,", "/srv/storage/me;/a;/b/c;/d e;");
    assert_roots("me", "/", "/srv/storage/me;/;");
    assert_roots_fail("/a,relative", "IMPORT_ALLOWED_DIRS: 'relative' is not absolute");
    assert_roots_fail("~/x", "is not absolute");
}

TEST(an_owner_that_is_no_name_has_no_folder)
{
    assert_roots("..", "", "");
    assert_roots("a/b", "", "");
    assert_roots("", "/a", "/a;");
    assert_roots(NULL, "/a", "/a;");
    assert_roots("2f1a-77", "/a", "/srv/storage/2f1a-77;/a;");
}

TEST(a_list_of_folders_has_an_end)
{
    auto_buf struct buf list;

    buf_init(&list, MIB);
    for (int i = 0; i < 100; i++)
        assert_int_eq(buf_printf(&list, "/d%d,", i), 0);
    assert_roots_fail(buf_str(&list), "more than 63 folders");
}
