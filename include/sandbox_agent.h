/* SPDX-License-Identifier: MIT */
/*
 * libsandbox_agent: code in isolated Python, Node and R sandboxes.
 *
 *     struct sa_error error;
 *     struct sa *sa = NULL;
 *     char id[SA_ID_SIZE], *json = NULL;
 *
 *     if (sa_open(NULL, &sa, &error) < 0 || sa_session_create(sa, NULL, id, &error) < 0 ||
 *         sa_execute(sa, id, "1 + 1", 0, &json, &error) < 0)
 *         fprintf(stderr, "%s\n", error.text);
 *     sa_free(json);
 *     sa_close(sa);
 *
 * Conventions. Functions return 0 (or a documented positive number) on success and a negative
 * number on failure, and then fill `*reterr`, which may be NULL. Outputs are untouched on failure.
 * Any other argument that is NULL without being said to be allowed gives SA_INVALID.
 * Strings are UTF-8. Times are milliseconds, sizes are bytes. Every function may be called from any
 * thread, but one `struct sa_run` belongs to one thread at a time (other than for sa_run_cancel()
 * and sa_run_input()). Option structs start with their own size: set it by the macro, so that a
 * program goes on working with a newer library; a zeroed member means its default.
 *
 * The library starts one helper process (the keeper) that owns the sandboxes, never forks the
 * calling process, changes no signal handler and prints nothing but warnings to stderr. Settings
 * come from the environment and from `.env` of the state directory, as for the program.
 */
#ifndef SANDBOX_AGENT_H
#define SANDBOX_AGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SA_API __attribute__((visibility("default")))
#else
#define SA_API
#endif

#define SA_ID_SIZE 33 /* a session id with its NUL byte: 32 hex digits */

struct sa;
struct sa_run;

/* ---- errors ---- */

enum sa_error_code {
    SA_OK = 0,
    SA_INVALID = 1,   /* an argument is wrong */
    SA_NOT_FOUND = 2, /* no such session or file */
    SA_EXISTS = 3,
    SA_DENIED = 4,  /* not allowed by the settings */
    SA_LIMIT = 5,   /* a limit is reached; the text names it */
    SA_TIMEOUT = 6, /* no answer in time */
    SA_CANCELLED = 7,
    SA_BUSY = 8,
    SA_UNAVAILABLE = 9, /* this host cannot do it; the text has the remedy */
    SA_PROTOCOL = 10,
    SA_UPSTREAM = 11, /* an installer or a service failed */
    SA_DIED = 12,     /* the session has ended; the text has the cause */
    SA_DISK = 13,     /* no space on the host, or in the sandbox */
    SA_SYSTEM = 14,   /* an operating-system error; `sys` is errno */
    SA_NO_MEMORY = 15,
    SA_INTERNAL = 16
};

struct sa_error {
    int code; /* enum sa_error_code */
    int sys;  /* errno, or 0 */
    char text[400];
};

/* Stable upper-case name of a code, such as "LIMIT_REACHED"; static. */
SA_API const char *sa_error_name(int code);

/* Version of the library, such as "0.1.0"; static. */
SA_API const char *sa_version(void);

/* Releases memory that a function of this library returned. NULL is fine. */
SA_API void sa_free(void *memory);

/* ---- the library ---- */

/*
 * Lines about image builds and installs, while a session is created: on the creating thread, or on
 * one of the library's while that one waits. Do not call the library from it.
 */
typedef void sa_progress_fn(void *user, const char *text);

struct sa_options {
    size_t size;          /* sizeof(struct sa_options) */
    const char *env_file; /* settings file; NULL: `.env` of the state directory */
    const char *instance; /* name of this process's run directory, "<instance>-<n>"; NULL: "lib" */
    int keep_sessions; /* sa_close() leaves sessions running; the next sa_open() takes them over */
    int no_build;      /* a missing image is an error instead of minutes of work */
    sa_progress_fn *progress;
    void *progress_user;
};

/*
 * Starts the library and takes over the sessions that a former process of the same instance left.
 * `options` may be NULL. Errors: SA_INVALID (a setting), SA_UNAVAILABLE, SA_SYSTEM.
 */
SA_API int sa_open(const struct sa_options *options, struct sa **ret, struct sa_error *reterr);

/*
 * Ends all sessions, unless keep_sessions was given, and with them their runs; a run may still be
 * read and closed afterwards. No other call may be going on. NULL is fine.
 */
SA_API void sa_close(struct sa *sa);

/* ---- sessions ---- */

struct sa_dependency {
    const char *name;    /* a package of PyPI, npm or the R repository */
    const char *version; /* NULL or "": the newest */
};

