/* SPDX-License-Identifier: MIT */
/*
 * Builds an image: images/build does the work in a directory beside the finished images, this file
 * locks, follows, explains and publishes. The lock is handed to the child too, so that the children
 * of a builder that was killed keep the next one away until they are gone.
 */
#include "engine/image.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/spawn.h"
#include "base/str.h"
#include "engine/image-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define STAGE ".build"
#define LOG_NAME "build.log"

enum {
    LINE_MAX_LEN = 1024,
    FACTS_MAX = 1 << 16,
    LOCK_RETRY_MS = 250,
    PROGRESS_MS = 1000,
    STOP_MS = 15000, /* mmdebstrap takes its mounts and temporary files away */
    LOCK_FD = 3,
};

struct builder {
    const struct image_store *store;
    const char *runtime;
    const struct image_build_options *options;
    char digest[IMAGE_DIGEST + 1];
    int dir; /* IMAGE_DIR/<runtime> */
    int lock;
    int stage;
    int log;
    pid_t pid;
    int64_t started;

    /* What the child prints. */
    char line[LINE_MAX_LEN];
    size_t line_len;
    const char *phase;
    unsigned done, total;
    int64_t told; /* when progress was last told */

    /* The first line that tells why it fails. */
    char reason[160];
    const struct failure_sign *sign;
};

/* What a line of the log says about a failure, and what can be done about it. */
struct failure_sign {
    const char *part;
    enum error_code code;
    const char *remedy;
};

static const struct failure_sign failure_signs[] = {
    {"No space left on device", ERR_DISK,
     "an image needs about 4 GiB while it is built; free some, or set SANDBOX_IMAGE_DIR"},
    {"Disk quota exceeded", ERR_DISK,
     "an image needs about 4 GiB while it is built; free some, or set SANDBOX_IMAGE_DIR"},
    {"Could not resolve", ERR_UPSTREAM, "check the network and http_proxy"},
    {"Temporary failure resolving", ERR_UPSTREAM, "check the network and http_proxy"},
    {"onnection failed", ERR_UPSTREAM, "check the network and http_proxy"},
    {"nable to connect to", ERR_UPSTREAM, "check the network and http_proxy"},
    {"ould not connect to", ERR_UPSTREAM, "check the network and http_proxy"},
    {"npm error", ERR_UPSTREAM, "check the network and npm's registry and proxy settings"},
    {"NO_PUBKEY", ERR_UNAVAILABLE,
     "the keyring is too old; update it: apt install debian-archive-keyring"},
    {"unable to pick chroot mode", ERR_UNAVAILABLE, "see: sandbox-agent doctor"},
};

/* How lines of apt, dpkg and mmdebstrap start that are worth telling; `counts` are packages. */
static const struct {
    const char *prefix;
    const char *phase;
    bool counts;
} phases[] = {
    {"Get:", "downloading", true},
    {"Unpacking ", "unpacking", true},
    {"Setting up ", "setting up", true},
    {"I: extracting archives", "unpacking the base system", false},
    {"I: running --customize-hook", "preparing the file system", false},
    {"I: cleaning", "cleaning up", false},
};

static void dir_close(DIR **d)
{
    if (*d)
        closedir(*d);
}

static void builder_done(struct builder *b)
{
    const int fds[] = {b->stage, b->log, b->lock, b->dir};

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void printf_like(2, 3) builder_tell(struct builder *b, const char *fmt, ...)
{
    char text[LINE_MAX_LEN + IMAGE_RUNTIME + 8];
    va_list args;
    int len = snprintf(text, sizeof(text), "%s: ", b->runtime);

    if (!b->options->progress)
        return;
    va_start(args, fmt);
    vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, args);
    va_end(args);
    b->options->progress(b->options->user, text);
    b->told = clock_ms();
}

static int build_cancelled(const struct builder *b, struct error *reterr)
{
    return error_set(reterr, ERR_CANCELLED, "building the %s image was stopped", b->runtime);
}

