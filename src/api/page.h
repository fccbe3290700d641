/* SPDX-License-Identifier: MIT */
/*
 * The page for people and its files: from the program itself, or from a directory while it is
 * developed. What each file is served with (type, policy, caching) is decided by its name, not by
 * who built it.
 */
#pragma once

#include "api/api.h"
#include "base/buf.h"

struct page;

/* Either may be NULL; with a directory the files of the program are not used. */
int page_new(const struct page_file *files, const char *dir, struct page **ret,
             struct error *reterr) must_check;
void page_free(struct page *p);

/* A route for each name at the top; the api is their user. */
const struct route_entry *page_routes(const struct page *p);
bool page_is_route(const struct route_entry *route);

/* Answers with the page itself; where there is none, with how to get it. */
void page_respond(const struct page *p, struct http_request *req);

/* Whether the client would rather have the page than JSON; says that the answer depends on it. */
bool page_is_wanted(struct http_request *req);

/* ---- where files come from: page_source.c ---- */

enum { PAGE_ETAG_LEN = 64 };

struct page_source {
    const struct page_file *files;
    const char *dir;
};

struct page_content {
    const void *bytes;
    size_t len;
    uint64_t size; /* unpacked */
    bool gzip;
    char etag[PAGE_ETAG_LEN + 1]; /* of the unpacked content, without quotes */
    char *owned;                  /* the bytes, when they are to be freed */
};

/* `path` as http_path() gives it. ERR_NOT_FOUND. */
int page_content_open(const struct page_source *s, const char *path, struct page_content *ret,
                      struct error *reterr) must_check;
void page_content_done(struct page_content *c);

/* Appends all of it, unpacked. */
int page_content_text(const struct page_content *c, struct buf *ret,
                      struct error *reterr) must_check;

/* Calls `add` for each name at the top; <0 ends the walk. A missing directory has none. */
typedef int page_name_fn(void *user, const char *name, size_t len, bool is_dir,
                         struct error *reterr);
int page_source_names(const struct page_source *s, page_name_fn *add, void *user,
                      struct error *reterr) must_check;
