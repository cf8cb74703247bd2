/*
 * h5_path.c - opening a file by name, alone or with the others of its set, and files that it names
 *
 * A set is put together as one io over the ios of its files, each of which holds a range of
 * addresses. Which kind of set it is follows from the name of the file that is opened and from what
 * lies beside it; the driver information block only confirms it.
 *   family: NAME<number>.EXT, files of the size of the first one behind another. The number is the
 *           last run of digits before the ending and counts from zero.
 *   split:  NAME-m.EXT holds the metadata from address 0, NAME-r.EXT the raw data from half of the
 *           address space (2^63 - 1).
 *
 * Files that an HDF5 file names (external links, sources of virtual datasets, external raw data)
 * are looked for in the folder of that file. Names may not lead out of it: a file from a stranger
 * must not be able to show what else lies on this machine. libhdf5 does follow such names, and
 * where an absolute name leads nowhere it looks for its last part in the folder; so it is here: the
 * last part of an absolute name is tried in the folder, and an error tells apart what is not there
 * from what is there and out of bounds.
 *
 * FORMAT   HDF5 spec: II.B "File Driver Info"
 *   version 0 | 3 reserved | bytes 4 | name 8 | family: bytes of a member 8
 *          IV.A.2.u "The Driver Info Message", in the superblock extension
 *   version 0 | name 8 | bytes 2 | family: bytes of a member 8
 *
 * ERRORS   H5_IO; H5_NOTFOUND a file that is named; H5_UNSUPPORTED sets of more than two parts
 *          (driver "multi"), names that lead out of the folder; H5_LIMIT H5_FILE_DEPTH_MAX
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "h5_msg.h"

enum { DIGITS_MAX = 9 };
#define SPLIT_RAW ((1ull << 63) - 1)

/* One io over several. */
typedef struct set {
    h5_io io;
    h5_io **part;
    uint64_t *at; /* first address of each */
    size_t n, cap, at_cap;
    uint64_t end;
    uint64_t bytes; /* of all files */
} set;

static int set_size(h5_io *io, uint64_t *out, h5_error *err)
{
    (void)err;
    *out = ((set *)io)->end;
    return H5_OK;
}

/* What no file holds, between two or behind a short one, reads as zeros. */
static int set_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    set *s = (set *)io;
    uint8_t *to = buf;
    while (n > 0) {
        size_t i = s->n;
        uint64_t size;
        while (i > 0 && off < s->at[i - 1])
            i--;
        if (i == 0)
            return h5_fail(err, H5_FORMAT, off, "set of files: no file for %" PRIu64, off);
        H5_TRY(s->part[i - 1]->size(s->part[i - 1], &size, err));
        uint64_t from = off - s->at[i - 1], next = i < s->n ? s->at[i] - off : UINT64_MAX;
        size_t take = n < next ? n : (size_t)next;
        if (from >= size) {
            memset(to, 0, take);
        } else {
            take = take < size - from ? take : (size_t)(size - from);
            H5_TRY(s->part[i - 1]->read(s->part[i - 1], from, to, take, err));
        }
        to += take;
        off += take;
        n -= take;
    }
    return H5_OK;
}

static int read_only(h5_error *err)
{
    return h5_fail(err, H5_MISUSE, H5_UNDEF, "a set of files is only read");
}

static int set_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    (void)io;
    (void)off;
    (void)buf;
    (void)n;
    return read_only(err);
}

static int set_sync(h5_io *io, h5_error *err)
{
    (void)io;
    return read_only(err);
}

static int set_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    (void)io;
    (void)size;
    return read_only(err);
}

static int set_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    (void)io;
    (void)off;
    (void)n;
    *out = NULL;
    return read_only(err);
}

static void set_unmap(h5_io *io, const void *p, size_t n)
{
    (void)io;
    (void)p;
    (void)n;
}

static void set_close(h5_io *io)
{
    set *s = (set *)io;
    for (size_t i = 0; i < s->n; i++)
        s->part[i]->close(s->part[i]);
    h5_free(s->part);
    h5_free(s->at);
    h5_free(s);
}

