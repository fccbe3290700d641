/* SPDX-License-Identifier: MIT */
/* The parts of the server, in the order in which they need each other. */
#include "api/api.h"

#include "api/api-internal.h"
#include "api/auth.h"
#include "api/describe.h"
#include "api/page.h"
#include "api/thread_log.h"
#include "http/client.h"

#include <stdio.h>

static const struct route_entry *const route_tables[] = {
    api_system_routes,   api_assistant_routes, api_thread_routes, api_state_routes,
    api_run_routes,      api_event_routes,     api_item_routes,   api_file_routes,
    api_settings_routes, api_session_routes,   api_cron_routes,
};

static void tables_fill(struct api *api)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(route_tables); i++)
        api->tables[n++] = (struct route_table){.entries = route_tables[i], .user = api};
}

static int agent_open(struct api *api, struct error *reterr)
{
    return agent_new(&(struct agent_options){.size = sizeof(struct agent_options),
                                             .settings = api->settings,
                                             .store = api->store,
                                             .manager = api->manager,
                                             .llm = api->llm,
                                             .public_url = api->settings->api_base_url},
                     &api->agent, reterr);
}

static int parts_open(struct api *api, struct error *reterr)
{
    int r;

    if ((r = key_table_new(api->settings, &api->principals, reterr)) < 0 ||
        (r = limiter_new((double)api->settings->requests_per_second, &api->limiter, reterr)) < 0 ||
        (r = shapes_new(&api->shapes, reterr)) < 0 ||
        (r = sealed_keys_load(api->settings, &api->keys, reterr)) < 0 ||
        (r = store_open(api->settings, &api->store, reterr)) < 0 ||
        (r = http_client_new_by(api->settings, &api->client, reterr)) < 0 ||
        (r = llm_new(api->client, &api->llm, reterr)) < 0 || (r = agent_open(api, reterr)) < 0 ||
        (r = thread_logs_new(&api->threads, reterr)) < 0)
        return r;
    return live_new(api, &api->live, reterr);
}

int api_new(const struct api_options *options, struct api **ret, struct error *reterr)
{
    struct api *api = calloc(1, sizeof(*api));
    int r;

    if (!api)
        return error_no_memory(reterr);
    api->settings = options->settings;
    api->manager = options->manager;
    api->started_us = timestamp_now();
    tables_fill(api);
    r = page_new(options->page, options->page_dir, &api->page, reterr);
    if (r == 0)
        r = parts_open(api, reterr);
    if (r == 0)
        r = api_recover(api, reterr);
    if (r < 0) {
        api_free(api);
        return r;
    }
    *ret = api;
    return 0;
}

const struct route_table *api_tables(const struct api *api)
{
    return api->tables;
}

struct route_table api_page_table(struct api *api)
{
    return (struct route_table){.entries = page_routes(api->page), .user = api};
}

bool api_has_keys(const struct api *api)
{
    return !key_table_is_open(api->principals);
}

void api_describe(struct api *api, const struct route_entry *entries)
{
    size_t i = 0;

    while (i + 1 < ARRAY_LEN(api->described) && api->described[i])
        i++;
    api->described[i] = entries;
}

int api_start(struct api *api, const char *url, struct error *reterr)
{
    int r;

    snprintf(api->url, sizeof(api->url), "%s", url);
    r = live_start(api->live, reterr);
    return r < 0 ? r : crons_start(api, reterr);
}

bool api_stop(struct api *api, unsigned grace_ms)
{
    bool ended;

    crons_stop(api);
    ended = live_stop(api->live, grace_ms);
    thread_logs_close(api->threads);
    return ended;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    live_free(api->live);
    thread_logs_free(api->threads);
    if (api->agent)
        agent_free(api->agent);
    if (api->llm)
        llm_free(api->llm);
    if (api->client)
        http_client_free(api->client);
    if (api->store)
        store_close(api->store);
    sealed_keys_clear(&api->keys);
    shapes_free(api->shapes);
    limiter_free(api->limiter);
    key_table_free(api->principals);
    page_free(api->page);
    free(api);
}
