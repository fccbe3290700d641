/* SPDX-License-Identifier: MIT */
/* The store of displays: names, references, limits, and who sees what. */
#include "base/buf.h"
#include "mcp/displays.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>

#define SESSION "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static void store_free(struct displays **d)
{
    displays_free(*d);
}

#define auto_store __attribute__((cleanup(store_free)))

static struct displays *store(size_t max)
{
    struct displays *d = NULL;
    struct error err;

    assert_ok(displays_new(max, &d, &err), err);
    return d;
}

static struct display *put(struct displays *d, const char *session, const char *mime, size_t len)
{
    struct display *o = NULL;
    struct error err;
    auto_buf struct buf b;

    buf_init(&b, MIB);
    for (size_t i = 0; i < len; i++)
        assert_int_eq(buf_append_byte(&b, 'x'), 0);
    assert_ok(displays_put(d, session, mime, &b, &o, &err), err);
    assert_uint_eq(b.len, 0);
    return o;
}

TEST(a_display_is_found_by_its_uri)
{
    auto_store struct displays *d = store(1000);
    auto_display struct display *a = put(d, SESSION, "image/png", 10);
    auto_display struct display *b = put(d, OTHER, "application/vnd.plotly.v1+json", 10);
    auto_display struct display *found = displays_get(d, a->uri);

    assert_str_eq(a->uri, "sandbox://" SESSION "/displays/1.png");
    assert_str_eq(a->name, "display-1.png");
    assert_str_eq(b->uri, "sandbox://" OTHER "/displays/2.json");
    assert_ptr_eq(found, a);
    assert_str_eq(found->session_id, SESSION);
    assert_str_eq(found->mime, "image/png");
    assert_uint_eq(found->len, 10);
    assert_null(displays_get(d, "sandbox://" SESSION "/displays/2.json"));
    assert_null(displays_get(d, ""));
}

TEST(the_least_recently_used_goes_first)
{
    auto_store struct displays *d = store(30);
    auto_display struct display *a = put(d, SESSION, "image/png", 10);
    auto_display struct display *b = put(d, SESSION, "image/png", 10);
    auto_display struct display *c = put(d, SESSION, "image/png", 10);
    auto_display struct display *used = displays_get(d, a->uri);
    auto_display struct display *e = put(d, SESSION, "image/png", 15);
    auto_display struct display *still = displays_get(d, a->uri);

    assert_ptr_eq(still, a);
    assert_null(displays_get(d, b->uri));
    assert_null(displays_get(d, c->uri));
    assert_uint_eq(b->len, 10);
    assert_mem_eq(b->data, "xxxxxxxxxx", 10);
    assert_str_eq(e->uri, "sandbox://" SESSION "/displays/4.png");
}

TEST(what_cannot_be_kept_has_no_uri)
{
    auto_store struct displays *d = store(30);
    auto_display struct display *a = put(d, SESSION, "text/html", 30);
    auto_display struct display *big = put(d, SESSION, "text/html", 31);
    auto_display struct display *nobody = put(d, NULL, "text/html", 1);
    auto_display struct display *strange = put(d, "../../etc", "text/html", 1);
    auto_display struct display *still = displays_get(d, a->uri);

    assert_str_eq(big->uri, "");
    assert_uint_eq(big->len, 31);
    assert_str_eq(nobody->uri, "");
    assert_str_eq(strange->uri, "");
    assert_ptr_eq(still, a);
}

struct seen {
    const char *session;
    char uris[512];
};

static bool may_see(void *user, const char *session_id)
{
    return strcmp(((struct seen *)user)->session, session_id) == 0;
}

static void each(void *user, const struct display *o)
{
    struct seen *s = user;
    size_t used = strlen(s->uris);

    snprintf(s->uris + used, sizeof(s->uris) - used, "%s ", o->name);
}

static const char *listed(struct displays *d, const char *session, struct seen *s)
{
    struct error err;

    *s = (struct seen){.session = session};
    assert_ok(displays_list(d, may_see, each, s, &err), err);
    return s->uris;
}

TEST(a_list_holds_what_one_may_see)
{
    auto_store struct displays *d = store(100);
    auto_display struct display *a = put(d, SESSION, "audio/wav", 1);
    auto_display struct display *b = put(d, OTHER, "text/weird", 1);
    auto_display struct display *c = put(d, SESSION, "image/svg+xml", 1);
    struct seen s;

    assert_str_eq(listed(d, SESSION, &s), "display-1.wav display-3.svg ");
    assert_str_eq(listed(d, OTHER, &s), "display-2.bin ");
    displays_drop_session(d, SESSION);
    assert_str_eq(listed(d, SESSION, &s), "");
    assert_str_eq(listed(d, OTHER, &s), "display-2.bin ");
    assert_null(displays_get(d, a->uri));
    assert_uint_eq(c->len, 1);
    assert_uint_eq(b->len, 1);
}

static void *hammer(void *arg)
{
    struct displays *d = arg;
    char uri[DISPLAY_URI_SIZE];

    for (int i = 0; i < 2000; i++) {
        struct display *o = NULL;
        auto_buf struct buf b;

        buf_init(&b, 100);
        if (buf_append_str(&b, "abc") < 0 ||
            displays_put(d, SESSION, "image/png", &b, &o, NULL) < 0)
            continue;
        snprintf(uri, sizeof(uri), "%s", o->uri);
        display_unref(o);
        o = displays_get(d, uri);
        if (o)
            display_unref(o);
        if (i % 100 == 0)
            displays_drop_session(d, SESSION);
    }
    return NULL;
}

TEST(many_threads)
{
    auto_store struct displays *d = store(50);
    pthread_t threads[4];
    size_t count = 0;

    while (count < ARRAY_LEN(threads) && pthread_create(&threads[count], NULL, hammer, d) == 0)
        count++;
    /* Those that have begun use the store until they are joined, also when the test fails. */
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    assert_uint_eq(count, ARRAY_LEN(threads));
    displays_drop_session(d, SESSION);
}
