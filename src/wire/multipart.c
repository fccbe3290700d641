/* SPDX-License-Identifier: MIT */
/*
 * A CR stands only at the start of a delimiter (CR LF "--" boundary), so where a match fails, what
 * matched is data and the next byte starts anew; nothing is ever looked at twice. A delimiter that
 * is not followed by the end of its line or by "--" is data, too.
 */
#include "wire/multipart.h"

#include "base/str.h"
#include "wire/http.h"
#include "wire/utf8.h"

#include <stdlib.h>
#include <strings.h>
#include <sys/types.h>

enum { BOUNDARY_MAX = 70, PADDING_MAX = 16 };

enum state {
    STATE_START, /* before the first boundary */
    STATE_HEADERS,
    STATE_DATA,
    STATE_END, /* after the closing boundary */
    STATE_FAILED,
};

struct multipart {
    struct multipart_sink sink;
    enum state state;
    char delimiter[BOUNDARY_MAX + 5];
    size_t delimiter_len;
    size_t matched;             /* bytes of the delimiter */
    char tail[PADDING_MAX + 4]; /* what came behind a whole one */
    size_t tail_len;
    bool moved; /* an empty line came before the first boundary */

    struct buf line;
    bool had_cr;
    size_t header_len; /* of all lines of the part */
    unsigned parts;
    bool has_name, has_file, has_file_ext, has_disposition, has_type;
    char plain[MULTIPART_NAME_MAX]; /* of `filename` */
    struct multipart_part part;
};

/* ---- values of headers ---- */

/* A text that is read from the front. */
struct cursor {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void blanks_skip(struct cursor *c)
{
    while (c->at < c->end && is_blank(*c->at))
        c->at++;
}

static struct cursor token_take(struct cursor *c)
{
    struct cursor token = {c->at, c->at};

