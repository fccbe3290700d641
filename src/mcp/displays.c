/* SPDX-License-Identifier: MIT */
/*
 * The store of displays: one list from the newest use to the oldest, searched from its start. It
 * holds few entries, and they are asked for rarely. Numbers are the store's and never used again,
 * so that an old URI cannot name something else.
 */
#include "mcp/displays.h"

#include "base/buf.h"
#include "base/str.h"

#include <pthread.h>
#include <stdio.h>

enum { ENTRIES_MAX = 4096 };

struct displays {
    pthread_mutex_t lock;
    size_t max, bytes, count;
    unsigned long long last_number;
    struct display *newest, *oldest;
};

int displays_new(size_t max_bytes, struct displays **ret, struct error *reterr)
{
    struct displays *d = calloc(1, sizeof(*d));

    if (!d)
        return error_no_memory(reterr);
    pthread_mutex_init(&d->lock, NULL);
    d->max = max_bytes;
    *ret = d;
    return 0;
}

struct display *display_ref(struct display *o)
{
    __atomic_add_fetch(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void display_unref(struct display *o)
{
    if (__atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL))
        return;
    free(o->data);
    free(o);
}

/* ---- the list, under the lock ---- */

static void list_add(struct displays *d, struct display *o)
{
    o->newer = NULL;
    o->older = d->newest;
    *(d->newest ? &d->newest->newer : &d->oldest) = o;
    d->newest = o;
    d->bytes += o->len;
    d->count++;
}

static void list_remove(struct displays *d, struct display *o)
{
    *(o->newer ? &o->newer->older : &d->newest) = o->older;
    *(o->older ? &o->older->newer : &d->oldest) = o->newer;
    d->bytes -= o->len;
    d->count--;
}

static void list_drop(struct displays *d, struct display *o)
{
    list_remove(d, o);
    display_unref(o);
}

void displays_free(struct displays *d)
{
    if (!d)
        return;
    while (d->oldest)
        list_drop(d, d->oldest);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- names ---- */

static const struct {
    const char *mime, *suffix;
} suffixes[] = {
    {"image/png", "png"},       {"image/jpeg", "jpg"},        {"image/gif", "gif"},
    {"image/webp", "webp"},     {"image/svg+xml", "svg"},     {"text/html", "html"},
    {"text/plain", "txt"},      {"text/markdown", "md"},      {"text/latex", "tex"},
    {"application/pdf", "pdf"}, {"application/json", "json"}, {"application/javascript", "js"},
    {"audio/wav", "wav"},       {"audio/mpeg", "mp3"},        {"audio/ogg", "ogg"},
    {"video/mp4", "mp4"},       {"video/webm", "webm"},
};

static const char *suffix_of(const char *mime)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (str_eq(suffixes[i].mime, mime))
            return suffixes[i].suffix;
    }
    return str_ends(mime, "+json") ? "json" : "bin";
}

static struct display *display_new(const char *session_id, const char *mime, struct buf *data)
{
    struct display *o = calloc(1, sizeof(*o));
    char *fit;

    if (!o)
        return NULL;
    o->refs = 1;
    snprintf(o->session_id, sizeof(o->session_id), "%s", session_id ? session_id : "");
    snprintf(o->mime, sizeof(o->mime), "%s", mime);
    o->len = data->len;
    o->data = buf_take(data);
    /* A buffer grows by doubling; what is counted is what is held. */
    fit = o->len ? realloc(o->data, o->len) : NULL;
    if (fit)
        o->data = fit;
    return o;
}

/* ---- calls ---- */

int displays_put(struct displays *d, const char *session_id, const char *mime, struct buf *data,
                 struct display **ret, struct error *reterr)
{
    struct display *o = display_new(session_id, mime, data);
    unsigned long long number;

    if (!o)
        return error_no_memory(reterr);
    *ret = o;
    pthread_mutex_lock(&d->lock);
    number = ++d->last_number;
    snprintf(o->name, sizeof(o->name), "display-%llu.%s", number, suffix_of(mime));
    if (id_check(o->session_id) && o->len <= d->max) {
        snprintf(o->uri, sizeof(o->uri), "sandbox://%s/displays/%llu.%s", o->session_id, number,
                 suffix_of(mime));
        while (d->oldest && (d->bytes + o->len > d->max || d->count >= ENTRIES_MAX))
            list_drop(d, d->oldest);
        list_add(d, display_ref(o));
    }
    pthread_mutex_unlock(&d->lock);
    return 0;
}

struct display *displays_get(struct displays *d, const char *uri)
{
    struct display *o;

    pthread_mutex_lock(&d->lock);
    for (o = d->newest; o && !str_eq(o->uri, uri); o = o->older)
        ;
    if (o) {
        list_remove(d, o);
        list_add(d, display_ref(o));
    }
    pthread_mutex_unlock(&d->lock);
    return o;
}

/* Referenced, oldest first; so no lock is held while somebody else's functions run. */
static struct display **snapshot(struct displays *d, size_t *ret_count)
{
    struct display **list;
    size_t n = 0;

    pthread_mutex_lock(&d->lock);
    list = calloc(d->count + 1, sizeof(*list));
    for (struct display *o = d->oldest; o && list; o = o->newer)
        list[n++] = display_ref(o);
    pthread_mutex_unlock(&d->lock);
    *ret_count = n;
    return list;
}

int displays_list(struct displays *d, displays_may_see_fn *may_see, displays_each_fn *each,
                  void *user, struct error *reterr)
{
    size_t count;
    auto_free struct display **list = snapshot(d, &count);

    if (!list)
        return error_no_memory(reterr);
    for (size_t i = 0; i < count; i++) {
        if (may_see(user, list[i]->session_id))
            each(user, list[i]);
        display_unref(list[i]);
    }
    return 0;
}

void displays_drop_session(struct displays *d, const char *session_id)
{
    struct display *o, *older;

    pthread_mutex_lock(&d->lock);
    for (o = d->newest; o; o = older) {
        older = o->older;
        if (str_eq(o->session_id, session_id))
            list_drop(d, o);
    }
    pthread_mutex_unlock(&d->lock);
}
