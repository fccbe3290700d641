/* SPDX-License-Identifier: MIT */
/*
 * `sandbox-agent doctor`: what this host can do, found by trying it. The trying is the launcher's
 * (`sandbox-launch --probe`), so the answer is about the same code that starts sandboxes; here it
 * is put into words, with the fix for each lack.
 */
#include "cli/verb.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/spawn.h"
#include "base/str.h"
#include "engine/image.h"
#include "engine/native/egress_config.h"
#include "engine/native/libexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>

enum { PROBE_BYTES = 256 * 1024 };

static const struct option_entry doctor_options[] = {
    {"json", 0, NULL, "print one JSON object per line"},
    {"print-settings", 0, "FORM", "print all settings with their defaults: env or markdown"},
    {"fake", 0, "FILE", "take the results of FILE in place of what was found (for tests)"},
    {},
};

/* A line of the probe: name, ok|missing|degraded, detail, fix. */
struct finding {
    const char *name, *result, *detail, *fix;
};

struct report {
    bool json;
    size_t missing, degraded;
};

static void finding_print(struct report *r, const struct finding *f)
{
    const char *mark = str_eq(f->result, "ok")         ? "ok  "
                       : str_eq(f->result, "degraded") ? "note"
                                                       : "MISS";

    r->missing += str_eq(f->result, "missing");
    r->degraded += str_eq(f->result, "degraded");
    if (r->json) {
        auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *root = yyjson_mut_obj(doc);
        auto_buf struct buf text;

        buf_init(&text, 64 * KIB);
        yyjson_mut_doc_set_root(doc, root);
        yyjson_mut_obj_add_str(doc, root, "name", f->name);
        yyjson_mut_obj_add_str(doc, root, "result", f->result);
        yyjson_mut_obj_add_str(doc, root, "detail", f->detail);
        yyjson_mut_obj_add_str(doc, root, "fix", f->fix);
        if (json_mut_write(doc, &text, NULL) == 0)
            puts(buf_str(&text));
        return;
    }
    printf("%s  %-22s %s\n", mark, f->name, f->detail);
    if (f->fix[0] && !str_eq(f->result, "ok"))
        printf("      %-22s fix: %s\n", "", f->fix);
}

/* ---- the probe ---- */

static int probe_read(int fd, struct buf *ret, struct error *reterr)
{
    char chunk[4096];
    ssize_t n;

    while ((n = fd_read_full(fd, chunk, sizeof(chunk), reterr)) > 0) {
        if (buf_append(ret, chunk, (size_t)n) < 0)
            return error_set(reterr, ERR_PROTOCOL, "the probe prints too much");
    }
    return (int)n;
}

static int probe_run(const struct settings *settings, const char *fake, struct buf *ret,
                     struct error *reterr)
{
    char launch[PATH_LEN];
    char *argv[8] = {launch, (char *)"--probe", (char *)"--image-dir",
                     (char *)(uintptr_t)settings->image_dir};
    auto_fd int ends_read = -1;
    int ends[2], status, r = libexec_find("sandbox-launch", launch, sizeof(launch), reterr);
    struct spawn_fd fds[2];
    pid_t pid;

    if (r < 0)
        return r;
    if (fake) {
        argv[4] = (char *)"--fake";
        argv[5] = (char *)(uintptr_t)fake;
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    ends_read = ends[0];
    fds[0] = (struct spawn_fd){.parent = ends[1], .child = STDOUT_FILENO};
    fds[1] = (struct spawn_fd){.parent = STDERR_FILENO, .child = STDERR_FILENO};
    r = spawn_start(&(struct spawn_options){.size = sizeof(struct spawn_options),
                                            .path = launch,
                                            .argv = argv,
                                            .fds = fds,
                                            .fd_count = 2},
                    &pid, reterr);
    close(ends[1]);
    if (r < 0)
        return r;
    r = probe_read(ends_read, ret, reterr);
    return spawn_wait(pid, &status, reterr) < 0 ? -ERR_SYSTEM : r;
}

static bool line_parse(char *line, struct finding *ret)
{
    const char **fields[] = {&ret->name, &ret->result, &ret->detail, &ret->fix};
    char *at = line;

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        *fields[i] = at ? at : "";
        at = at ? strchr(at, '\t') : NULL;
        if (at)
            *at++ = 0;
    }
    return ret->name[0] && ret->result[0];
}

static void probe_print(struct report *r, char *text)
{
    for (char *line = text, *next; line && *line; line = next) {
        struct finding f;

        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (line_parse(line, &f))
            finding_print(r, &f);
    }
}

/* ---- what is not the kernel's ---- */

static const struct image_info *current_find(const struct image_info *list, size_t count,
                                             const char *runtime)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].current && str_eq(list[i].runtime, runtime))
            return &list[i];
    }
    return NULL;
}

