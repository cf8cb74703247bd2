/*
 * h5_superblock.c - the 48 bytes at the start of a file that say where everything else is
 *
 * The superblock stands at offset 0, or after a user block at 512, 1024, 2048, ...; all addresses
 * of
 * the file count from there, whatever its base address says (a user block may have been put before
 * a finished file).
 *
 * FORMAT   HDF5 spec: II.A "Format Signature and Superblock"
 *   versions 0 and 1
 *   0       8     signature "\211HDF\r\n\032\n"
 *   8       1     version
 *   9       4     versions of other structures
 *   13      1     size of offsets: 2, 4 or 8
 *   14      1     size of lengths: 2, 4 or 8
 *   16      8     B-tree parameters 2+2, flags 4
 *   24      4     version 1 only: B-tree parameter 2, reserved 2
 *   ..      8     base address (here and below: as wide as offsets are)
 *   ..      8     free space, unused
 *   ..      8     end-of-file address
 *   ..      8     driver information block, undefined = none
 *   ..      40    symbol table entry of the root group: name 8, header 8, cache 24
 *
 *   versions 2 and 3 (they differ in the meaning of the flags)
 *   offset  size  field
 *   0       8     signature "\211HDF\r\n\032\n"
 *   8       1     version, 2 or 3
 *   9       1     size of offsets, 8 as a rule
 *   10      1     size of lengths, 8 as a rule
 *   11      1     flags: version 3 keeps marks of running writers there; written as 0, ignored in
 *           reading, since an
 *                 append-only reader sees what the checksums cover and nothing else
 *   12      8     base address, 0
 *   20      8     address of the superblock extension, undefined = none
 *   28      8     end-of-file address
 *   36      8     address of the root group's object header
 *   44      4     lookup3 of the 44 bytes before
 *
 * ERRORS   H5_FORMAT no signature, bad checksum, root outside; H5_UNSUPPORTED other sizes of
 *          offsets and lengths
 * TESTS    t_h5_superblock.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_file.h"
#include "h5_sum.h"

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

void h5_superblock_pack(uint64_t root, uint64_t eof, uint8_t out[H5_SUPERBLOCK_BYTES])
{
    memset(out, 0, H5_SUPERBLOCK_BYTES);
    memcpy(out, signature, sizeof signature);
    out[8] = 2;
    out[9] = 8;
    out[10] = 8;
    h5_set64(out + 20, H5_UNDEF);
    h5_set64(out + 28, eof);
    h5_set64(out + 36, root);
    h5_set32(out + 44, h5_lookup3(out, 44, 0));
}

/* The end of file counts from the base address from here on. */
static int check_ends(h5_superblock *s, uint64_t least, h5_error *err)
{
    if (s->eof < s->base || s->eof - s->base < least)
        return h5_fail(err, H5_FORMAT, 28, "superblock: end of file %" PRIu64 " lies inside it",
                       s->eof);
    s->eof -= s->base;
    if (s->root >= s->eof)
        return h5_fail(err, H5_FORMAT, 36,
                       "superblock: root at %" PRIu64 ", end of file at %" PRIu64, s->root, s->eof);
    return H5_OK;
}

static int is_width(unsigned n)
{
    return n == 2 || n == 4 || n == 8;
}

static int take_widths(h5_cur *c, h5_superblock *s, h5_error *err)
{
    s->offsets = h5_cur_u8(c);
    s->lengths = h5_cur_u8(c);
    if (!is_width(s->offsets) || !is_width(s->lengths))
        return h5_fail(err, H5_UNSUPPORTED, 9, "superblock: offsets of %u and lengths of %u bytes",
                       s->offsets, s->lengths);
    return H5_OK;
}

int h5_superblock_parse(const uint8_t in[H5_SUPERBLOCK_BYTES], h5_superblock *out, h5_error *err)
{
    h5_cur c = h5_cur_on(in, H5_SUPERBLOCK_BYTES);
    h5_superblock s;
    if (memcmp(h5_cur_take(&c, sizeof signature), signature, sizeof signature) != 0)
        return h5_fail(err, H5_FORMAT, 0, "superblock: no HDF5 signature");
    s.version = h5_cur_u8(&c);
    if (s.version < 2)
        return h5_fail(err, H5_UNSUPPORTED, 8, "superblock version %u", s.version);
    // The checksum comes first: a torn or damaged superblock must not pass for an unsupported one.
    size_t bytes = is_width(in[9]) ? 16 + 4 * (size_t)in[9] : H5_SUPERBLOCK_BYTES;
    if (s.version <= 3)
        H5_TRY(h5_sum_check(in, bytes, "superblock", 0, err));
    else
        return h5_fail(err, H5_UNSUPPORTED, 8, "superblock version %u", s.version);
    H5_TRY(take_widths(&c, &s, err));
    s.flags = h5_cur_u8(&c);
    s.base = h5_cur_wide(&c, s.offsets);
    s.driver = H5_UNDEF;
    s.extension = h5_cur_wide(&c, s.offsets);
    s.eof = h5_cur_wide(&c, s.offsets);
    s.root = h5_cur_wide(&c, s.offsets);
    H5_TRY(check_ends(&s, bytes, err));
    *out = s;
    return H5_OK;
}

int h5_superblock_parse_old(const uint8_t in[H5_SUPERBLOCK_OLD_BYTES], h5_superblock *out,
                            h5_error *err)
{
    h5_cur c = h5_cur_on(in, H5_SUPERBLOCK_OLD_BYTES);
    h5_superblock s = {.extension = H5_UNDEF};
    h5_cur_take(&c, sizeof signature);
    s.version = h5_cur_u8(&c);
    h5_cur_take(&c, 4);
    H5_TRY(take_widths(&c, &s, err));
    h5_cur_take(&c, s.version == 1 ? 13 : 9);
    s.base = h5_cur_wide(&c, s.offsets);
    h5_cur_wide(&c, s.offsets);
    s.eof = h5_cur_wide(&c, s.offsets);
    s.driver = h5_cur_wide(&c, s.offsets);
    h5_cur_wide(&c, s.lengths);
    s.root = h5_cur_wide(&c, s.offsets);
    H5_TRY(check_ends(&s, 24 + 4 * (uint64_t)s.offsets, err));
    *out = s;
    return H5_OK;
}

int h5_superblock_is(const uint8_t *in)
{
    return memcmp(in, signature, sizeof signature) == 0;
}

int h5_superblock_unpack(const uint8_t in[H5_SUPERBLOCK_BYTES], uint64_t *root, uint64_t *eof,
                         h5_error *err)
{
    h5_superblock s;
    *root = *eof = 0;
    H5_TRY(h5_superblock_parse(in, &s, err));
    if (s.offsets != 8 || s.lengths != 8)
        return h5_fail(err, H5_UNSUPPORTED, 9, "superblock: offsets of %u and lengths of %u bytes",
                       s.offsets, s.lengths);
    if (s.base != 0)
        return h5_fail(err, H5_UNSUPPORTED, 12, "superblock: base address %" PRIu64, s.base);
    *root = s.root;
    *eof = s.eof;
    return H5_OK;
}
