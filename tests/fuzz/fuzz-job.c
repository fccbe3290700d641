/* SPDX-License-Identifier: MIT */
/*
 * The fixed-size messages of keeper and egress. The first byte chooses the message; a struct that
 * is shorter than its size is filled up with zeros, as a careless receiver would leave it.
 */
#include "wire/job.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union {
    struct launch_job job;
    struct keeper_request request;
    struct keeper_event event;
    struct egress_msg egress;
    struct egress_config config;
} message;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length = size > 0 ? MIN(size - 1, sizeof(message)) : 0;
    int r = 0;

    if (size == 0)
        return 0;
    memset(&message, 0, sizeof(message));
    memcpy(&message, data + 1, length);
    switch (data[0] % 5) {
    case 0:
        r = launch_job_check(&message.job, NULL);
        break;
    case 1:
        r = keeper_request_check(&message.request, length, NULL);
        break;
    case 2:
        r = keeper_event_check(&message.event, length, NULL);
        break;
    case 3:
        r = egress_msg_check(&message.egress, length, NULL);
        break;
    case 4:
        r = egress_config_check(&message.config, NULL);
        break;
    }
    (void)r;
    return 0;
}
