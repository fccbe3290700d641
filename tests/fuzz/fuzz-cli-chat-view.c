/* SPDX-License-Identifier: MIT */
/*
 * Events of a server that may say anything: each line of the input is a name, a tab and JSON. The
 * chat draws them for no terminal; nothing may fall over, and no escape sequence may come out.
 */
#include "cli/chat.h"

#include "base/str.h"
#include "cli/chat_stream.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { LINES_MAX = 64 };

static void event_feed(struct chat *c, char *line)
{
    char *tab = strchr(line, '\t');
    struct chat_event event = {.kind = CHAT_EVENT};

    if (!tab)
        return;
    *tab = 0;
    if (str_copy(event.name, sizeof(event.name), line) < 0)
        return;
    event.data = tab + 1;
    event.len = strlen(event.data);
    chat_view_event(c, &event);
}

static void lines_feed(struct chat *c, char *text)
{
    for (int i = 0; text && i < LINES_MAX; i++) {
        char *end = strchr(text, '\n');

        if (end)
            *end = 0;
        event_feed(c, text);
        text = end ? end + 1 : NULL;
    }
}

/* What a terminal must not be sent. */
static void output_check(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    auto_free char *text = malloc((size_t)size + 1);

    if (text && size > 0 && pread(fd, text, (size_t)size, 0) == size &&
        memchr(text, 0x1b, (size_t)size))
        abort();
}

static int chat_make(struct chat *c, int out)
{
    struct error error;

    *c = (struct chat){.signal_fd = -1, .place = {.dir = -1}, .thread_id = "t"};
    chat_config_init(&c->config);
    if (term_open_plain(out, out, &c->term, &error) < 0 ||
        panels_new(c->term, &c->panels, &error) < 0 ||
        spinner_new(c->term, &c->spinner, &error) < 0 || chat_view_init(c, &error) < 0)
        return -1;
    c->api.cancel_fd = -1;
    return http_client_new(
        &(struct http_client_options){.size = sizeof(struct http_client_options)}, &c->api.client,
        &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_fd int out = memfd_create("out", MFD_CLOEXEC);
    auto_free char *text = malloc(size + 1);
    struct chat c;

    if (out < 0 || !text || chat_make(&c, out) < 0)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    chat_view_begin(&c);
    lines_feed(&c, text);
    chat_view_end(&c, PANEL_OK, NULL);
    chat_view_done(&c);
    panels_free(c.panels);
    spinner_free(c.spinner);
    output_check(out);
    term_free(c.term);
    chat_api_done(&c.api);
    chat_memory_done(&c.memory);
    return 0;
}
