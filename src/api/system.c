/* SPDX-License-Identifier: MIT */
/* What the server says about itself. Nothing here needs a key but /metrics. */
#include "api/api-internal.h"
#include "api/page.h"
#include "base/str.h"
#include "session/session.h"

#include <stdio.h>
#include <unistd.h>

/* What clients look at: some switch features off for servers that are older than they are. */
#define SERVER_VERSION "0.12.0"

static void on_root(struct http_request *req)
{
    if (page_is_wanted(req))
        page_respond(api_of(req)->page, req);
    else
        api_reply_text(req, 200,
                       "{\"message\":\"sandbox-agent\",\"version\":\"" PACKAGE_VERSION
                       "\",\"status\":\"running\",\"docs\":\"/docs\"}");
}

static void on_info(struct http_request *req)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    if (buf_printf(&b,
                   "{\"name\":\"sandbox-agent\",\"version\":\"" SERVER_VERSION
                   "\",\"langgraph_py_version\":\"1.2.0\",\"sandbox_agent_version\":"
                   "\"" PACKAGE_VERSION "\",\"status\":\"running\",\"flags\":{\"assistants\":true,"
                   "\"crons\":%s,\"langsmith\":false},\"metadata\":{}}",
                   api_of(req)->settings->crons ? "true" : "false") == 0)
        api_reply(req, 200, &b);
}

static void on_ok(struct http_request *req)
{
    const char *check = http_query(req, "check_db");
    struct error error;

    if (check && str_eq(check, "1") && store_ping(api_of(req)->store, &error) < 0)
        http_fail(req, 500, &error);
    else
        api_reply_text(req, 200, "{\"ok\":true}");
}

/* The members that three kinds of clients look for. */
static void on_health(struct http_request *req)
{
    struct api *api = api_of(req);
    struct error error;
    bool ok = store_ping(api->store, &error) == 0;
    const char *word = ok ? "connected" : "unavailable";
    auto_buf struct buf b;

    buf_init(&b, 4096);
    if (buf_printf(&b,
                   "{\"status\":\"%s\",\"database\":\"%s\",\"langgraph_checkpointer\":\"%s\","
                   "\"langgraph_store\":\"%s\",\"store\":\"%s\",\"engine\":\"native\",\"version\":"
                   "\"" PACKAGE_VERSION "\"}",
                   ok ? "healthy" : "unhealthy", word, word, word, store_kind(api->store)) == 0)
        api_reply(req, ok ? 200 : 503, &b);
}

static void on_ready(struct http_request *req)
{
    struct error error;

    if (store_ping(api_of(req)->store, &error) < 0)
        http_fail(req, 503, &error);
    else
        api_reply_text(req, 200, "{\"status\":\"ready\"}");
}

static void on_live(struct http_request *req)
{
    api_reply_text(req, 200, "{\"status\":\"alive\"}");
}

/* ---- metrics, in the text format of Prometheus ---- */

static bool metric(struct buf *b, const char *name, const char *type, const char *help,
                   double value)
{
    return buf_printf(b,
                      "# HELP sandbox_agent_%s %s\n# TYPE sandbox_agent_%s %s\n"
                      "sandbox_agent_%s %.17g\n",
                      name, help, name, type, name, value) == 0;
}

static double resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void on_metrics(struct http_request *req)
{
    struct api *api = api_of(req);
    struct session_info *sessions = NULL;
    struct live_counts c;
    size_t count = 0;
    auto_buf struct buf b;

    buf_init(&b, 64 * KIB);
    live_counts_get(api->live, &c);
    if (session_list(api->manager, NULL, &sessions, &count, NULL) < 0)
        count = 0;
    free(sessions);
    if (metric(&b, "runs_active", "gauge", "Runs that are going on.", (double)c.active) &&
        metric(&b, "runs_known", "gauge", "Runs whose events are kept.", (double)c.known) &&
        metric(&b, "runs_started_total", "counter", "Runs that were begun.", (double)c.started) &&
        metric(&b, "runs_succeeded_total", "counter", "Runs that ended well.",
               (double)c.succeeded) &&
        metric(&b, "runs_failed_total", "counter", "Runs that failed.", (double)c.failed) &&
        metric(&b, "runs_interrupted_total", "counter", "Runs that were interrupted.",
               (double)c.interrupted) &&
        metric(&b, "sessions", "gauge", "Sandboxes that live.", (double)count) &&
        metric(&b, "uptime_seconds", "gauge", "Since the start.",
               (double)(timestamp_now() - api->started_us) / 1e6) &&
        metric(&b, "resident_memory_bytes", "gauge", "Of the server's process.", resident_bytes()))
        http_respond(req, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b), b.len);
}

const struct route_entry api_system_routes[] = {
    {"GET", "/", "What this is", on_root},
    {"GET", "/info", "Version and features", on_info},
    {"GET", "/ok", "Whether the server answers", on_ok},
    {"GET", "/health", "Whether its parts work", on_health},
    {"GET", "/ready", "Whether it can take runs", on_ready},
    {"GET", "/live", "Whether the process lives", on_live},
    {"GET", "/metrics", "Counters, in the text format of Prometheus", on_metrics},
    {"GET", "/openapi.json", "This API as OpenAPI 3.1", api_openapi},
    {"GET", "/docs", "This API as a page", api_docs},
    {},
};
