/* SPDX-License-Identifier: MIT */
/* Versions and capabilities, for both eras in one place. */
#include "mcp/meta.h"

#include "base/str.h"

enum { LIST_TTL_MS = 60000 };

static const char instructions[] =
    "Isolated sandboxes for Python, Node.js and R code. create_session first; its session_id is "
    "the "
    "handle for everything else. Variables, files and installed packages stay in a session until "
    "it "
    "is stopped or idle for long, also after errors and time-outs. Use execute_code for anything "
    "that code can answer (plots come back as images), execute_terminal for shell commands and "
    "package installs, import_files and export_files to move files, stop_session when done.";

/* Versions that `initialize` may name. */
static const char *const legacy_versions[] = {MCP_VERSION_LEGACY, "2025-06-18", "2025-03-26",
                                              "2024-11-05"};

yyjson_mut_val *mcp_server_info(yyjson_mut_doc *doc)
{
    yyjson_mut_val *info = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, info, "name", "sandbox-agent");
    yyjson_mut_obj_add_str(doc, info, "title", "sandbox-agent");
    yyjson_mut_obj_add_str(doc, info, "version", PACKAGE_VERSION);
    return info;
}

yyjson_mut_val *mcp_meta_of(yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    yyjson_mut_val *meta = yyjson_mut_obj_get(object, "_meta");

    return meta ? meta : yyjson_mut_obj_add_obj(doc, object, "_meta");
}

void mcp_meta_complete(yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    if (!yyjson_mut_obj_get(result, "resultType"))
        yyjson_mut_obj_add_str(doc, result, "resultType", "complete");
    yyjson_mut_obj_add_val(doc, mcp_meta_of(doc, result), "io.modelcontextprotocol/serverInfo",
                           mcp_server_info(doc));
}

void mcp_meta_cacheable(yyjson_mut_doc *doc, yyjson_mut_val *result)
{
    if (!yyjson_mut_obj_get(result, "ttlMs"))
        yyjson_mut_obj_add_int(doc, result, "ttlMs", LIST_TTL_MS);
    yyjson_mut_obj_add_str(doc, result, "cacheScope", "private");
}

int mcp_notification_format(const char *method, yyjson_mut_doc *doc, yyjson_mut_val *params,
                            struct buf *ret)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, root, "jsonrpc", "2.0");
    yyjson_mut_obj_add_strcpy(doc, root, "method", method);
    yyjson_mut_obj_add_val(doc, root, "params", params);
    yyjson_mut_doc_set_root(doc, root);
    return json_mut_write(doc, ret, NULL);
}

unsigned mcp_capabilities_parse(yyjson_val *declared)
{
    yyjson_val *elicitation = yyjson_obj_get(declared, "elicitation");
    yyjson_val *extensions = yyjson_obj_get(declared, "extensions");
    unsigned can = 0;

    /* Empty, as before there was another mode, it means forms. */
    if (yyjson_is_obj(elicitation) &&
        (yyjson_obj_size(elicitation) == 0 || yyjson_is_obj(yyjson_obj_get(elicitation, "form"))))
        can |= MCP_CAN_ELICIT;
    if (yyjson_is_obj(yyjson_obj_get(declared, "sampling")))
        can |= MCP_CAN_SAMPLE;
    if (yyjson_is_obj(yyjson_obj_get(declared, "roots")))
        can |= MCP_CAN_LIST_ROOTS;
    if (yyjson_is_obj(yyjson_obj_get(extensions, MCP_EXTENSION_TASKS)))
        can |= MCP_CAN_TASKS;
    return can;
}

/* ---- modern ---- */

static int version_fault(struct mcp_request *r, const char *requested)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *data = yyjson_mut_obj(doc);
    yyjson_mut_val *supported = yyjson_mut_obj_add_arr(doc, data, "supported");

    yyjson_mut_arr_add_str(doc, supported, MCP_VERSION_MODERN);
    yyjson_mut_obj_add_strcpy(doc, data, "requested", requested);
    mcp_request_fail(
        r, &(struct jsonrpc_fault){MCP_BAD_VERSION, "unsupported protocol version", data});
    return -1;
}

