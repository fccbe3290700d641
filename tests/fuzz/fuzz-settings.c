/* SPDX-License-Identifier: MIT */
/* An env file, and from it the network settings that become rules for egress. */
#include "base/settings.h"
#include "engine/native/egress_config.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void warning_ignore(void *user, const char *text)
{
    (void)user;
    if (text[0] == '\0')
        abort();
}

static void settings_use(const struct settings *s)
{
    static struct egress_config config;
    uint16_t ports[JOB_PORTS];
    size_t count;

    if (egress_config_fill(&config, s, NULL) == 0 && egress_config_check(&config, NULL) < 0)
        abort();
    if (egress_ports_fill(s, ports, &count, NULL) == 0 && count > JOB_PORTS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *env[] = {"HOME=/nonexistent", NULL};
    auto_settings struct settings s = {0};
    auto_fd int fd = memfd_create("env", MFD_CLOEXEC);
    char path[40];

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (settings_load(&s,
                      &(struct settings_source){.env = (char *const *)env,
                                                .env_file = path,
                                                .required = true,
                                                .warn = warning_ignore},
                      NULL) == 0)
        settings_use(&s);
    return 0;
}
