/* SPDX-License-Identifier: MIT */
/* Work for a request that takes its time and is no call of a tool. */
#include "mcp/call-internal.h"

struct work {
    struct mcp_request *request;
    mcp_work_fn *run;
    const void *arg;
};

static void work_free(struct work *w)
{
    mcp_request_unref(w->request);
    free(w);
}

static void work_main(void *user)
{
    struct work *w = user;

    w->run(w->request, w->arg);
    work_free(w);
}

int mcp_work_start(struct mcp_request *r, mcp_work_fn *run, const void *arg, struct error *reterr)
{
    struct work *w = malloc(sizeof(*w));
    int n;

    if (!w)
        return error_no_memory(reterr);
    *w = (struct work){.request = mcp_request_ref(r), .run = run, .arg = arg};
    n = mcp_thread_start(r->server, work_main, w, reterr);
    if (n < 0)
        work_free(w);
    return n;
}
