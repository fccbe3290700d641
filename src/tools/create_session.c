/* SPDX-License-Identifier: MIT */
/*
 * The tool that makes a session. A model may ask for less than the operator allows a session, never
 * for more.
 */
#include "base/str.h"
#include "tools/tool-internal.h"

enum { ARENA_MAX = 4 * 1024 * 1024, INSTALLER_BYTES = 16 * 1024 * 1024 };

struct creation {
    struct arena arena; /* of what the options point to */
    struct session_options options;
};

static void creation_done(struct creation *c)
{
    arena_done(&c->arena);
}

/* ---- arguments ---- */

/* A version may be written as a number, and then means its text; Python's names for the rest. */
static const char *version_text(yyjson_val *v, struct arena *arena)
{
    char *text, *copy;

    if (yyjson_is_null(v))
        return "";
    if (yyjson_is_bool(v))
        return yyjson_get_bool(v) ? "True" : "False";
    if (yyjson_is_str(v))
        return yyjson_get_str(v);
    text = yyjson_val_write(v, YYJSON_WRITE_NOFLAG, NULL);
    copy = text ? arena_strdup(arena, text) : NULL;
    free(text);
    return copy;
}

static bool has_nul(yyjson_val *v)
{
    return yyjson_is_str(v) && strlen(yyjson_get_str(v)) != yyjson_get_len(v);
}

static int dependencies_fill(struct creation *c, yyjson_val *given, struct error *reterr)
{
    size_t i, max, count = yyjson_obj_size(given);
    struct session_dependency *list = arena_alloc(&c->arena, (count + 1) * sizeof(*list));
    yyjson_val *key, *v;

    if (!list)
        return error_no_memory(reterr);
    yyjson_obj_foreach(given, i, max, key, v)
    {
        if (has_nul(key) || has_nul(v))
            return error_set(reterr, ERR_INVALID, "dependencies: a NUL character in '%.80s'",
                             yyjson_get_str(key));
        list[i].name = yyjson_get_str(key);
        list[i].version = version_text(v, &c->arena);
        if (!list[i].version)
            return error_no_memory(reterr);
    }
    c->options.dependencies = list;
    c->options.dependency_count = count;
    return 0;
}

static int env_fill(struct creation *c, yyjson_val *given, struct error *reterr)
{
    size_t i, max, count = yyjson_obj_size(given);
    const char **list = arena_alloc(&c->arena, (count + 1) * sizeof(*list));
    yyjson_val *key, *v;

    if (!list)
        return error_no_memory(reterr);
    yyjson_obj_foreach(given, i, max, key, v)
    {
        if (has_nul(key) || has_nul(v) || strchr(yyjson_get_str(key), '='))
            return error_set(reterr, ERR_INVALID, "env: '%.80s' is no name, or its value no text",
                             yyjson_get_str(key));
        list[i] = arena_printf(&c->arena, "%s=%s", yyjson_get_str(key), yyjson_get_str(v));
        if (!list[i])
            return error_no_memory(reterr);
    }
    c->options.env = list;
    return 0;
}

static int size_fill(yyjson_val *arguments, const char *name, uint64_t *ret, struct error *reterr)
{
    const char *text;
    int r = argument_text(arguments, name, &text, reterr);

    if (r < 0 || !text)
        return r;
    if (str_parse_size(text, ret) < 0)
        return error_set(reterr, ERR_INVALID, "%s: '%.40s' is no size such as 512m", name, text);
    return 0;
}

/* What the owner turned off no argument turns on. */
static int network_fill(const struct tool_call *call, yyjson_val *arguments, int *ret,
                        struct error *reterr)
{
    const char *word;
    int r = argument_text(arguments, "network", &word, reterr);