static set *set_new(void)
{
    set *s = h5_calloc(1, sizeof *s);
    if (s)
        s->io = (h5_io){set_size,     set_read, set_write, set_sync,
                        set_truncate, set_map,  set_unmap, set_close};
    return s;
}

/* Adds a file at an address; it then belongs to the set. */
static int set_add(set *s, h5_io *part, uint64_t at, h5_error *err)
{
    uint64_t size;
    int rc = part->size(part, &size, err);
    if (rc == H5_OK && (!h5_grow((void **)&s->part, &s->cap, s->n, sizeof(h5_io *)) ||
                        !h5_grow((void **)&s->at, &s->at_cap, s->n, sizeof *s->at)))
        rc = h5_fail_nomem(err, "a set of files");
    if (rc != H5_OK) {
        part->close(part);
        return rc;
    }
    s->part[s->n] = part;
    s->at[s->n++] = at;
    s->end = at + size > s->end ? at + size : s->end;
    s->bytes += size;
    return H5_OK;
}

/* The place of the last run of digits in the last part of a path, n its length; NULL for none. */
static const char *last_digits(const char *path, size_t *n)
{
    const char *stop = strrchr(path, '/'), *dot = strrchr(path, '.');
    const char *p = dot && dot > stop ? dot : path + strlen(path);
    while (p > path && p != stop && !(p[-1] >= '0' && p[-1] <= '9'))
        p--;
    for (*n = 0; p > path && p[-1] >= '0' && p[-1] <= '9'; p--)
        ++*n;
    return *n > 0 && *n <= DIGITS_MAX ? p : NULL;
}

/* The same of a file whose superblock is of version 2 or 3. What cannot be read is left to the
** opening of the file, which says why. */
static void driver_in_extension(h5_io *io, uint64_t size, const h5_superblock *s, char name[9],
                                uint64_t *member)
{
    h5_file f = {.io = io, .eof = size, .most = size, .in_memory = 1, .sohm = H5_UNDEF};
    h5_ohdr oh;
    f.offsets = s->offsets;
    f.lengths = s->lengths;
    if (s->extension == H5_UNDEF || h5_ohdr_read(&f, s->extension, &oh, NULL) != H5_OK)
        return;
    for (size_t i = 0; i < oh.nmsg; i++) {
        h5_cur c = h5_cur_on(oh.msg[i].body, oh.msg[i].size);
        h5_cur_u8(&c);
        const uint8_t *driver = h5_cur_take(&c, 8);
        h5_cur_u16(&c);
        if (oh.msg[i].id != H5_MSG_DRIVER || !driver)
            continue;
        memcpy(name, driver, 8);
        name[8] = 0;
        *member = h5_cur_u64(&c);
    }
    h5_ohdr_free(&oh);
}

/* The driver of a set, 8 letters and a NUL, "" for a file of its own; *member the bytes of the
** first of a family. */
static int driver_of(h5_io *io, const char *path, char name[9], uint64_t *member, h5_error *err)
{
    uint8_t head[H5_SUPERBLOCK_OLD_BYTES] = {0}, block[24];
    h5_superblock s;
    uint64_t size;
    size_t n;
    name[0] = 0;
    *member = 0;
    H5_TRY(io->size(io, &size, err));
    if (size < sizeof head)
        return H5_OK;
    H5_TRY(io->read(io, 0, head, sizeof head, err));
    if (h5_superblock_is(head) && head[8] > 1 && h5_superblock_parse(head, &s, NULL) == H5_OK)
        driver_in_extension(io, size, &s, name, member);
    if (!h5_superblock_is(head) || head[8] > 1 || h5_superblock_parse_old(head, &s, NULL) != H5_OK)
        return H5_OK;
    const char *digits = s.eof > size ? last_digits(path, &n) : NULL;
    if (s.driver == H5_UNDEF && digits && strtoul(digits, NULL, 10) == 0) {
        // Families of HDF5 1.6 have no block; all files but the last are of one size.
        memcpy(name, "NCSAfami", 9);
        *member = size;
    }
    if (s.driver == H5_UNDEF || s.driver > size || size - s.driver < sizeof block)
        return H5_OK;
    H5_TRY(io->read(io, s.driver, block, sizeof block, err));
    h5_cur c = h5_cur_on(block + 8, 16);
    memcpy(name, h5_cur_take(&c, 8), 8);
    name[8] = 0;
    *member = h5_cur_u64(&c);
    return H5_OK;
}

