/* SPDX-License-Identifier: MIT */
/* Random identifiers from the kernel's generator; a short read there is an error, never a weaker
 * id. */
#include "base/id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int id_new(char ret[ID_LEN + 1], struct error *reterr)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_LEN / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_sys(reterr, errno, "cannot get random bytes");
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[ID_LEN] = 0;
    return 0;
}

static bool hex_check(const char *s, size_t min, size_t max)
{
    size_t len = strlen(s);

    return len >= min && len <= max && strspn(s, "0123456789abcdef") == len;
}

bool id_check(const char *s)
{
    return hex_check(s, ID_LEN, ID_LEN);
}

bool id_prefix_check(const char *s)
{
    return hex_check(s, 4, ID_LEN);
}
