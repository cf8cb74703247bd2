/*
 * h5_limits.h - every limit of hdf5core, each with the reason for its value
 *
 * A limit bounds what a file of any size can make this library do. Going beyond one is H5_LIMIT and
 * the text names it. What is bounded by the file's own size (header bytes, index blocks, stored
 * chunks) needs no limit here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_LIMITS_H
#define H5_LIMITS_H

/* Blocks of metadata that an open file keeps, and their bytes: a page of the system at first, more
** where reads go on behind one another. A read of 16 KiB from the page cache costs 0.4 us and one
** of 4 KiB 0.2 us here; 16 blocks cover a path through any tree and a walk's neighbourhood. */
#define H5_META_BLOCKS 16
#define H5_META_LEAST  4096u
#define H5_META_MOST   32768u
/* A file of up to so many bytes is read at once. */
#define H5_META_SMALL  16384u

/* Continuation blocks of one object header. libhdf5 makes one for each time a header outgrows its
** space, a handful in practice; a chain of a thousand is an attack or damage. */
#define H5_OHDR_BLOCKS_MAX 1024u

/* Datatypes inside datatypes. Tools nest three or four deep; libhdf5 has no limit and a stack. */
#define H5_TYPE_DEPTH_MAX 32

/* Levels of a B-tree. A node has two children at least, and no file has 2^32 nodes. */
#define H5_BTREE_DEPTH_MAX 32

/* Levels of indirect blocks in a fractal heap: each has rows for twice the bytes at least, of at
** most 2^64. */
#define H5_FHEAP_DEPTH_MAX 64

/* Bytes of direct blocks that an open fractal heap keeps; then it begins anew. The links of a group
** of a million members take some 40 MB. */
#define H5_FHEAP_KEPT_MAX (64u << 20)

/* Groups inside groups on a walk, and soft links one behind the other on the way to an object. The
** path of the deepest group then still is shorter than the system's longest. */
#define H5_WALK_DEPTH_MAX 512
#define H5_SOFT_LINKS_MAX 32

/* Files opened on behalf of others: the source of a virtual dataset may be virtual itself. */
#define H5_FILE_DEPTH_MAX 8

/* Rows of the blocks of an irregular selection: 24 bytes of table each. */
#define H5_SELECT_RUNS_MAX (1u << 20)

/* Work that one call may cause through virtual datasets: so much for each mapping looked at and
** each object opened, and 1 for each piece copied below the first level. A hundred thousand sources
** fit; virtual datasets of virtual datasets multiply, and without an end to it a kilobyte could
** keep a machine busy for days. */
#define H5_VIRTUAL_WORK_MAX     (1u << 26)
#define H5_VIRTUAL_WORK_MAPPING 16u
#define H5_VIRTUAL_WORK_OPEN    256u

/* Bytes of global heaps that one read takes from the sources of a virtual dataset: its values of
** variable length stay in memory until the next. Two values that are wanted may lie far apart in a
** large heap, so this is more than what they take. */
#define H5_VIRTUAL_HEAPS_MAX  (128u << 20)
/* Work for one value of variable length inside another that comes from another file: it is copied,
** 40 bytes of memory each, and a million outer ones may all name the same. */
#define H5_VIRTUAL_WORK_INNER 16u

/* Bytes that are read at once from the source of a virtual dataset: parts that lie closer together
** are read with what is between them. */
#define H5_VIRTUAL_READ_MAX (4u << 20)

/* Body of one header message: the size field has 16 bits. */
#define H5_MESSAGE_BYTES_MAX 65535u

/* Bytes of one whole chunk. HDF5's own limit: chunk sizes are 32-bit in every libhdf5. */
#define H5_CHUNK_BYTES_MAX 0xFFFFFFFFull

/* Bytes in memory while one chunk or block is decoded, its result among them, unless a sixteenth of
** that is stored. Chunks of 64 MiB fit through every usual pipeline, whatever they are stored as;
** larger ones as long as they are compressed to no less than the sixteenth, so that it is the file
** that asks for the memory, not a few bytes of it. */
#define H5_DECODE_BYTES_MAX (160ull << 20)
#define H5_DECODE_RATIO     16u

/* Bytes of paths that a walk keeps, besides 16 times what the file holds: names that many objects
** have in common can make paths longer than the file, over and over. */
#define H5_WALK_PATHS_MAX (64u << 20)

/* Chunks that one call looks up, when they are more than the entries that an index in the file
** could hold: then most are not stored, and nothing in the file bounds them. 4 Mi are 96 MiB of
** chunk table, a quarter of a second of looking up at most, and 64 Gi rows of one byte in 16 KiB
** chunks. */
#define H5_UNSTORED_CHUNKS_MAX (1ull << 22)

/* Index entries a page in arrays that this library writes, as a power of two. 10 is libhdf5's own
** default; arrays of other makers are read with the value in their header, up to the largest that
** libhdf5 can have written. */
#define H5_FARRAY_PAGE_BITS     10u
#define H5_FARRAY_PAGE_BITS_MAX 32u

/* Buffered bytes of a writer: the small structures of one flush of a store (some 40 KiB) become one
** write. */
#define H5_WRITER_BUFFER (256u * 1024u)

/* Nesting of a datatype in the client data of the n-bit filter. Compilers and tools stay within a
** few levels; each level is a call. */
#define H5_FILTER_NESTING_MAX 32

#endif