/* The other files of a family, whose first is in s: those that are there under the next numbers. */
static int add_family(set *s, const char *path, uint64_t member, h5_error *err)
{
    size_t width, len = strlen(path);
    const char *digits = last_digits(path, &width);
    if (!digits || strtoul(digits, NULL, 10) != 0 || member == 0)
        return h5_fail(err, H5_UNSUPPORTED, 0, "%.80s: not the first file of a family", path);
    char *name = h5_malloc(len + DIGITS_MAX + 2);
    if (!name)
        return h5_fail_nomem(err, "a path");
    int rc = H5_OK;
    for (unsigned i = 1; rc == H5_OK; i++) {
        h5_io *part;
        h5_error none = {0};
        uint64_t at;
        snprintf(name, len + DIGITS_MAX + 2, "%.*s%0*u%s", (int)(digits - path), path, (int)width,
                 i, digits + width);
        if (h5_io_file(name, H5_IO_READ, &part, &none) != H5_OK)
            break;
        if (h5_mul_fits(i, member, &at) && at < SPLIT_RAW) {
            rc = set_add(s, part, at, err);
        } else {
            part->close(part);
            rc = h5_fail(err, H5_FORMAT, 0, "family of files of %" PRIu64 " bytes", member);
        }
    }
    h5_free(name);
    return rc;
}

/* The raw data beside NAME-m.EXT. */
static int add_split(set *s, const char *path, h5_error *err)
{
    const char *dot = strrchr(path, '.');
    h5_io *part;
    if (!dot || dot - path < 2 || dot[-1] != 'm' || dot[-2] != '-')
        return h5_fail(err, H5_UNSUPPORTED, 0,
                       "%.80s: a set of more than two files (driver multi), or not its metadata",
                       path);
    size_t len = strlen(path) + 1;
    char *name = h5_malloc(len);
    if (!name)
        return h5_fail_nomem(err, "a path");
    memcpy(name, path, len);
    name[dot - path - 1] = 'r';
    int rc = h5_io_file(name, H5_IO_READ, &part, err);
    h5_free(name);
    return rc == H5_OK ? set_add(s, part, SPLIT_RAW, err) : rc;
}

/* Puts the set together that *io is the first file of, if it is one; *bytes is 0 if not. */
static int gather(const char *path, h5_io **io, uint64_t *bytes, h5_error *err)
{
    char driver[9];
    uint64_t member;
    *bytes = 0;
    H5_TRY(driver_of(*io, path, driver, &member, err));
    int family = strcmp(driver, "NCSAfami") == 0, multi = strcmp(driver, "NCSAmult") == 0;
    if (!family && !multi)
        return H5_OK;
    set *s = set_new();
    if (!s)
        return h5_fail_nomem(err, "a set of files");
    int rc = set_add(s, *io, 0, err); // which closes *io when it fails
    *io = &s->io;
    if (rc == H5_OK)
        rc = family ? add_family(s, path, member, err) : add_split(s, path, err);
    *bytes = s->bytes;
    return rc;
}

/* A file of its own, which most are, opens at once; what does not may be the first of a set. */
static int open_any(const char *path, uint64_t size, h5_io **io, h5_file **out, h5_error *err)
{
    h5_error alone = {0};
    uint64_t bytes;
    int rc = h5_file_open_io(*io, size, 0, out, &alone);
    if (rc != H5_FORMAT && rc != H5_UNSUPPORTED)
        return rc == H5_OK ? H5_OK : h5_fail_as(err, &alone);
    H5_TRY(gather(path, io, &bytes, err));
    if (!bytes)
        return h5_fail_as(err, &alone);
    H5_TRY((*io)->size(*io, &size, err));
    return h5_file_open_io(*io, size, bytes, out, err);
}