/* Waits for other builders; returns holding the lock. */
static int builder_lock(struct builder *b, struct error *reterr)
{
    bool told = false;

    b->lock = openat(b->dir, IMAGE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (b->lock < 0)
        return error_sys(reterr, errno, "cannot open the lock of the %s image", b->runtime);
    while (flock(b->lock, LOCK_EX | LOCK_NB) < 0) {
        struct pollfd cancel = {.fd = b->options->cancel_fd, .events = POLLIN};

        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_sys(reterr, errno, "cannot lock the %s image", b->runtime);
        if (!told)
            builder_tell(b, "waiting for another build");
        told = true;
        if (poll(&cancel, 1, LOCK_RETRY_MS) > 0)
            return build_cancelled(b, reterr);
    }
    return 0;
}

/* What a killed builder or remover left; no other builder is here while we hold the lock. */
static int remains_remove(struct builder *b, struct error *reterr)
{
    int copy = fcntl(b->dir, F_DUPFD_CLOEXEC, 0), r = 0;
    auto_cleanup(dir_close) DIR *list = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *d;

    if (!list)
        return error_sys(reterr, errno, "cannot read '%s/%s'", b->store->dir, b->runtime);
    rewinddir(list);
    while (r == 0 && (d = readdir(list)))
        if (str_eq(d->d_name, STAGE) || str_starts(d->d_name, IMAGE_REMOVED))
            r = path_remove_tree(b->dir, d->d_name, reterr);
    return r;
}

static int stage_prepare(struct builder *b, struct error *reterr)
{
    int r = remains_remove(b, reterr);

    if (r < 0)
        return r;
    if (mkdirat(b->dir, STAGE, 0755) < 0)
        return error_sys(reterr, errno, "cannot make '%s/%s/%s'", b->store->dir, b->runtime, STAGE);
    b->stage = path_open_dir(b->dir, STAGE, reterr);
    if (b->stage < 0)
        return b->stage;
    b->log = openat(b->dir, LOG_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (b->log < 0)
        return error_sys(reterr, errno, "cannot write '%s/%s/%s'", b->store->dir, b->runtime,
                         LOG_NAME);
    return 0;
}

/* Starts images/build; `ret` is the end of the pipe that its output comes from. */
static int child_start(struct builder *b, int *ret, struct error *reterr)
{
    char script[PATH_LEN + 16], stage[2 * PATH_LEN];
    const char *mirror = b->options->mirror;
    char *argv[] = {script, (char *)b->runtime, stage, (char *)mirror, NULL};
    auto_fd int out = -1, in = -1;
    int ends[2], r;

    snprintf(script, sizeof(script), "%s/build", b->store->definitions);
    snprintf(stage, sizeof(stage), "%s/%s/%s", b->store->dir, b->runtime, STAGE);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    out = ends[0];
    in = ends[1];
    const struct spawn_fd fds[] = {{in, STDOUT_FILENO}, {in, STDERR_FILENO}, {b->lock, LOCK_FD}};
    const struct spawn_options options = {.size = sizeof(options),
                                          .path = script,
                                          .argv = argv,
                                          .fds = fds,
                                          .fd_count = ARRAY_LEN(fds),
                                          .new_session = 1};
    if ((r = spawn_start(&options, &b->pid, reterr)) < 0)
        return r;
    *ret = TAKE_FD(out);
    return 0;
}

/* "0 upgraded, 240 newly installed, ..." starts a count. */
static bool line_is_total(struct builder *b)
{
    unsigned upgraded, added;

    if (sscanf(b->line, "%9u upgraded, %9u newly installed", &upgraded, &added) != 2)
        return false;
    b->total = added;
    b->done = 0;
    b->phase = NULL;
    return true;
}

static void progress_count(struct builder *b, const char *phase, bool counts)
{
    bool fresh = !b->phase || !str_eq(b->phase, phase);

    if (fresh)
        b->done = 0;
    b->phase = phase;
    b->done++;
    if (!fresh && (!counts || clock_ms() - b->told < PROGRESS_MS))
        return;
    if (!counts)
        builder_tell(b, "%s", phase);
    else if (!b->total)
        builder_tell(b, "%s package lists", phase);
    else
        builder_tell(b, "%s %u of %u packages", phase, MIN(b->done, b->total), b->total);
}

/* Whether the line tells of progress. */
static bool line_is_progress(struct builder *b)
{
    if (str_starts(b->line, "fetching ")) {
        builder_tell(b, "%s", b->line);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(phases); i++)
        if (str_starts(b->line, phases[i].prefix)) {
            progress_count(b, phases[i].phase, phases[i].counts);
            return true;
        }
    return false;
}

/* The line without the mark of an error or a warning. */
static const char *line_message(const char *line)
{
    static const char *const marks[] = {"error: ", "E: ", "W: ", "npm error "};

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (str_starts(line, marks[i]))
            return line + strlen(marks[i]);
    return line + strspn(line, " ");
}

/* The first sign or error line is the cause; those after it only report that something failed. */
static void line_find_reason(struct builder *b)
{
    bool error = str_starts(b->line, "error: ") || str_starts(b->line, "E: "), signed_now = false;

    for (size_t i = 0; !b->sign && i < ARRAY_LEN(failure_signs); i++)
        if (strstr(b->line, failure_signs[i].part)) {
            b->sign = &failure_signs[i];
            signed_now = true;
        }
    if (signed_now || (error && !b->reason[0]))
        snprintf(b->reason, sizeof(b->reason), "%.*s", (int)sizeof(b->reason) - 1,
                 line_message(b->line));
}

static void line_take(struct builder *b)
{
    b->line[b->line_len] = 0;
    b->line_len = 0;
    if (!line_is_total(b) && !line_is_progress(b))
        line_find_reason(b);
}

static void output_take(struct builder *b, const char *data, size_t len)
{
    /* The log helps a person; a build does not fail because it cannot be written. */
    (void)!write(b->log, data, len);
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n' || data[i] == '\r')
            line_take(b);
        else if (b->line_len < sizeof(b->line) - 1)
            b->line[b->line_len++] = data[i];
    }
}

/* Reads the child's output until its end; asked to stop, or past the deadline, it returns 1. */
static int output_follow(struct builder *b, int fd, int cancel_fd, int64_t deadline)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
    char data[4096];

    for (;;) {
        int n = poll(fds, 2, clock_poll_ms(deadline));
        ssize_t got;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || fds[1].revents)
            return 1;
        got = read(fd, data, sizeof(data));
        if (got <= 0)
            return 0;
        output_take(b, data, (size_t)got);
    }
}

