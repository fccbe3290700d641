/* SPDX-License-Identifier: MIT */
/* Image builds for a process that has given up its privileges. */
#pragma once

#include "base/error.h"
#include "engine/image.h"
#include "engine/native/keeper.h"

/*
 * Has the keeper run `sandbox-agent image build`, and hands its lines on, on the calling thread.
 * Fails with the builder's own last line.
 */
int keeper_build(struct keeper *k, const char *runtime, image_progress_fn *progress, void *user,
                 struct error *reterr) must_check;