int h5_file_open_path(const char *path, h5_file **out, h5_error *err)
{
    h5_io *io;
    uint64_t size;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    *out = NULL;
    char *folder = h5_malloc(n + 1);
    if (!folder)
        return h5_fail_nomem(err, "a path");
    memcpy(folder, path, n);
    folder[n] = 0;
    int rc = h5_io_file_sized(path, H5_IO_READ, &io, &size, err);
    if (rc == H5_OK) {
        rc = open_any(path, size, &io, out, err);
        if (rc != H5_OK && io)
            io->close(io);
    }
    if (rc != H5_OK) {
        h5_free(folder);
        return rc;
    }
    (*out)->owned = io;
    (*out)->folder = folder;
    return H5_OK;
}

/* Whether a relative name climbs out of its folder. */
static int climbs(const char *name)
{
    for (const char *p = name; *p; p += strcspn(p, "/"), p += strspn(p, "/"))
        if (strcspn(p, "/") == 2 && p[0] == '.' && p[1] == '.')
            return 1;
    return 0;
}

/* folder and name as one path, the caller's; NULL without memory. */
static char *join(const char *folder, const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    char *path = h5_malloc(a + b + 1);
    if (path) {
        memcpy(path, folder, a);
        memcpy(path + a, name, b + 1);
    }
    return path;
}

/* Opens a file to see whether it is there; *io NULL when it is not. */
static int try_open(const char *path, h5_io **io, h5_error *err)
{
    h5_error local = {0};
    int rc = h5_io_file(path, H5_IO_READ, io, &local);
    if (rc == H5_OK || (rc == H5_IO && (local.os_errno == ENOENT || local.os_errno == ENOTDIR)))
        return H5_OK;
    h5_fail(err, rc, H5_UNDEF, "%s", local.text);
    if (err)
        err->os_errno = local.os_errno;
    return rc;
}

/* The path of a file that f names, in *path the caller's, and the open file. */
static int open_beside(const h5_file *f, const char *name, char **path, h5_io **io, h5_error *err)
{
    const char *slash = strrchr(name, '/');
    int out = *name == '/' || climbs(name);
    *path = NULL;
    *io = NULL;
    if (!f->folder)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF,
                       "%.100s: the file that names it has no folder", name);
    *path = join(f->folder, *name == '/' ? slash + 1 : name);
    if (!*path)
        return h5_fail_nomem(err, "a path");
    if (!climbs(name) && (*name == '/' ? slash[1] : name[0]))
        H5_TRY(try_open(*path, io, err));
    if (*io)
        return H5_OK;
    h5_error none = {0};
    h5_io *there = NULL;
    if (out && try_open(*name == '/' ? name : *path, &there, &none) == H5_OK && there) {
        there->close(there);
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "%.100s: leads out of the folder of the file",
                       name);
    }
    return h5_fail(err, H5_NOTFOUND, H5_UNDEF, "%.100s: no such file in the folder of the file",
                   name);
}

int h5_io_beside(const h5_file *f, const char *name, h5_io **out, h5_error *err)
{
    char *path;
    int rc = open_beside(f, name, &path, out, err);
    h5_free(path);
    return rc;
}

int h5_file_beside(const h5_file *f, const char *name, h5_file **out, h5_error *err)
{
    char *path;
    h5_io *io;
    *out = NULL;
    if (f->depth >= H5_FILE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF,
                       "%.100s: more than H5_FILE_DEPTH_MAX = %d files one behind the other", name,
                       H5_FILE_DEPTH_MAX);
    int rc = open_beside(f, name, &path, &io, err);
    if (rc == H5_OK) {
        io->close(io);
        rc = h5_file_open_path(path, out, err);
    }
    if (rc == H5_OK)
        (*out)->depth = f->depth + 1;
    h5_free(path);
    return rc;
}