static void child_stop(struct builder *b, int fd)
{
    kill(-b->pid, SIGTERM);
    if (output_follow(b, fd, -1, clock_deadline(STOP_MS)) != 0)
        kill(-b->pid, SIGKILL);
}

static int build_explain(const struct builder *b, int status, struct error *reterr)
{
    const char *reason = b->reason, *remedy = b->sign ? b->sign->remedy : "";
    char ended[64];

    if (!reason[0]) {
        snprintf(ended, sizeof(ended),
                 WIFSIGNALED(status) ? "killed by signal %d" : "exit status %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        reason = ended;
    }
    return error_set(reterr, b->sign ? b->sign->code : ERR_UNAVAILABLE,
                     "cannot build the %s image (log: %s/%s/" LOG_NAME "): %s%s%s", b->runtime,
                     b->store->dir, b->runtime, reason, remedy[0] ? "; " : "", remedy);
}

static int child_run(struct builder *b, struct error *reterr)
{
    auto_fd int fd = -1;
    int status, stopped, r = child_start(b, &fd, reterr);

    if (r < 0)
        return r;
    stopped = output_follow(b, fd, b->options->cancel_fd, CLOCK_FOREVER);
    if (stopped)
        child_stop(b, fd);
    if ((r = spawn_wait(b->pid, &status, reterr)) < 0)
        return r;
    if (stopped)
        return build_cancelled(b, reterr);
    return status ? build_explain(b, status, reterr) : 0;
}

/* One line of the facts that images/build leaves; see there. */
static void fact_add(yyjson_mut_doc *doc, yyjson_mut_val *versions, char *line)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    char *name = strchr(line, ' '), *value;
    int64_t number;

    if (!name)
        return;
    *name++ = 0;
    value = strchr(name, ' ');
    if (value && str_eq(line, "version")) {
        *value++ = 0;
        yyjson_mut_obj_add(versions, yyjson_mut_strcpy(doc, name), yyjson_mut_strcpy(doc, value));
    } else if (str_parse_int(name, 0, INT64_MAX, &number) == 0) {
        yyjson_mut_obj_add(root, yyjson_mut_strcpy(doc, line), yyjson_mut_sint(doc, number));
    }
}

