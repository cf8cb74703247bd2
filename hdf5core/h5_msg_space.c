/*
 * h5_msg_space.c - dataspace message: rank and sizes of a dataset or attribute
 *
 * FORMAT   HDF5 spec: IV.A.2.b "The Dataspace Message", versions 1 and 2
 *   version 1: 1 | rank 1 | flags 1 | reserved 5 | sizes 8 each | maxima 8 each (flag bit 0)
 *   version 2: 2 | rank 1 | flags 1 | type 1 (0 scalar, 1 simple, 2 null) | sizes 8 each | maxima 8
 *              each (flag bit 0)
 *   A maximum of all ones means unlimited. Permutations (version 1, flag bit 1) were never written
 *     by any library.
 *
 * ERRORS   H5_FORMAT; H5_LIMIT more elements than 64 bits count
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_msg.h"

/* Sizes, maxima and their relations. */
static int parse_sizes(const h5_file *f, h5_cur *c, uint64_t addr, int rank, int has_max,
                       uint64_t *dims, uint64_t *maxdims, uint64_t *nelem, h5_error *err)
{
    uint64_t max[H5_RANK_MAX], n = 1;
    int empty = 0;
    for (int i = 0; i < rank; i++)
        dims[i] = max[i] = h5_cur_length(c, f);
    for (int i = 0; i < rank && has_max; i++)
        max[i] = h5_cur_length(c, f);
    if (c->bad)
        return h5_fail(err, H5_FORMAT, addr, "dataspace: cut off");
    for (int i = 0; i < rank; i++) {
        if (dims[i] > max[i])
            return h5_fail(err, H5_FORMAT, addr,
                           "dataspace: size %" PRIu64 " above its maximum %" PRIu64, dims[i],
                           max[i]);
        empty |= dims[i] == 0;
        if (!empty && !h5_mul_fits(n, dims[i], &n))
            return h5_fail(err, H5_LIMIT, addr, "dataspace: more elements than 64 bits count");
    }
    if (maxdims)
        memcpy(maxdims, max, (size_t)rank * sizeof *max);
    *nelem = empty ? 0 : n;
    return H5_OK;
}

int h5_space_parse(const h5_file *f, h5_cur *c, uint64_t addr, int *space, int *rank,
                   uint64_t *dims, uint64_t *maxdims, uint64_t *nelem, h5_error *err)
{
    unsigned version = h5_cur_u8(c), r = h5_cur_u8(c), flags = h5_cur_u8(c), kind = h5_cur_u8(c);
    if (version == 1)
        h5_cur_take(c, 4);
    if (c->bad)
        return h5_fail(err, H5_FORMAT, addr, "dataspace: cut off");
    if (version != 1 && version != 2)
        return h5_fail(err, H5_FORMAT, addr, "dataspace: version %u", version);
    if (r > H5_RANK_MAX)
        return h5_fail(err, H5_FORMAT, addr, "dataspace: rank %u", r);
    if (flags & (version == 1 ? ~3u : ~1u))
        return h5_fail(err, H5_FORMAT, addr, "dataspace: flags %02x", flags);
    if (version == 1 && flags & 2)
        return h5_fail(err, H5_UNSUPPORTED, addr, "dataspace with permuted dimensions");
    if (version == 2 && (kind > 2 || (kind == H5_SPACE_SIMPLE) != (r != 0)))
        return h5_fail(err, H5_FORMAT, addr, "dataspace: type %u of rank %u", kind, r);
    *rank = (int)r;
    *space = version == 2 ? (int)kind : r ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR;
    *nelem = 0;
    if (*space == H5_SPACE_NULL)
        return H5_OK;
    return parse_sizes(f, c, addr, (int)r, flags & 1, dims, maxdims, nelem, err);
}

int h5_msg_space_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    uint64_t nelem;
    return h5_space_parse(o->f, &c, m->addr, &o->info->space, &o->info->rank, o->info->dims,
                          o->info->maxdims, &nelem, err);
}

void h5_space_encode(h5_buf *b, int rank, const uint64_t *dims, const uint64_t *maxdims)
{
    h5_buf_u8(b, 2);
    h5_buf_u8(b, (unsigned)rank);
    h5_buf_u8(b, rank > 0 && maxdims);
    h5_buf_u8(b, rank > 0);
    for (int i = 0; i < rank; i++)
        h5_buf_u64(b, dims[i]);
    for (int i = 0; i < rank && maxdims; i++)
        h5_buf_u64(b, maxdims[i]);
}
