/* SPDX-License-Identifier: MIT */
/* SHA-256 against the examples of the standard and across block borders. */
#include "base/sha256.h"
#include "tests/lib/test.h"

static void digest_of(const char *data, size_t len, char ret[2 * SHA256_SIZE + 1])
{
    struct sha256 s;

    sha256_init(&s);
    sha256_update(&s, data, len);
    sha256_finish_hex(&s, ret);
}

TEST(sha256_gives_the_published_digests)
{
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char got[2 * SHA256_SIZE + 1];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        digest_of(cases[i].text, strlen(cases[i].text), got);
        assert_str_eq(got, cases[i].digest);
    }
}

TEST(sha256_does_not_depend_on_how_the_data_is_cut)
{
    static char data[1000];
    char whole[2 * SHA256_SIZE + 1], parts[2 * SHA256_SIZE + 1];

    memset(data, 'x', sizeof(data));
    digest_of(data, sizeof(data), whole);
    for (size_t step = 1; step < 130; step++) {
        struct sha256 s;

        sha256_init(&s);
        for (size_t at = 0; at < sizeof(data); at += step)
            sha256_update(&s, data + at, at + step > sizeof(data) ? sizeof(data) - at : step);
        sha256_finish_hex(&s, parts);
        assert_str_eq(parts, whole);
    }
}
