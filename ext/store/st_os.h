/*
 * st_os.h - the system calls of the store that are not plain file bytes: locks, the mapped header
 * page, paths, time.
 *
 * File bytes go through h5_io (h5core.h). Locks are byte-range open-file-description locks on the
 * log (Linux, macOS): they belong to the open file, vanish with the process, and leave nothing
 * behind on the disk.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_OS_H
#define ST_OS_H

#include "st_base.h"

/* The bytes of the log that carry locks. They lie far behind its data. */
enum { ST_LOCK_WRITER = 0, ST_LOCK_USERS = 1 };

enum { ST_LOCK_FREE = 0, ST_LOCK_SHARED = 1, ST_LOCK_EXCLUSIVE = 2 };

/* Takes, changes or frees a lock without waiting. 1: done; 0: somebody else holds it; negative: the
** file system cannot lock (error). */
int st_lock(int fd, int which, int mode, st_error *err);
/* 1 when some other open file holds the writer lock. */
int st_lock_held(int fd, int which);
/* A shared flock on the .h5: h5py may read it and may not open it r+. Best effort. */
void st_lock_h5(int fd);
/* Makes it an exclusive one. 0: somebody else holds one. */
int st_lock_h5_alone(int fd);

typedef struct st_file_id {
    uint64_t dev, ino, size;
    uint64_t links;  /* names that the file has; 0: it was removed */
    int64_t changed; /* when its bytes were last written, in nanoseconds since 1970 */
    int64_t touched; /* and when its bytes, its names or its rights were last changed */
} st_file_id;
int st_id_of_fd(int fd, st_file_id *out);
int st_id_of_path(const char *path,
                  st_file_id *out); /* 1 when it exists, 0 when not, negative otherwise (errno) */

/* Maps n bytes from the start of a file, shared. */
int st_map_page(int fd, size_t n, int writable, uint8_t **out, st_error *err);
void st_unmap_page(uint8_t *p, size_t n);
/* 1 where a page that the file has is written back to where it lies, so that a store into the
** mapping cannot run out of space: ext4, XFS, tmpfs. */
int st_maps_in_place(int fd);
/* Has the pages from p on, the start of one, ready for stores. Best effort. */
void st_map_fill(uint8_t *p, size_t n);

/* The path with links and dots resolved; the last part need not exist. *out is the caller's
** (h5_free). */
int st_real_path(const char *path, char **out, st_error *err);
int st_sync_dir(const char *path, st_error *err); /* of the folder that holds path */
int st_rename(const char *from, const char *to, st_error *err);
void st_unlink(const char *path);

int64_t st_now_ms(void); /* a clock that only goes forward */
double st_now_unix(void);
int64_t st_now_unix_ns(void); /* Unix seconds */
void st_sleep_ms(int ms);
int st_random(uint8_t *p, size_t n); /* ST_OK or ST_IO */

#endif
