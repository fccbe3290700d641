/* SPDX-License-Identifier: MIT */
/* `sandbox-agent stop`: ends sandboxes by id or by the start of one. */
#include "cli/verb.h"

#include "base/id.h"
#include "base/str.h"
#include "cli/sandboxes.h"

#include <stdio.h>

static const struct option_entry stop_options[] = {
    {"all", 'a', NULL, "end every sandbox of this state directory"},
    {},
};

static int row_stop(const struct settings *settings, const struct sandbox_row *row)
{
    struct error error;

    if (sandbox_row_stop(settings, row, &error) < 0)
        return verb_fail(&error);
    printf("%s\n", row->job.id);
    return 0;
}

/* The one sandbox whose id starts so. */
static const struct sandbox_row *row_find(const struct sandbox_table *t, const char *prefix,
                                          struct error *reterr)
{
    const struct sandbox_row *found = NULL;

    if (!id_prefix_check(prefix)) {
        error_set(reterr, ERR_INVALID, "'%.64s' is no sandbox id, nor four or more digits of one",
                  prefix);
        return NULL;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (!str_starts(t->rows[i].job.id, prefix))
            continue;
        if (found) {
            error_set(reterr, ERR_INVALID, "more than one sandbox id starts with '%s'", prefix);
            return NULL;
        }
        found = &t->rows[i];
    }
    if (!found)
        error_set(reterr, ERR_NOT_FOUND, "there is no sandbox '%s'", prefix);
    return found;
}

static int words_stop(const struct settings *settings, const struct sandbox_table *t,
                      const struct verb_args *args)
{
    int status = 0;

    for (size_t i = 0; i < args->word_count; i++) {
        struct error error;
        const struct sandbox_row *row = row_find(t, args->words[i], &error);
        int r = row ? row_stop(settings, row) : verb_fail(&error);

        if (!status)
            status = r;
    }
    return status;
}

static int stop_main(const struct verb_args *args)
{
    auto_settings struct settings settings = {};
    bool all = verb_flag(args, "all");
    struct sandbox_table table;
    struct error error;
    int status = 0;

    if (!all && !args->word_count) {
        fputs("sandbox-agent stop: give an id, or --all\n", stderr);
        return EXIT_USAGE;
    }
    if (verb_settings(args, &settings, &error) < 0 ||
        sandbox_table_read(&settings, &table, &error) < 0)
        return verb_fail(&error);
    for (size_t i = 0; all && i < table.count; i++) {
        int r = row_stop(&settings, &table.rows[i]);

        if (!status)
            status = r;
    }
    if (!all)
        status = words_stop(&settings, &table, args);
    sandbox_table_done(&table);
    return status;
}

const struct verb_entry verb_stop = {
    .name = "stop",
    .words = "(ID... | --all)",
    .summary = "End sandboxes, whichever process owns them",
    .help = "ID is a sandbox's id or its first digits, as `sandbox-agent ps` shows them.",
    .options = stop_options,
    .run = stop_main,
};
