/* SPDX-License-Identifier: MIT */
/*
 * Runs the tests of one program and writes TAP.
 *
 * A failed assertion leaves the test by a forced unwind (as pthread_exit does), not by a bare
 * longjmp: test code is compiled with -fexceptions, so cleanup attributes run and a failing test
 * leaks nothing. This matters in torture runs, where every test is expected to end early and
 * whatever LeakSanitizer then reports must be the tested code's own fault.
 */
#include "tests/lib/test.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

enum outcome { PASSED, FAILED, SKIPPED };

/* The program's tests, in linker order; the linker defines both symbols. */
extern const struct test_case __start_test_cases[] __attribute__((weak));
extern const struct test_case __stop_test_cases[] __attribute__((weak));

static jmp_buf runner;
static void *runner_frame;
static enum outcome outcome;
static char skip_reason[256];
static char directory[64];

static void __attribute__((format(printf, 2, 0))) line_print(const char *prefix, const char *format,
                                                             va_list args)
{
    char text[1024];

    vsnprintf(text, sizeof(text), format, args);
    for (char *p = text; *p != '\0'; p++) {
        if (*p == '\n')
            *p = ' ';
    }
    printf("%s%s\n", prefix, text);
}

static _Unwind_Reason_Code unwind_step(int version, _Unwind_Action actions,
                                       _Unwind_Exception_Class class,
                                       struct _Unwind_Exception *exception,
                                       struct _Unwind_Context *context, void *end)
{
    (void)version, (void)class, (void)exception;

    if ((actions & _UA_END_OF_STACK) || _Unwind_GetCFA(context) >= (uintptr_t)end)
        longjmp(runner, 1);
    return _URC_NO_REASON;
}

static _Noreturn void test_leave(enum outcome how)
{
    static struct _Unwind_Exception exception;

    outcome = how;
    memset(&exception, 0, sizeof(exception));
    _Unwind_ForcedUnwind(&exception, unwind_step, runner_frame);
    longjmp(runner, 1);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    char where[256];
    va_list args;

    snprintf(where, sizeof(where), "# %s:%d: ", file, line);
    va_start(args, format);
    line_print(where, format, args);
    va_end(args);
    test_leave(FAILED);
}

void test_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(skip_reason, sizeof(skip_reason), format, args);
    va_end(args);
    test_leave(SKIPPED);
}

void test_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line_print("# ", format, args);
    va_end(args);
}

bool test_is_torture(void)
{
    return getenv("SBX_TORTURE") != NULL;
}

const char *test_dir(void)
{
    const char *base = getenv("TMPDIR");

    if (directory[0] != '\0')
        return directory;
    snprintf(directory, sizeof(directory), "%s/sbx-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(directory) == NULL) {
        directory[0] = '\0';
        test_fail(__FILE__, __LINE__, "cannot make a directory below '%s'", base);
    }
    return directory;
}

static int entry_remove(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

static void test_dir_remove(void)
{
    if (directory[0] == '\0')
        return;
    if (nftw(directory, entry_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0)
        test_note("cannot remove %s", directory);
    directory[0] = '\0';
}

void test_int_eq(const char *file, int line, const char *text, long long got, long long want)
{
    if (got != want)
        test_fail(file, line, "%s is %lld, not %lld", text, got, want);
}

void test_uint_eq(const char *file, int line, const char *text, unsigned long long got,
                  unsigned long long want)
{
    if (got != want)
        test_fail(file, line, "%s is %llu, not %llu", text, got, want);
}

void test_str_eq(const char *file, int line, const char *text, const char *got, const char *want)
{
    if (got == NULL || want == NULL) {
        if (got != want)
            test_fail(file, line, "%s is %s, not %s", text, got ? got : "NULL",
                      want ? want : "NULL");
        return;
    }
    if (strcmp(got, want) != 0)
        test_fail(file, line, "%s is '%s', not '%s'", text, got, want);
}

void test_str_has(const char *file, int line, const char *text, const char *got, const char *part)
{
    if (got == NULL || strstr(got, part) == NULL)
        test_fail(file, line, "%s is '%s', without '%s'", text, got ? got : "NULL", part);
}

void test_mem_eq(const char *file, int line, const char *text, const void *got, const void *want,
                 size_t size)
{
    const unsigned char *g = got;
    const unsigned char *w = want;

    if (g == NULL && size > 0)
        test_fail(file, line, "%s is NULL", text);
    for (size_t i = 0; i < size; i++) {
        if (g[i] != w[i])
            test_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", text, i, size, g[i],
                      w[i]);
    }
}

static void __attribute__((noinline)) test_call(const struct test_case *test)
{
    runner_frame = __builtin_frame_address(0);
    if (setjmp(runner) == 0)
        test->run();
}

static enum outcome test_run(const struct test_case *test)
{
    outcome = PASSED;
    test_call(test);
    test_dir_remove();
    return outcome;
}

static bool test_is_wanted(const struct test_case *test, int count, char **parts)
{
    for (int i = 0; i < count; i++) {
        if (strstr(test->name, parts[i]) != NULL)
            return true;
    }
    return count == 0;
}

static int by_line(const void *a, const void *b)
{
    const struct test_case *const *left = a;
    const struct test_case *const *right = b;

    return ((*left)->line > (*right)->line) - ((*left)->line < (*right)->line);
}

static void outcome_print(size_t number, const char *name)
{
    switch (outcome) {
    case PASSED:
        printf("ok %zu - %s\n", number, name);
        break;
    case FAILED:
        printf("not ok %zu - %s\n", number, name);
        break;
    case SKIPPED:
        printf("ok %zu - %s # SKIP %s\n", number, name, skip_reason);
        break;
    }
}

int main(int argc, char **argv)
{
    static const struct test_case *tests[4096];
    size_t count = 0;
    bool failed = false;

    for (const struct test_case *t = __start_test_cases; t < __stop_test_cases; t++) {
        if (count < sizeof(tests) / sizeof(tests[0]) && test_is_wanted(t, argc - 1, argv + 1))
            tests[count++] = t;
    }
    qsort(tests, count, sizeof(tests[0]), by_line);

    /* By line, so that a child that a test forks has nothing of it left to print again. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        test_run(tests[i]);
        outcome_print(i + 1, tests[i]->name);
        failed |= outcome == FAILED;
    }
    return failed || count == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
