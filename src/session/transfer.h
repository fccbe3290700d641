/* SPDX-License-Identifier: MIT */
/*
 * Files into and out of sessions: from the host, from memory, from another session, and out as a
 * stream. A path of a session is resolved by its init, inside the sandbox and as the sandbox's
 * user; a path of the host is walked by descriptors, below an allowed directory, and no link is
 * followed.
 */
#pragma once

#include "session/session.h"

/* Limits of one tree (a folder or an archive), counted by what it would become on a disk. */
enum { TREE_ENTRIES_MAX = 100000, TREE_PATH_MAX = 4096, TREE_DEPTH_MAX = 64 };
#define TREE_BYTES_MAX (4 * GIB)
/* What goes out at once, and how large an archive may be that comes in. */
#define DOWNLOAD_BYTES_MAX (4 * GIB)
#define ARCHIVE_BYTES_MAX (1 * GIB)
enum { EXPORTS_MAX = 1000 }; /* of one session */

/* ---- streams ---- */

/* A file of a session, pulled by its reader; at most 4 MiB of it wait in memory. */
struct session_reader;

int session_reader_open(struct session_manager *m, const struct session_path *at,
                        struct session_file_info *ret_info, struct session_reader **ret,
                        struct error *reterr) must_check;

/*
 * Up to `len` bytes, 0 at the end. A file that grows ends where it ended when it was opened; one
 * that was cut short meanwhile fails. Only one thread reads; a close ends the transfer at once.
 */
ssize_t session_reader_read(struct session_reader *r, void *data, size_t len,
                            struct error *reterr) must_check;
void session_reader_close(struct session_reader *r);

/* A file being written: staged beside its name, which appears with the commit. `size` -1: not known
 * before; of `mode` only whether it is executable counts. */
struct session_writer;

int session_writer_open(struct session_manager *m, const struct session_path *at, int64_t size,
                        unsigned mode, struct session_writer **ret,
                        struct error *reterr) must_check;
int session_writer_write(struct session_writer *w, const void *data, size_t len,
                         struct error *reterr) must_check;
int session_writer_commit(struct session_writer *w, struct error *reterr) must_check;
void session_writer_close(struct session_writer *w); /* without a commit nothing is left */

/* ---- in ---- */

enum import_kind { IMPORT_HOST, IMPORT_SESSION, IMPORT_CONTENT };

struct import_source {
    enum import_kind kind;
    const char *path;       /* of the host or of the other session */
    const char *session_id; /* IMPORT_SESSION: where the path was exported */
    const void *content;    /* IMPORT_CONTENT */
    size_t len;
    bool extract; /* the source is an archive, and its content is what is wanted */
};

/* Which directories of the host may be read. */
struct import_roots {
    const char *const *dirs; /* absolute */
    size_t count;
    bool everything; /* the host program's own calls */
};

struct import_result {
    char destination[TREE_PATH_MAX]; /* absolute */
    uint64_t size;                   /* bytes of all files */
    uint64_t files;
};

/*
 * Copies a file, a folder or an archive's content to `to` (its path NULL or "": the source's own
 * name; a trailing slash: into that folder; absolute or below /workspace). All or nothing for a
 * file and for a folder that was not there.
 */
int session_import(struct session_manager *m, const struct session_path *to,
                   const struct import_source *from, const struct import_roots *roots,
                   struct import_result *ret, struct error *reterr) must_check;

/* ---- out ---- */

struct export_info {
    char path[TREE_PATH_MAX]; /* absolute, normal */
    char type;                /* 'f' or 'd' */
    uint64_t size;            /* of a folder: of all files in it */
};

/* Registers a file or a folder of the session, until the session ends. */
int session_export(struct session_manager *m, const struct session_path *at,
                   struct export_info *ret, struct error *reterr) must_check;

/* What is registered, for `each`; of the sessions that `owner` may see when `id` is NULL. */
typedef void session_export_fn(void *user, const char *id, const struct export_info *info);
int session_export_list(struct session_manager *m, const char *id, const char *owner,
                        session_export_fn *each, void *user, struct error *reterr) must_check;

enum download_format { DOWNLOAD_AUTO, DOWNLOAD_TAR_GZ, DOWNLOAD_ZIP }; /* AUTO: raw, or .tar.gz */

/* An exported file, raw, or an exported folder as an archive; ERR_DENIED when it is not exported.
 */
struct session_download;

struct download_info {
    char name[264];   /* for the client, with the archive's suffix; bytes of any kind but '/' */
    const char *mime; /* application/octet-stream, application/gzip, application/zip */
    int64_t size;     /* -1: not known before */
};

int session_download_open(struct session_manager *m, const struct session_path *at,
                          enum download_format format, struct download_info *ret_info,
                          struct session_download **ret, struct error *reterr) must_check;
ssize_t session_download_read(struct session_download *d, void *data, size_t len,
                              struct error *reterr) must_check;
void session_download_close(struct session_download *d); /* at any time, from the reader's thread */

DEFINE_CLEANUP(struct session_reader *, session_reader_close)
#define auto_session_reader __attribute__((cleanup(session_reader_close_cleanup)))
DEFINE_CLEANUP(struct session_writer *, session_writer_close)
#define auto_session_writer __attribute__((cleanup(session_writer_close_cleanup)))
DEFINE_CLEANUP(struct session_download *, session_download_close)
#define auto_session_download __attribute__((cleanup(session_download_close_cleanup)))
