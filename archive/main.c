/* SPDX-License-Identifier: MIT */
/*
 * sandbox-archive: reads and writes archives for the daemon, and can do nothing else. `unpack`: a
 * file on descriptor 0, records on 1; `pack FORMAT`: records on 0, an archive on 1.
 */
#include "archive/confine.h"
#include "archive/pack.h"
#include "archive/unpack.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_BAD_START = 3, CPU_SECONDS = 600 };

static int fail(int status, const struct error *error)
{
    fprintf(stderr, "sandbox-archive: %s\n", error->text);
    return status;
}

/* ---- unpack ---- */

static int records_send(struct output *o, const void *data, size_t len, struct error *reterr)
{
    return fd_write_full(STDOUT_FILENO, data, len, reterr);
}

static int unpack_main(const char *word)
{
    struct source source = {.fd = -1};
    struct error error, other;
    struct output out;
    int r;

    output_init(&out, records_send);
    r = source_init(&source, STDIN_FILENO, &error);
    if (confine(CPU_SECONDS, &other) < 0)
        return fail(EXIT_BAD_START, &other);
    if (r == 0)
        r = unpack(&source, &out, &error);
    if (output_finish(&out, r < 0 ? &error : NULL, &other) < 0)
        return fail(EXIT_REFUSED, &other);
    output_done(&out);
    return r < 0 ? EXIT_REFUSED : 0;
}

/* ---- pack ---- */

/* Takes all whole records out of the buffer. */
static int records_take(struct pack *p, struct buf *in, struct error *reterr)
{
    size_t done = 0;
    ssize_t used = 0;
    int r = 0;

    while (r == 0) {
        struct record record;

        used = record_next(in->data + done, in->len - done, &record, reterr);
        if (used <= 0)
            break;
        r = pack_take(p, &record, reterr);
        done += (size_t)used;
    }
    buf_consume(in, done);
    return used < 0 ? (int)used : r;
}

static int records_pack(struct pack *p, struct error *reterr)
{
    auto_buf struct buf in = {.max = 2 * RECORD_MAX};
    int r = buf_reserve(&in, 2 * RECORD_MAX) < 0 ? error_no_memory(reterr) : 0;

    while (r == 0) {
        ssize_t n = read(STDIN_FILENO, in.data + in.len, in.max - in.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(reterr, errno, "cannot read records");
        if (n == 0)
            return error_set(reterr, ERR_PROTOCOL, "the records are cut off");
        in.len += (size_t)n;
        r = records_take(p, &in, reterr);
    }
    return r;
}

static int pack_main(const char *word)
{
    static const char *const names[] = {[PACK_TAR_GZ] = "tar.gz", [PACK_ZIP] = "zip"};
    auto_pack struct pack *p = NULL;
    struct error error;

    tzset(); /* zip files hold local time; the zone's file cannot be opened later */
    for (size_t i = 0; word && i < ARRAY_LEN(names); i++) {
        if (!str_eq(word, names[i]))
            continue;
        if (pack_new((enum pack_format)i, STDOUT_FILENO, &p, &error) < 0 ||
            confine(CPU_SECONDS, &error) < 0)
            return fail(EXIT_BAD_START, &error);
        return records_pack(p, &error) < 0 ? fail(EXIT_REFUSED, &error) : 0;
    }
    return EXIT_USAGE;
}

/* ---- the rest ---- */

static int formats_main(const char *word)
{
    unpack_list(stdout);
    return 0;
}

static void try_open(void)
{
    close(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static void try_socket(void)
{
    close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static void try_map(void)
{
    munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

static void try_memory(void)
{
    munmap(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

/* For tests: makes one call where the archive would be read, and ends well if it may. */
static int try_main(const char *word)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {
        {"open", try_open}, {"socket", try_socket}, {"exec", try_map}, {"memory", try_memory}};
    struct error error;

    if (confine(CPU_SECONDS, &error) < 0)
        return fail(EXIT_BAD_START, &error);
    for (size_t i = 0; word && i < ARRAY_LEN(calls); i++)
        if (str_eq(word, calls[i].name)) {
            calls[i].call();
            return 0;
        }
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const char *word);
    } modes[] = {
        {"unpack", unpack_main}, {"pack", pack_main}, {"formats", formats_main}, {"try", try_main}};

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(modes); i++)
        if (str_eq(argv[1], modes[i].name))
            return modes[i].run(argv[2]);
    return EXIT_USAGE;
}