static int json_compose(struct builder *b, char *facts, struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *versions = yyjson_mut_obj(doc);
    time_t now = time(NULL);
    char created[32], *rest = facts;
    struct tm utc;

    if (!doc || !root || !versions)
        return error_no_memory(reterr);
    gmtime_r(&now, &utc);
    strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &utc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_strcpy(doc, root, "runtime", b->runtime);
    yyjson_mut_obj_add_strcpy(doc, root, "digest", b->digest);
    yyjson_mut_obj_add_strcpy(doc, root, "created", created);
    for (char *line; (line = strsep(&rest, "\n"));)
        fact_add(doc, versions, line);
    yyjson_mut_obj_add_val(doc, root, "versions", versions);
    return json_mut_write(doc, ret, reterr);
}

static int json_store(struct builder *b, struct error *reterr)
{
    auto_free char *facts = NULL;
    auto_buf struct buf json;
    size_t len;
    int r = failpoint("image-json");

    buf_init(&json, FACTS_MAX);
    if (r < 0)
        return error_sys(reterr, -r, "cannot write '%s'", IMAGE_JSON);
    if ((r = fd_read_file(b->stage, "facts", FACTS_MAX, &facts, &len, reterr)) < 0 ||
        (r = json_compose(b, facts, &json, reterr)) < 0)
        return r;
    /* dpkg did not sync what it unpacked; a complete image must be complete after a power cut. */
    if (syncfs(b->stage) < 0)
        return error_sys(reterr, errno, "cannot write the %s image to the disk", b->runtime);
    unlinkat(b->stage, "facts", 0);
    r = fd_write_file_atomic(b->stage, IMAGE_JSON, buf_str(&json), json.len, reterr);
    if (r < 0)
        return r;
    /* Other users may use the image, so they may read what it is. */
    return fchmodat(b->stage, IMAGE_JSON, 0644, 0) < 0
               ? error_sys(reterr, errno, "cannot share '%s'", IMAGE_JSON)
               : 0;
}

/* Renames the finished directory into place; a replaced image gets a suffix of its own. */
static int stage_publish(struct builder *b, struct error *reterr)
{
    unsigned flags = image_is_complete(b->dir, b->digest) ? RENAME_EXCHANGE : 0;
    char old[IMAGE_NAME];
    int r = failpoint("image-publish");

    if (r < 0)
        return error_sys(reterr, -r, "cannot publish the %s image", b->runtime);
    if (!flags && (r = path_remove_tree(b->dir, b->digest, reterr)) < 0)
        return r;
    if (renameat2(b->dir, STAGE, b->dir, b->digest, flags) < 0)
        return error_sys(reterr, errno, "cannot publish the %s image", b->runtime);
    snprintf(old, sizeof(old), "%s-%lld", b->digest, (long long)clock_wall_ms());
    if (flags && renameat(b->dir, STAGE, b->dir, old) < 0)
        return error_sys(reterr, errno, "cannot keep the replaced %s image", b->runtime);
    if (fsync(b->dir) < 0)
        return error_sys(reterr, errno, "cannot publish the %s image", b->runtime);
    return 0;
}

static int build_locked(struct builder *b, struct error *reterr)
{
    int r;

    if (image_is_complete(b->dir, b->digest) && !b->options->rebuild) {
        builder_tell(b, "is ready");
        return 0;
    }
    builder_tell(b, "building image %s", b->digest);
    r = stage_prepare(b, reterr);
    if (r == 0)
        r = child_run(b, reterr);
    if (r == 0)
        r = json_store(b, reterr);
    if (r == 0)
        r = stage_publish(b, reterr);
    if (r < 0) {
        if (path_remove_tree(b->dir, STAGE, NULL) < 0)
            builder_tell(b, "cannot remove '%s/%s/%s'", b->store->dir, b->runtime, STAGE);
        return r;
    }
    unlinkat(b->dir, LOG_NAME, 0);
    builder_tell(b, "is ready, built in %lld s", (long long)(clock_ms() - b->started) / 1000);
    return 0;
}

int image_build(const struct image_store *store, const char *runtime,
                const struct image_build_options *options, struct error *reterr)
{
    auto_cleanup(builder_done) struct builder b = {
        .store = store,
        .runtime = runtime,
        .options = options,
        .dir = -1,
        .lock = -1,
        .stage = -1,
        .log = -1,
        .started = clock_ms(),
    };
    int r = image_digest(store, runtime, b.digest, reterr);

    if (r < 0)
        return r;
    b.dir = image_dir_open(store, runtime, /* make= */ true, reterr);
    if (b.dir < 0)
        return b.dir;
    if ((r = builder_lock(&b, reterr)) < 0)
        return r;
    return build_locked(&b, reterr);
}
