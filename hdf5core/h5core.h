/*
 * h5core.h - read and write HDF5 files without libhdf5; the only header that others include
 *
 * What there is: an I/O table (h5_io), an open file (h5_file), opened objects (h5_object: group,
 * dataset or committed type, with links and attributes), a walk over all of them, chunk tables and
 * reads of datasets and values of any type, and an appending writer (h5_writer) that makes object
 * headers, chunk indexes and superblocks.
 * Layout source: HDF5 File Format Specification, version 3.0; each section is named where the bytes
 * are read or made.
 *
 * The writer never edits what stands in a file. It appends, and the caller then replaces the 48
 * bytes of the superblock: the file is a valid HDF5 file before, and valid after ("append, then
 * flip").
 *
 * CODES     every int result is H5_OK (0) or one of the negative codes below; out-parameters hold a
 *           harmless value (NULL, 0) after a failure. The text in h5_error names structure, field,
 *           value and file offset.
 * MEMORY    through h5_malloc/h5_free below; what a function hands over says who frees it.
 * THREADS   an h5_io or h5_writer is used by one thread at a time. h5_file, h5_object and chunk
 *           tables never change once opened: many threads may read through them at once where the
 *           read of their io allows it, as those of h5_io_file and h5_io_memory do while nobody
 *           writes. There is no global state but the allocator hook.
 * HOSTILE   every byte of a file is untrusted: lengths and offsets are checked against the file
 *           size and against the limits of h5_limits.h before use; exceeding a limit is H5_LIMIT
 *           and names it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5CORE_H
#define H5CORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------- errors */

enum {
    H5_OK = 0,
    H5_NOMEM = -1,       /* an allocation failed */
    H5_IO = -2,          /* the system refused a read, write, sync or map; os_errno tells why */
    H5_FORMAT = -3,      /* the file is wrong */
    H5_UNSUPPORTED = -4, /* the file is right, this library cannot; the text names the feature */
    H5_NOTFOUND = -5,    /* no such path, link or attribute */
    H5_MISUSE = -6,      /* the caller's arguments are wrong; nothing was changed */
    H5_LIMIT = -7        /* a named limit of h5_limits.h is exceeded */
};

#define H5_UNDEF UINT64_MAX /* the undefined address */

/* One failure. The first failure wins: a function that gets a record already filled leaves it
** alone. */
typedef struct h5_error {
    int code;        /* H5_OK when nothing failed */
    int os_errno;    /* errno for H5_IO, else 0 */
    uint64_t offset; /* file offset of the structure at fault, H5_UNDEF when there is none */
    char text[256];  /* one line, no newline, names structure, field and value */
} h5_error;

void h5_error_clear(h5_error *err);

