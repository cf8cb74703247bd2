/*
 * h5_conv.c - from the file's byte order to the machine's
 *
 * A type is walked down to its numbers once for each element; where it is a plain number the loop
 * over the elements is the inner one. Integers that do not fill their bytes are spread over them,
 * so
 * that what comes out is always a number of the machine.
 *
 * TESTS    t_h5_object.c (attributes), t_h5_dataset.c (reads), t_h5_value.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_conv.h"

static int machine_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static void reverse_each(uint8_t *p, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++, p += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            uint8_t t = p[a];
            p[a] = p[b];
            p[b] = t;
        }
}

/* Words of two bytes, the most significant first, into little-endian order. */
static void from_vax(uint8_t *p, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++, p += size)
        for (size_t a = 0, b = size - 2; a < b; a += 2, b -= 2) {
            uint8_t t[2] = {p[a], p[a + 1]};
            memcpy(p + a, p + b, 2);
            memcpy(p + b, t, 2);
        }
}

/* Integers in some of their bits become integers in all of them. */
static void widen(const h5_type *t, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++, p += t->size) {
        uint64_t v;
        if (!h5_value_bits(t, p, &v))
            return;
        for (uint32_t k = 0; k < t->size; k++)
            p[machine_big_endian() ? t->size - 1 - k : k] = (uint8_t)(k < 8 ? v >> 8 * k
                                                                      : t->is_signed && v >> 63
                                                                          ? 0xFF
                                                                          : 0);
    }
}

static void number(const h5_type *t, uint8_t *p, size_t n)
{
    int part = t->precision != 0 && t->precision != 8 * (uint64_t)t->size;
    if (part && t->cls != H5_CLASS_FLOAT && t->cls != H5_CLASS_BITFIELD) {
        widen(t, p, n);
        return;
    }
    if (t->vax)
        from_vax(p, n, t->size);
    if (t->size > 1 && (t->big_endian != machine_big_endian()))
        reverse_each(p, n, t->size);
}

void h5_conv_native(const h5_type *t, void *p, size_t n)
{
    uint8_t *at = p;
    switch (t->cls) {
    case H5_CLASS_INTEGER:
    case H5_CLASS_FLOAT:
    case H5_CLASS_BITFIELD:
    case H5_CLASS_ENUM:
        number(t, p, n);
        break;
    case H5_CLASS_COMPLEX:
        number(t->base, p, 2 * n);
        break;
    case H5_CLASS_ARRAY:
        h5_conv_native(t->base, p, n * (t->size / t->base->size));
        break;
    case H5_CLASS_COMPOUND:
        for (size_t i = 0; i < n; i++, at += t->size)
            for (uint32_t k = 0; k < t->nmember; k++)
                h5_conv_native(t->member[k].type, at + t->member[k].offset, 1);
        break;
    default: // strings, opaque bytes, and what points into a heap
        break;
    }
}

uint64_t h5_conv_bits(const h5_type *t, const uint8_t *p)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < t->size; i++)
        v = v << 8 | p[t->big_endian ? i : t->size - 1 - i];
    if (t->cls == H5_CLASS_INTEGER && t->is_signed && t->size < 8 && v >> (8 * t->size - 1))
        v |= UINT64_MAX << 8 * t->size;
    return v;
}
