/* SPDX-License-Identifier: MIT */
/* One walk over the elements of a list, and over an element's parameters; commas and semicolons in
 * quoted strings are text. */
#include "wire/negotiate.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *s;
    size_t len;
};

static struct span span_trim(struct span p)
{
    for (; p.len && (*p.s == ' ' || *p.s == '\t'); p.s++)
        p.len--;
    while (p.len && (p.s[p.len - 1] == ' ' || p.s[p.len - 1] == '\t'))
        p.len--;
    return p;
}

/* Up to `end` or the end of the text, without it. */
static struct span span_next(struct span *rest, char end)
{
    struct span part = {rest->s, 0};
    bool quoted = false;

    for (; part.len < rest->len; part.len++) {
        char c = part.s[part.len];

        if (c == '"')
            quoted = !quoted;
        else if (c == '\\' && quoted && part.len + 1 < rest->len)
            part.len++;
        else if (c == end && !quoted)
            break;
    }
    rest->s += part.len + (part.len < rest->len);
    rest->len -= part.len + (part.len < rest->len);
    return span_trim(part);
}

static bool span_is(struct span p, const char *s)
{
    return p.len == strlen(s) && strncasecmp(p.s, s, p.len) == 0;
}

/* "1", "0.5", "1.000" as thousandths; -1 for what is none. */
static int quality_parse(struct span p)
{
    int quality, unit = 100;

    if (!p.len || p.len > 5 || (p.s[0] != '0' && p.s[0] != '1') || (p.len > 1 && p.s[1] != '.'))
        return -1;
    quality = (p.s[0] - '0') * 1000;
    for (size_t i = 2; i < p.len; i++, unit /= 10) {
        if (p.s[i] < '0' || p.s[i] > '9')
            return -1;
        quality += (p.s[i] - '0') * unit;
    }
    return quality <= 1000 ? quality : -1;
}

/* The quality of an element whose name was taken from it; 1000 when it says none. */
static int quality_of(struct span parameters)
{
    while (parameters.len) {
        struct span value = span_next(&parameters, ';'), name = span_next(&value, '=');

        if (span_is(name, "q"))
            return quality_parse(span_trim(value));
    }
    return 1000;
}

static int range_match(struct span range, const char *name)
{
    const char *slash = strchr(name, '/');
    size_t head = slash ? (size_t)(slash - name) + 1 : 0;

    if (span_is(range, name))
        return 3;
    if (slash && range.len == head + 1 && range.s[head] == '*' &&
        strncasecmp(range.s, name, head) == 0)
        return 2;
    return span_is(range, slash ? "*/*" : "*");
}

static struct preference preference_of(const char *header, const char *name)
{
    struct span rest = {header, strlen(header)};
    struct preference best = {};

    while (rest.len) {
        struct span element = span_next(&rest, ','), range = span_next(&element, ';');
        int match = range_match(range, name), quality = quality_of(element);

        if (match && quality >= 0 &&
            (match > best.match || (match == best.match && quality > best.quality)))
            best = (struct preference){.quality = quality, .match = match};
    }
    return best;
}

struct preference accept_type(const char *header, const char *type)
{
    return preference_of(header, type);
}

struct preference accept_coding(const char *header, const char *coding)
{
    return preference_of(header, coding);
}

bool etag_is_known(const char *header, const char *etag)
{
    struct span rest = {header, strlen(header)};

    if (span_is(span_trim(rest), "*"))
        return true;
    while (rest.len) {
        struct span tag = span_next(&rest, ',');

        if (tag.len > 2 && tag.s[0] == 'W' && tag.s[1] == '/') {
            tag.s += 2;
            tag.len -= 2;
        }
        if (tag.len == strlen(etag) && memcmp(tag.s, etag, tag.len) == 0)
            return true;
    }
    return false;
}
