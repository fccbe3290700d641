/* SPDX-License-Identifier: MIT */
/*
 * The daemon's side of archives as a program for tests. `extract FILE` prints what came out of it,
 * one entry in a line; `convert FORMAT FILE` makes another archive of it, on standard output;
 * `cancel FORMAT FILE` stops wanting that after its first bytes, and says what the source saw.
 */
#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"
#include "session/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

/* ---- extract ---- */

struct printer {
    struct tree_sink sink; /* first */
    bool open;             /* a file whose hash has to be printed */
    struct sha256 hash;
};

static void hex_print(const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        printf("%02x", ((const unsigned char *)data)[i]);
}

static void hash_print(struct printer *p)
{
    char digest[2 * SHA256_SIZE + 1];

    if (!p->open)
        return;
    sha256_finish_hex(&p->hash, digest);
    printf(" %s\n", digest);
    p->open = false;
}

/* TYPE MODE SIZE MTIME PATH, names in hexadecimal, then the target or the content's SHA-256. */
static int printer_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct printer *p = (struct printer *)sink;

    hash_print(p);
    printf("%c %c %" PRIu64 " %" PRId64 " ", e->type, e->executable ? 'x' : '-', e->size,
           e->mtime_ms);
    hex_print(e->path, strlen(e->path));
    if (e->type == TREE_LINK) {
        putchar(' ');
        hex_print(e->target, strlen(e->target));
    }
    if (e->type != TREE_FILE)
        putchar('\n');
    else
        sha256_init(&p->hash);
    p->open = e->type == TREE_FILE;
    return 0;
}

static int printer_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    sha256_update(&((struct printer *)sink)->hash, data, len);
    return 0;
}

static int extract(int fd, struct error *reterr)
{
    struct printer p = {.sink = {printer_entry, printer_data}};
    int r = archive_extract(fd, &p.sink, reterr);

    hash_print(&p);
    return r;
}

/* ---- convert ---- */

struct source {
    int fd;
    struct archive_packer *packer;
    struct error error;
};

static void *source_run(void *user)
{
    struct source *s = user;

    if (archive_extract(s->fd, &s->packer->sink, &s->error) < 0 ||
        archive_packer_finish(s->packer, &s->error) < 0)
        archive_packer_fail(s->packer, &s->error);
    return NULL;
}

static int convert(int fd, const char *format, bool cancel, struct error *reterr)
{
    auto_archive_packer struct archive_packer *packer = NULL;
    struct source source = {.fd = fd};
    char piece[4096];
    pthread_t thread;
    ssize_t n;
    int r =
        archive_packer_new(str_eq(format, "zip") ? ARCHIVE_ZIP : ARCHIVE_TAR_GZ, &packer, reterr);

    if (r < 0)
        return r;
    source.packer = packer;
    if (pthread_create(&thread, NULL, source_run, &source) != 0)
        return error_no_memory(reterr);
    while ((n = archive_packer_read(packer, piece, sizeof(piece), reterr)) > 0 && !cancel)
        if ((r = fd_write_full(STDOUT_FILENO, piece, (size_t)n, reterr)) < 0)
            break;
    if (r < 0 || cancel)
        archive_packer_cancel(packer);
    pthread_join(thread, NULL);
    if (cancel)
        return error_set(reterr, source.error.code, "%s", source.error.text);
    return r < 0 ? r : (int)n;
}

int main(int argc, char **argv)
{
    auto_fd int fd = argc > 2 ? open(argv[argc - 1], O_RDONLY | O_CLOEXEC) : -1;
    struct error error;
    int r;

    if (fd < 0) {
        fprintf(stderr, "usage: archive-probe extract FILE | convert|cancel tar.gz|zip FILE\n");
        return 2;
    }
    r = str_eq(argv[1], "extract") ? extract(fd, &error)
                                   : convert(fd, argv[2], str_eq(argv[1], "cancel"), &error);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", error_entry(error.code)->name, error.text);
    return r < 0;
}