int mcp_meta_check(struct mcp_request *r)
{
    yyjson_val *meta = yyjson_obj_get(r->message.params, "_meta");
    const char *version = json_get_str(meta, "io.modelcontextprotocol/protocolVersion", NULL);
    yyjson_val *can = yyjson_obj_get(meta, "io.modelcontextprotocol/clientCapabilities");
    const char *missing = NULL;

    if (!yyjson_is_obj(meta))
        missing = "params._meta is missing";
    else if (!version)
        missing = "params._meta has no io.modelcontextprotocol/protocolVersion";
    else if (!yyjson_is_obj(can))
        missing = "params._meta has no io.modelcontextprotocol/clientCapabilities";
    if (missing) {
        mcp_request_fail(r, &(struct jsonrpc_fault){JSONRPC_INVALID_PARAMS, missing, NULL});
        return -1;
    }
    r->capabilities = mcp_capabilities_parse(can);
    r->log_level = mcp_log_level_parse(json_get_str(meta, "io.modelcontextprotocol/logLevel", ""));
    return str_eq(version, MCP_VERSION_MODERN) ? 0 : version_fault(r, version);
}

static void capabilities_add(const struct mcp_request *r, yyjson_mut_doc *doc,
                             yyjson_mut_val *result)
{
    yyjson_mut_val *all = yyjson_mut_obj_add_obj(doc, result, "capabilities"), *one;
    bool fixture = r->server->fixture;

    yyjson_mut_obj_add_obj(doc, all, "logging");
    one = yyjson_mut_obj_add_obj(doc, all, "tools");
    yyjson_mut_obj_add_bool(doc, one, "listChanged", fixture);
    one = yyjson_mut_obj_add_obj(doc, all, "resources");
    yyjson_mut_obj_add_bool(doc, one, "subscribe", true);
    yyjson_mut_obj_add_bool(doc, one, "listChanged", true);
    if (fixture) {
        yyjson_mut_obj_add_obj(doc, all, "completions");
        one = yyjson_mut_obj_add_obj(doc, all, "prompts");
        yyjson_mut_obj_add_bool(doc, one, "listChanged", true);
    }
    if (r->era == MCP_MODERN) {
        one = yyjson_mut_obj_add_obj(doc, all, "extensions");
        yyjson_mut_obj_add_obj(doc, one, MCP_EXTENSION_TASKS);
    }
}

int mcp_discover(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                 struct error *reterr)
{
    yyjson_mut_val *versions = yyjson_mut_obj_add_arr(doc, result, "supportedVersions");

    yyjson_mut_arr_add_str(doc, versions, MCP_VERSION_MODERN);
    capabilities_add(r, doc, result);
    yyjson_mut_obj_add_str(doc, result, "instructions", instructions);
    return MCP_DONE;
}

/* ---- legacy ---- */

bool mcp_version_is_legacy(const char *version)
{
    for (size_t i = 0; i < ARRAY_LEN(legacy_versions); i++) {
        if (str_eq(version, legacy_versions[i]))
            return true;
    }
    return false;
}

/* What was asked for, or the newest of the era: a client that cannot speak it says so by leaving.
 */
static const char *version_choose(const char *requested)
{
    return mcp_version_is_legacy(requested) ? requested : MCP_VERSION_LEGACY;
}

int mcp_initialize(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                   struct error *reterr)
{
    const char *requested = mcp_request_param(r, "protocolVersion", reterr);
    struct mcp_server *s = r->server;

    if (!requested)
        return -ERR_INVALID;
    yyjson_mut_obj_add_strcpy(doc, result, "protocolVersion", version_choose(requested));
    capabilities_add(r, doc, result);
    yyjson_mut_obj_add_val(doc, result, "serverInfo", mcp_server_info(doc));
    yyjson_mut_obj_add_str(doc, result, "instructions", instructions);
    pthread_mutex_lock(&s->lock);
    if (r->client) {
        r->client->capabilities =
            mcp_capabilities_parse(yyjson_obj_get(r->message.params, "capabilities")) &
            ~(unsigned)MCP_CAN_TASKS;
        r->client->initialized = true;
        r->client->spoke_modern = false;
    }
    pthread_mutex_unlock(&s->lock);
    return MCP_DONE;
}
