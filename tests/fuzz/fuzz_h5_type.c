/*
 * fuzz_h5_type.c - any bytes as a datatype and elements of it
 *
 * The first byte tells where the type ends; what follows are elements, of which every reader of
 * values takes one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "fuzz.h"
#include "h5_conv.h"
#include "h5_msg.h"
#include "t_mend.h"

enum { ELEMENT_MOST = 4096 };

/* Every field of a compound, and what an array is made of. */
static void take(const h5_type *t, const uint8_t *p)
{
    uint64_t bits;
    double real;
    h5_value_bits(t, p, &bits);
    h5_value_real(t, p, &real);
    if (t->cls == H5_CLASS_STRING && h5_value_text(t, p) > t->size)
        abort();
    h5_value_enum(t, p);
    if (t->cls == H5_CLASS_ARRAY || t->cls == H5_CLASS_COMPLEX)
        take(t->base, p + t->size - t->base->size);
    for (uint32_t i = 0; t->cls == H5_CLASS_COMPOUND && i < t->nmember; i++)
        take(t->member[i].type, p + t->member[i].offset);
}

static void use(const h5_type *t, const uint8_t *p)
{
    h5_type wide = {.cls = H5_CLASS_INTEGER, .is_signed = 1, .size = 8, .precision = 64};
    uint8_t out[8], *copy = h5_malloc(t->size);
    h5_error err;
    h5_error_clear(&err);
    if (!h5_type_same(t, t))
        abort();
    h5_type_points(t);
    take(t, p);
    t_known(h5_retype(t, p, &wide, out, 1, &err));
    if (copy) {
        memcpy(copy, p, t->size);
        h5_conv_native(t, copy, 1);
    }
    h5_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    h5_arena arena = {0};
    h5_type t;
    h5_error err;
    h5_error_clear(&err);
    size_t n = size ? data[0] : 0;
    if (n >= size)
        return 0;
    uint8_t *type = h5_malloc(n ? n : 1);
    if (type) {
        memcpy(type, data + 1, n);
        h5_cur c = h5_cur_on(type, n);
        int rc = t_known(h5_type_parse(NULL, &c, 0, &arena, &t, &err));
        size_t left = size - 1 - n;
        uint8_t *p = rc == H5_OK && t.size <= ELEMENT_MOST ? h5_calloc(1, t.size) : NULL;
        if (p) {
            memcpy(p, data + 1 + n, left < t.size ? left : t.size);
            use(&t, p);
        }
        h5_free(p);
    }
    h5_arena_free(&arena);
    h5_free(type);
    return 0;
}
