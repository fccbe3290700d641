/* SPDX-License-Identifier: MIT */
/* The command line: verbs, options in every spelling, help, and what is refused before anything is
 * started. */
#include "cli/verb.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* What the probe verb was given, in order. */
static char seen[512];

static int probe_main(const struct verb_args *args)
{
    size_t used = 0;

    for (size_t i = 0; i < args->given_count; i++)
        used +=
            (size_t)snprintf(seen + used, sizeof(seen) - used, "%s=%s ", args->given[i].entry->name,
                             args->given[i].value ? args->given[i].value : "yes");
    for (size_t i = 0; i < args->word_count; i++)
        used += (size_t)snprintf(seen + used, sizeof(seen) - used, "[%s] ", args->words[i]);
    return verb_flag(args, "all") ? 7 : 0;
}

static const struct option_entry probe_options[] = {
    {"code", 'c', "CODE", "code to probe"}, {"all", 'a', NULL, "all of it"}, {}};
static const struct verb_entry verb_probe = {.name = "probe",
                                             .words = "[FILE...]",
                                             .summary = "Probe",
                                             .help = "More of it.",
                                             .options = probe_options,
                                             .run = probe_main};
static const struct verb_entry verb_bare = {
    .name = "bare", .words = "", .summary = "Bare", .run = probe_main};
static const struct verb_entry *const verbs[] = {&verb_probe, &verb_bare, &verb_run,    &verb_stop,
                                                 &verb_image, &verb_ps,   &verb_doctor, NULL};

struct capture {
    int kept, fd, file;
};

static void capture_begin(struct capture *c, FILE *stream)
{
    char path[300];

    fflush(stream);
    snprintf(path, sizeof(path), "%s/captured-%d", test_dir(), fileno(stream));
    c->fd = fileno(stream);
    c->kept = fcntl(c->fd, F_DUPFD_CLOEXEC, 10);
    c->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(c->kept >= 0 && c->file >= 0 && dup2(c->file, c->fd) >= 0);
}

static void capture_end(struct capture *c, FILE *stream, char *ret, size_t size)
{
    ssize_t n;

    fflush(stream);
    (void)!dup2(c->kept, c->fd);
    close(c->kept);
    n = pread(c->file, ret, size - 1, 0);
    close(c->file);
    ret[MAX(n, 0)] = 0;
}

static char out_text[16384], err_text[16384];

/* Runs a command line given as words up to NULL; its exit status. */
static int call(const char *const *words)
{
    char *argv[32] = {(char *)"sandbox-agent"};
    struct capture out, err;
    int argc = 1, status;

    for (; words[argc - 1] && argc < 31; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    seen[0] = 0;
    capture_begin(&out, stdout);
    capture_begin(&err, stderr);
    status = verb_main(verbs, argc, argv);
    capture_end(&err, stderr, err_text, sizeof(err_text));
    capture_end(&out, stdout, out_text, sizeof(out_text));
    return status;
}

#define CALL(...) call((const char *const[]){__VA_ARGS__, NULL})

TEST(help_is_given_where_it_is_asked_for)
{
    assert_int_eq(CALL("help"), 0);
    assert_str_has(out_text, "probe");
    assert_str_eq(err_text, "");
    assert_int_eq(CALL("-h"), 0);
    assert_int_eq(CALL("--help"), 0);
    assert_int_eq(CALL("--version"), 0);
    assert_str_eq(out_text, "sandbox-agent " PACKAGE_VERSION "\n");
    assert_int_eq(CALL("probe", "--help"), 0);
    assert_str_has(out_text, "usage: sandbox-agent probe [OPTIONS] [FILE...]");
    assert_str_has(out_text, "-c, --code CODE");
    assert_str_has(out_text, "--env-file FILE");
    assert_str_has(out_text, "More of it.");
    assert_int_eq(CALL("probe", "-h"), 0);
    assert_str_eq(seen, "");
}

TEST(what_is_unknown_prints_help_to_stderr)
{
    assert_int_eq(CALL("frobnicate"), EXIT_USAGE);
    assert_str_has(err_text, "unknown verb 'frobnicate'");
    assert_str_has(err_text, "usage:");
    assert_str_eq(out_text, "");
    assert_int_eq(CALL("probe", "--colour"), EXIT_USAGE);
    assert_str_has(err_text, "unknown option '--colour'");
    assert_int_eq(CALL("probe", "-x"), EXIT_USAGE);
    assert_int_eq(CALL("bare", "word"), EXIT_USAGE);
    assert_str_has(err_text, "unknown argument 'word'");
    assert_str_eq(seen, "");
}

TEST(without_a_verb_the_first_one_is_run_with_the_options)
{
    assert_int_eq(call((const char *const[]){NULL}), 0);
    assert_str_eq(seen, "");
    assert_int_eq(CALL("-c", "1", "x"), 0);
    assert_str_eq(seen, "code=1 [x] ");
    assert_int_eq(CALL("--all"), 7);
    assert_int_eq(CALL("--colour"), EXIT_USAGE);
    assert_str_has(err_text, "sandbox-agent probe: unknown option '--colour'");
}

TEST(options_are_taken_in_every_spelling_and_in_order)
{
    static const struct {
        const char *words[8], *seen;
        int status;
    } cases[] = {
        {{"--code", "1", "-c", "2"}, "code=1 code=2 ", 0},
        {{"--code=1", "-c2"}, "code=1 code=2 ", 0},
        {{"--code=", "-c", ""}, "code= code= ", 0},
        {{"--code=a=b"}, "code=a=b ", 0},
        {{"-c", "-a"}, "code=-a ", 0},
        {{"-c", "--", "x"}, "code=-- [x] ", 0},
        {{"-a", "x", "--all"}, "all=yes all=yes [x] ", 7},
        {{"x", "-", "-c", "1", "y"}, "code=1 [x] [-] [y] ", 0},
        {{"--", "-c", "--all"}, "[-c] [--all] ", 0},
        {{"--env-file", "f"}, "env-file=f ", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *words[10] = {"probe"};

        memcpy(words + 1, cases[i].words, sizeof(cases[i].words));
        assert_int_eq(call(words), cases[i].status);
        assert_str_eq(seen, cases[i].seen);
    }
}

TEST(values_are_there_where_they_belong_and_nowhere_else)
{
    assert_int_eq(CALL("probe", "--code"), EXIT_USAGE);
    assert_str_has(err_text, "'--code' needs a value");
    assert_int_eq(CALL("probe", "-c"), EXIT_USAGE);
    assert_int_eq(CALL("probe", "--all=1"), EXIT_USAGE);
    assert_str_has(err_text, "'--all' takes no value");
    assert_int_eq(CALL("probe", "-ax"), EXIT_USAGE);
}

TEST(the_last_value_counts)
{
    struct option_given given[] = {{&probe_options[0], "1"}, {&probe_options[0], "2"}};
    struct verb_args args = {.given = given, .given_count = 2};

    assert_str_eq(verb_option(&args, "code", "none"), "2");
    assert_str_eq(verb_option(&args, "other", "none"), "none");
    assert_true(verb_flag(&args, "code"));
    assert_false(verb_flag(&args, "all"));
}

static void state_make(const char *text)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof(path), "%s/.env", test_dir());
    f = fopen(path, "we");
    assert_not_null(f);
    fputs(text, f);
    fclose(f);
    setenv("SANDBOX_STATE_DIR", test_dir(), 1);
}

