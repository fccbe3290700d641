/* SPDX-License-Identifier: MIT */
/*
 * Pipes nobody listens to any more, because their run is over but background processes still hold
 * them. They are read to nowhere, so that such a process neither blocks nor dies of SIGPIPE.
 */
#pragma once

/* Takes the descriptor over. */
void sink_add(int fd);
