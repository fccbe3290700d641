/* SPDX-License-Identifier: MIT */
/* `sandbox-agent ps`: the sandboxes of this state directory. */
#include "cli/verb.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/sandboxes.h"

#include <fcntl.h>
#include <stdio.h>

static const struct option_entry ps_options[] = {
    {"json", 0, NULL, "print one JSON object per sandbox"},
    {},
};

/* Bytes in use by the sandbox's memory cgroup, or 0. */
static uint64_t memory_used(const struct sandbox_row *row)
{
    auto_free char *text = NULL;
    int64_t bytes;

    if (!row->event.memory_current[0] ||
        fd_read_file(AT_FDCWD, row->event.memory_current, 64, &text, NULL, NULL) < 0)
        return 0;
    text[strcspn(text, "\n")] = 0;
    return str_parse_int(text, 0, INT64_MAX, &bytes) < 0 ? 0 : (uint64_t)bytes;
}

static void degraded_format(uint32_t bits, struct buf *ret)
{
    for (uint32_t bit = 1; bit; bit <<= 1) {
        if ((bits & bit) && buf_printf(ret, "%s%s", ret->len ? ", " : "", degraded_name(bit)) < 0)
            return;
    }
}

/* An owner may be a stranger's name at some service: it must not steer this terminal. */
static const char *owner_text(const struct launch_job *job, char ret[sizeof(job->owner)])
{
    size_t len = 0;

    for (const char *p = job->owner; *p; p++) {
        unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
        bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0);

        p += control && c == 0xc2;
        ret[len++] = control ? '?' : (char)c;
    }
    ret[len] = 0;
    return len ? ret : "-";
}

static void row_print(const struct sandbox_row *row)
{
    char owner[sizeof(row->job.owner)];
    int64_t age = (clock_wall_ms() - row->job.created_ms) / 1000;
    auto_buf struct buf degraded;

    buf_init(&degraded, 1024);
    degraded_format(row->event.degraded, &degraded);
    printf("%-12.12s %-12s %-8s %7lld s %6llu MiB %8d  %-16s %s\n", row->job.id, row->instance,
           row->job.runtime, (long long)age, (unsigned long long)(memory_used(row) / MIB),
           row->event.pid, owner_text(&row->job, owner), buf_str(&degraded));
}

static void row_print_json(const struct sandbox_row *row)
{
    static const char *const networks[] = {"none", "public", "allowlist"};
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    auto_buf struct buf degraded, text;

    buf_init(&degraded, 1024);
    buf_init(&text, 64 * KIB);
    degraded_format(row->event.degraded, &degraded);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "id", row->job.id);
    yyjson_mut_obj_add_str(doc, root, "instance", row->instance);
    yyjson_mut_obj_add_str(doc, root, "runtime", row->job.runtime);
    yyjson_mut_obj_add_str(doc, root, "owner", row->job.owner);
    yyjson_mut_obj_add_str(doc, root, "network", networks[row->job.network]);
    yyjson_mut_obj_add_sint(doc, root, "created_ms", row->job.created_ms);
    yyjson_mut_obj_add_uint(doc, root, "memory_bytes", memory_used(row));
    yyjson_mut_obj_add_uint(doc, root, "memory_limit", row->job.memory_bytes);
    yyjson_mut_obj_add_sint(doc, root, "pid", row->event.pid);
    yyjson_mut_obj_add_str(doc, root, "degraded", buf_str(&degraded));
    if (json_mut_write(doc, &text, NULL) == 0)
        puts(buf_str(&text));
}

static int ps_main(const struct verb_args *args)
{
    auto_settings struct settings settings = {};
    bool json = verb_flag(args, "json");
    struct sandbox_table table;
    struct error error;

    if (verb_settings(args, &settings, &error) < 0 ||
        sandbox_table_read(&settings, &table, &error) < 0)
        return verb_fail(&error);
    if (!json && table.count)
        printf("%-12s %-12s %-8s %9s %10s %8s  %-16s %s\n", "ID", "INSTANCE", "RUNTIME", "AGE",
               "MEMORY", "PID", "OWNER", "DEGRADED");
    for (size_t i = 0; i < table.count; i++) {
        if (json)
            row_print_json(&table.rows[i]);
        else
            row_print(&table.rows[i]);
    }
    if (!json && !table.count)
        puts("no sandboxes");
    sandbox_table_done(&table);
    return 0;
}

const struct verb_entry verb_ps = {
    .name = "ps",
    .words = "",
    .summary = "List the sandboxes of this state directory",
    .help = NULL,
    .options = ps_options,
    .run = ps_main,
};
