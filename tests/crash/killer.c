/*
 * killer.c - a preloaded library that kills its process at a chosen system call.
 *
 * Calls that change a file are counted from killer_arm() on: pwrite, ftruncate, fdatasync, fsync,
 * unlink, rename, and open with O_CREAT. At call number `at` the process dies by SIGKILL: before
 * the call, after it, or with half of a pwrite done. `at` 0 only counts; killer_disarm() gives the
 * calls that were made, a letter each: w pwrite, t ftruncate, s fsync and fdatasync, u unlink,
 * r rename, o open.
 *
 * killer_locks(e) has locks of open files fail with errno e, as on a file system that has none; 0
 * ends that. Locks of processes, which SQLite takes, go on.
 *
 * killer_sync(0) turns syncs into counted calls that do nothing: what a killed process has written
 * is in the system's cache and survives it, so that no test of kills needs the disk.
 *
 * THREADS  one
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { BEFORE, HALF, AFTER, CALLS_MAX = 100000 };

static long armed, calls, target;
static int moment, no_sync, no_locks;
static char made[CALLS_MAX + 1];

EXPORT void killer_arm(long at, int when);
EXPORT const char *killer_disarm(void);
EXPORT void killer_sync(int on);
EXPORT void killer_locks(int error);

void killer_arm(long at, int when)
{
    calls = 0;
    target = at;
    moment = when;
    armed = 1;
}

const char *killer_disarm(void)
{
    armed = 0;
    made[calls] = 0;
    return made;
}

void killer_sync(int on)
{
    no_sync = !on;
}

void killer_locks(int error)
{
    no_locks = error;
}

static void die(void)
{
    for (;;) {
        kill(getpid(), SIGKILL);
    }
}

/* Notes a call; 1 when it is the one. */
static int due(char kind)
{
    if (!armed || calls == CALLS_MAX) {
        return 0;
    }
    made[calls++] = kind;
    if (calls != target) {
        return 0;
    }
    if (moment == BEFORE) {
        die();
    }
    return 1;
}

/* The next definition of a name, once looked up. A data pointer to a function pointer: as POSIX
** has it. */
#define REAL(result, name, ...)                                                                    \
    static result (*real)(__VA_ARGS__);                                                            \
    if (!real) {                                                                                   \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }

#define PWRITE(name, off)                                                                          \
    EXPORT ssize_t name(int fd, const void *p, size_t n, off at)                                   \
    {                                                                                              \
        REAL(ssize_t, name, int, const void *, size_t, off)                                        \
        int hit = due('w');                                                                        \
        ssize_t done = real(fd, p, hit && moment == HALF ? (n + 1) / 2 : n, at);                   \
        if (hit) {                                                                                 \
            die();                                                                                 \
        }                                                                                          \
        return done;                                                                               \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define TRUNCATE(name, off)                                                                        \
    EXPORT int name(int fd, off n)                                                                 \
    {                                                                                              \
        REAL(int, name, int, off)                                                                  \
        int hit = due('t'), rc = real(fd, n);                                                      \
        if (hit) {                                                                                 \
            die();                                                                                 \
        }                                                                                          \
        return rc;                                                                                 \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                                                 \
    EXPORT int name(int fd)                                                                        \
    {                                                                                              \
        REAL(int, name, int)                                                                       \
        int hit = due('s'), rc = no_sync ? 0 : real(fd);                                           \
        if (hit) {                                                                                 \
            die();                                                                                 \
        }                                                                                          \
        return rc;                                                                                 \
    }
SYNC(fsync)
SYNC(fdatasync)

EXPORT int unlink(const char *path)
{
    REAL(int, unlink, const char *)
    int hit = due('u'), rc = real(path);
    if (hit) {
        die();
    }
    return rc;
}

EXPORT int rename(const char *from, const char *to)
{
    REAL(int, rename, const char *, const char *)
    int hit = due('r'), rc = real(from, to);
    if (hit) {
        die();
    }
    return rc;
}

#define OPEN(name)                                                                                 \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        REAL(int, name, const char *, int, ...)                                                    \
        mode_t mode = 0;                                                                           \
        int hit = 0, fd;                                                                           \
        if (flags & O_CREAT) {                                                                     \
            va_list ap;                                                                            \
            va_start(ap, flags);                                                                   \
            mode = va_arg(ap, mode_t);                                                             \
            va_end(ap);                                                                            \
            hit = due('o');                                                                        \
        }                                                                                          \
        fd = real(path, flags, mode);                                                              \
        if (hit) {                                                                                 \
            die();                                                                                 \
        }                                                                                          \
        return fd;                                                                                 \
    }
OPEN(open)
OPEN(open64)

#define FCNTL(name)                                                                                \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        REAL(int, name, int, int, ...)                                                             \
        va_list ap;                                                                                \
        va_start(ap, command);                                                                     \
        void *argument = va_arg(ap, void *);                                                       \
        va_end(ap);                                                                                \
        if (no_locks && command == F_OFD_SETLK) {                                                  \
            errno = no_locks;                                                                      \
            return -1;                                                                             \
        }                                                                                          \
        return real(fd, command, argument);                                                        \
    }
FCNTL(fcntl)
FCNTL(fcntl64)
