/* SPDX-License-Identifier: MIT */
/*
 * The conversation of an owner's MCP clients: a thread like any other, so that its sessions are
 * listed, its files are served and it can be deleted by the routes that all threads have.
 */
#include "api/api-internal.h"

#include "base/str.h"
#include "base/uuid.h"

#define MCP_METADATA "{\"source\":\"mcp\"}"

/* The oldest one that a former process made; "" for none. */
static int thread_find(struct api *api, const char *owner, struct arena *arena,
                       char ret[UUID_LEN + 1], struct error *reterr)
{
    const struct store_page page = {.limit = 1, .sort_by = "created_at", .ascending = true};
    struct store_thread *list = NULL;
    size_t count = 0;
    int64_t total;
    int r = store_thread_search(api->store, owner,
                                &(struct store_thread_filter){.metadata = MCP_METADATA}, &page,
                                arena, &list, &count, &total, reterr);

    if (r == 0 && count > 0 && str_copy(ret, UUID_LEN + 1, list[0].id) < 0)
        ret[0] = 0; /* a client's own, with a name that is no UUID */
    return r;
}

int api_mcp_thread(struct api *api, const char *owner, char ret[UUID_LEN + 1], struct error *reterr)
{
    auto_arena struct arena arena;
    struct store_thread t = {.id = ret,
                             .owner = owner,
                             .metadata = MCP_METADATA,
                             .config = "{}",
                             .status = "idle",
                             .interrupts = "{}"};
    struct store_thread known;
    int r = 0;

    arena_init(&arena, API_ANSWER_MAX);
    if (!ret[0])
        r = thread_find(api, owner, &arena, ret, reterr);
    if (r == 0 && !ret[0])
        r = uuid_v4(ret, reterr);
    if (r == 0 && store_thread_get(api->store, owner, ret, &arena, &known, NULL) < 0)
        r = store_thread_create(api->store, &t, true, &arena, &known, reterr);
    return r;
}
