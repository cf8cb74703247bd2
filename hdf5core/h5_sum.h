/*
 * h5_sum.h - metadata checksums: the last four bytes of a structure over all bytes before them
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_SUM_H
#define H5_SUM_H

#include "h5_cur.h"

/* Checks the n bytes of a structure whose last four are its checksum. what and addr are for the
** text. H5_FORMAT when it does not agree; n < 4 is one as well. */
int h5_sum_check(const uint8_t *p, size_t n, const char *what, uint64_t addr, h5_error *err);

/* Appends the checksum of the bytes from position `from` of b to its end. */
void h5_sum_put(h5_buf *b, size_t from);

#endif
