/* SPDX-License-Identifier: MIT */
/* `api dev`: the server for whoever changes the program or the page. */
#pragma once

#include "cli/verb.h"

/*
 * Runs `api` as a child, with SQLite, a debug log and the page from a directory, and starts it
 * again when the program, the settings' file or the page has changed. Returns the exit status.
 */
int api_dev_main(const struct verb_args *args);
