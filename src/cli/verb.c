/* SPDX-License-Identifier: MIT */
/*
 * Option parsing and help from the verb tables. Long and short forms are matched by hand: getopt
 * keeps global state and permutes argv, which would lose the order of cells.
 */
#include "cli/verb.h"

#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/screen.h"

#include <stdio.h>

/* Options that every verb has. */
static const struct option_entry common_options[] = {
    {"env-file", 0, "FILE", "read settings from FILE, not from .env"},
    {"help", 'h', NULL, "print this text"},
    {},
};

/* ---- help ---- */

static void option_print(FILE *f, const struct option_entry *o)
{
    char left[64];

    snprintf(left, sizeof(left), "%s%c%s --%s%s%s", o->letter ? "-" : "",
             o->letter ? o->letter : ' ', o->letter ? "," : "  ", o->name, o->value ? " " : "",
             o->value ? o->value : "");
    fprintf(f, "  %-30s %s\n", left, o->help);
}

static void verb_print(FILE *f, const struct verb_entry *v)
{
    fprintf(f, "usage: sandbox-agent %s [OPTIONS]%s%s\n\n%s.\n", v->name, v->words[0] ? " " : "",
            v->words, v->summary);
    if (v->help)
        fprintf(f, "\n%s\n", v->help);
    fputs("\noptions:\n", f);
    for (const struct option_entry *o = v->options; o && o->name; o++) {
        if (o->help)
            option_print(f, o);
    }
    for (const struct option_entry *o = common_options; o->name; o++)
        option_print(f, o);
}

static void help_print(FILE *f, const struct verb_entry *const *verbs)
{
    fputs("sandbox-agent " PACKAGE_VERSION
          ": runs code in isolated Python, Node and R sandboxes\n\n"
          "usage: sandbox-agent [VERB] [OPTIONS] ...\n\nverbs (the first one is run where none is "
          "named):\n",
          f);
    for (; *verbs; verbs++)
        fprintf(f, "  %-10s %s\n", (*verbs)->name, (*verbs)->summary);
    fputs(
        "\n`sandbox-agent VERB --help` tells more. Exit status: 0 ok; 1 the code failed; 2 usage;\n"
        "3 image, host or disk faults; 124 timed out.\n",
        f);
}

/* ---- parsing ---- */

static const struct option_entry *table_find(const struct option_entry *table, const char *name,
                                             size_t len, char letter)
{
    for (; table && table->name; table++) {
        if (letter ? table->letter == letter
                   : strlen(table->name) == len && memcmp(table->name, name, len) == 0)
            return table;
    }
    return NULL;
}

static const struct option_entry *option_find(const struct verb_entry *v, const char *name,
                                              size_t len, char letter)
{
    const struct option_entry *o = table_find(v->options, name, len, letter);

    return o ? o : table_find(common_options, name, len, letter);
}

/* One argument that starts with a dash; `*at` moves over a value that is an argument of its own. */
static int option_parse(const struct verb_entry *v, char **argv, int argc, int *at,
                        struct verb_args *args)
{
    const char *text = argv[*at], *value = NULL;
    bool is_long = text[1] == '-';
    size_t len = is_long ? strcspn(text + 2, "=") : 1;
    const struct option_entry *o =
        option_find(v, text + 2, is_long ? len : 0, is_long ? 0 : text[1]);

    if (!o) {
        fprintf(stderr, "sandbox-agent %s: unknown option '%s'\n", v->name, text);
        return -1;
    }
    if (is_long && text[2 + len] == '=')
        value = text + 2 + len + 1;
    else if (!is_long && text[2])
        value = text + 2;
    if (value && !o->value) {
        fprintf(stderr, "sandbox-agent %s: '--%s' takes no value\n", v->name, o->name);
        return -1;
    }
    if (o->value && !value) {
        if (*at + 1 >= argc) {
            fprintf(stderr, "sandbox-agent %s: '--%s' needs a value\n", v->name, o->name);
            return -1;
        }
        value = argv[++*at];
    }
    args->given[args->given_count++] = (struct option_given){.entry = o, .value = value};
    return 0;
}

