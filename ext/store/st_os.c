/*
 * st_os.c - locks, mapped pages, paths and time on Linux and macOS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

// Behind any log: the log is flushed at some MiB, and a lock needs no bytes under it.
#define LOCK_BASE ((off_t)1 << 40)

int st_lock(int fd, int which, int mode, st_error *err)
{
    struct flock l;
    memset(&l, 0, sizeof l);
    l.l_type = mode == ST_LOCK_FREE ? F_UNLCK : mode == ST_LOCK_SHARED ? F_RDLCK : F_WRLCK;
    l.l_whence = SEEK_SET;
    l.l_start = LOCK_BASE + which;
    l.l_len = 1;
    while (fcntl(fd, F_OFD_SETLK, &l) != 0) {
        if (errno == EAGAIN || errno == EACCES) {
            return 0;
        }
        if (errno != EINTR) {
            return st_fail(err, ST_IO, "the file system cannot lock the log: %s", strerror(errno));
        }
    }
    return 1;
}

int st_lock_held(int fd, int which)
{
    struct flock l;
    memset(&l, 0, sizeof l);
    l.l_type = F_WRLCK;
    l.l_whence = SEEK_SET;
    l.l_start = LOCK_BASE + which;
    l.l_len = 1;
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

void st_lock_h5(int fd)
{
    if (fd >= 0) {
        while (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EINTR) {
        }
    }
}

int st_lock_h5_alone(int fd)
{
    int rc;
    while ((rc = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {
    }
    return rc == 0;
}

static void id_from(const struct stat *s, st_file_id *out)
{
    out->dev = (uint64_t)s->st_dev;
    out->ino = (uint64_t)s->st_ino;
    out->size = (uint64_t)s->st_size;
    out->links = (uint64_t)s->st_nlink;
#ifdef __APPLE__
    out->changed = (int64_t)s->st_mtimespec.tv_sec * 1000000000 + s->st_mtimespec.tv_nsec;
    out->touched = (int64_t)s->st_ctimespec.tv_sec * 1000000000 + s->st_ctimespec.tv_nsec;
#else
    out->changed = (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec;
    out->touched = (int64_t)s->st_ctim.tv_sec * 1000000000 + s->st_ctim.tv_nsec;
#endif
}

int st_id_of_fd(int fd, st_file_id *out)
{
    struct stat s;
    memset(out, 0, sizeof *out);
    if (fstat(fd, &s) != 0) {
        return ST_IO;
    }
    id_from(&s, out);
    return ST_OK;
}

int st_id_of_path(const char *path, st_file_id *out)
{
    struct stat s;
    memset(out, 0, sizeof *out);
    if (stat(path, &s) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? 0 : ST_IO;
    }
    id_from(&s, out);
    return 1;
}

int st_map_page(int fd, size_t n, int writable, uint8_t **out, st_error *err)
{
    void *p = mmap(NULL, n, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    *out = NULL;
    if (p == MAP_FAILED) {
        return st_from_errno(err, errno, "mapping the log's header");
    }
    *out = p;
    return ST_OK;
}

void st_unmap_page(uint8_t *p, size_t n)
{
    if (p) {
        munmap(p, n);
    }
}

int st_maps_in_place(int fd)
{
#ifdef __linux__
    struct statfs s;
    return fstatfs(fd, &s) == 0 &&
           (s.f_type == 0xEF53 || s.f_type == 0x58465342 || s.f_type == 0x01021994);
#else
    (void)fd;
    return 0;
#endif
}

void st_map_fill(uint8_t *p, size_t n)
{
#ifdef __linux__
    madvise(p, n, 23); // MADV_POPULATE_WRITE, since Linux 5.14
#else
    (void)p;
    (void)n;
#endif
}

/* Joins a resolved folder and a name into memory of ours. */
static int join(const char *dir, const char *name, char **out, st_error *err)
{
    size_t nd = strlen(dir), nn = strlen(name);
    char *p = h5_malloc(nd + nn + 2);
    if (!p) {
        return st_nomem(err);
    }
    memcpy(p, dir, nd);
    if (nd && dir[nd - 1] != '/') {
        p[nd++] = '/';
    }
    memcpy(p + nd, name, nn + 1);
    *out = p;
    return ST_OK;
}

static int copy_text(const char *s, char **out, st_error *err)
{
    size_t n = strlen(s) + 1;
    *out = h5_malloc(n);
    if (!*out) {
        return st_nomem(err);
    }
    memcpy(*out, s, n);
    return ST_OK;
}

int st_real_path(const char *path, char **out, st_error *err)
{
    char whole[PATH_MAX], dir[PATH_MAX];
    const char *name = strrchr(path, '/');
    *out = NULL;
    if (realpath(path, whole)) {
        return copy_text(whole, out, err);
    }
    if (errno != ENOENT) {
        return st_from_errno(err, errno, path);
    }
    name = name ? name + 1 : path;
    if (!*name || strlen(path) >= sizeof dir) {
        return st_fail(err, ST_MISUSE, "'%.200s' is no file name", path);
    }
    snprintf(dir, sizeof dir, "%.*s", name == path ? 1 : (int)(name - path),
             name == path ? "." : path);
    if (!realpath(dir, whole)) {
        return st_from_errno(err, errno, dir);
    }
    return join(whole, name, out, err);
}

int st_sync_dir(const char *path, st_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd, rc = ST_OK;
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    fd = open(dir, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return st_from_errno(err, errno, "opening the folder");
    }
    // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do then.
    if (fsync(fd) != 0 && errno != EINVAL) {
        rc = st_from_errno(err, errno, "syncing the folder");
    }
    close(fd);
    return rc;
}

int st_rename(const char *from, const char *to, st_error *err)
{
    return rename(from, to) == 0 ? ST_OK : st_from_errno(err, errno, "renaming the new store");
}

void st_unlink(const char *path)
{
    unlink(path);
}

int64_t st_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double st_now_unix(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int64_t st_now_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void st_sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

int st_random(uint8_t *p, size_t n)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno != EINTR) {
            break;
        }
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return n ? ST_IO : ST_OK;
}
