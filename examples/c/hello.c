/* SPDX-License-Identifier: MIT */
/*
 * Two cells and a command in one sandbox, with live output. Build it with
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs sandbox_agent)
 */
#include <sandbox_agent.h>

#include <stdio.h>

static int follow(struct sa *sa, const char *id, int kind, const char *text, struct sa_error *error)
{
    struct sa_run_options options = {.size = sizeof(options), .kind = kind, .text = text};
    const struct sa_event *event;
    struct sa_run *run;
    int r = sa_run_open(sa, id, &options, &run, error);

    if (r < 0)
        return r;
    while ((r = sa_run_next(run, -1, &event, error)) > 0) {
        if (event->type == SA_EVENT_STDOUT)
            fwrite(event->data, 1, event->len, stdout);
        else if (event->type == SA_EVENT_RESULT)
            printf("result: %s\n", event->data);
    }
    sa_run_close(run);
    return r;
}

int main(void)
{
    struct sa_error error = {0};
    char id[SA_ID_SIZE];
    struct sa *sa = NULL;
    int failed;

    failed = sa_open(NULL, &sa, &error) < 0 || sa_session_create(sa, NULL, id, &error) < 0 ||
             follow(sa, id, SA_CODE, "x = 6\nprint('hello from the sandbox')", &error) < 0 ||
             follow(sa, id, SA_CODE, "x * 7", &error) < 0 ||
             follow(sa, id, SA_COMMAND, "id -un", &error) < 0;
    if (failed)
        fprintf(stderr, "%s: %s\n", sa_error_name(error.code), error.text);
    sa_close(sa);
    return failed;
}
