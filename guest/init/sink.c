/* SPDX-License-Identifier: MIT */
/* Pipes that are drained to nowhere; beyond the maximum the oldest is closed. */
#include "init/sink.h"

#include "init/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { SINK_MAX = 128, SINK_READ = 64 * 1024 };

static struct {
    struct watch *watches[SINK_MAX];
    size_t next;
} sink;

static void sink_ready(struct watch *w, uint32_t events)
{
    static char scrap[SINK_READ];
    ssize_t n = read(w->fd, scrap, sizeof(scrap));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    watch_close(w);
}

void sink_add(int fd)
{
    struct watch **slot = &sink.watches[sink.next++ % SINK_MAX];

    if (fd < 0)
        return;
    if (!*slot) {
        *slot = calloc(1, sizeof(**slot));
        if (*slot)
            (*slot)->fd = -1;
    }
    if (!*slot) {
        close(fd);
        return;
    }
    watch_close(*slot);
    if (watch_open(*slot, fd, EPOLLIN, sink_ready) < 0)
        close(fd);
}
