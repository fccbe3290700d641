/* SPDX-License-Identifier: MIT */
/*
 * A terminal obeys what it is sent: it changes its title and its modes, and answers questions as if
 * the answer had been typed. So of the escape sequences only colours and the erasing of a line
 * pass. A sequence may come in pieces, which is why each stream has a state.
 */
#include "cli/screen.h"

#include "base/buf.h"
#include "base/fd.h"

#include <string.h>
#include <unistd.h>

enum { ESCAPE = 0x1b, C1_LEAD = 0xc2, SEQUENCE_MAX = 32 };

/* What was held back because it may be the start of something. */
static struct screen {
    char held[SEQUENCE_MAX];
    size_t len;
} screens[2];

static void add(struct buf *b, const void *data, size_t len)
{
    (void)!buf_append(b, data, len);
}

static void add_visible(struct buf *b, unsigned char c)
{
    const char caret[2] = {'^', (char)(c ^ 0x40)};

    if (c >= 0x20 && c != 0x7f)
        add(b, &c, 1);
    else
        add(b, caret, sizeof(caret));
}

static void add_plain(struct screen *s, struct buf *b, unsigned char c)
{
    if (c == ESCAPE || c == C1_LEAD) {
        s->held[0] = (char)c;
        s->len = 1;
    } else if (c && strchr("\n\r\t\b", c)) {
        add(b, &c, 1);
    } else {
        add_visible(b, c);
    }
}

/* The second byte of a character: of the control characters with the high bit there are 32. */
static void add_second(struct screen *s, struct buf *b, unsigned char c)
{
    s->len = 0;
    if (c >= 0x80 && c < 0xa0) {
        add(b, "?", 1);
        return;
    }
    add(b, s->held, 1);
    add_plain(s, b, c);
}

static void add_sequence(struct screen *s, struct buf *b, unsigned char c)
{
    bool parameter = s->len > 1 && c && strchr("0123456789;", c);

    if (s->len < SEQUENCE_MAX && (parameter || (s->len == 1 && c == '['))) {
        s->held[s->len++] = (char)c;
        return;
    }
    if (s->len > 1 && (c == 'm' || c == 'K')) {
        add(b, s->held, s->len);
        add(b, &c, 1);
        s->len = 0;
        return;
    }
    add(b, "^[", 2);
    add(b, s->held + 1, s->len - 1);
    s->len = 0;
    add_plain(s, b, c);
}

void screen_write(int fd, const char *data, size_t len)
{
    struct screen *s = &screens[fd == STDERR_FILENO];
    auto_buf struct buf b;

    /* A closed pipe (`| head`) is no reason to lose the session's orderly end. */
    if (!isatty(fd)) {
        (void)!fd_write_full(fd, data, len, NULL);
        return;
    }
    buf_init(&b, 2 * len + SEQUENCE_MAX + 2);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];

        if (!s->len)
            add_plain(s, &b, c);
        else if ((unsigned char)s->held[0] == C1_LEAD)
            add_second(s, &b, c);
        else
            add_sequence(s, &b, c);
    }
    (void)!fd_write_full(fd, buf_str(&b), b.len, NULL);
}

void screen_line(int fd, const char *text)
{
    size_t len = strlen(text);

    screen_write(fd, text, len);
    if (len == 0 || text[len - 1] != '\n')
        screen_write(fd, "\n", 1);
}

void screen_message(const char *text)
{
    screen_write(STDERR_FILENO, "sandbox-agent: ", strlen("sandbox-agent: "));
    screen_line(STDERR_FILENO, text);
}