static int args_parse(const struct verb_entry *v, int argc, char **argv, struct verb_args *args)
{
    bool words_only = false;

    for (int i = 0; i < argc; i++) {
        if (!words_only && str_eq(argv[i], "--"))
            words_only = true;
        else if (!words_only && argv[i][0] == '-' && argv[i][1]) {
            if (option_parse(v, argv, argc, &i, args) < 0)
                return -1;
        } else {
            args->words[args->word_count++] = argv[i];
        }
    }
    if (args->word_count && !v->words[0] && !verb_flag(args, "help")) {
        fprintf(stderr, "sandbox-agent %s: unknown argument '%s'\n", v->name, args->words[0]);
        return -1;
    }
    return 0;
}

static int verb_run_entry(const struct verb_entry *v, int argc, char **argv)
{
    auto_free struct option_given *given = calloc((size_t)argc + 1, sizeof(*given));
    auto_free char **words = calloc((size_t)argc + 1, sizeof(*words));
    struct verb_args args = {.given = given, .words = words, .local_env = v->local_env};

    if (!given || !words)
        return EXIT_HOST;
    if (args_parse(v, argc, argv, &args) < 0) {
        fprintf(stderr, "`sandbox-agent %s --help` tells the options\n", v->name);
        return EXIT_USAGE;
    }
    if (verb_flag(&args, "help")) {
        verb_print(stdout, v);
        return 0;
    }
    return v->run(&args);
}

int verb_main(const struct verb_entry *const *verbs, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (word && (str_eq(word, "help") || str_eq(word, "-h") || str_eq(word, "--help"))) {
        help_print(stdout, verbs);
        return 0;
    }
    if (word && str_eq(word, "--version")) {
        puts("sandbox-agent " PACKAGE_VERSION);
        return 0;
    }
    for (size_t i = 0; word && verbs[i]; i++) {
        if (str_eq(word, verbs[i]->name))
            return verb_run_entry(verbs[i], argc - 2, argv + 2);
    }
    /* Without a verb it is the first one, which may have options. */
    if (!word || word[0] == '-')
        return verb_run_entry(verbs[0], argc - 1, argv + 1);
    fprintf(stderr, "sandbox-agent: unknown verb '%s'\n\n", word);
    help_print(stderr, verbs);
    return EXIT_USAGE;
}

/* ---- for the verbs ---- */

const char *verb_option(const struct verb_args *args, const char *name, const char *fallback)
{
    const char *value = fallback;

    for (size_t i = 0; i < args->given_count; i++) {
        if (str_eq(args->given[i].entry->name, name))
            value = args->given[i].value;
    }
    return value;
}

bool verb_flag(const struct verb_args *args, const char *name)
{
    for (size_t i = 0; i < args->given_count; i++) {
        if (str_eq(args->given[i].entry->name, name))
            return true;
    }
    return false;
}

static void settings_warn(void *user, const char *text)
{
    log_warn("%s", text);
}

int verb_settings(const struct verb_args *args, struct settings *ret, struct error *reterr)
{
    const char *file = verb_option(args, "env-file", NULL);
    struct settings_source source = {
        .env = environ, .env_file = file, .required = file != NULL, .warn = settings_warn};
    char state[PATH_LEN], path[PATH_LEN];
    enum log_level level;
    const char *own = getenv("SANDBOX_STATE_DIR");
    int r;

    /* Not the working directory's .env: that may be somebody else's repository. */
    if (!file && args->local_env) {
        source.env_file = ".env";
    } else if (!file) {
        r = own && own[0] == '/'
                ? str_copy(state, sizeof(state), own)
                : settings_default_state_dir(environ, state, sizeof(state), reterr);
        if (r < 0 || path_join(path, sizeof(path), state, ".env", reterr) < 0)
            return error_set(reterr, ERR_INVALID, "the state directory's path is too long");
        source.env_file = path;
    }
    if ((r = settings_load(ret, &source, reterr)) < 0)
        return r;
    if (log_level_parse(ret->log_level, &level) < 0) {
        settings_done(ret);
        return error_set(reterr, ERR_INVALID, "SANDBOX_LOG: error, warn, info or debug");
    }
    log_configure(level, str_eq(ret->log_format, "json"));
    return 0;
}

int verb_fail(const struct error *error)
{
    screen_message(error->text);
    return error_entry(error->code)->exit_status;
}