    if (r < 0)
        return r;
    *ret = !word ? -1 : str_eq(word, "none") ? JOB_NETWORK_NONE : JOB_NETWORK_PUBLIC;
    if (!__atomic_load_n(&call->context->network_off, __ATOMIC_ACQUIRE))
        return 0;
    if (*ret == JOB_NETWORK_PUBLIC)
        return error_set(reterr, ERR_DENIED,
                         "networkEnabled is false in the settings: no session may have a network");
    *ret = JOB_NETWORK_NONE;
    return 0;
}

static int creation_fill(struct creation *c, struct tool_call *call, yyjson_val *arguments,
                         struct error *reterr)
{
    struct session_options *o = &c->options;
    int r;

    arena_init(&c->arena, ARENA_MAX);
    o->size = sizeof(*o);
    o->owner = call->context->owner;
    o->lowers_limits = true;
    o->cpu_quota = argument_int(arguments, "cpu_quota", 0);
    o->pids = argument_int(arguments, "pids_limit", 0);
    if ((r = argument_text(arguments, "language", &o->runtime, reterr)) < 0 ||
        (r = network_fill(call, arguments, &o->network, reterr)) < 0 ||
        (r = size_fill(arguments, "memory_limit", &o->memory_bytes, reterr)) < 0 ||
        (r = size_fill(arguments, "tmpfs_size", &o->tmpfs_bytes, reterr)) < 0 ||
        (r = dependencies_fill(c, yyjson_obj_get(arguments, "dependencies"), reterr)) < 0)
        return r;
    return env_fill(c, yyjson_obj_get(arguments, "env"), reterr);
}

/* ---- making ---- */

/* From now on it can be stopped; it may be asked to already. */
static void making_begin(void *user, const char *id)
{
    struct tool_call *call = user;
    bool cancelled;

    pthread_mutex_lock(&call->lock);
    memcpy(call->making, id, sizeof(call->making));
    cancelled = call->cancelled;
    pthread_mutex_unlock(&call->lock);
    if (cancelled && session_stop(call->context->manager, id, call->context->owner, NULL) < 0)
        return; /* it is ended by another thread just now */
}

static int making_end(struct tool_call *call, int r, struct error *reterr)
{
    bool cancelled;

    pthread_mutex_lock(&call->lock);
    call->making[0] = 0;
    cancelled = call->cancelled;
    pthread_mutex_unlock(&call->lock);
    if (!cancelled)
        return r;
    return error_set(reterr, ERR_CANCELLED, "stopped before the session was ready");
}

static void degraded_add(yyjson_mut_doc *doc, yyjson_mut_val *root, uint32_t bits)
{
    yyjson_mut_val *list = bits ? yyjson_mut_obj_add_arr(doc, root, "degraded") : NULL;

    for (uint32_t bit = 1; bit; bit <<= 1) {
        if (bits & bit)
            yyjson_mut_arr_add_str(doc, list, degraded_name(bit));
    }
}

/* An installer that has nothing to say may still end a line. */
static bool is_blank(const struct buf *text)
{
    return strspn(buf_str(text), " \t\r\n") == text->len;
}

static int created_write(const struct session_info *info, const struct buf *installer,
                         struct buf *ret, struct error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "success", true);
    yyjson_mut_obj_add_str(doc, root, "session_id", info->id);
    yyjson_mut_obj_add_str(doc, root, "runtime", info->runtime);
    yyjson_mut_obj_add_str(doc, root, "status", session_status_name(info->status));
    yyjson_mut_obj_add_val(doc, root, "dependencies", yyjson_mut_raw(doc, info->dependencies));
    yyjson_mut_obj_add_str(doc, root, "network",
                           info->network == JOB_NETWORK_NONE ? "none" : "public");
    if (!is_blank(installer))
        yyjson_mut_obj_add_strn(doc, root, "stderr", installer->data, installer->len);
    degraded_add(doc, root, info->degraded);
    return json_mut_write(doc, ret, reterr);
}

