/*
 * t_power.h - what a disk holds when the power goes
 *
 * t_sys.c tells of each change of a watched file before it is made. Kept are, for each file
 * (inode), its bytes as of its last sync and the changes since; for the folder its names as of its
 * last sync and the changes since; for a log also every state of its mapped page since the last
 * sync.
 *
 * t_power_cut writes one of the folders that the disk may hold: of the names' changes the first
 * few, in their order; of each file's changes any, of a write any of its sectors of 512 bytes; of
 * the mapped page each sector in any of its states. Shared memory of SQLite (-shm) is never there.
 *
 * ERRORS   without memory or when the folder cannot be written the program ends.
 * THREADS  one.
 * SPDX-License-Identifier: MIT
 */
#ifndef T_POWER_H
#define T_POWER_H

#include <stddef.h>
#include <sys/types.h>

#include "t_rng.h"

/* All that is in the folder (its name ends in '/') now is on the disk. */
void t_power_on(const char *folder);
void t_power_write(int fd, off_t at, const void *p, size_t n); /* p NULL: a truncate to `at` */
void t_power_sync(int fd, int folder);
void t_power_open(int fd, const char *path, int made);
void t_power_name(const char *from, const char *to); /* to NULL: removed */
void t_power_cut(const char *folder, t_rng *r);

#endif
