/* SPDX-License-Identifier: MIT */
/*
 * Slots: which host ids a sandbox has. Slot n owns the 65,536 ids from SLOT_BASE + n * 65536; slot
 * 0 belongs to egress. A rootless slot is one or two ids of the caller's subordinate range instead.
 *
 * A slot is a byte of one file for the whole host, held by an open-file-description lock. The
 * descriptor goes on into init, so that the ids stay taken while anything runs with them, even
 * after the keeper has been killed.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum {
    SLOT_BASE = 0x70000000,
    SLOT_IDS = 65536,
    SLOT_MAX = 4096, /* the last id is still below 2^31, which some programs take for signed */
};

struct slot {
    int fd; /* holds the lock; -1: none */
    uint32_t number;
};

/*
 * The host's slot file, made when missing: /run/sandbox-agent/slots for root, else below
 * XDG_RUNTIME_DIR, else beside the instance directory. Refused when others could have replaced it.
 * Returns a directory descriptor that holds "slots".
 */
int slot_dir_open(int instance_fd, struct error *reterr) must_check;

/* The lowest free slot in [1, limit). */
int slot_open(int dirfd, uint32_t limit, struct slot *ret, struct error *reterr) must_check;

/* Gives it back; harmless on one that was never taken. */
void slot_close(struct slot *slot);