static int create_session_run(struct tool_call *call, yyjson_val *arguments, struct buf *ret,
                              struct error *reterr)
{
    auto_cleanup(creation_done) struct creation c = {};
    auto_buf struct buf installer;
    struct session_info info;
    int r;

    buf_init(&installer, INSTALLER_BYTES);
    if ((r = creation_fill(&c, call, arguments, reterr)) < 0)
        return r;
    c.options.on_id = making_begin;
    c.options.on_id_user = call;
    c.options.installer_stderr = &installer;
    r = session_create(call->context->manager, &c.options, &info, reterr);
    r = making_end(call, r, reterr);
    return r < 0 ? r : created_write(&info, &installer, ret, reterr);
}

const struct tool_entry tool_create_session = {
    .name = "create_session",
    .title = "Create a session",
    .description =
        "Creates an isolated sandbox with an interpreter for one language and returns its "
        "session_id, which every other tool takes. Create one session for each language that you "
        "need and keep using it: variables, files in /workspace and installed packages last from "
        "call to call, until stop_session is called, the session has not been used for 30 minutes, "
        "or it is 2 hours old. Sessions are separate: a file of one is not in another; take it "
        "over with export_files and import_files. Packages that are known to be needed can be "
        "named in `dependencies` and are installed before the call returns; when that fails, no "
        "session is created and the error tells what the installer said. A conversation can have 3 "
        "sessions at once; list_sessions shows them. The server may be configured to other limits "
        "and defaults than those told here. Common data packages are there without being asked for "
        "(numpy, pandas, matplotlib and others for Python, the tidyverse for R).",
    /* clang-format off */
    .input_schema = JSON({
        "type": "object",
        "properties": {
            "language": {
                "type": "string",
                "enum": ["python", "node", "r"],
                "default": "python",
                "description": "The language of the session: python, node (JavaScript) or r."
            },
            "dependencies": {
                "type": ["object", "null"],
                "maxProperties": 100,
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                "default": {},
                "description": "Packages to install: {name: version}; version '' is the newest."
            },
            "network": {
                "type": ["string", "null"],
                "enum": ["none", "public", null],
                "default": null,
                "description": "Whether code reaches the internet; by default public."
            },
            "memory_limit": {
                "type": ["string", "null"],
                "pattern": "^[0-9]{1,12}[bkmgtBKMGT]?[bB]?$",
                "default": null,
                "description": "Memory, such as 512m; at most, and by default, 2 GiB."
            },
            "cpu_quota": {
                "type": ["integer", "null"],
                "minimum": 1000,
                "maximum": 100000000,
                "default": null,
                "description": "Microseconds of CPU time per 100,000 (100000: one core)."
            },
            "pids_limit": {
                "type": ["integer", "null"],
                "minimum": 8,
                "maximum": 1000000,
                "default": null,
                "description": "How many processes and threads may run at once."
            },
            "tmpfs_size": {
                "type": ["string", "null"],
                "pattern": "^[0-9]{1,12}[bkmgtBKMGT]?[bB]?$",
                "default": null,
                "description": "Size of /workspace and of /tmp, each, such as 100m."
            },
            "env": {
                "type": ["object", "null"],
                "maxProperties": 200,
                "additionalProperties": {"type": "string"},
                "default": null,
                "description": "Environment variables of the code and of commands."
            }
        }
    }),
    .output_schema = OUTPUT(
        "session_id": {"type": "string", "description": "What the other tools take."},
        "runtime": {"enum": ["python", "node", "r"]},
        "status": {"type": "string"},
        "dependencies": {"type": "object", "additionalProperties": {"type": "string"}},
        "network": {"enum": ["none", "public"]},
        "stderr": {"type": "string", "description": "What the installer wrote there."},
        "degraded": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Protections that this host cannot give."
        }
    ),
    /* clang-format on */
    .read_only = false,
    .destructive = false,
    .idempotent = false,
    .open_world = true,
    .run = create_session_run,
};
