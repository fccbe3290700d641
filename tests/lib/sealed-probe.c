/* SPDX-License-Identifier: MIT */
/*
 * For test_sealed.py: seals or opens standard input with the keys that a server would use, as they
 * are set in the environment.
 *
 *     sealed-probe seal < PLAIN > TOKEN
 *     sealed-probe open [TTL] < TOKEN > PLAIN
 *
 * The status is 0, or the error's code with its text on standard error.
 */
#include "base/fd.h"
#include "base/settings.h"
#include "base/str.h"
#include "store/sealed.h"

#include <stdio.h>

enum { INPUT_MAX = 1 << 20 };

static int probe(bool seal, int64_t ttl_s, struct error *reterr)
{
    static char input[INPUT_MAX];
    auto_settings struct settings settings = {0};
    auto_sealed_keys struct sealed_keys keys = {0};
    auto_buf struct buf output;
    ssize_t len;
    int r;

    buf_init(&output, 4 * INPUT_MAX);
    r = settings_load(&settings, &(struct settings_source){.env = environ}, reterr);
    if (r == 0)
        r = sealed_keys_load(&settings, &keys, reterr);
    if (r < 0)
        return r;
    len = fd_read_full(STDIN_FILENO, input, sizeof(input), reterr);
    if (len < 0)
        return (int)len;
    r = seal ? sealed_seal(&keys, input, (size_t)len, &output, reterr)
             : sealed_open(&keys, input, (size_t)len, ttl_s, &output, reterr);
    return r < 0 ? r : fd_write_full(STDOUT_FILENO, output.data, output.len, reterr);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int64_t ttl_s = -1;
    int r;

    if (argc < 2 || (argc > 2 && str_parse_int(argv[2], 0, INT32_MAX, &ttl_s) < 0)) {
        fprintf(stderr, "usage: sealed-probe seal|open [TTL]\n");
        return 2;
    }
    r = probe(str_eq(argv[1], "seal"), ttl_s, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", err.text);
    return -r;
}
