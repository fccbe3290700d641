/* SPDX-License-Identifier: MIT */
/*
 * A picture as sixels, the pixels that terminals since the VT240 draw: at most 256 colours, chosen
 * for the picture, in bands of six rows.
 */
#pragma once

#include "base/buf.h"
#include "shrink/picture.h"

/*
 * Appends the body only (raster size, colours, bands), which has no control character; whoever
 * writes it to a terminal puts it between DCS and ST. The picture is put on white.
 */
int sixel_write(const struct picture *p, struct buf *ret, struct error *reterr) must_check;
