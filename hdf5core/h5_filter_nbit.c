/*
 * h5_filter_nbit.c - n-bit: only the significant bits of each number, one after the other
 *
 * FORMAT   HDF5 reference, H5Pset_nbit, and HDF5's filter note on n-bit; the order of the client
 *          data is that of HDF5's library
 *   client data: number of values | 1 = stored as it is | elements | type
 *     type: 1 (number)   size | 0 little-endian, 1 big-endian | precision | lowest bit
 *           2 (array)    size | type of an element
 *           3 (compound) size | members | per member: offset in bytes, type
 *           4 (other)    size
 *   chunk: the elements as one string of bits, most significant first: the precision bits of a
 *          number, all bits of another type. What is not stored reads as 0.
 *
 * The type comes from a file. Each visit of a leaf takes at least one stored bit, and members are
 * one or more, so the work is bounded by the bits there are; nesting has a limit.
 *
 * ERRORS   H5_FORMAT client data that do not describe a type, too few bits; H5_LIMIT nesting
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_filter_codec.h"

enum { VALUE_RAW = 1, VALUE_COUNT = 2, VALUE_TYPE = 3 };
enum { NUMBER = 1, ARRAY = 2, COMPOUND = 3, OTHER = 4 };

/* The type, read from client data, and the bits. */
typedef struct nbit {
    const uint32_t *value;
    size_t n, at; /* values, and the next one */
    h5_bits bits;
} nbit;

static int wrong(h5_error *err, const char *what)
{
    return h5_fail(err, H5_FORMAT, H5_UNDEF, "n-bit: %s", what);
}

static int take(nbit *b, uint32_t *out, h5_error *err)
{
    *out = 0;
    if (b->at >= b->n)
        return wrong(err, "client data are too short");
    *out = b->value[b->at++];
    return H5_OK;
}

/* Places the precision bits of a number, byte by byte from the highest. */
static int number(nbit *b, uint8_t *out, size_t room, h5_error *err)
{
    uint32_t size, order, precision, offset;
    H5_TRY(take(b, &size, err));
    H5_TRY(take(b, &order, err));
    H5_TRY(take(b, &precision, err));
    H5_TRY(take(b, &offset, err));
    if (size == 0 || size > room || order > 1 || precision == 0 ||
        (uint64_t)precision + offset > (uint64_t)size * 8)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "n-bit: number of %u bytes, order %u, %u bits from bit %u", (unsigned)size,
                       (unsigned)order, (unsigned)precision, (unsigned)offset);
    for (uint64_t top = (uint64_t)precision + offset; top > offset;) {
        uint64_t byte = (top - 1) / 8, low = byte * 8 > offset ? byte * 8 : offset;
        uint32_t v = h5_bits_get(&b->bits, (unsigned)(top - low)) << low % 8;
        out[order ? size - 1 - byte : byte] |= (uint8_t)v;
        top = low;
    }
    return b->bits.bad ? wrong(err, "fewer bits than the elements need") : H5_OK;
}

/* Bytes that are stored whole. */
static int whole(nbit *b, uint8_t *out, uint32_t size, h5_error *err)
{
    for (uint32_t i = 0; i < size && !b->bits.bad; i++)
        out[i] = (uint8_t)h5_bits_get(&b->bits, 8);
    return b->bits.bad ? wrong(err, "fewer bits than the elements need") : H5_OK;
}

static int other(nbit *b, uint8_t *out, size_t room, h5_error *err)
{
    uint32_t size;
    H5_TRY(take(b, &size, err));
    if (size == 0 || size > room)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "n-bit: %u bytes of another type in %zu",
                       (unsigned)size, room);
    return whole(b, out, size, err);
}

static int element(nbit *b, uint8_t *out, size_t room, int depth, h5_error *err);

static int array(nbit *b, uint8_t *out, size_t room, int depth, h5_error *err)
{
    uint32_t size, cls, base;
    H5_TRY(take(b, &size, err));
    size_t type = b->at;
    H5_TRY(take(b, &cls, err));
    H5_TRY(take(b, &base, err)); // each class is followed by the size of its type
    if (size > room || base == 0 || base > size)
        return wrong(err, "an array does not fit");
    if (cls == OTHER)
        return whole(b, out, size, err);
    for (uint32_t at = 0; base <= size - at; at += base) {
        b->at = type;
        H5_TRY(element(b, out + at, base, depth, err));
    }
    // libhdf5 goes on at the size of the element type, not behind that type, when it writes and
    // when it reads: members behind such an array are stored under what it then takes for their
    // type.
    if (cls == ARRAY || cls == COMPOUND)
        b->at = type + 1;
    return H5_OK;
}

static int compound(nbit *b, uint8_t *out, size_t room, int depth, h5_error *err)
{
    uint32_t size, members, offset;
    H5_TRY(take(b, &size, err));
    H5_TRY(take(b, &members, err));
    if (size > room || members == 0)
        return wrong(err, "a compound does not fit");
    for (uint32_t i = 0; i < members; i++) {
        H5_TRY(take(b, &offset, err));
        if (offset >= size)
            return wrong(err, "a member lies outside its compound");
        H5_TRY(element(b, out + offset, size - offset, depth, err));
    }
    return H5_OK;
}

/* Decodes one element of the type at b->at into at most room zeroed bytes at out. */
static int element(nbit *b, uint8_t *out, size_t room, int depth, h5_error *err)
{
    uint32_t cls;
    if (depth >= H5_FILTER_NESTING_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "n-bit: type nested deeper than %s = %d",
                       "H5_FILTER_NESTING_MAX", H5_FILTER_NESTING_MAX);
    H5_TRY(take(b, &cls, err));
    switch (cls) {
    case NUMBER:
        return number(b, out, room, err);
    case ARRAY:
        return array(b, out, room, depth + 1, err);
    case COMPOUND:
        return compound(b, out, room, depth + 1, err);
    case OTHER:
        return other(b, out, room, err);
    default:
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "n-bit: type class %u", (unsigned)cls);
    }
}

static uint64_t nbit_most(const h5_filter *f, uint64_t n)
{
    const uint32_t *v = h5_filter_values(f);
    if (v[VALUE_RAW])
        return n;
    return f->nvalue > VALUE_TYPE + 1 ? (uint64_t)v[VALUE_COUNT] * v[VALUE_TYPE + 1] : 0;
}

static int nbit_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                       size_t *out_n, h5_error *err)
{
    nbit b = {.value = h5_filter_values(f), .n = f->nvalue, .bits = h5_bits_on(in, n)};
    if (b.value[VALUE_RAW]) {
        if (n > cap)
            return wrong(err, "more bytes than the chunk holds");
        if (n)
            memcpy(out, in, n);
        *out_n = n;
        return H5_OK;
    }
    if (b.n <= VALUE_TYPE + 1)
        return wrong(err, "client data are too short");
    uint64_t count = b.value[VALUE_COUNT], size = b.value[VALUE_TYPE + 1];
    if (size == 0 || count > cap / size)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "n-bit: %u elements of %u bytes for a chunk of %zu", (unsigned)count,
                       (unsigned)size, cap);
    *out_n = (size_t)(count * size);
    memset(out, 0, *out_n);
    for (uint64_t i = 0; i < count; i++) {
        b.at = VALUE_TYPE;
        H5_TRY(element(&b, out + i * size, (size_t)size, 0, err));
    }
    return H5_OK;
}

const h5_filter_row h5_filter_nbit = {
    .id = 5,
    .name = "n-bit",
    .nvalue = 3,
    .most = nbit_most,
    .decode = nbit_decode,
};