/* The record may be another user's; the image itself is what counts. */
static void image_print(struct report *r, const struct image_store *store, const char *runtime,
                        const struct image_info *image)
{
    char name[48], rootfs[PATH_LEN], detail[PATH_LEN + 64], fix[96];
    bool there = image_find(store, runtime, rootfs, sizeof(rootfs), NULL) == 0;

    snprintf(name, sizeof(name), "image %s", runtime);
    snprintf(fix, sizeof(fix), "sandbox-agent image build %s", runtime);
    if (there && image)
        snprintf(detail, sizeof(detail), "%s %s, %s", runtime, image->version, image->name);
    else
        snprintf(detail, sizeof(detail), "%s",
                 there ? rootfs : "not built; the first use builds it");
    finding_print(r, &(struct finding){name, there ? "ok" : "degraded", detail, fix});
}

static void images_print(struct report *r, const struct settings *settings)
{
    auto_free char **runtimes = NULL;
    struct image_info *list = NULL;
    struct image_store store;
    struct error error;
    size_t count = 0;

    if (image_store_init(&store, settings->image_dir, &error) < 0 ||
        image_runtimes(&store, &runtimes, &error) < 0) {
        finding_print(
            r, &(struct finding){"images", "missing", error.text, "install sandbox-agent whole"});
        return;
    }
    if (image_list(&store, &list, &count, NULL) < 0)
        count = 0;
    for (size_t i = 0; runtimes[i]; i++)
        image_print(r, &store, runtimes[i], current_find(list, count, runtimes[i]));
    image_list_free(list, count);
}

/* What the processor leaks between tenants is not ours to prevent, so it is at least told. */
static void processor_print(struct report *r)
{
    static const char dir_path[] = "/sys/devices/system/cpu/vulnerabilities";
    DIR *dir = opendir(dir_path);
    auto_buf struct buf text;
    struct dirent *e;

    buf_init(&text, 4096);
    while (dir && (e = readdir(dir))) {
        auto_free char *state = NULL;

        if (e->d_name[0] == '.' ||
            fd_read_file(dirfd(dir), e->d_name, 4096, &state, NULL, NULL) < 0 ||
            !str_starts(state, "Vulnerable"))
            continue;
        if (buf_printf(&text, "%s%s", text.len ? ", " : "", e->d_name) < 0)
            break;
    }
    if (dir)
        closedir(dir);
    if (text.len)
        finding_print(r, &(struct finding){"processor", "degraded", buf_str(&text),
                                           "not mitigated by this kernel: sandboxes of different "
                                           "tenants belong on different machines"});
    else
        finding_print(r, &(struct finding){"processor", "ok", "no known leak is open", ""});
}

static void network_print(struct report *r, const struct settings *settings)
{
    uint16_t ports[JOB_PORTS];
    auto_buf struct buf text;
    struct error error;
    size_t count;

    buf_init(&text, 4096);
    if (!settings->network_enabled) {
        finding_print(
            r, &(struct finding){"network", "ok", "off: CONTAINER_NETWORK_ENABLED is false", ""});
        return;
    }
    if (egress_ports_fill(settings, ports, &count, &error) < 0) {
        finding_print(r, &(struct finding){"network", "missing", error.text, "mend the setting"});
        return;
    }
    if (buf_append_str(&text, "sandboxes with a network reach, and cannot serve, TCP ports") < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (buf_printf(&text, " %u", ports[i]) < 0)
            return;
    }
    if (settings->proxy[0] &&
        buf_append_str(&text, "; through the proxy, which resolves names itself: only literal "
                              "addresses and listed names are checked here") < 0)
        return;
    finding_print(r, &(struct finding){"network", "ok", buf_str(&text), ""});
}

static int settings_print(const char *form)
{
    if (str_eq(form, "env"))
        settings_print_example(stdout);
    else if (str_eq(form, "markdown"))
        settings_print_markdown(stdout);
    else {
        fputs("sandbox-agent doctor: --print-settings takes env or markdown\n", stderr);
        return EXIT_USAGE;
    }
    return 0;
}

static int doctor_main(const struct verb_args *args)
{
    const char *form = verb_option(args, "print-settings", NULL);
    auto_settings struct settings settings = {};
    struct report r = {.json = verb_flag(args, "json")};
    auto_buf struct buf probe;
    struct error error;

    if (form)
        return settings_print(form);
    buf_init(&probe, PROBE_BYTES);
    if (verb_settings(args, &settings, &error) < 0 ||
        probe_run(&settings, verb_option(args, "fake", NULL), &probe, &error) < 0)
        return verb_fail(&error);
    if (probe.len)
        probe_print(&r, probe.data);
    processor_print(&r);
    images_print(&r, &settings);
    network_print(&r, &settings);
    if (!r.json && r.missing)
        printf("\n%zu required feature%s missing: sandboxes do not start here%s\n", r.missing,
               r.missing == 1 ? " is" : "s are",
               settings.allow_degraded ? ", but for --allow-degraded" : "");
    else if (!r.json)
        printf("\nsandboxes start here%s\n", r.degraded ? ", with what the notes say" : "");
    return r.missing ? EXIT_HOST : 0;
}

const struct verb_entry verb_doctor = {
    .name = "doctor",
    .words = "",
    .summary = "Try what sandboxes need of this host, and name the fix for what is missing",
    .help = NULL,
    .options = doctor_options,
    .run = doctor_main,
};
