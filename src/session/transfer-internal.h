/* SPDX-License-Identifier: MIT */
/* What the files that move files share: lexical paths, streams of a session, and trees. */
#pragma once

#include "session/session-internal.h"
#include "session/transfer.h"
#include "session/tree.h"

enum { FILE_MS = 300000, COPY_CHUNK = 256 * 1024 };

/* ---- place.c: paths as text; the one way to normalise them ---- */

/*
 * The absolute path without ".", "..", empty components and trailing slashes; relative ones are
 * below `base`. ERR_INVALID for an empty path, one that is too long and one that leaves "/".
 */
int place_normalize(const char *base, const char *path, char ret[TREE_PATH_MAX],
                    struct error *reterr) must_check;

/* Whether a normal path is `dir` or below it, by whole components. */
bool place_is_below(const char *path, const char *dir);

/* The last component of a normal path; "" for "/". */
const char *place_name(const char *path);

/* Whether the caller wrote it as a folder: it ends in a slash or in a component "." or "..". */
bool place_is_folder(const char *path);

int place_join(const char *dir, const char *name, char ret[TREE_PATH_MAX],
               struct error *reterr) must_check;

/* ---- file.c: calls ---- */

/*
 * The start of every file call: a payload that names the path, and a live session, referenced and
 * held from being collected until file_call_end().
 */
int file_payload_begin(struct buf *payload, const char *path, struct error *reterr) must_check;
int file_call_begin(struct session_manager *m, const struct session_path *at, enum call_kind kind,
                    struct session **ret, struct error *reterr) must_check;
void file_call_end(struct session *s, enum call_kind kind);

/* `ret_strings` owns the name and the target that `ret_name` and `ret` point to; may be NULL. */
struct file_strings {
    char *name, *target;
};
void file_info_parse(const struct frame *f, struct session_file_info *ret,
                     struct file_strings *ret_strings);

/* Adds which limit it is that was met, and returns the negative code. */
int file_explain(const struct session *s, struct error *reterr);

/* What a path leads to, links followed: a readable regular file or a folder, else an error. */
int session_file_look(struct session_manager *m, const struct session_path *at,
                      struct session_file_info *ret, struct error *reterr) must_check;

int session_file_mkdir(struct session_manager *m, const struct session_path *at,
                       struct error *reterr) must_check;
int session_file_rename(struct session_manager *m, const struct session_path *at, const char *to,
                        struct error *reterr) must_check;
int session_file_link(struct session_manager *m, const struct session_path *at, const char *target,
                      struct error *reterr) must_check;

/* ---- file_stream.c: one FILE_READ or FILE_WRITE that is going on ---- */

struct file_stream {
    struct control_sink sink; /* first */
    struct session *session;  /* held by a call; NULL before the start */
    enum call_kind kind;
    void (*frame)(struct file_stream *s, const struct frame *f); /* under the lock, must not wait */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool attached, over;
    int result; /* once it is over */
    struct error why;
};

void file_stream_init(struct file_stream *s, enum call_kind kind);
/* Begins a call; further fields go into the payload before the start. */
int file_stream_begin(struct file_stream *s, struct session_manager *m,
                      const struct session_path *at, struct buf *payload,
                      struct error *reterr) must_check;
int file_stream_start(struct file_stream *s, uint8_t type, const struct buf *payload,
                      struct error *reterr) must_check;

/* Waits for a frame or the end, under the lock; ERR_TIMEOUT after FILE_MS. */
int file_stream_wait(struct file_stream *s, struct error *reterr) must_check;

/* Ends it, if need be by force; `wait`: until the sandbox has cleaned up after it. */
void file_stream_done(struct file_stream *s, bool wait);

/* ---- trees ---- */

/* Calls `visit` for all below a folder, a folder before its content; `rel` is below `at`. A folder
 * for which it returns SESSION_WALK_SKIP is not entered. */
enum { SESSION_WALK_SKIP = 1 };
typedef int session_walk_fn(void *user, const char *rel, const struct session_file_info *info,
                            struct error *reterr);
int session_walk(struct session_manager *m, const struct session_path *at, session_walk_fn *visit,
                 void *user, struct error *reterr) must_check;

/* The bytes of all files below a folder. */
int session_walk_size(struct session_manager *m, const struct session_path *at, uint64_t *ret,
                      struct error *reterr) must_check;

/* Pushes a folder's content. */
int session_walk_push(struct session_manager *m, const struct session_path *at,
                      struct tree_sink *sink, struct error *reterr) must_check;

/* Pushes one open file as entry `path`. */
int session_reader_push(struct session_reader *r, const struct session_file_info *info,
                        const char *path, struct tree_sink *sink, struct error *reterr) must_check;

/* A file or folder of the host that may be read, opened; `st` says which. */
struct host_source {
    int fd;
    bool is_dir;
    uint64_t size;
    bool executable;
    char name[256]; /* its own */
};
int host_source_open(const struct import_roots *roots, const char *path, struct host_source *ret,
                     struct error *reterr) must_check;
void host_source_close(struct host_source *h);
int host_walk_push(const struct host_source *h, struct tree_sink *sink,
                   struct error *reterr) must_check;

/* Hands on exactly `size` bytes of a descriptor. */
typedef int copy_fn(void *user, const void *data, size_t len, struct error *reterr);
int copy_from_fd(int fd, uint64_t size, copy_fn *put, void *user, struct error *reterr) must_check;
int copy_from_reader(struct session_reader *r, copy_fn *put, void *user,
                     struct error *reterr) must_check;

/* ---- tree_session.c: a tree that becomes a folder of a session ---- */

struct session_sink {
    struct tree_sink sink; /* first */
    struct session_manager *manager;
    const char *id, *owner; /* borrowed */
    char destination[TREE_PATH_MAX], stage[TREE_PATH_MAX];
    bool staged, merges;
    bool failed; /* an entry could not be taken: an error is the destination's, not the source's */
    struct tree_budget budget;
    struct session_writer *writer;
    uint64_t left;    /* of the file that is being written */
    struct buf links; /* path NUL target NUL, ... */
    uint64_t files, bytes;
};

/* `to->path` is normal. Everything is staged, until the finish shows it. */
int session_sink_open(struct session_sink *s, struct session_manager *m,
                      const struct session_path *to, struct error *reterr) must_check;
int session_sink_finish(struct session_sink *s, struct error *reterr) must_check;
void session_sink_close(struct session_sink *s); /* an unfinished one leaves nothing */

/* ---- export.c ---- */

/* ERR_DENIED when neither the normal path nor a folder above it was exported. */
int session_export_check(struct session_manager *m, const struct session_path *at,
                         struct error *reterr) must_check;
