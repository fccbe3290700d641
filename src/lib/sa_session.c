/* SPDX-License-Identifier: MIT */
/* Sessions through the public API. */
#include "lib/lib-internal.h"

#include "base/json.h"
#include "base/str.h"

static int network_parse(const char *text, int *ret, struct error *error)
{
    *ret = -1;
    if (!text)
        return 0;
    if (str_eq(text, "none"))
        *ret = JOB_NETWORK_NONE;
    else if (str_eq(text, "public"))
        *ret = JOB_NETWORK_PUBLIC;
    else
        return error_set(error, ERR_INVALID, "network is 'none' or 'public', not '%.40s'", text);
    return 0;
}

static struct session_dependency *dependencies_copy(const struct sa_session_options *o)
{
    struct session_dependency *list = calloc(o->dependency_count + 1, sizeof(*list));

    for (size_t i = 0; list && i < o->dependency_count; i++)
        list[i] = (struct session_dependency){.name = o->dependencies[i].name,
                                              .version = o->dependencies[i].version};
    return list;
}

static int dependencies_check(const struct sa_session_options *o, struct error *error)
{
    if (o->dependency_count && !o->dependencies)
        return error_set(error, ERR_INVALID, "dependencies are counted but not given");
    for (size_t i = 0; i < o->dependency_count; i++) {
        if (!o->dependencies[i].name)
            return error_set(error, ERR_INVALID, "a dependency has no name");
    }
    return 0;
}

int sa_session_create(struct sa *sa, const struct sa_session_options *options,
                      char ret_id[SA_ID_SIZE], struct sa_error *reterr)
{
    auto_free struct session_dependency *dependencies = NULL;
    struct sa_session_options o = {};
    struct session_info info;
    struct error error;
    int network;

    if (!sa || !ret_id)
        return sa_missing(sa ? "the place for the id" : "the library", reterr);
    if (options)
        memcpy(&o, options, MIN(options->size, sizeof(o)));
    if (network_parse(o.network, &network, &error) < 0 || dependencies_check(&o, &error) < 0)
        return sa_fail(&error, reterr);
    dependencies = dependencies_copy(&o);
    if (!dependencies) {
        error_no_memory(&error);
        return sa_fail(&error, reterr);
    }
    if (session_create(sa->manager,
                       &(struct session_options){.size = sizeof(struct session_options),
                                                 .runtime = o.language,
                                                 .owner = o.owner,
                                                 .image = o.image,
                                                 .network = network,
                                                 .memory_bytes = o.memory_bytes,
                                                 .cpu_quota = o.cpu_quota,
                                                 .pids = o.pids,
                                                 .tmpfs_bytes = o.tmpfs_bytes,
                                                 .dependencies = dependencies,
                                                 .dependency_count = o.dependency_count,
                                                 .env = o.env},
                       &info, &error) < 0)
        return sa_fail(&error, reterr);
    memcpy(ret_id, info.id, SA_ID_SIZE);
    return 0;
}

int sa_session_stop(struct sa *sa, const char *id, struct sa_error *reterr)
{
    struct error error;

    if (!sa || !id)
        return sa_missing(sa ? "the session's id" : "the library", reterr);
    return session_stop(sa->manager, id, NULL, &error) < 0 ? sa_fail(&error, reterr) : 0;
}

int sa_session_interrupt(struct sa *sa, const char *id, struct sa_error *reterr)
{
    struct error error;

    if (!sa || !id)
        return sa_missing(sa ? "the session's id" : "the library", reterr);
    return session_interrupt(sa->manager, id, NULL, &error) < 0 ? sa_fail(&error, reterr) : 0;
}

static void degraded_add(yyjson_mut_doc *doc, yyjson_mut_val *object, uint32_t bits)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "degraded");

    for (uint32_t bit = 1; bit; bit <<= 1) {
        if (bits & bit)
            yyjson_mut_arr_add_str(doc, list, degraded_name(bit));
    }
}

static void info_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct session_info *i)
{
    static const char *const networks[] = {"none", "public", "allowlist"};
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    auto_json yyjson_doc *deps = NULL;

    yyjson_mut_obj_add_strcpy(doc, o, "session_id", i->id);
    yyjson_mut_obj_add_strcpy(doc, o, "runtime", i->runtime);
    yyjson_mut_obj_add_str(doc, o, "status", session_status_name(i->status));
    if (i->status == SESSION_DEAD)
        yyjson_mut_obj_add_strcpy(doc, o, "cause", i->death);
    yyjson_mut_obj_add_bool(doc, o, "busy", i->busy);
    yyjson_mut_obj_add_strcpy(doc, o, "owner", i->owner);
    yyjson_mut_obj_add_sint(doc, o, "created_ms", i->created_wall_ms);
    yyjson_mut_obj_add_sint(doc, o, "idle_ms", i->idle_ms);
    yyjson_mut_obj_add_str(doc, o, "network", networks[i->network]);
    if (json_parse(i->dependencies, strlen(i->dependencies), &deps, NULL) == 0)
        yyjson_mut_obj_add_val(doc, o, "dependencies",
                               yyjson_val_mut_copy(doc, yyjson_doc_get_root(deps)));
    degraded_add(doc, o, i->degraded);
}

int sa_session_list(struct sa *sa, char **ret_json, struct sa_error *reterr)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    auto_free struct session_info *infos = NULL;
    auto_buf struct buf text;
    struct error error;
    size_t count;

    buf_init(&text, 64 * MIB);
    if (!sa || !ret_json)
        return sa_missing(sa ? "the place for the result" : "the library", reterr);
    if (session_list(sa->manager, NULL, &infos, &count, &error) < 0)
        return sa_fail(&error, reterr);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < count; i++)
        info_add(doc, list, &infos[i]);
    if (json_mut_write(doc, &text, &error) < 0)
        return sa_fail(&error, reterr);
    *ret_json = buf_take(&text);
    return 0;
}