TEST(settings_come_from_the_state_directory_or_the_named_file)
{
    static const struct option_entry file = {"env-file", 0, "FILE", ""};
    struct option_given given = {&file, "/nonexistent/env"};
    struct verb_args none = {}, named = {.given = &given, .given_count = 1};
    struct settings s;
    struct error err;

    state_make("CONTAINER_MAX_SESSIONS=9\n");
    assert_ok(verb_settings(&none, &s, &err), err);
    assert_int_eq(s.max_sessions, 9);
    settings_done(&s);
    assert_true(verb_settings(&named, &s, &err) < 0);
    assert_str_has(err.text, "/nonexistent/env");
    state_make("SANDBOX_LOG=loud\n");
    assert_int_eq(verb_settings(&none, &s, &err), -ERR_INVALID);
    assert_str_has(err.text, "SANDBOX_LOG");
    unsetenv("SANDBOX_STATE_DIR");
}

TEST(an_error_has_its_exit_status)
{
    static const struct {
        enum error_code code;
        int status;
    } cases[] = {{ERR_INVALID, 2}, {ERR_UNAVAILABLE, 3}, {ERR_DISK, 3},     {ERR_TIMEOUT, 124},
                 {ERR_DIED, 1},    {ERR_CANCELLED, 1},   {ERR_NO_MEMORY, 3}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {.code = cases[i].code, .text = "what it was"};
        struct capture c;

        capture_begin(&c, stderr);
        assert_int_eq(verb_fail(&err), cases[i].status);
        capture_end(&c, stderr, err_text, sizeof(err_text));
        assert_str_eq(err_text, "sandbox-agent: what it was\n");
    }
}

TEST(run_refuses_what_cannot_run_before_it_starts_anything)
{
    static const struct {
        const char *words[6], *text;
    } cases[] = {
        {{NULL}, "nothing to run"},
        {{"-c", ""}, "empty"},
        {{"/nonexistent/cell.py"}, "cell.py"},
        {{"-c", "1", "--timeout", "0"}, "--timeout"},
        {{"-c", "1", "--timeout", "1e9"}, "--timeout"},
        {{"-c", "1", "--timeout", "nan"}, "--timeout"},
        {{"-c", "1", "--timeout", "2x"}, "--timeout"},
        {{"-c", "1", "--network", "bridge"}, "network"},
        {{"-c", "1", "--memory", "lots"}, "--memory"},
        {{"-c", "1", "--env-file", "/nonexistent/env"}, "/nonexistent/env"},
    };

    state_make("");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *words[8] = {"run"};
        char run[300];

        memcpy(words + 1, cases[i].words, sizeof(cases[i].words));
        assert_true(call(words) == EXIT_USAGE || i + 1 == ARRAY_LEN(cases));
        assert_str_has(err_text, cases[i].text);
        snprintf(run, sizeof(run), "%s/run", test_dir());
        assert_true(access(run, F_OK) < 0);
    }
    unsetenv("SANDBOX_STATE_DIR");
}

TEST(other_verbs_say_what_they_need)
{
    state_make("");
    assert_int_eq(CALL("stop"), EXIT_USAGE);
    assert_str_has(err_text, "give an id, or --all");
    assert_int_eq(CALL("stop", "../x"), EXIT_USAGE);
    assert_str_has(err_text, "no sandbox id");
    assert_int_eq(CALL("stop", "0123"), EXIT_HOST);
    assert_str_has(err_text, "there is no sandbox '0123'");
    assert_int_eq(CALL("stop", "--all"), 0);
    assert_int_eq(CALL("image"), EXIT_USAGE);
    assert_int_eq(CALL("image", "make"), EXIT_USAGE);
    assert_int_eq(CALL("ps"), 0);
    assert_str_eq(out_text, "no sandboxes\n");
    assert_int_eq(CALL("ps", "--json"), 0);
    assert_str_eq(out_text, "");
    assert_int_eq(CALL("ps", "extra"), EXIT_USAGE);
    unsetenv("SANDBOX_STATE_DIR");
}
