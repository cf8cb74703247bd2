/*
 * h5_conv.c - byte order of numbers, and their values
 *
 * TESTS    t_h5_object.c (attributes), t_h5_dataset.c (reads)
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

void h5_conv_native(const h5_type *t, void *p, size_t n)
{
    if (t->cls != H5_CLASS_STRING && t->size > 1 && t->big_endian != machine_big_endian())
        reverse_each(p, n, t->size);
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