struct sa_session_options {
    size_t size;          /* sizeof(struct sa_session_options) */
    const char *language; /* "python" (NULL), "node" or "r" */
    const char *owner;    /* only this owner sees the session; NULL: everybody. At most 128 bytes */
    const char *network;  /* "none", "public"; NULL: as CONTAINER_NETWORK_ENABLED says */
    const char *image;    /* a prepared root file system; NULL: the language's image */
    uint64_t memory_bytes;                    /* without swap */
    uint64_t tmpfs_bytes;                     /* of /workspace and of /tmp, each */
    int64_t cpu_quota;                        /* microseconds per 100,000 */
    int64_t pids;                             /* processes and threads */
    const struct sa_dependency *dependencies; /* installed before the session is handed out */
    size_t dependency_count;
    const char *const *env; /* "NAME=value", ends with NULL; or NULL */
};

/*
 * Creates a session and fills `ret_id`. `options` may be NULL. Takes about half a second; minutes
 * when the image has to be built first. Errors: SA_INVALID, SA_LIMIT, SA_UPSTREAM (an install
 * failed; the text has its last lines), SA_UNAVAILABLE, SA_DISK. A failed create leaves nothing
 * behind.
 */
SA_API int sa_session_create(struct sa *sa, const struct sa_session_options *options,
                             char ret_id[SA_ID_SIZE], struct sa_error *reterr);

/* Ends a session; when it returns no trace of it is left. SA_NOT_FOUND for an unknown one. */
SA_API int sa_session_stop(struct sa *sa, const char *id, struct sa_error *reterr);

/* Interrupts what runs in the session now, if anything; its state is kept. */
SA_API int sa_session_interrupt(struct sa *sa, const char *id, struct sa_error *reterr);

/*
 * The sessions as a JSON array of {"session_id","runtime","status"
 * ("starting","running","dead"),"cause"?,"busy","owner",
 * "created_ms","idle_ms","network","dependencies":{name:version},"degraded":[text]}. sa_free() the
 * text.
 */
SA_API int sa_session_list(struct sa *sa, char **ret_json, struct sa_error *reterr);

/* ---- runs: one cell or command, as an iterator of events ---- */

enum sa_event_type {
    SA_EVENT_STDOUT = 1, /* bytes as they were printed, in any pieces */
    SA_EVENT_STDERR = 2,
    SA_EVENT_LATE_STDOUT = 3, /* printed by the session while no cell ran */
    SA_EVENT_LATE_STDERR = 4,
    SA_EVENT_DISPLAY = 5, /* JSON {"type":mime,"data":...,"metadata"?}; binary kinds are base64 */
    SA_EVENT_RESULT = 6,  /* JSON {mime: data}: the value of the cell */
    SA_EVENT_ERROR = 7,   /* JSON {"type","message","traceback"} */
    SA_EVENT_INPUT = 8,   /* JSON {"prompt","password"}: answer with sa_run_input() */
    SA_EVENT_GAP = 9,     /* decimal: bytes of events that were dropped, because nobody read them */
    SA_EVENT_END = 10     /* the last one */
};

struct sa_event {
    int type;         /* enum sa_event_type */
    const char *data; /* NUL-terminated for convenience; may hold NUL bytes */
    size_t len;
};

enum sa_run_kind {
    SA_CODE = 0,   /* a cell for the session's kernel */
    SA_COMMAND = 1 /* a command line for `sh -c` in /workspace; does not touch the kernel */
};

struct sa_run_options {
    size_t size; /* sizeof(struct sa_run_options) */
    int kind;    /* enum sa_run_kind */
    const char *text;
    size_t len;         /* 0: strlen(text) */
    int64_t timeout_ms; /* 0: CONTAINER_EXECUTION_TIMEOUT_SECONDS */
    int answers_input;  /* the caller answers SA_EVENT_INPUT; else input() fails at once */
    const char *cwd;    /* of a command; NULL: /workspace */
};

/*
 * Starts a run, or queues it: the runs of one session go one after another. It goes on whether its
 * events are read or not. Errors: SA_NOT_FOUND, SA_DIED, SA_INVALID (empty or too large). Release
 * it with sa_run_close().
 */
SA_API int sa_run_open(struct sa *sa, const char *id, const struct sa_run_options *options,
                       struct sa_run **ret, struct sa_error *reterr);

/*
 * The next event: 1, and `*ret` is valid until the next call for this run; 0 after the end;
 * SA_TIMEOUT when none came within timeout_ms (negative: for ever).
 */
SA_API int sa_run_next(struct sa_run *run, int64_t timeout_ms, const struct sa_event **ret,
                       struct sa_error *reterr);

/*
 * Waits for the end (SA_TIMEOUT as above) and gives the result object as JSON: {"success","status"
 * ("ok","error","timeout", "interrupted","died"),"state"
 * ("kept","lost"),"cause","message"?,"stdout","stderr","duration_ms","output":{"stdout_bytes",
 * "stderr_bytes","truncated"}}; for code also "result","error","display_outputs" (of
 * {"type","data","text"?,"metadata"?}; "text" is what "data" looks like as plain text),
 * "late_output"?; for a command "exit_code", "signal"?. A cell that fails is no failure of this
 * function. sa_free() the text.
 */
