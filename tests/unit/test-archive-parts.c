/* SPDX-License-Identifier: MIT */
/* The parts of the readers that can be looked at alone; whole archives are in test_archives.py. */
#include "archive/crc32.h"
#include "archive/tar-header.h"
#include "tests/lib/test.h"

#include <stdint.h>

TEST(tar_numbers_are_octal_or_base_256)
{
    static const struct {
        const char *field; /* of twelve bytes */
        bool good;
        int64_t value;
    } numbers[] = {
        {"00000000017", true, 15},
        {"00000000017 ", true, 15},
        {"        17 \0", true, 15},
        {"17\0\0\0\0\0\0\0\0\0\0", true, 15},
        {"777777777777", true, 68719476735},
        {"\0\0\0\0\0\0\0\0\0\0\0\0", true, 0},
        {"\x80\0\0\0\0\0\0\0\0\0\x01\x02", true, 258},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", true, -2},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", true, INT64_MAX},
        {"\x80\0\0\0\x80\0\0\0\0\0\0\0", false, 0},
        {"\x80\0\0\x01\0\0\0\0\0\0\0\0", false, 0},
        {"\x81\0\0\0\0\0\0\0\0\0\0\0", false, 0},
        {"\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\xff", false, 0},
        {"            ", false, 0},
        {"-0000000017", false, 0},
        {"00000000018", false, 0},
        {"0x000000017", false, 0},
        {"17+0000000\0", false, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        int64_t value = 0;

        test_note("row %zu", i);
        assert_true(tar_number_parse(numbers[i].field, 12, &value) == numbers[i].good);
        if (numbers[i].good)
            assert_int_eq(value, numbers[i].value);
    }
}

static void pax_check(const char *records, int want)
{
    struct tar_extended x;
    struct error err;
    int r;

    tar_extended_init(&x);
    r = tar_pax_parse(&x, false, records, strlen(records), &err);
    tar_extended_done(&x);
    assert_int_eq(r, want);
}

TEST(pax_records_say_their_length)
{
    pax_check("9 path=x\n", 0);
    pax_check("9 path=x\n12 size=123\n", 0);
    pax_check("8 path=x\n", -ERR_INVALID);
    pax_check("11 path=x\n", -ERR_INVALID);
    pax_check("99999999999999999999 path=x\n", -ERR_INVALID);
    pax_check("9 path=x\n9 path=x\n", -ERR_INVALID);
}

TEST(pax_times_may_be_fractions)
{
    static const struct {
        const char *record;
        int64_t ms;
    } times[] = {
        {"11 mtime=1\n", 1000},     {"14 mtime=1.25\n", 1250}, {"17 mtime=1.23456\n", 1234},
        {"14 mtime=-1.5\n", -1500}, {"12 mtime=1.\n", 1000},
    };

    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct tar_extended x;
        struct error err;

        tar_extended_init(&x);
        assert_ok(tar_pax_parse(&x, false, times[i].record, strlen(times[i].record), &err), err);
        assert_int_eq(x.mtime_ms, times[i].ms);
        tar_extended_done(&x);
    }
    pax_check("11 mtime=.\n", -ERR_INVALID);
    pax_check("11 mtime=-\n", -ERR_INVALID);
    pax_check("13 mtime=1e5\n", -ERR_INVALID);
}

TEST(crc32_is_the_known_one)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog";

    assert_uint_eq(zip_crc32(0, text, sizeof(text) - 1), 0x414fa339);
    assert_uint_eq(zip_crc32(0, "123456789", 9), 0xcbf43926);
    assert_uint_eq(zip_crc32(zip_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_uint_eq(zip_crc32(0, "", 0), 0);
}
