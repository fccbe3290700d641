/* SPDX-License-Identifier: MIT */
/*
 * `sandbox-agent image`: builds, lists and removes images. Progress goes to stderr, so that stdout
 * holds results only; SIGINT and SIGTERM stop a build through its cancel descriptor, which lets it
 * clean up.
 */
#include "cli/verb.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/image.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

enum { LOG_PROGRESS_MS = 5000, JSON_LINE_MAX = 1 << 19 };

static const struct option_entry image_options[] = {
    {"mirror", 0, "URL", "build: take packages from this Debian mirror"},
    {"rebuild", 0, NULL, "build: also where the image is there, to get newer packages"},
    {"json", 0, NULL, "list: print one JSON object per image"},
    {"unused", 0, NULL, "rm: remove every image that new sandboxes do not use any more"},
    {},
};

/* ---- build ---- */

struct progress {
    bool terminal;
    bool open;       /* the terminal's line is not ended */
    int64_t counted; /* when a count was last told to a log */
};

/* Whether a line only moves a count on; a log does not need each. */
static bool line_is_count(const char *line)
{
    return strstr(line, " of ") != NULL;
}

static void progress_print(void *user, const char *line)
{
    struct progress *p = user;
    int64_t now = clock_ms();

    if (p->terminal) {
        fprintf(stderr, "\r\033[K%s", line);
        p->open = true;
    } else if (!line_is_count(line)) {
        fprintf(stderr, "%s\n", line);
    } else if (now - p->counted >= LOG_PROGRESS_MS) {
        fprintf(stderr, "%s\n", line);
        p->counted = now;
    }
    fflush(stderr);
}

static void progress_end(struct progress *p)
{
    if (p->open)
        fputc('\n', stderr);
    p->open = false;
}

/* A descriptor that becomes readable by the signals that ask to stop. */
static int signals_open(struct error *reterr)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || (fd = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
        return error_sys(reterr, errno, "cannot wait for signals");
    return fd;
}

static bool mirror_check(const char *mirror)
{
    return !mirror || (strstr(mirror, ":/") && !strpbrk(mirror, " \t\r\n[]|") && mirror[0] != '-');
}

static int runtime_build(const struct image_store *store, const char *runtime,
                         struct image_build_options *options, struct error *reterr)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO)};
    char rootfs[2 * PATH_LEN];
    int r;

    options->progress = progress_print;
    options->user = &progress;
    r = image_build(store, runtime, options, reterr);
    progress_end(&progress);
    if (r == 0)
        r = image_find(store, runtime, rootfs, sizeof(rootfs), reterr);
    if (r == 0)
        printf("%s %s\n", runtime, rootfs);
    return r;
}

static int image_main_build(const struct image_store *store, const struct verb_args *args,
                            struct error *reterr)
{
    auto_free char **all = NULL;
    auto_fd int signals = -1;
    struct image_build_options options = {.size = sizeof(options),
                                          .mirror = verb_option(args, "mirror", NULL),
                                          .rebuild = verb_flag(args, "rebuild")};
    char digest[IMAGE_DIGEST + 1], **runtimes = args->words + 1;
    int r;

    if (!mirror_check(options.mirror))
        return error_set(reterr, ERR_INVALID, "'%s' is no mirror's address", options.mirror);
    if (args->word_count < 2) {
        if ((r = image_runtimes(store, &all, reterr)) < 0)
            return r;
        runtimes = all;
    }
    /* A wrong name must not be told minutes later. */
    for (size_t i = 0; runtimes[i]; i++)
        if ((r = image_digest(store, runtimes[i], digest, reterr)) < 0)
            return r;
    if ((signals = signals_open(reterr)) < 0)
        return signals;
    options.cancel_fd = signals;
    for (size_t i = 0; runtimes[i]; i++)
        if ((r = runtime_build(store, runtimes[i], &options, reterr)) < 0)
            return r;
    return 0;
}

/* ---- list ---- */

static void info_print(const struct image_info *info)
{
    printf("%-8s %-12s %8.2f GB %8lld  %-20s  %-8s %s\n", info->runtime, info->version,
           (double)info->bytes / 1e9, (long long)info->packages, info->created,
           info->current ? "current" : "unused", info->name);
}

static int info_print_json(const struct image_info *info, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    auto_json_mut yyjson_mut_doc *copy = NULL;
    yyjson_mut_val *root;
    auto_buf struct buf text;
    int r = json_parse(info->json, strlen(info->json), &doc, reterr);

    buf_init(&text, JSON_LINE_MAX);
    if (r < 0)
        return r;
    copy = yyjson_doc_mut_copy(doc, NULL);
    if (!copy)
        return error_no_memory(reterr);
    root = yyjson_mut_doc_get_root(copy);
    yyjson_mut_obj_add_str(copy, root, "name", info->name);
    yyjson_mut_obj_add_bool(copy, root, "current", info->current);
    if ((r = json_mut_write(copy, &text, reterr)) == 0)
        puts(buf_str(&text));
    return r;
}

