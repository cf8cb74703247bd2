/*
 * t_mend.h - checksums made right again in bytes that were changed, so that what stands behind them
 * is reached
 *
 * The reader says which sum it found and which it made; the one is put in the place of the other
 * and the reading repeated, until it ends for another reason. That needs no knowledge of formats.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_MEND_H
#define T_MEND_H

#include <stddef.h>
#include <stdint.h>

#include "h5core.h"

/* Calls run on a copy of n bytes, again and again while a checksum was wrong that could be mended;
** a code that is none of hdf5core's aborts. */
void t_mend_run(const uint8_t *bytes, size_t n,
                int (*run)(void *ctx, const uint8_t *bytes, size_t n, h5_error *err), void *ctx);

/* The same rule for a code in the middle of a run: hands it back. */
int t_known(int rc);

#endif
