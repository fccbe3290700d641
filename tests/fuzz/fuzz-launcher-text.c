/* SPDX-License-Identifier: MIT */
/* The text parsers of the launcher: records, kernel tables, subordinate ids, lines of the probe. */
#include "launcher/cgroup-layout.h"
#include "launcher/ids.h"
#include "launcher/probe.h"
#include "launcher/record.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cgroup_layout layout;

/* The first byte chooses the parser; the rest is text with an end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = size ? malloc(size) : NULL;
    struct record record;
    struct finding finding;
    uint32_t start, count;
    char *middle;

    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    switch (data[0] % 4) {
    case 0:
        record_parse(text, "boot", &record);
        break;
    case 1:
        /* Two texts in one, parted by an empty line. */
        middle = strstr(text, "\n\n");
        if (middle)
            *middle = 0;
        cgroup_layout_parse(text, middle ? middle + 2 : "0::/a\n1:cpu,cpuacct:/b\n", &layout);
        break;
    case 2:
        (void)id_subordinate_parse(text, "name", 7, &start, &count);
        break;
    case 3:
        (void)finding_parse(text, &finding);
        break;
    }
    free(text);
    return 0;
}
