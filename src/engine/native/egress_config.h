/* SPDX-License-Identifier: MIT */
/* From the settings to what egress is told: exceptions, allow list, upstream proxy, ports. */
#pragma once

#include "base/error.h"
#include "base/settings.h"
#include "wire/job.h"

int egress_config_fill(struct egress_config *ret, const struct settings *s,
                       struct error *reterr) must_check;

/*
 * The TCP ports with a listener inside: NETWORK_PORTS, each port named in NETWORK_ALLOW, and those
 * of the index settings. Ascending, without doubles.
 */
int egress_ports_fill(const struct settings *s, uint16_t ret[JOB_PORTS], size_t *ret_count,
                      struct error *reterr) must_check;
