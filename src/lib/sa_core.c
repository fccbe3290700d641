/* SPDX-License-Identifier: MIT */
/* Opening and closing the library, and its errors. The public codes are the internal ones, which is
 * checked here. */
#include "lib/lib-internal.h"

#include "base/path.h"
#include "base/str.h"

_Static_assert((int)SA_INVALID == (int)ERR_INVALID && (int)SA_DIED == (int)ERR_DIED &&
                   (int)SA_DISK == (int)ERR_DISK && (int)SA_INTERNAL == (int)ERR_INTERNAL,
               "public error codes are the internal ones");

const char *sa_error_name(int code)
{
    return error_entry((enum error_code)code)->name;
}

const char *sa_version(void)
{
    return PACKAGE_VERSION;
}

void sa_free(void *memory)
{
    free(memory);
}

int sa_fail(const struct error *error, struct sa_error *reterr)
{
    if (reterr) {
        reterr->code = (int)error->code;
        reterr->sys = error->sys;
        memcpy(reterr->text, error->text, sizeof(reterr->text));
    }
    return -(int)error->code;
}

int sa_missing(const char *what, struct sa_error *reterr)
{
    struct error error;

    error_set(&error, ERR_INVALID, "%s is missing", what);
    return sa_fail(&error, reterr);
}

/* A program of an older library gave a shorter struct: what it did not know is zero. */
static struct sa_options options_copy(const struct sa_options *options)
{
    struct sa_options copy = {};

    if (options)
        memcpy(&copy, options, MIN(options->size, sizeof(copy)));
    return copy;
}

static int settings_open(const struct sa_options *o, struct settings *ret, struct error *error)
{
    struct settings_source source = {
        .env = environ, .env_file = o->env_file, .required = o->env_file != NULL};
    const char *own = getenv("SANDBOX_STATE_DIR");
    char state[PATH_LEN], path[PATH_LEN];
    int r = 0;

    if (!o->env_file) {
        r = own && own[0] == '/' ? str_copy(state, sizeof(state), own)
                                 : settings_default_state_dir(environ, state, sizeof(state), error);
        if (r < 0 || path_join(path, sizeof(path), state, ".env", error) < 0)
            return error_set(error, ERR_INVALID,
                             "the state directory cannot be found or is too long");
        source.env_file = path;
    }
    return settings_load(ret, &source, error);
}

int sa_open(const struct sa_options *options, struct sa **ret, struct sa_error *reterr)
{
    struct sa_options o = options_copy(options);
    struct sa *sa = calloc(1, sizeof(*sa));
    struct error error;

    if (!sa || !ret) {
        free(sa);
        if (!ret)
            return sa_missing("the place for the result", reterr);
        error_no_memory(&error);
        return sa_fail(&error, reterr);
    }
    if (settings_open(&o, &sa->settings, &error) < 0 ||
        session_manager_new(
            &(struct session_manager_options){.size = sizeof(struct session_manager_options),
                                              .settings = &sa->settings,
                                              .instance = o.instance ? o.instance : "lib",
                                              .keep_sessions = o.keep_sessions != 0,
                                              .no_build = o.no_build != 0,
                                              .progress = o.progress,
                                              .progress_user = o.progress_user},
            &sa->manager, &error) < 0) {
        settings_done(&sa->settings);
        free(sa);
        return sa_fail(&error, reterr);
    }
    *ret = sa;
    return 0;
}

void sa_close(struct sa *sa)
{
    if (!sa)
        return;
    session_manager_free(sa->manager);
    settings_done(&sa->settings);
    free(sa);
}