static bool runtime_has_current(const struct image_info *list, size_t count, const char *runtime)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].current && str_eq(list[i].runtime, runtime))
            return true;
    return false;
}

static int missing_print(const struct image_store *store, const struct image_info *list,
                         size_t count, struct error *reterr)
{
    auto_free char **runtimes = NULL;
    int r = image_runtimes(store, &runtimes, reterr);

    for (size_t i = 0; r == 0 && runtimes[i]; i++)
        if (!runtime_has_current(list, count, runtimes[i]))
            printf("%-8s %-12s %11s %8s  %-20s  not built\n", runtimes[i], "-", "-", "-", "-");
    return r;
}

static int image_main_list(const struct image_store *store, const struct verb_args *args,
                           struct error *reterr)
{
    bool json = verb_flag(args, "json");
    struct image_info *list;
    size_t count;
    int r = image_list(store, &list, &count, reterr);

    if (r < 0)
        return r;
    if (!json)
        printf("%-8s %-12s %11s %8s  %-20s  %-8s %s\n", "RUNTIME", "VERSION", "SIZE", "PACKAGES",
               "CREATED", "STATE", "NAME");
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (json)
            r = info_print_json(&list[i], reterr);
        else
            info_print(&list[i]);
    }
    if (r == 0 && !json)
        r = missing_print(store, list, count, reterr);
    image_list_free(list, count);
    return r;
}

/* ---- rm ---- */

/* Whether a word of `image rm` means this image: "python", or "python/0123456789abcdef". */
static bool word_matches(const char *word, const struct image_info *info)
{
    size_t len = strlen(info->runtime);

    return strncmp(word, info->runtime, len) == 0 &&
           (!word[len] || (word[len] == '/' && str_eq(word + len + 1, info->name)));
}

/* Removes what the word means, or every unused one without a word; counts. */
static int images_remove(const struct image_store *store, const char *word, size_t *removed,
                         struct error *reterr)
{
    struct image_info *list;
    size_t count;
    int r = image_list(store, &list, &count, reterr);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (word ? !word_matches(word, &list[i]) : list[i].current)
            continue;
        r = image_remove(store, list[i].runtime, list[i].name, reterr);
        if (r == 0) {
            printf("%s/%s\n", list[i].runtime, list[i].name);
            (*removed)++;
        }
    }
    image_list_free(list, count);
    return r;
}

static int image_main_rm(const struct image_store *store, const struct verb_args *args,
                         struct error *reterr)
{
    size_t removed = 0;
    int r = 0;

    if (verb_flag(args, "unused"))
        return images_remove(store, NULL, &removed, reterr);
    if (args->word_count < 2)
        return error_set(reterr, ERR_INVALID, "image rm: give an image's name, or --unused");
    for (size_t i = 1; r == 0 && i < args->word_count; i++) {
        removed = 0;
        r = images_remove(store, args->words[i], &removed, reterr);
        if (r == 0 && !removed)
            return error_set(reterr, ERR_NOT_FOUND, "there is no image '%.80s'", args->words[i]);
    }
    return r;
}

/* ---- the verb ---- */

static const struct {
    const char *name;
    int (*run)(const struct image_store *store, const struct verb_args *args, struct error *reterr);
} actions[] = {
    {"build", image_main_build},
    {"list", image_main_list},
    {"rm", image_main_rm},
};

static int image_main(const struct verb_args *args)
{
    auto_settings struct settings settings = {};
    const char *word = args->word_count ? args->words[0] : "";
    struct image_store store;
    struct error error;

    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (!str_eq(word, actions[i].name))
            continue;
        if (verb_settings(args, &settings, &error) < 0 ||
            image_store_init(&store, settings.image_dir, &error) < 0 ||
            actions[i].run(&store, args, &error) < 0)
            return verb_fail(&error);
        return 0;
    }
    fprintf(stderr, "sandbox-agent image: give one of build, list, rm; "
                    "`sandbox-agent image --help` tells more\n");
    return EXIT_USAGE;
}

const struct verb_entry verb_image = {
    .name = "image",
    .words = "(build [RUNTIME...] | list | rm (NAME... | --unused))",
    .summary = "Build, list or remove the images that sandboxes start from",
    .help = "RUNTIME is python, node or r; without one, all are built. An image that is there and\n"
            "whose definition has not changed is not built again. NAME is a runtime, for all of\n"
            "its images, or RUNTIME/NAME as `image list` shows it.",
    .options = image_options,
    .run = image_main,
};