SA_API int sa_run_result(struct sa_run *run, int64_t timeout_ms, char **ret_json,
                         struct sa_error *reterr);

/* Stops a run: a waiting one never starts, a running one is interrupted, and killed if that does
 * not help. */
SA_API void sa_run_cancel(struct sa_run *run);

/* Answers an input request with a line; NULL: there is no answer. */
SA_API int sa_run_input(struct sa_run *run, const char *line, struct sa_error *reterr);

/* Forgets a run; it goes on if it has not ended. NULL is fine. */
SA_API void sa_run_close(struct sa_run *run);

/*
 * The next run that was going on, or had not been read, when the former process of this instance
 * ended; SA_NOT_FOUND when there is none left. Its events come from their beginning.
 */
SA_API int sa_run_adopted(struct sa *sa, const char *id, struct sa_run **ret,
                          struct sa_error *reterr);

/* A cell as one call: sa_run_open(), sa_run_result(), sa_run_close(). */
SA_API int sa_execute(struct sa *sa, const char *id, const char *code, int64_t timeout_ms,
                      char **ret_json, struct sa_error *reterr);

/* A command as one call. */
SA_API int sa_terminal(struct sa *sa, const char *id, const char *command, int64_t timeout_ms,
                       char **ret_json, struct sa_error *reterr);

/* ---- files: bytes in and out; paths are the sandbox's, relative ones below /workspace ---- */

/* Reads a regular file whole, at most 1 GiB; sa_free() the data, which has a NUL byte behind it. */
SA_API int sa_file_read(struct sa *sa, const char *id, const char *path, void **ret,
                        size_t *ret_len, struct sa_error *reterr);

/* Writes a file, making its directories: the old content or the new is there, never a part. */
SA_API int sa_file_write(struct sa *sa, const char *id, const char *path, const void *data,
                         size_t len, struct sa_error *reterr);

/* The entries of a directory as a JSON array of {"name","type"
 * ("file","dir","link","other"),"size","mtime_ms"}. Bytes of a name that are no UTF-8 stand there
 * as U+FFFD; paths are taken byte by byte. */
SA_API int sa_file_list(struct sa *sa, const char *id, const char *path, char **ret_json,
                        struct sa_error *reterr);

/* Removes a file, or a directory with all in it. */
SA_API int sa_file_remove(struct sa *sa, const char *id, const char *path, struct sa_error *reterr);

/* ---- files and folders as streams: from the host, between sessions, and out ---- */

enum sa_source_kind {
    SA_HOST = 0,    /* a file or folder of the host, by an absolute path */
    SA_SESSION = 1, /* one that another session has exported */
    SA_CONTENT = 2  /* bytes */
};

struct sa_import_options {
    size_t size;            /* sizeof(struct sa_import_options) */
    int kind;               /* enum sa_source_kind */
    const char *path;       /* of the host, or in the other session */
    const char *session_id; /* SA_SESSION */
    const void *content;    /* SA_CONTENT */
    size_t len;
    int extract; /* the source is a tar or zip archive, and its content is what is wanted */
    const char *destination; /* NULL: the source's own name; with a slash at the end: into it */
};

/*
 * Copies a file, a folder or an archive's content into a session, and gives a JSON object
 * {"destination","size","files"}. A file appears whole or not at all, and so does a folder that was
 * not there; one that was there is merged into, file by file. Links in a folder stay links when
 * they lead to something in it; else, as for devices, pipes and sockets, the whole copy is refused.
 * Modes become 0644 or 0755. sa_free() the text.
 */
SA_API int sa_import(struct sa *sa, const char *id, const struct sa_import_options *options,
                     char **ret_json, struct sa_error *reterr);

/*
 * Registers a file or folder below /workspace, and all that is or will be in it, for downloads and
 * other sessions, until the session ends. A JSON object {"path" (absolute), "type" ("file", "dir"),
 * "size"}; sa_free() the text.
 */
SA_API int sa_export(struct sa *sa, const char *id, const char *path, char **ret_json,
                     struct sa_error *reterr);

enum sa_download_format {
    SA_DOWNLOAD_AUTO = 0, /* a file as it is, a folder as .tar.gz */
    SA_DOWNLOAD_TAR_GZ = 1,
    SA_DOWNLOAD_ZIP = 2
};

/* Takes the next bytes; a number other than 0 stops the download with SA_CANCELLED. */
typedef int sa_download_fn(void *user, const void *data, size_t len);

/*
 * Hands what was exported to `fn`, piece by piece, on the calling thread. SA_DENIED when neither
 * the path nor a folder above it was exported. After a failure what was handed over is not whole.
 */
SA_API int sa_download(struct sa *sa, const char *id, const char *path, int format,
                       sa_download_fn *fn, void *user, struct sa_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
