/* SPDX-License-Identifier: MIT */
/*
 * The store of a server without the server, for test_store.py; settings are the environment's.
 *
 *     store-worker ping            one line for each line of standard input: "ok MS", "ERROR MS
 * text" store-worker fill RUNS THREADS   makes the runs of the threads, in turn store-worker work
 * NAME LEASE_MS  claims, writes a checkpoint that names the run, ends; until standard input ends
 * and there is nothing more to claim
 *
 * A worker tells "claim RUN ATTEMPT" and "end RUN ATTEMPT" with one write each, so a kill leaves
 * whole lines.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/settings.h"
#include "base/str.h"
#include "base/uuid.h"
#include "store/runs.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

static int complain(const char *what, const struct error *err)
{
    fprintf(stderr, "store-worker: %s: %s\n", what, err->text);
    return 1;
}

static int ping(const struct settings *settings)
{
    char line[64];
    struct store *s = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        struct error err = {0};
        int64_t start = clock_ms();
        int r = s ? store_ping(s, &err) : store_open(settings, &s, &err);

        if (r < 0)
            printf("%s %lld %s\n", error_entry(err.code)->name, (long long)(clock_ms() - start),
                   err.text);
        else
            printf("ok %lld\n", (long long)(clock_ms() - start));
    }
    store_close(s);
    return 0;
}

static int run_make(struct store *s, int number, int threads, struct error *reterr)
{
    auto_arena struct arena arena = {.max = 4 * MIB};
    char id[UUID_LEN + 1], thread[32];
    struct store_run run, *active;
    struct store_run_new n = {.create_thread = true};
    size_t count;

    if (uuid_v4(id, reterr) < 0)
        return -1;
    snprintf(thread, sizeof(thread), "thread-%d", number % threads);
    n.run = (struct store_run){.id = id,
                               .thread_id = thread,
                               .owner = "o",
                               .assistant_id = "a",
                               .metadata = "{}",
                               .kwargs = "{}",
                               .multitask = "enqueue"};
    return store_run_create(s, &n, &arena, &run, &active, &count, reterr);
}

static int fill(struct store *s, int64_t runs, int64_t threads)
{
    for (int i = 0; i < runs; i++) {
        struct error err = {0};

        if (run_make(s, i, (int)threads, &err) < 0)
            return complain("cannot make a run", &err);
    }
    return 0;
}

static void tell(const char *what, const struct store_run *run)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%s %s %lld\n", what, run->id, (long long)run->attempt);

    if (fd_write_full(STDOUT_FILENO, line, (size_t)len, NULL) < 0)
        _exit(3);
}

static int run_work(struct store *s, const struct store_run *run, struct error *reterr)
{
    struct store_fence fence = {run->id, run->attempt};
    struct store_run_end end = {.status = "success", .thread_status = "idle"};
    struct store_message message = {0};
    struct store_checkpoint c = {.thread_id = run->thread_id,
                                 .source = "loop",
                                 .next = "[]",
                                 .tasks = "[]",
                                 .metadata = "{}",
                                 .run_id = run->id};
    char id[UUID_LEN + 1], json[80];
    int r = uuid_v6(NULL, id, reterr);

    c.id = id;
    message.len = (size_t)snprintf(json, sizeof(json), "\"%s\"", run->id);
    message.json = json;
    if (r == 0)
        r = store_checkpoint_put(s, &fence, &c, &message, 1, reterr);
    if (r == 0)
        r = store_run_end(s, &fence, &end, reterr);
    return r;
}

/* An error ends only what met it: another claim of the run comes when its lease is over. */
static int claim_one(struct store *s, const struct store_worker *w)
{
    auto_arena struct arena arena = {.max = 16 * MIB};
    struct error err = {0};
    struct store_run run = {0};
    int r = store_run_claim(s, w, NULL, &arena, &run, &err);

    if (r < 0)
        return complain("cannot claim", &err), -1;
    if (r == 0)
        return 0;
    tell("claim", &run);
    if (run_work(s, &run, &err) < 0)
        return complain("cannot work", &err), -1;
    tell("end", &run);
    return 1;
}

static int work(struct store *s, const char *name, int64_t lease_ms)
{
    struct store_worker w = {.id = name, .lease_us = lease_ms * 1000, .attempts_max = 1000000};

    for (;;) {
        int r = claim_one(s, &w);
        int ended = r > 0 ? 0 : fd_wait(STDIN_FILENO, POLLIN, clock_deadline(20));

        if (r == 0 && ended != 0)
            return 0;
    }
}

int main(int argc, char **argv)
{
    auto_settings struct settings settings = {0};
    struct settings_source source = {.env = environ};
    struct store *s = NULL;
    struct error err = {0};
    int64_t a = 0, b = 0;
    int r = 2;

    if (settings_load(&settings, &source, &err) < 0)
        return complain("bad settings", &err);
    if (argc == 2 && str_eq(argv[1], "ping"))
        return ping(&settings);
    if (argc != 4 || str_parse_int(argv[3], 1, INT32_MAX, &b) < 0)
        return 2;
    if (store_open(&settings, &s, &err) < 0)
        return complain("cannot open", &err);
    if (str_eq(argv[1], "fill") && str_parse_int(argv[2], 1, INT32_MAX, &a) == 0)
        r = fill(s, a, b);
    else if (str_eq(argv[1], "work"))
        r = work(s, argv[2], b);
    store_close(s);
    return r;
}
