/*
 * t_sys.c - the interposed calls of t_sys.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t_power.h"

#define EXPORT __attribute__((visibility("default")))

enum { FDS = 1024 };
enum { NONE, HOST, STORE, LOG, NEW, COPY, FOLDER };

const char *const t_phase_name[T_PHASES] = {"other",  "prepare", "host commit", "commit frame",
                                            "flush",  "flip",    "log restart", "compact",
                                            "rename", "backup"};
t_sys_state t_sys;

static unsigned char kind_of[FDS];
static int stage;        /* T_FLUSH, T_FLIP, T_RESTART or T_RENAME while one is going on */
static int host_written; /* since the statement began */
static long seen;        /* calls of kill_phase */

/* The next definition of a name, once looked up. A data pointer to a function pointer: as POSIX
** has it. */
#define REAL(result, name, ...)                                                                    \
    static result (*real)(__VA_ARGS__);                                                            \
    if (!real) {                                                                                   \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }

void t_sys_watch(const char *root)
{
    memset(&t_sys, 0, sizeof t_sys);
    snprintf(t_sys.root, sizeof t_sys.root, "%s", root);
    t_sys.kill_phase = T_PHASES;
    stage = host_written = 0;
    seen = 0;
}

void t_sys_statement(void)
{
    stage = host_written = 0;
}

void t_sys_die(void)
{
    if (t_sys.die) {
        t_sys.die();
    }
    for (;;) {
        kill(getpid(), SIGKILL);
    }
}

/* ---------------------------------------------------------------------------- which file, when */

