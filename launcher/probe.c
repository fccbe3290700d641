/* SPDX-License-Identifier: MIT */
/* Runs the table of tries and prints what they found, or what a test wants to be found. */
#include "launcher/probe.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/probe-internal.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { TRY_MS = 10000, FAKES_MAX = 64, FAKE_BYTES = 64 * 1024 };

static const char *const result_names[] = {
    [FINDING_OK] = "ok", [FINDING_DEGRADED] = "degraded", [FINDING_MISSING] = "missing"};

bool finding_parse(const char *line, struct finding *ret)
{
    char *const fields[] = {ret->name, NULL, ret->detail, ret->fix};
    const size_t sizes[] = {sizeof(ret->name), 0, sizeof(ret->detail), sizeof(ret->fix)};
    bool known = false;

    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        size_t len = strcspn(line, "\t\n");

        for (size_t k = 0; i == 1 && k < ARRAY_LEN(result_names); k++) {
            if (strlen(result_names[k]) == len && memcmp(line, result_names[k], len) == 0) {
                ret->result = (enum finding_result)k;
                known = true;
            }
        }
        if (fields[i])
            memcpy(fields[i], line, MIN(len, sizes[i] - 1));
        line += len;
        if (*line == '\t')
            line++;
    }
    return known && ret->name[0];
}

static void finding_print(const struct finding *f)
{
    printf("%s\t%s\t%s\t%s\n", f->name, result_names[f->result], f->detail,
           f->result == FINDING_OK ? "" : f->fix);
}

static void finding_fail(const struct probe_entry *entry, const char *detail, struct finding *ret)
{
    ret->result = entry->otherwise;
    snprintf(ret->detail, sizeof(ret->detail), "%.*s", (int)sizeof(ret->detail) - 1, detail);
    if (!ret->fix[0])
        snprintf(ret->fix, sizeof(ret->fix), "%s", entry->fix);
}

static _Noreturn void try_child(const struct probe_entry *entry,
                                const struct probe_options *options, int out)
{
    struct finding finding = {0};
    struct error err = {0};

    snprintf(finding.name, sizeof(finding.name), "%s", entry->name);
    if (entry->run(options, &finding, &err) < 0)
        finding_fail(entry, err.text, &finding);
    _exit(fd_write_full(out, &finding, sizeof(finding), NULL) < 0);
}

/* Its own pid namespace or a filter may keep a child from being killed by name, not by us. */
static void entry_try(const struct probe_entry *entry, const struct probe_options *options,
                      struct finding *ret)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    int ends[2];
    pid_t pid;

    snprintf(ret->name, sizeof(ret->name), "%s", entry->name);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        finding_fail(entry, "no pipe", ret);
        return;
    }
    pid = sys_clone3(&args);
    if (pid == 0)
        try_child(entry, options, ends[1]);
    close(ends[1]);
    if (pid < 0 || fd_wait(ends[0], POLLIN, clock_deadline(TRY_MS)) <= 0 ||
        fd_read_full(ends[0], ret, sizeof(*ret), NULL) != (ssize_t)sizeof(*ret)) {
        snprintf(ret->name, sizeof(ret->name), "%s", entry->name);
        finding_fail(entry, "the try hung or died", ret);
    }
    close(ends[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
}

struct fakes {
    struct finding list[FAKES_MAX];
    bool used[FAKES_MAX];
    size_t count;
};

static int fakes_read(const char *path, struct fakes *ret, struct error *reterr)
{
    auto_free char *text = NULL;
    int r = fd_read_file(AT_FDCWD, path, FAKE_BYTES, &text, NULL, reterr);

    if (r < 0)
        return r;
    for (const char *line = text; *line && ret->count < FAKES_MAX;) {
        size_t len = strcspn(line, "\n");

        if (finding_parse(line, &ret->list[ret->count]))
            ret->count++;
        line += len + (line[len] == '\n');
    }
    return 0;
}

static const struct finding *fake_find(struct fakes *fakes, const char *name)
{
    for (size_t i = 0; i < fakes->count; i++) {
        if (str_eq(fakes->list[i].name, name)) {
            fakes->used[i] = true;
            return &fakes->list[i];
        }
    }
    return NULL;
}

int probe_main(const struct probe_options *options)
{
    static struct fakes fakes;
    struct error err;

    if (options->fake && fakes_read(options->fake, &fakes, &err) < 0) {
        fprintf(stderr, "sandbox-launch: %s\n", err.text);
        return error_entry(err.code)->exit_status;
    }
    for (size_t i = 0; i < probe_count; i++) {
        const struct finding *fake = fake_find(&fakes, probe_table[i].name);
        struct finding found = {0};

        if (fake)
            found = *fake;
        else
            entry_try(&probe_table[i], options, &found);
        finding_print(&found);
    }
    for (size_t i = 0; i < fakes.count; i++) {
        if (!fakes.used[i])
            finding_print(&fakes.list[i]);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