    while (token.end < c->end && http_is_token(token.end, 1))
        token.end++;
    c->at = token.end;
    return token;
}

static bool cursor_is(struct cursor c, const char *word)
{
    return (size_t)(c.end - c.at) == strlen(word) && strncasecmp(c.at, word, strlen(word)) == 0;
}

/* The character at the front of a quoted text, as browsers (%22) and others (\" and \\) write it.
 * A backslash before anything else is one: older browsers sent whole paths. */
static char quoted_next(struct cursor *c)
{
    size_t left = (size_t)(c->end - c->at);

    if (left >= 3 && memcmp(c->at, "%22", 3) == 0) {
        c->at += 3;
        return '"';
    }
    if (left >= 2 && c->at[0] == '\\' && (c->at[1] == '"' || c->at[1] == '\\'))
        c->at++;
    return *c->at++;
}

/* A quoted text or a token; -ERR_INVALID, or -ERR_LIMIT when it does not fit. */
static int value_take(struct cursor *c, char *ret, size_t size)
{
    size_t n = 0;

    if (c->at == c->end || *c->at != '"') {
        struct cursor token = token_take(c);

        n = (size_t)(token.end - token.at);
        if (n == 0 || n >= size)
            return n ? -ERR_LIMIT : -ERR_INVALID;
        memcpy(ret, token.at, n);
        ret[n] = 0;
        return 0;
    }
    c->at++;
    while (c->at < c->end && *c->at != '"') {
        if (n + 1 == size)
            return -ERR_LIMIT;
        ret[n++] = quoted_next(c);
    }
    ret[n] = 0;
    if (c->at == c->end)
        return -ERR_INVALID;
    c->at++;
    return 0;
}

/* One "; name=value": 1, 0 at the end, or a failure. */
static int param_take(struct cursor *c, struct cursor *ret_name, char *ret, size_t size)
{
    int r;

    for (bool semicolon = false;; semicolon = true) {
        blanks_skip(c);
        if (c->at == c->end)
            return 0;
        if (*c->at != ';') {
            if (!semicolon)
                return -ERR_INVALID;
            break;
        }
        c->at++;
    }
    *ret_name = token_take(c);
    if (ret_name->at == ret_name->end || c->at == c->end || *c->at != '=')
        return -ERR_INVALID;
    c->at++;
    r = value_take(c, ret, size);
    return r < 0 ? r : 1;
}

static bool is_boundary(const char *s)
{
    size_t len = strlen(s);

    return str_check_chars(s,
                           "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "'()+_,-./:=? ",
                           BOUNDARY_MAX) &&
           s[len - 1] != ' ';
}

/* UTF-8 of characters that are none of control. */
static bool is_text(const char *s)
{
    struct utf8_repair u = {0};
    auto_buf struct buf same;
    size_t len = strlen(s);

    buf_init(&same, 4 * MULTIPART_NAME_MAX);
    return http_is_value(s, len) && utf8_repair_feed(&u, s, len, &same) == 0 &&
           utf8_repair_finish(&u, &same) == 0 && str_eq(buf_str(&same), s);
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;

    return p ? (int)(p - digits) : -1;
}

/* UTF-8'language'percent-encoded (RFC 8187). In place: the result is never longer. */
static int extended_decode(char *text)
{
    char *quote = strchr(text, '\''), *in = quote ? strchr(quote + 1, '\'') : NULL, *out = text;

    if (!in || quote - text != 5 || strncasecmp(text, "utf-8", 5) != 0)
        return -ERR_INVALID;
    for (in++; *in; in++) {
        if (*in == '%') {
            int high = hex_value(in[1]), low = high < 0 ? -1 : hex_value(in[2]);

            if (low < 0 || high + low == 0)
                return -ERR_INVALID;
            *out++ = (char)(high << 4 | low);
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = 0;
    return 0;
}

/* ---- headers of a part ---- */

static int malformed(struct error *reterr, const char *what)
{
    return error_set(reterr, ERR_INVALID, "the form is malformed: %s", what);
}

/* Keeps a parameter of Content-Disposition. */
static int param_keep(struct multipart *m, struct cursor name, char *value, struct error *reterr)
{
    const struct {
        const char *name;
        bool *had;
        char *ret;
    } known[] = {
        {"name", &m->has_name, m->part.name},
        {"filename", &m->has_file, m->plain},
        {"filename*", &m->has_file_ext, m->part.filename},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!cursor_is(name, known[i].name))
            continue;
        if (*known[i].had)
            return malformed(reterr, "a part has two names of one kind");
        *known[i].had = true;
        if (cursor_is(name, "filename*") && extended_decode(value) < 0)
            return malformed(reterr, "a file's name is not encoded as UTF-8");
        if (str_copy(known[i].ret, MULTIPART_NAME_MAX, value) < 0)
            return error_set(reterr, ERR_LIMIT, "a name of the form is too long");
        return is_text(value) ? 0 : malformed(reterr, "a name is no text of UTF-8");
    }
    return 0;
}

static int disposition_parse(struct multipart *m, struct cursor c, struct error *reterr)
{
    /* Room for an encoded name. */
    char value[3 * MULTIPART_NAME_MAX + 16];
    struct cursor name;
    int r;

    if (m->has_disposition || !cursor_is(token_take(&c), "form-data"))
        return malformed(reterr, "a part's Content-Disposition is not form-data");
    m->has_disposition = true;
    while ((r = param_take(&c, &name, value, sizeof(value))) > 0) {
        r = param_keep(m, name, value, reterr);
        if (r < 0)
            return r;
    }
    if (r == -ERR_LIMIT)
        return error_set(reterr, ERR_LIMIT, "a name of the form is too long");
    return r < 0 ? malformed(reterr, "a part's Content-Disposition cannot be read") : 0;
}

static int type_keep(struct multipart *m, struct cursor c, struct error *reterr)
{
    size_t len = (size_t)(c.end - c.at);

    if (m->has_type)
        return malformed(reterr, "a part has two Content-Types");
    if (len >= sizeof(m->part.content_type))
        return error_set(reterr, ERR_LIMIT, "a part's Content-Type is too long");
    m->has_type = true;
    memcpy(m->part.content_type, c.at, len);
    m->part.content_type[len] = 0;
    return 0;
}

static int encoding_check(struct multipart *m, struct cursor c, struct error *reterr)
{
    if (cursor_is(c, "binary") || cursor_is(c, "8bit") || cursor_is(c, "7bit"))
        return 0;
    return malformed(reterr, "a part has a Content-Transfer-Encoding, which is not taken");
}

static int header_parse(struct multipart *m, struct error *reterr)
{
    static const struct {
        const char *name;
        int (*parse)(struct multipart *m, struct cursor value, struct error *reterr);
    } headers[] = {
        {"Content-Disposition", disposition_parse},
        {"Content-Type", type_keep},
        {"Content-Transfer-Encoding", encoding_check},
    };
    struct cursor c = {m->line.data, m->line.data + m->line.len}, name = token_take(&c);

    if (name.at == name.end || c.at == c.end || *c.at != ':' ||
        !http_is_value(c.at, (size_t)(c.end - c.at)))
        return malformed(reterr, "a part's header cannot be read");
    c.at++;
    blanks_skip(&c);
    while (c.end > c.at && is_blank(c.end[-1]))
        c.end--;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        if (cursor_is(name, headers[i].name))
            return headers[i].parse(m, c, reterr);
    }
    return 0;
}

static int part_begin(struct multipart *m, struct error *reterr)
{
    if (!m->has_name || !m->part.name[0])
        return malformed(reterr, "a part has no name");
    if (!m->has_file_ext)
        memcpy(m->part.filename, m->plain, sizeof(m->plain));
    m->state = STATE_DATA;
    m->matched = 0;
    return m->sink.begin(m->sink.user, &m->part, reterr);
}

static void headers_begin(struct multipart *m)
{
    m->part = (struct multipart_part){0};
    m->plain[0] = 0;
    m->has_name = m->has_file = m->has_file_ext = m->has_disposition = m->has_type = false;
    m->had_cr = false;
    m->header_len = 0;
    buf_clear(&m->line);
    m->state = STATE_HEADERS;
}

/* ---- bytes ---- */

static int header_byte(struct multipart *m, char c, struct error *reterr)
{
    int r;

    if (++m->header_len > MULTIPART_HEADER_MAX)
        return error_set(reterr, ERR_LIMIT, "a part's headers have more than %d bytes",
                         MULTIPART_HEADER_MAX);
    if (m->had_cr != (c == '\n'))
        return malformed(reterr, "a part's header does not end by CR LF");
    m->had_cr = c == '\r';
    if (c == '\r')
        return 0;
    if (c != '\n')
        return buf_append_byte(&m->line, (unsigned char)c) < 0 ? error_no_memory(reterr) : 0;
    if (m->line.len == 0)
        return part_begin(m, reterr);
    r = header_parse(m, reterr);
    buf_clear(&m->line);
    return r;
}

static int data_give(struct multipart *m, const char *data, size_t len, struct error *reterr)
{
    return len > 0 ? m->sink.data(m->sink.user, data, len, reterr) : 0;
}

/* What looked like a delimiter was none. */
static int match_drop(struct multipart *m, struct error *reterr)
{
    size_t matched = m->matched, tail = m->tail_len;
    int r;

    m->matched = m->tail_len = 0;
    if (m->state == STATE_START)
        return malformed(reterr, "it does not begin with its boundary");
    r = data_give(m, m->delimiter, matched, reterr);
    return r < 0 ? r : data_give(m, m->tail, tail, reterr);
}

static int delimiter_end(struct multipart *m, bool closing, struct error *reterr)
{
    int r = m->state == STATE_DATA ? m->sink.end(m->sink.user, reterr) : 0;

    m->matched = m->tail_len = 0;
    m->state = STATE_END;
    if (r < 0 || closing)
        return r;
    if (m->parts++ == MULTIPART_PARTS_MAX)
        return error_set(reterr, ERR_LIMIT, "the form has more than %d parts", MULTIPART_PARTS_MAX);
    headers_begin(m);
    return 0;
}

/* Behind a whole delimiter: "--", or the line's end, maybe after blanks. 0 when the byte is none of
 * it. */
static int tail_byte(struct multipart *m, char c, struct error *reterr)
{
    char last = m->tail_len ? m->tail[m->tail_len - 1] : ' ';
    int r;

    if ((c == '-' && last == '-') || (c == '\n' && last == '\r')) {
        r = delimiter_end(m, c == '-', reterr);
        return r < 0 ? r : 1;
    }
    if (!is_blank(last) || (c == '-' && m->tail_len > 0) || m->tail_len == PADDING_MAX ||
        (!is_blank(c) && c != '-' && c != '\r'))
        return 0;
    m->tail[m->tail_len++] = c;
    return 1;
}

/* One byte where a delimiter may be. */
static int match_byte(struct multipart *m, char c, struct error *reterr)
{
    int r;

    if (m->matched == m->delimiter_len) {
        r = tail_byte(m, c, reterr);
        if (r != 0)
            return MIN(r, 0);
    } else if (c == m->delimiter[m->matched]) {
        m->matched++;
        return 0;
    } else if (m->state == STATE_START && m->matched == 2 && c == '\r' && !m->moved) {
        m->moved = true;
        m->matched = 1;
        return 0;
    }
    r = match_drop(m, reterr);
    if (r < 0)
        return r;
    if (c == '\r') {
        m->matched = 1;
        return 0;
    }
    return data_give(m, &c, 1, reterr);
}

/* Takes what it can at once: the count, or a failure. */
static ssize_t bytes_take(struct multipart *m, const char *data, size_t len, struct error *reterr)
{
    const char *cr;
    int r;

    if (m->state == STATE_END)
        return (ssize_t)len;
    if (m->state == STATE_DATA && m->matched == 0 && *data != '\r') {
        cr = memchr(data, '\r', len);
        len = cr ? (size_t)(cr - data) : len;
        r = data_give(m, data, len, reterr);
        return r < 0 ? r : (ssize_t)len;
    }
    r = m->state == STATE_HEADERS ? header_byte(m, *data, reterr) : match_byte(m, *data, reterr);
    return r < 0 ? r : 1;
}

int multipart_feed(struct multipart *m, const char *data, size_t len, struct error *reterr)
{
    if (m->state == STATE_FAILED)
        return malformed(reterr, "it has failed before");
    while (len > 0) {
        ssize_t n = bytes_take(m, data, len, reterr);

        if (n < 0) {
            m->state = STATE_FAILED;
            return (int)n;
        }
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int multipart_finish(struct multipart *m, struct error *reterr)
{
    return m->state == STATE_END ? 0 : malformed(reterr, "its closing boundary has not come");
}

/* ---- the whole ---- */

static int boundary_find(const char *content_type, char ret[BOUNDARY_MAX + 1])
{
    struct cursor c = {content_type, content_type + strlen(content_type)}, name;
    char value[256];
    bool found = false;
    int r;

    blanks_skip(&c);
    if (!cursor_is((struct cursor){c.at, c.at + strcspn(c.at, "; \t")}, "multipart/form-data"))
        return -1;
    c.at += strcspn(c.at, "; \t");
    while ((r = param_take(&c, &name, value, sizeof(value))) > 0) {
        if (!cursor_is(name, "boundary"))
            continue;
        if (found || !is_boundary(value) || str_copy(ret, BOUNDARY_MAX + 1, value) < 0)
            return -1;
        found = true;
    }
    return r == 0 && found ? 0 : -1;
}

int multipart_new(const char *content_type, const struct multipart_sink *sink,
                  struct multipart **ret, struct error *reterr)
{
    char boundary[BOUNDARY_MAX + 1];
    struct multipart *m;

    if (boundary_find(content_type, boundary) < 0)
        return error_set(reterr, ERR_INVALID,
                         "the Content-Type is no multipart/form-data with a boundary");
    m = calloc(1, sizeof(*m));
    if (!m)
        return error_no_memory(reterr);
    m->sink = *sink;
    memcpy(m->delimiter, "\r\n--", 4);
    m->delimiter_len = 4 + strlen(boundary);
    memcpy(m->delimiter + 4, boundary, strlen(boundary) + 1);
    /* The first one may be without the CR LF before it. */
    m->matched = 2;
    buf_init(&m->line, MULTIPART_HEADER_MAX);
    *ret = m;
    return 0;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_done(&m->line);
    free(m);
}
