/*
 * h5_write.c - new groups, datasets and chunk indexes
 *
 * Each function checks its arguments, puts the messages of one header together and appends it. The
 * order of messages is the one libhdf5 uses; every choice (versions, flags) is the one that the
 * oldest libhdf5 with fixed arrays (1.10) reads.
 *
 * ERRORS   H5_MISUSE arguments; H5_LIMIT a message over 65,535 bytes; H5_UNSUPPORTED an unknown
 *          filter; those of the io
 * TESTS    t_h5_write.c; tests/interop/test_h5core.py reads the results with libhdf5
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_farray.h"
#include "h5_filter.h"
#include "h5_msg.h"

int h5_write_fixed_array(h5_writer *w, const h5_chunk *chunks, uint64_t n, int filtered,
                         uint64_t chunk_bytes, uint64_t *at, h5_error *err)
{
    return h5_farray_write(w, chunks, n, filtered, chunk_bytes, H5_FARRAY_PAGE_BITS, at, err);
}

static int put_attrs(h5_buf *b, const h5_attr_spec *attrs, size_t n, h5_error *err)
{
    size_t at = h5_ohdr_msg(b, H5_MSG_ATTR_INFO, 0);
    h5_attr_info_encode(b);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    for (size_t i = 0; i < n; i++) {
        const h5_attr_spec *a = &attrs[i];
        if (!a->name || !a->name[0] ||
            (a->kind != 'i' && a->kind != 'f' && (a->kind != 's' || !a->s)))
            return h5_fail(err, H5_MISUSE, H5_UNDEF, "attribute %zu: name or kind", i);
        size_t name = strlen(a->name), value = a->kind == 's' ? strlen(a->s) : 0;
        if (name >= H5_MESSAGE_BYTES_MAX || value >= H5_MESSAGE_BYTES_MAX)
            return h5_fail(err, H5_LIMIT, H5_UNDEF,
                           "attribute %s: %zu bytes, H5_MESSAGE_BYTES_MAX = %u", a->name,
                           name + value, H5_MESSAGE_BYTES_MAX);
        at = h5_ohdr_msg(b, H5_MSG_ATTR, 0);
        h5_attr_encode(b, a);
        H5_TRY(h5_ohdr_msg_end(b, at, err));
    }
    return H5_OK;
}

static int put_links(h5_buf *b, const h5_link *links, size_t n, h5_error *err)
{
    size_t at = h5_ohdr_msg(b, H5_MSG_LINK_INFO, 0);
    h5_link_info_encode(b);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    at = h5_ohdr_msg(b, H5_MSG_GROUP_INFO, 0);
    h5_buf_u16(b, 0); // version 0, flags 0
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    for (size_t i = 0; i < n; i++) {
        const char *name = links[i].name;
        if (!name || !name[0] || strchr(name, '/') || links[i].addr == H5_UNDEF)
            return h5_fail(err, H5_MISUSE, H5_UNDEF, "link %zu: name or address", i);
        if (strlen(name) >= H5_MESSAGE_BYTES_MAX)
            return h5_fail(err, H5_LIMIT, H5_UNDEF, "link %.32s...: H5_MESSAGE_BYTES_MAX = %u",
                           name, H5_MESSAGE_BYTES_MAX);
        at = h5_ohdr_msg(b, H5_MSG_LINK, 0);
        h5_link_encode(b, &links[i]);
        H5_TRY(h5_ohdr_msg_end(b, at, err));
    }
    return H5_OK;
}

int h5_write_group(h5_writer *w, const h5_link *links, size_t nlink, const h5_attr_spec *attrs,
                   size_t nattr, uint64_t *at, h5_error *err)
{
    h5_buf b = {0};
    *at = 0;
    int rc = put_links(&b, links, nlink, err);
    if (rc == H5_OK)
        rc = put_attrs(&b, attrs, nattr, err);
    if (rc == H5_OK)
        rc = h5_ohdr_write(w, &b, at, err);
    h5_buf_free(&b);
    return rc;
}

/* Shape, chunks and filters of a dataset to write; *bytes those of all its elements. */
static int check_spec(const h5_dataset_spec *d, uint64_t *bytes, h5_error *err)
{
    int filters = d->pipeline ? d->pipeline->n : 0;
    uint64_t chunk = d->type.size;
    *bytes = d->type.size;
    H5_TRY(h5_type_check(&d->type, err));
    if (d->rank < (d->chunk ? 1 : 0) || d->rank > H5_RANK_MAX || (d->rank > 0 && !d->dims) ||
        (d->chunk && !d->maxdims) || (!d->chunk && filters > 0))
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "dataset to write: rank %d, %d filters", d->rank,
                       filters);
    for (int i = 0; i < d->rank; i++) {
        if (!h5_mul_fits(*bytes, d->dims[i], bytes))
            return h5_fail(err, H5_MISUSE, H5_UNDEF,
                           "dataset to write: more bytes than 64 bits count");
        if (!d->chunk)
            continue;
        if (d->chunk[i] == 0 || d->maxdims[i] == 0 || !h5_mul_fits(chunk, d->chunk[i], &chunk) ||
            chunk > H5_CHUNK_BYTES_MAX)
            return h5_fail(err, H5_MISUSE, H5_UNDEF,
                           "dataset to write: chunk size %u in dimension %d", (unsigned)d->chunk[i],
                           i);
        if (i == 0 ? d->maxdims[0] < d->dims[0] || d->maxdims[0] == UINT64_MAX ||
                         d->maxdims[0] % d->chunk[0]
                   : d->maxdims[i] != d->dims[i])
            return h5_fail(err, H5_MISUSE, H5_UNDEF,
                           "dataset to write: size %" PRIu64 ", maximum %" PRIu64
                           " in dimension %d",
                           d->dims[i], d->maxdims[i], i);
    }
    return filters > 0 ? h5_pipeline_check(d->pipeline, err) : H5_OK;
}

static int put_dataset(h5_buf *b, const h5_dataset_spec *d, uint64_t bytes, h5_error *err)
{
    size_t at = h5_ohdr_msg(b, H5_MSG_SPACE, 0);
    h5_space_encode(b, d->rank, d->dims, d->chunk ? d->maxdims : NULL);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    at = h5_ohdr_msg(b, H5_MSG_TYPE, H5_MSG_CONSTANT);
    h5_type_encode(b, &d->type);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    at = h5_ohdr_msg(b, H5_MSG_FILL, H5_MSG_CONSTANT);
    h5_fill_encode(b, &d->type, d->chunk != NULL, d->fill);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    at = h5_ohdr_msg(b, H5_MSG_LAYOUT, 0);
    if (d->chunk)
        h5_layout_encode_chunked(b, d);
    else
        h5_layout_encode_contiguous(b, d->addr, bytes);
    H5_TRY(h5_ohdr_msg_end(b, at, err));
    if (d->pipeline && d->pipeline->n > 0) {
        at = h5_ohdr_msg(b, H5_MSG_FILTERS, H5_MSG_CONSTANT);
        h5_filters_encode(b, d->pipeline);
        H5_TRY(h5_ohdr_msg_end(b, at, err));
    }
    return put_attrs(b, d->attrs, d->nattr, err);
}

int h5_write_dataset(h5_writer *w, const h5_dataset_spec *d, uint64_t *at, h5_error *err)
{
    h5_buf b = {0};
    uint64_t bytes;
    *at = 0;
    H5_TRY(check_spec(d, &bytes, err));
    int rc = put_dataset(&b, d, bytes, err);
    if (rc == H5_OK)
        rc = h5_ohdr_write(w, &b, at, err);
    h5_buf_free(&b);
    return rc;
}