static int has_end(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static int kind(const char *path)
{
    size_t n = strlen(t_sys.root);
    const char *name;
    if (!n || strncmp(path, t_sys.root, n) != 0) {
        return n && strlen(path) == n - 1 && !strncmp(path, t_sys.root, n - 1) ? FOLDER : NONE;
    }
    name = path + n;
    return !*name                         ? FOLDER
           : !strncmp(name, "copy.h5", 7) ? COPY
           : has_end(name, ".h5")         ? STORE
           : has_end(name, ".h5-wal")     ? LOG
           : has_end(name, ".h5-new")     ? NEW
                                          : HOST;
}

static int kind_of_fd(int fd)
{
    return fd >= 0 && fd < FDS ? kind_of[fd] : NONE;
}

static int log_phase(void)
{
    if (stage == T_FLIP || stage == T_RESTART) {
        return stage = T_RESTART;
    }
    return stage == T_FLUSH || stage == T_RENAME ? stage : host_written ? T_COMMIT : T_PREPARE;
}

static int phase_of(int file, int call, off_t at)
{
    switch (file) {
    case HOST:
        host_written = 1;
        return T_HOST;
    case LOG:
        return log_phase();
    case STORE:
        if (call == T_RENAMES || stage == T_RENAME) {
            return stage = T_RENAME;
        }
        if (call == T_WRITE) {
            stage = at == 0 ? T_FLIP : T_FLUSH;
        }
        return stage ? stage : T_OTHER;
    case NEW:
        return T_COMPACT;
    case COPY:
        return T_BACKUP;
    default:
        return stage ? stage : T_OTHER;
    }
}

/* ---------------------------------------------------------------------------------- one call */

/* 1 when this call is to fail. */
static int fails(int call)
{
    if (!t_sys.fail_at || !(t_sys.fail_kinds & call)) {
        return 0;
    }
    t_sys.fail_seen++;
    if (t_sys.fail_seen != t_sys.fail_at &&
        !(t_sys.fail_stays && t_sys.fail_seen > t_sys.fail_at)) {
        return 0;
    }
    errno = t_sys.fail_errno;
    return 1;
}

/* Counts a call that changes a file; 1 when the process is to die in or after it. */
static int due(int file, int call, off_t at)
{
    if (file == NONE) {
        return 0;
    }
    t_sys.calls++;
    t_sys.phase = phase_of(file, call, at);
    if (t_sys.phase_mark) {
        *t_sys.phase_mark = t_sys.phase;
    }
    if (!t_sys.kill_nth || (t_sys.kill_phase != T_PHASES && t_sys.kill_phase != t_sys.phase) ||
        ++seen < t_sys.kill_nth) {
        return 0;
    }
    if (t_sys.moment == T_BEFORE) {
        t_sys_die();
    }
    return 1;
}

#define PWRITE(name, off)                                                                          \
    EXPORT ssize_t name(int fd, const void *p, size_t n, off at)                                   \
    {                                                                                              \
        REAL(ssize_t, name, int, const void *, size_t, off)                                        \
        int file = kind_of_fd(fd), hit = due(file, T_WRITE, at);                                   \
        size_t some = n;                                                                           \
        ssize_t done;                                                                              \
        if (file && fails(T_WRITE)) {                                                              \
            if (!t_sys.fail_short || (n < 2 && t_sys.fail_stays)) {                                \
                return -1;                                                                         \
            }                                                                                      \
            some = (n + 1) / 2;                                                                    \
        }                                                                                          \
        if (hit && t_sys.moment == T_HALF) {                                                       \
            some = n * t_sys.fraction / 256;                                                       \
        }                                                                                          \
        if (file) {                                                                                \
            t_power_write(fd, at, p, some);                                                        \
        }                                                                                          \
        done = some ? real(fd, p, some, at) : 0;                                                   \
        if (hit) {                                                                                 \
            t_sys_die();                                                                           \
        }                                                                                          \
        return done;                                                                               \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PREAD(name, off)                                                                           \
    EXPORT ssize_t name(int fd, void *p, size_t n, off at)                                         \
    {                                                                                              \
        REAL(ssize_t, name, int, void *, size_t, off)                                              \
        if (kind_of_fd(fd) && fails(T_READ)) {                                                     \
            if (!t_sys.fail_short) {                                                               \
                return -1;                                                                         \
            }                                                                                      \
            n = (n + 1) / 2;                                                                       \
        }                                                                                          \
        return real(fd, p, n, at);                                                                 \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t t_real_pread(int fd, void *p, size_t n, off_t at)
{
    REAL(ssize_t, pread, int, void *, size_t, off_t)
    return real(fd, p, n, at);
}

#define TRUNCATE(name, off)                                                                        \
    EXPORT int name(int fd, off n)                                                                 \
    {                                                                                              \
        REAL(int, name, int, off)                                                                  \
        int file = kind_of_fd(fd), hit = due(file, T_TRUNCATE, n), rc;                             \
        if (file && fails(T_TRUNCATE)) {                                                           \
            return -1;                                                                             \
        }                                                                                          \
        if (file) {                                                                                \
            t_power_write(fd, n, NULL, 0);                                                         \
        }                                                                                          \
        rc = real(fd, n);                                                                          \
        if (hit) {                                                                                 \
            t_sys_die();                                                                           \
        }                                                                                          \
        return rc;                                                                                 \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                                                 \
    EXPORT int name(int fd)                                                                        \
    {                                                                                              \
        REAL(int, name, int)                                                                       \
        int file = kind_of_fd(fd), hit = due(file, T_SYNC, 0), rc;                                 \
        if (file && fails(T_SYNC)) {                                                               \
            return -1;                                                                             \
        }                                                                                          \
        if (file) {                                                                                \
            t_power_sync(fd, file == FOLDER);                                                      \
        }                                                                                          \
        rc = file && !t_sys.sync ? 0 : real(fd);                                                   \
        if (hit) {                                                                                 \
            t_sys_die();                                                                           \
        }                                                                                          \
        return rc;                                                                                 \
    }
SYNC(fsync)
SYNC(fdatasync)

EXPORT int unlink(const char *path)
{
    REAL(int, unlink, const char *)
    int file = kind(path), there = file && access(path, F_OK) == 0;
    int hit = there ? due(file, T_UNLINK, 0) : 0, rc;
    if (there && fails(T_UNLINK)) {
        return -1;
    }
    if (there) {
        t_power_name(path, NULL);
    }
    rc = real(path);
    if (hit) {
        t_sys_die();
    }
    return rc;
}

EXPORT int rename(const char *from, const char *to)
{
    REAL(int, rename, const char *, const char *)
    int file = kind(to), hit = due(file, T_RENAMES, 0), rc;
    if (file && fails(T_RENAMES)) {
        return -1;
    }
    if (file) {
        t_power_name(from, to);
    }
    rc = real(from, to);
    if (hit) {
        t_sys_die();
    }
    return rc;
}

static void opened(int fd, int file, const char *path, int made)
{
    if (fd >= 0 && fd < FDS) {
        kind_of[fd] = (unsigned char)file;
        if (file && file != FOLDER) {
            t_power_open(fd, path, made);
        }
    }
}

#define OPEN(name)                                                                                 \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        REAL(int, name, const char *, int, ...)                                                    \
        mode_t mode = 0;                                                                           \
        int file = kind(path), hit = 0, fd, make = 0;                                              \
        if (flags & O_CREAT) {                                                                     \
            va_list ap;                                                                            \
            va_start(ap, flags);                                                                   \
            mode = va_arg(ap, mode_t);                                                             \
            va_end(ap);                                                                            \
            make = file && access(path, F_OK) != 0;                                                \
            hit = make ? due(file, T_OPEN, 0) : 0;                                                 \
        }                                                                                          \
        if (file && fails(T_OPEN)) {                                                               \
            return -1;                                                                             \
        }                                                                                          \
        fd = real(path, flags, mode);                                                              \
        opened(fd, file, path, make);                                                              \
        if (hit) {                                                                                 \
            t_sys_die();                                                                           \
        }                                                                                          \
        return fd;                                                                                 \
    }
OPEN(open)
OPEN(open64)

int t_real_open(const char *path, int flags, int mode)
{
    REAL(int, open, const char *, int, ...)
    return real(path, flags, mode);
}

EXPORT int close(int fd)
{
    REAL(int, close, int)
    if (fd >= 0 && fd < FDS) {
        kind_of[fd] = NONE;
    }
    return real(fd);
}

int t_real_close(int fd)
{
    return close(fd);
}

/* Locks only: every other command has its one argument handed on. */
#define FCNTL(name)                                                                                \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        REAL(int, name, int, int, ...)                                                             \
        va_list ap;                                                                                \
        void *argument;                                                                            \
        va_start(ap, command);                                                                     \
        argument = va_arg(ap, void *);                                                             \
        va_end(ap);                                                                                \
        if ((command == F_SETLK || command == F_OFD_SETLK) && kind_of_fd(fd) &&                    \
            ((struct flock *)argument)->l_type != F_UNLCK &&                                       \
            fails(command == F_SETLK ? T_LOCK : T_LOCK | T_OFD)) {                                 \
            return -1;                                                                             \
        }                                                                                          \
        return real(fd, command, argument);                                                        \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

#define MMAP(name, off)                                                                            \
    EXPORT void *name(void *p, size_t n, int protection, int flags, int fd, off at)                \
    {                                                                                              \
        REAL(void *, name, void *, size_t, int, int, int, off)                                     \
        if (kind_of_fd(fd) && fails(T_MAP)) {                                                      \
            return MAP_FAILED;                                                                     \
        }                                                                                          \
        return real(p, n, protection, flags, fd, at);                                              \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
