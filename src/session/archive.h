/* SPDX-License-Identifier: MIT */
/*
 * Archives. libarchive runs in a child that can do nothing but compute (sandbox-archive, seccomp):
 * it turns an archive into plain records, which are checked again here, or the other way round.
 */
#pragma once

#include "session/tree.h"

enum archive_format { ARCHIVE_TAR_GZ, ARCHIVE_ZIP };

/*
 * Pushes the content of the archive behind a seekable descriptor into the sink: tar (plain, gzip or
 * zstd) or zip, known by its content (docs/archives.md). The whole archive is refused, with the
 * entry named, for a name or a link that leaves it, a hard link, a device, FIFO, socket, sparse or
 * unknown entry, two entries of one name, encryption, a method or format that is none of these, and
 * anything above the limits of a tree. Folders come before what is in them. The caller's sink has
 * to be all-or-nothing: an error may come after entries were pushed.
 */
int archive_extract(int fd, struct tree_sink *sink, struct error *reterr) must_check;

/*
 * The other way: a sink whose output is pulled by another thread. One thread is the source and uses
 * the sink, finish and fail; one is the reader and uses read and cancel.
 */
struct archive_packer {
    struct tree_sink sink; /* first */
};

int archive_packer_new(enum archive_format format, struct archive_packer **ret,
                       struct error *reterr) must_check;

/* No more entries. After an error of the source instead: the reader's stream fails, too. */
int archive_packer_finish(struct archive_packer *p, struct error *reterr) must_check;
void archive_packer_fail(struct archive_packer *p, const struct error *why);

/* 0 at the end; fails when the tree was not finished. */
ssize_t archive_packer_read(struct archive_packer *p, void *data, size_t len,
                            struct error *reterr) must_check;
/* Makes the source's calls fail, also one that waits. */
void archive_packer_cancel(struct archive_packer *p);

/* Reader and source have both stopped using it. */
void archive_packer_free(struct archive_packer *p);

DEFINE_CLEANUP(struct archive_packer *, archive_packer_free)
#define auto_archive_packer __attribute__((cleanup(archive_packer_free_cleanup)))