/* Fills *err (NULL allowed) unless it already holds a failure, and returns code. */
int h5_fail(h5_error *err, int code, uint64_t offset, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* A short name of a code: "ok", "out of memory", "file format", ... Never NULL. */
const char *h5_code_name(int code);

/* --------------------------------------------------------------------------------------- memory */

typedef struct h5_allocator {
    void *(*alloc)(void *ctx, size_t n); /* n > 0; NULL on failure */
    void *(*resize)(void *ctx, void *p, size_t n);
    void (*release)(void *ctx, void *p); /* p may be NULL */
    void *ctx;
} h5_allocator;

/* Sets the process-wide allocator; NULL restores the C library's. Call it before anything else of
** this library. */
void h5_set_allocator(const h5_allocator *a);

void *h5_malloc(size_t n);              /* n may be 0: then a valid pointer to nothing */
void *h5_calloc(size_t n, size_t size); /* zeroed; NULL when n * size overflows */
void *h5_realloc(void *p, size_t n);
void *h5_alloc_array(size_t n, size_t size); /* not zeroed; NULL when n * size overflows */
void h5_free(void *p);

/* ------------------------------------------------------------------------------------------ I/O */

#define H5_MAP_ALIGN 65536u /* mappings start at multiples of this: the largest page size in use */

/* Bytes of one file. An implementation embeds this struct as its first member. Offsets and sizes in
** bytes. */
typedef struct h5_io h5_io;
struct h5_io {
    /* The file's present size. */
    int (*size)(h5_io *io, uint64_t *out, h5_error *err);
    /* Reads exactly n bytes; a file that ends before is H5_FORMAT, a refused read H5_IO. */
    int (*read)(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err);
    /* Writes exactly n bytes, extending the file when needed. */
    int (*write)(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err);
    /* Returns when all written bytes are on stable storage. */
    int (*sync)(h5_io *io, h5_error *err);
    /* Sets the file's size. */
    int (*truncate)(h5_io *io, uint64_t size, h5_error *err);
    /* Read-only view of n > 0 bytes inside the file from off, a multiple of H5_MAP_ALIGN; anything
    ** else is H5_MISUSE. Valid until unmap; later writes to these bytes show in it. */
    int (*map)(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err);
    void (*unmap)(h5_io *io, const void *p, size_t n);
    void (*close)(h5_io *io); /* frees io; mappings must be gone */
};

enum {
    H5_IO_READ = 0,   /* open an existing file for reading */
    H5_IO_WRITE = 1,  /* open an existing file for reading and writing */
    H5_IO_CREATE = 2, /* with WRITE: make the file when it is not there */
    H5_IO_EXCL = 4    /* with CREATE: fail when it is there (os_errno EEXIST) */
};

/* Opens a regular file, close-on-exec, without ever blocking. Anything else (folder, device, FIFO)
** is H5_IO with a text that says so. The caller closes it with io->close. */
int h5_io_file(const char *path, int flags, h5_io **out, h5_error *err);

/* The descriptor behind an io made by h5_io_file (for locks and fstat), -1 for any other. Owned by
** io. */
int h5_io_fd(const h5_io *io);

/* A growing buffer in memory that starts with a copy of n bytes (0 allowed). */
int h5_io_memory(const void *bytes, size_t n, h5_io **out, h5_error *err);

/* The n bytes at p as a file that is only read. They are not copied and must stay as they are until
** close: structures are parsed where they lie. */
int h5_io_bytes(const void *p, size_t n, h5_io **out, h5_error *err);

/* A regular file that is only read, through a mapping of all of it. Who cuts the file short ends
** the process at the next read behind the cut (SIGBUS), so this is for files that nobody else
** changes. */
int h5_io_mapped(const char *path, h5_io **out, h5_error *err);

/* ------------------------------------------------------------------------------------ checksums */

/* Jenkins' lookup3 ("hashlittle") with start value init, as HDF5 uses it for metadata (init 0). */
uint32_t h5_lookup3(const void *p, size_t n, uint32_t init);

/* ------------------------------------------------------------------------------------ datatypes */

enum { /* h5_type.cls, the specification's class numbers */
       H5_CLASS_INTEGER = 0,
       H5_CLASS_FLOAT = 1,
       H5_CLASS_TIME = 2,
       H5_CLASS_STRING = 3, /* fixed length */
       H5_CLASS_BITFIELD = 4,
       H5_CLASS_OPAQUE = 5,
       H5_CLASS_COMPOUND = 6,
       H5_CLASS_REFERENCE = 7,
       H5_CLASS_ENUM = 8,
       H5_CLASS_VLEN = 9, /* variable length: a sequence of base, or a string (is_text) */
       H5_CLASS_ARRAY = 10,
       H5_CLASS_COMPLEX = 11, /* two numbers of base, real part first */
       H5_CLASS_OTHER = 255   /* of an attribute whose type or shape is not read here */
};

enum {                        /* h5_type.ref */
       H5_REF_OBJECT = 0,     /* size of offsets: address of an object header */
       H5_REF_REGION = 1,     /* global heap id of an address and a selection */
       H5_REF_NEW_OBJECT = 2, /* revised references of HDF5 1.12 */
       H5_REF_NEW_REGION = 3,
       H5_REF_NEW_ATTR = 4
};

typedef struct h5_type h5_type;

/* A field of a compound, or a name of an enum. */
typedef struct h5_member {
    const char *name;
    uint32_t offset;      /* compound: bytes from the start of the element */
    const h5_type *type;  /* compound; NULL in an enum */
    const uint8_t *value; /* enum: one element of the base type, in the file's byte order */
} h5_member;

/* A datatype of any class. What it points to belongs to the object it was read with. The writer
** takes integers of 1, 2, 4, 8 bytes, IEEE floats of 4 and 8 and fixed strings, and looks at the
** fields down to size only. */
struct h5_type {
    uint8_t cls;        /* H5_CLASS_ */
    uint8_t is_signed;  /* integers */
    uint8_t big_endian; /* numbers, bitfields, times */
    uint8_t str_pad;    /* strings of both kinds: 0 NUL-terminated, 1 NUL-padded, 2 space-padded */
    uint8_t utf8;       /* strings: 1 UTF-8, 0 ASCII */
    uint32_t size;      /* bytes of one element; 16 for variable-length ones */

    uint8_t vax;                    /* floats in the byte order of the VAX */
    uint8_t is_text;                /* variable length: a string */
    uint8_t ref;                    /* references: H5_REF_ */
    uint8_t committed;              /* the type stands in the file as an object of its own */
    uint16_t bit_offset, precision; /* numbers, bitfields: bits in use; precision 0: all */
    uint8_t sign_at, exponent_at, exponent_bits, mantissa_at, mantissa_bits; /* floats */
    uint8_t norm; /* floats: 0 none, 1 leading bit is stored, 2 leading bit is implied */
    uint32_t exponent_bias;
    uint32_t nmember; /* compound, enum */
    const h5_member *member;
    const h5_type *base;     /* enum, variable length, array, complex */
    uint32_t rank;           /* array */
    const uint32_t *dims;    /* array: rank sizes */
    const char *tag;         /* opaque: its tag, may be empty */
    uint64_t committed_addr; /* committed: its object header */
};

/* Little-endian types by code: 'i'/'u'/'f' and size in bytes; H5_MISUSE otherwise. */
int h5_type_number(char kind, uint32_t size, h5_type *out);

/* -------------------------------------------------------------------------------------- filters */

#define H5_FILTERS_MAX       8
#define H5_FILTER_VALUES_MAX 32
enum { H5_FILTER_DEFLATE = 1, H5_FILTER_SHUFFLE = 2, H5_FILTER_ZSTD = 32015 };

/* A filter pipeline in the order in which encoding applies it. */
typedef struct h5_filter {
    uint16_t id;
    uint16_t flags;  /* bit 0: optional */
    uint32_t nvalue; /* client data: deflate level; shuffle element size; zstd level */
    uint32_t value[H5_FILTER_VALUES_MAX];
    const uint32_t *more; /* of an opened dataset: all nvalue of them when value is too small, else
                          ** NULL; owned by the h5_object */
} h5_filter;

typedef struct h5_pipeline {
    int n; /* 0..H5_FILTERS_MAX, 0 = no filters */
    h5_filter filter[H5_FILTERS_MAX];
} h5_pipeline;

/* Encodes n bytes through all filters. *out is owned by the caller (h5_free). An optional deflate
** or zstd that does not shrink its input is left out and its bit set in *mask (bit i = filter i
** left out), as libhdf5 does. H5_UNSUPPORTED names a filter that is not here, H5_MISUSE a bad
** level. */
int h5_pipeline_encode(const h5_pipeline *p, const void *in, size_t n, void **out, size_t *out_n,
                       uint32_t *mask, h5_error *err);

/* Decodes n stored bytes into exactly out_n bytes at out, leaving out the filters whose bit is
** set in mask. Anything but exactly out_n bytes is H5_FORMAT. Never allocates much more than
** three times out_n and what zlib and zstd need for themselves. */
int h5_pipeline_decode(const h5_pipeline *p, uint32_t mask, const void *in, size_t n, void *out,
                       size_t out_n, h5_error *err);

/* Versions of the compression libraries in use, for reports. */
const char *h5_zlib_version(void);
const char *h5_zstd_version(void);

/* -------------------------------------------------------------------------------------- reading */

#define H5_RANK_MAX 32

/* One stored chunk. addr H5_UNDEF: never written, reads as the fill value. */
typedef struct h5_chunk {
    uint64_t addr;
    uint64_t size; /* stored bytes */
    uint32_t mask; /* bit i: filter i of the pipeline was left out */
} h5_chunk;

enum { H5_KIND_GROUP = 1, H5_KIND_DATASET = 2, H5_KIND_TYPE = 3 };
enum {
    H5_LAYOUT_COMPACT = 0,
    H5_LAYOUT_CONTIGUOUS = 1,
    H5_LAYOUT_CHUNKED = 2,
    H5_LAYOUT_VIRTUAL = 3
};
enum { H5_SPACE_SCALAR = 0, H5_SPACE_SIMPLE = 1, H5_SPACE_NULL = 2 };
enum { H5_FILL_DEFAULT = 0, H5_FILL_USER = 1, H5_FILL_UNDEFINED = 2 };

/* Raw data outside the file: size bytes (UINT64_MAX = to the end of that file) from offset. */
typedef struct h5_external {
    const char *name;
    uint64_t offset, size;
} h5_external;

typedef struct h5_file h5_file;
typedef struct h5_object h5_object;

/* What the header of a dataset says. Points into the h5_object. */
typedef struct h5_dataset_info {
    h5_type type;
    int space; /* H5_SPACE_ */
    int rank;  /* 0 = scalar or null */
    uint64_t dims[H5_RANK_MAX];
    uint64_t maxdims[H5_RANK_MAX]; /* UINT64_MAX = unlimited */
    int layout;                    /* H5_LAYOUT_ */
    uint64_t addr; /* contiguous: data; chunked: index header; H5_UNDEF = nothing stored */
    uint64_t size; /* contiguous: bytes stored; chunked: bytes of one whole chunk */
    uint32_t chunk[H5_RANK_MAX]; /* chunked: elements a dimension */
    h5_pipeline pipeline;
    uint8_t fill[16]; /* one element of up to 16 bytes, in the file's byte order; else zeros */

    int fill_kind;             /* H5_FILL_ */
    const uint8_t *fill_value; /* H5_FILL_USER: one element, in the file's byte order */
    uint8_t alloc_time;        /* 1 early, 2 late, 3 incremental */
    uint8_t fill_time;         /* 0 at allocation, 1 never, 2 if set */
    uint32_t nexternal;        /* contiguous: raw data in other files */
    const h5_external *external;
} h5_dataset_info;

/* "compact", "contiguous", "external", "chunked", "virtual"; the name of a chunk index ("version 1
** B-tree", "extensible array", ...), "" where there is none. Never NULL. */
const char *h5_layout_name(const h5_object *o);
const char *h5_index_name(const h5_object *o);

typedef struct h5_link {
    const char *name; /* UTF-8, NUL-terminated; owned by the h5_object */
    uint64_t addr;    /* of the object's header; H5_UNDEF for a soft, external or user's link */
} h5_link;

enum { H5_LINK_HARD = 0, H5_LINK_SOFT = 1, H5_LINK_EXTERNAL = 64 }; /* above 64: user-defined */

/* What else a link says. Owned by the h5_object. */
typedef struct h5_link_info {
    uint8_t kind;         /* H5_LINK_, or the number of a user-defined kind */
    uint8_t utf8;         /* character set of the name */
    uint8_t has_order;    /* the group tracks creation order */
    int64_t order;        /* place in the order of creation */
    const char *file;     /* external: name of the other file; else NULL */
    const char *path;     /* soft, external: path of the target; else NULL */
    const uint8_t *value; /* user-defined: its bytes */
    size_t bytes;
} h5_link_info;

/* An attribute. Owned by the h5_object. One whose type or shape is not read here is listed with
** cls H5_CLASS_OTHER and no data. */
typedef struct h5_attr {
    const char *name;
    h5_type type;
    int space; /* H5_SPACE_; a null one has no data */
    int rank;
    uint64_t dims[H5_RANK_MAX];
    const uint8_t *data; /* nelem * type.size bytes, in the file's byte order */
    size_t bytes;
} h5_attr;

/* Reads the superblock (versions 0 to 3) at offset 0, 512, 1024, ... io stays the caller's and must
** outlive the file. A file shorter than its superblock says is H5_FORMAT. Blocks of metadata that
** were read are kept (at most 16 of 32 KiB): what the file reached when it was opened must stay as
** it is until it is closed, while appending is free. */
int h5_file_open(h5_io *io, h5_file **out, h5_error *err);
/* Opens a file by name, for reading, and closes it with h5_file_close: a member of a family or
** split set brings the others, which lie in the same folder, with it. External raw data, the
** targets of external links and the sources of virtual datasets are looked for in the folder of the
** file, by names that do not leave it (of an absolute name, the last part is); a file from
** h5_file_open has no folder, and such data are H5_UNSUPPORTED. */
int h5_file_open_path(const char *path, h5_file **out, h5_error *err);
/* The same from 48 superblock bytes the caller holds, whatever stands in the file. */
int h5_file_open_at(h5_io *io, const uint8_t superblock[48], h5_file **out, h5_error *err);
void h5_file_close(h5_file *f);
uint64_t h5_file_root(const h5_file *f); /* address of the root group's header */
uint64_t h5_file_eof(const h5_file *f);  /* the superblock's end-of-file address */
uint64_t h5_file_base(const h5_file *f); /* file offset of address 0: the bytes of a user block */
int h5_file_version(const h5_file *f);   /* of the superblock */

/* Parses one object header with all its links and attributes. The caller closes it; it
** may outlive neither file nor io. H5_UNSUPPORTED when links or attributes could not be listed in
** full. A dataset whose values cannot be read opens; reading them says why. */
int h5_object_open(h5_file *f, uint64_t addr, h5_object **out, h5_error *err);
/* The same by path from the root: "/a/b"; "/" is the root. H5_NOTFOUND names the member that is
** missing. Soft and external links are followed; a user-defined one is H5_UNSUPPORTED. An object in
** another file keeps that open, and its values are read through h5_object_file. */
int h5_object_find(h5_file *f, const char *path, h5_object **out, h5_error *err);
void h5_object_close(h5_object *o);
/* The file that the object lies in: the one it was opened in, unless an external link led out. */
h5_file *h5_object_file(const h5_object *o);
int h5_object_kind(const h5_object *o); /* H5_KIND_ */
/* A group's members, an object's attributes, in stored order; gives their number. */
size_t h5_object_links(const h5_object *o, const h5_link **out);
size_t h5_object_attrs(const h5_object *o, const h5_attr **out);
/* The one of this name, NULL when there is none. */
const h5_link *h5_object_link(const h5_object *o, const char *name);
const h5_attr *h5_object_attr(const h5_object *o, const char *name);
const h5_dataset_info *h5_object_dataset(const h5_object *o); /* NULL for others */
/* What else is said of member i of h5_object_links. */
const h5_link_info *h5_object_link_info(const h5_object *o, size_t i);
const h5_type *h5_object_type(const h5_object *o); /* of a committed type or dataset, else NULL */
uint64_t h5_object_addr(const h5_object *o);

/* Scalar attribute values, converted (integers to double as well). H5_NOTFOUND without the
** attribute, H5_FORMAT when it is of another class, of several elements or does not fit,
** H5_UNSUPPORTED for H5_CLASS_OTHER. The string is copied without padding, NUL-terminated, owned by
** the caller (h5_free). */
int h5_attr_int(const h5_object *o, const char *name, int64_t *out, h5_error *err);
int h5_attr_real(const h5_object *o, const char *name, double *out, h5_error *err);
int h5_attr_text(const h5_object *o, const char *name, char **out, h5_error *err);

/* The chunk table of a chunked dataset, row-major over the grid of chunks that its current dims
** need (entries of the index beyond them are left out). *out is the caller's (h5_free). Every chunk
** lies inside the file, and one to which no filter was applied has exactly h5_dataset_info.size
** bytes. H5_UNSUPPORTED names what this library cannot read of the dataset. */
int h5_dataset_chunks(h5_file *f, const h5_object *o, h5_chunk **out, size_t *n, h5_error *err);

/* Reads the hyperslab start[rank], count[rank] into buf in C order, in native byte order for
** numbers. bytes must be exactly the product of count and the element size. Touches only the chunks
** it needs. */
int h5_dataset_read(h5_file *f, const h5_object *o, const uint64_t *start, const uint64_t *count,
                    void *buf, size_t bytes, h5_error *err);
/* The same in the file's byte order, for the functions of the next part. */
int h5_dataset_read_stored(h5_file *f, const h5_object *o, const uint64_t *start,
                           const uint64_t *count, void *buf, size_t bytes, h5_error *err);

/* The values of a contiguous or compact dataset where they lie, in C order and in the file's byte
** order, without a copy: *out points to *bytes bytes of the io, valid until it is closed (compact:
** until o is). H5_UNSUPPORTED for other layouts, for data that were never written and where the io
** is neither h5_io_bytes nor h5_io_mapped: then read them. */
int h5_dataset_view(h5_file *f, const h5_object *o, const void **out, size_t *bytes, h5_error *err);

/* --------------------------------------------------------------------------- values of any type */

/* These take one element at p as it is stored: from h5_dataset_read_stored, h5_attr.data,
** fill_value, a field of a compound (p + member.offset), element i of an array or of what h5_vlen
** gave (p + i * base.size). */

/* An integer, enum, bitfield or time: its bits, extended to 64 by the sign if it has one. 0 when
** the type is none of these or wider than 8 bytes, else 1. */
int h5_value_bits(const h5_type *t, const void *p, uint64_t *out);
/* A number of any layout as the nearest double. 0 when the type is no number, else 1. */
int h5_value_real(const h5_type *t, const void *p, double *out);
/* A fixed string without its padding: gives the number of bytes. */
size_t h5_value_text(const h5_type *t, const void *p);
/* The name of an enum's value, NULL when it has none. */
const char *h5_value_enum(const h5_type *t, const void *p);

/* Reads what variable-length elements and references point to, and keeps the heaps that it met. */
typedef struct h5_heaps h5_heaps;
int h5_heaps_open(h5_file *f, h5_heaps **out, h5_error *err);
void h5_heaps_close(h5_heaps *h);
/* The *n elements of t->base (bytes of a string, for is_text) of one variable-length element. They
** belong to h until it is closed, in the file's byte order. An empty one gives n 0. */
int h5_vlen(h5_heaps *h, const h5_type *t, const void *p, const uint8_t **data, uint64_t *n,
            h5_error *err);

/* h5_dataset_read_stored for values of any type: those of variable length that a virtual dataset
** takes from other files are kept in h, which must be of the file of o, until the next call of this
** with h, or its end. The other functions give H5_UNSUPPORTED for such, and so does this for
** references. */
int h5_dataset_read_values(h5_heaps *h, const h5_object *o, const uint64_t *start,
                           const uint64_t *count, void *buf, size_t bytes, h5_error *err);

/* What a reference points to. */
typedef struct h5_ref {
    uint64_t addr;            /* of the object header; H5_UNDEF: a null reference */
    const char *attr;         /* H5_REF_NEW_ATTR: name of the attribute, else NULL; owned by h */
    const uint8_t *selection; /* regions: the serialized dataspace selection; owned by h */
    size_t bytes;
} h5_ref;
int h5_reference(h5_heaps *h, const h5_type *t, const void *p, h5_ref *out, h5_error *err);

/* ---------------------------------------------------------------------------------------- walk */

enum { /* h5_item.kind; H5_KIND_ as well */
       H5_ITEM_SOFT = 10,
       H5_ITEM_EXTERNAL = 11,
       H5_ITEM_USER = 12,
       H5_ITEM_SAME = 13, /* a further hard link to an object that was met before */
       H5_ITEM_ERROR = 14 /* an object that does not open */
};

typedef struct h5_item {
    const char *path;
    int kind;
    uint64_t addr;            /* H5_UNDEF for soft, external and user-defined links */
    const h5_link_info *link; /* NULL for the root */
    const char *same_as;      /* H5_ITEM_SAME: the path that was met first */
    h5_object *object;        /* groups, datasets, types; closed after the call */
    const h5_error *error;    /* H5_ITEM_ERROR */
} h5_item;

/* Calls visit for the root and everything under it, once an object, members in the order of their
** names, each group before its members. Soft and external links are not followed. A result other
** than 0 of visit ends the walk and is handed back. */
int h5_walk(h5_file *f, int (*visit)(void *ctx, const h5_item *item), void *ctx, h5_error *err);

/* -------------------------------------------------------------------------------------- writing */

/* Appends at the end of a file through a buffer. Nothing that it writes can be reached from the old
** root. */
typedef struct h5_writer h5_writer;

/* eof: where appending starts; bytes from there on are free to overwrite. io stays the caller's. */
int h5_writer_new(h5_io *io, uint64_t eof, h5_writer **out, h5_error *err);
void h5_writer_free(h5_writer *w); /* drops what is not flushed */
uint64_t h5_writer_eof(const h5_writer *w);
/* Appends n bytes at the next multiple of align, a power of two up to 128 KiB; the gap is zeros;
** *at their address. After a failure nothing has changed, and the call may be repeated. */
int h5_writer_append(h5_writer *w, const void *p, size_t n, uint32_t align, uint64_t *at,
                     h5_error *err);
/* Writes all that was appended. The file is then at least as long as eof. May be repeated. */
int h5_writer_flush(h5_writer *w, h5_error *err);

/* A fixed array index, header and data block (paged beyond 2^10 entries), over n >= 1 chunks.
** filtered: entries carry size and mask; chunk_bytes the whole size of a chunk, from which the
** width of a stored size follows. *at the address for the layout message. */
int h5_write_fixed_array(h5_writer *w, const h5_chunk *chunks, uint64_t n, int filtered,
                         uint64_t chunk_bytes, uint64_t *at, h5_error *err);

/* An attribute to write: exactly one of the three, by kind: 'i' int64, 'f' double, 's' UTF-8 text
** (NUL-terminated). Scalar. */
typedef struct h5_attr_spec {
    const char *name;
    char kind;
    int64_t i;
    double f;
    const char *s;
} h5_attr_spec;

/* A dataset to write. Chunked: addr from h5_write_fixed_array (or H5_UNDEF: no data yet),
** maxdims[0] a whole number of chunks, the other maxima equal to dims. Contiguous: addr and the
** bytes of the data. */
typedef struct h5_dataset_spec {
    h5_type type;
    int rank;
    const uint64_t *dims;
    const uint64_t *maxdims; /* chunked */
    const uint32_t *chunk;   /* chunked; NULL = contiguous */
    uint64_t addr;
    const h5_pipeline *pipeline; /* NULL or n = 0: none */
    const void *fill;            /* one little-endian element; NULL = zeros */
    const h5_attr_spec *attrs;
    size_t nattr;
} h5_dataset_spec;

int h5_write_dataset(h5_writer *w, const h5_dataset_spec *d, uint64_t *at, h5_error *err);

/* A group with hard links, in the order given. Names are UTF-8, not empty, without '/'. */
int h5_write_group(h5_writer *w, const h5_link *links, size_t nlink, const h5_attr_spec *attrs,
                   size_t nattr, uint64_t *at, h5_error *err);

#define H5_SUPERBLOCK_BYTES 48

/* The 48 bytes of a version 2 superblock, flags 0. */
void h5_superblock_pack(uint64_t root, uint64_t eof, uint8_t out[H5_SUPERBLOCK_BYTES]);
/* Checks 48 bytes (signature, version 2 or 3, sizes, checksum) and gives root and end of file. */
int h5_superblock_unpack(const uint8_t in[H5_SUPERBLOCK_BYTES], uint64_t *root, uint64_t *eof,
                         h5_error *err);

#ifdef __cplusplus
}
#endif
#endif
