/* SPDX-License-Identifier: MIT */
/*
 * Verbs of the command line. Each is one file with one entry; parsing, help and the man page read
 * the entries.
 */
#pragma once

#include "base/error.h"
#include "base/settings.h"

#include <stdbool.h>

struct option_entry {
    const char *name;  /* long form, without dashes; NULL ends a table */
    char letter;       /* short form, or 0 */
    const char *value; /* what its argument is called; NULL: it takes none */
    const char *help;  /* NULL: for programs of ours, and in no list */
};

/* An option as it was given; the order of all is kept. */
struct option_given {
    const struct option_entry *entry;
    const char *value; /* NULL without an argument */
};

struct verb_args {
    struct option_given *given;
    size_t given_count;
    char **words; /* what is no option */
    size_t word_count;
    bool local_env; /* settings come from the working directory's .env */
};

/* Returns the exit status. */
typedef int verb_fn(const struct verb_args *args);

struct verb_entry {
    const char *name;
    const char *words;   /* usage of the words */
    const char *summary; /* one line */
    const char *help;    /* more, or NULL */
    const struct option_entry *options;
    verb_fn *run;
    bool local_env;
};

extern const struct verb_entry verb_cli, verb_api, verb_run, verb_mcp, verb_image, verb_doctor,
    verb_ps, verb_stop, verb_ui;

/* Exit statuses that are not in the error table. */
enum { EXIT_CELL_FAILED = 1, EXIT_USAGE = 2, EXIT_HOST = 3, EXIT_TIMEOUT = 124 };

/* Finds the verb, parses its options, runs it. `verbs` ends with NULL. */
int verb_main(const struct verb_entry *const *verbs, int argc, char **argv);

/* Last value of an option; `fallback` when it was not given. */
const char *verb_option(const struct verb_args *args, const char *name, const char *fallback);
bool verb_flag(const struct verb_args *args, const char *name);

/*
 * Settings for a verb: the environment, then --env-file, else `.env` of the state directory (of the
 * working directory for verbs that are started where they belong). Also sets up logging.
 */
int verb_settings(const struct verb_args *args, struct settings *ret,
                  struct error *reterr) must_check;

/* Prints "sandbox-agent: <text>" to stderr; returns the exit status of the error. */
int verb_fail(const struct error *error);
