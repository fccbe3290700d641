/* SPDX-License-Identifier: MIT */
/* Reads by position only, so the descriptor's offset, which others may share, does not matter. */
#include "archive/source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int source_init(struct source *s, int fd, struct error *reterr)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_sys(reterr, errno, "cannot read the archive");
    if (!S_ISREG(st.st_mode))
        return error_set(reterr, ERR_INVALID, "the archive is not a regular file");
    *s = (struct source){.fd = fd, .size = (uint64_t)st.st_size};
    return 0;
}

int source_read(const struct source *s, uint64_t pos, void *data, size_t len, struct error *reterr)
{
    if (pos > s->size || len > s->size - pos)
        return error_set(reterr, ERR_INVALID, "the archive is cut off");
    if (s->fd < 0) {
        if (len)
            memcpy(data, (const char *)s->data + pos, len);
        return 0;
    }
    while (len > 0) {
        ssize_t n = pread(s->fd, data, len, (off_t)pos);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(reterr, errno, "cannot read the archive");
        if (n == 0)
            return error_set(reterr, ERR_INVALID, "the archive got shorter while it was read");
        data = (char *)data + n;
        pos += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}
