/* SPDX-License-Identifier: MIT */
/*
 * The daemons that are connected: requests in, answers and events out. A client that does not read
 * is dropped; what it asked for goes on.
 */
#pragma once

#include "launcher/keeper.h"

void clients_watch(struct keeper *k);

/* Frees those that have gone. */
void clients_sweep(struct keeper *k);

/* Answers every client that waits for `op` on `id`, with its own serial. */
void clients_answer(struct keeper *k, enum keeper_op op, const char *id,
                    const struct keeper_event *event);

/* Serial 0, to every client; but KEEPER_ENDED not to one that gets it as its answer. */
void clients_tell(struct keeper *k, const struct keeper_event *event);

/* An event with its magic and the error in it. */
struct keeper_event client_event(enum keeper_kind kind, const char *id);
void client_event_error(struct keeper_event *event, const struct error *err);
