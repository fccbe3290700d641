/* SPDX-License-Identifier: MIT */
/*
 * The unit test framework: include this file, write tests, link test.c; there is no main to write.
 *
 *     #include "base/buf.h"
 *     #include "tests/lib/test.h"
 *
 *     TEST(buf_refuses_more_than_its_maximum)
 *     {
 *         auto_buf struct buf b = ...;
 *         assert_int_eq(buf_append(&b, "12345", 5), -ENOSPC);
 *     }
 *
 * A test registers itself in a linker section. Output is TAP. A failed assertion ends its test only
 * and unwinds the stack, so cleanup attributes of the test and of its helpers run; assertions may
 * stand in helpers of any return type, but only in the thread that runs the test.
 * A program may be given substrings of names on its command line to run those tests alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
    int line;
};

/* A test: TEST(what_it_shows) { ... }. */
#define TEST(test_name) \
    static void test_##test_name(void); \
    static const struct test_case test_case_##test_name \
        __attribute__((used, section("test_cases"), aligned(sizeof(void *)))) = { \
            .name = #test_name, .run = test_##test_name, .line = __LINE__}; \
    static void test_##test_name(void)

/* Ends the running test as failed, with a message. */
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends the running test as skipped; the reason is printed. */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A diagnostic line in the TAP output. */
void test_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A fresh, empty directory of the running test; removed with what is in it when the test ends. */
const char *test_dir(void);

/* True in a run with failing allocations or system calls, where results may be errors. */
bool test_is_torture(void);

/* The bodies of the macros below; each fails the test when the comparison does not hold. */
void test_int_eq(const char *file, int line, const char *text, long long got, long long want);
void test_uint_eq(const char *file, int line, const char *text, unsigned long long got,
                  unsigned long long want);
void test_str_eq(const char *file, int line, const char *text, const char *got, const char *want);
void test_str_has(const char *file, int line, const char *text, const char *got, const char *part);
void test_mem_eq(const char *file, int line, const char *text, const void *got, const void *want,
                 size_t size);

#define assert_true(condition) \
    do { \
        if (!(condition)) \
            test_fail(__FILE__, __LINE__, "%s is false", #condition); \
    } while (0)

#define assert_false(condition) \
    do { \
        if (condition) \
            test_fail(__FILE__, __LINE__, "%s is true", #condition); \
    } while (0)

#define assert_null(pointer) \
    do { \
        if ((pointer) != NULL) \
            test_fail(__FILE__, __LINE__, "%s is not NULL", #pointer); \
    } while (0)

#define assert_not_null(pointer) \
    do { \
        if ((pointer) == NULL) \
            test_fail(__FILE__, __LINE__, "%s is NULL", #pointer); \
    } while (0)

#define assert_ptr_eq(got, want) \
    do { \
        if ((const void *)(got) != (const void *)(want)) \
            test_fail(__FILE__, __LINE__, "%s is not %s", #got, #want); \
    } while (0)

/* A call that returns <0 and fills a `struct error` on failure: assert_ok(run_open(..., &err),
 * err). */
#define assert_ok(call, err) \
    do { \
        if ((call) < 0) \
            test_fail(__FILE__, __LINE__, "%s failed: %s", #call, (err).text); \
    } while (0)

#define assert_int_eq(got, want) test_int_eq(__FILE__, __LINE__, #got, (got), (want))
#define assert_uint_eq(got, want) test_uint_eq(__FILE__, __LINE__, #got, (got), (want))
#define assert_str_eq(got, want) test_str_eq(__FILE__, __LINE__, #got, (got), (want))
#define assert_str_has(got, part) test_str_has(__FILE__, __LINE__, #got, (got), (part))
#define assert_mem_eq(got, want, size) test_mem_eq(__FILE__, __LINE__, #got, (got), (want), (size))
