/* SPDX-License-Identifier: MIT */
/* Runs through the public API. An event is valid until the next one is asked for, so the run owns
 * one buffer for all. */
#include "lib/lib-internal.h"

#include "base/clock.h"

#include <string.h>

enum { EVENT_BYTES = 128 * 1024 * 1024, RESULT_BYTES = 512 * 1024 * 1024 };

_Static_assert((int)SA_EVENT_STDOUT == (int)RUN_EVENT_STDOUT &&
                   (int)SA_EVENT_RESULT == (int)RUN_EVENT_RESULT &&
                   (int)SA_EVENT_END == (int)RUN_EVENT_END,
               "public event types are the internal ones");
_Static_assert((int)SA_CODE == (int)RUN_CODE && (int)SA_COMMAND == (int)RUN_COMMAND, "run kinds");

static int handle_new(struct run *run, struct sa_run **ret, struct error *error)
{
    struct sa_run *handle = calloc(1, sizeof(*handle));

    if (!handle) {
        run_unref(run);
        return error_no_memory(error);
    }
    handle->run = run;
    buf_init(&handle->event.data, EVENT_BYTES);
    *ret = handle;
    return 0;
}

int sa_run_open(struct sa *sa, const char *id, const struct sa_run_options *options,
                struct sa_run **ret, struct sa_error *reterr)
{
    struct sa_run_options o = {};
    struct error error;
    struct run *run;

    if (!sa || !id || !ret)
        return sa_missing("the library, the session's id or the place for the run", reterr);
    if (options)
        memcpy(&o, options, MIN(options->size, sizeof(o)));
    if (!o.text || (o.kind != SA_CODE && o.kind != SA_COMMAND)) {
        error_set(&error, ERR_INVALID, "a run needs a kind and a text");
        return sa_fail(&error, reterr);
    }
    if (run_open(sa->manager, id, NULL,
                 &(struct run_options){.size = sizeof(struct run_options),
                                       .kind = (enum run_kind)o.kind,
                                       .text = o.text,
                                       .len = o.len ? o.len : strlen(o.text),
                                       .timeout_ms = o.timeout_ms,
                                       .stdin_answers = o.answers_input != 0,
                                       .cwd = o.cwd},
                 &run, &error) < 0 ||
        handle_new(run, ret, &error) < 0)
        return sa_fail(&error, reterr);
    return 0;
}

int sa_run_adopted(struct sa *sa, const char *id, struct sa_run **ret, struct sa_error *reterr)
{
    struct error error;
    struct run *run;

    if (!sa || !id || !ret)
        return sa_missing("the library, the session's id or the place for the run", reterr);
    if (run_open_adopted(sa->manager, id, NULL, &run, &error) < 0 ||
        handle_new(run, ret, &error) < 0)
        return sa_fail(&error, reterr);
    return 0;
}

int sa_run_next(struct sa_run *run, int64_t timeout_ms, const struct sa_event **ret,
                struct sa_error *reterr)
{
    struct error error;
    int r;

    if (!run || !ret)
        return sa_missing("the run or the place for its event", reterr);
    r = run_next(run->run, &run->cursor, clock_deadline(timeout_ms), &run->event, &error);
    if (r < 0)
        return sa_fail(&error, reterr);
    if (r == 0)
        return 0;
    run->public_event = (struct sa_event){.type = (int)run->event.type,
                                          .data = buf_str(&run->event.data),
                                          .len = run->event.data.len};
    *ret = &run->public_event;
    return 1;
}

int sa_run_result(struct sa_run *run, int64_t timeout_ms, char **ret_json, struct sa_error *reterr)
{
    struct run_outcome outcome;
    auto_buf struct buf json;
    struct error error;

    buf_init(&json, RESULT_BYTES);
    if (!run || !ret_json)
        return sa_missing("the run or the place for its result", reterr);
    if (run_wait(run->run, clock_deadline(timeout_ms), &outcome, &error) < 0 ||
        run_result_json(run->run, &json, &error) < 0)
        return sa_fail(&error, reterr);
    *ret_json = buf_take(&json);
    return 0;
}

void sa_run_cancel(struct sa_run *run)
{
    if (run)
        run_cancel(run->run);
}

int sa_run_input(struct sa_run *run, const char *line, struct sa_error *reterr)
{
    struct error error;
    int r;

    if (!run)
        return sa_missing("the run", reterr);
    r = run_input(run->run, line, line ? strlen(line) : 0, &error);
    return r < 0 ? sa_fail(&error, reterr) : 0;
}

void sa_run_close(struct sa_run *run)
{
    if (!run)
        return;
    run_unref(run->run);
    buf_done(&run->event.data);
    free(run);
}

static int whole_run(struct sa *sa, const char *id, const struct sa_run_options *o, char **ret_json,
                     struct sa_error *reterr)
{
    struct sa_run *run = NULL;
    int r;

    if (!ret_json)
        return sa_missing("the place for the result", reterr);
    r = sa_run_open(sa, id, o, &run, reterr);
    if (r < 0)
        return r;
    r = sa_run_result(run, -1, ret_json, reterr);
    sa_run_close(run);
    return r;
}

int sa_execute(struct sa *sa, const char *id, const char *code, int64_t timeout_ms, char **ret_json,
               struct sa_error *reterr)
{
    return whole_run(sa, id,
                     &(struct sa_run_options){.size = sizeof(struct sa_run_options),
                                              .kind = SA_CODE,
                                              .text = code,
                                              .timeout_ms = timeout_ms},
                     ret_json, reterr);
}

int sa_terminal(struct sa *sa, const char *id, const char *command, int64_t timeout_ms,
                char **ret_json, struct sa_error *reterr)
{
    return whole_run(sa, id,
                     &(struct sa_run_options){.size = sizeof(struct sa_run_options),
                                              .kind = SA_COMMAND,
                                              .text = command,
                                              .timeout_ms = timeout_ms},
                     ret_json, reterr);
}
