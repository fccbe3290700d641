/* SPDX-License-Identifier: MIT */
/* sandbox-launch: its three ways to run, nothing else. */
#include "base/str.h"
#include "launcher/keeper.h"
#include "launcher/probe.h"
#include "launcher/scope.h"
#include "launcher/seccomp.h"

#include <stdio.h>

static const char usage[] = "usage: sandbox-launch --keeper [--agent PROGRAM] [--linger-ms N]\n"
                            "       sandbox-launch --probe [--image-dir DIR] [--fake FILE]\n"
                            "       sandbox-launch --print-seccomp\n"
                            "       sandbox-launch --version\n";

static int run_keeper(int argc, char **argv)
{
    struct keeper_options options = {.linger_ms = 5000};

    for (int i = 2; i < argc; i += 2) {
        if (i + 1 < argc && str_eq(argv[i], "--agent"))
            options.agent = argv[i + 1];
        else if (i + 1 >= argc || !str_eq(argv[i], "--linger-ms") ||
                 str_parse_int(argv[i + 1], 0, 3600000, &options.linger_ms) < 0)
            return -1;
    }
    scope_enter(argv);
    return keeper_main(&options);
}

static int run_probe(int argc, char **argv)
{
    struct probe_options options = {0};

    for (int i = 2; i < argc; i += 2) {
        if (i + 1 < argc && str_eq(argv[i], "--image-dir"))
            options.image_dir = argv[i + 1];
        else if (i + 1 < argc && str_eq(argv[i], "--fake"))
            options.fake = argv[i + 1];
        else
            return -1;
    }
    return probe_main(&options);
}

static int run_print_seccomp(int argc, char **argv)
{
    (void)argv;
    if (argc != 2)
        return -1;
    seccomp_print(stdout);
    return 0;
}

static int run_version(int argc, char **argv)
{
    (void)argv;
    if (argc != 2)
        return -1;
    puts("sandbox-launch " PACKAGE_VERSION);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"--keeper", run_keeper},
    {"--probe", run_probe},
    {"--print-seccomp", run_print_seccomp},
    {"--version", run_version},
};

int main(int argc, char **argv)
{
    int r = -1;

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++) {
        if (str_eq(argv[1], verbs[i].name))
            r = verbs[i].run(argc, argv);
    }
    if (r < 0) {
        fputs(usage, stderr);
        return 2;
    }
    return r;
}
