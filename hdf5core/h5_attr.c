/*
 * h5_attr.c - values of scalar attributes
 *
 * An attribute of one element counts as a scalar whatever its rank, since some writers make
 * one-element arrays.
 *
 * ERRORS   H5_NOTFOUND; H5_FORMAT another class, more than one element, a value that does not fit;
 *          H5_UNSUPPORTED a type that is not read here
 * TESTS    t_h5_object.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_conv.h"
#include "h5_object.h"

static int find_scalar(const h5_object *o, const char *name, const h5_attr **out, h5_error *err)
{
    const h5_attr *a = *out = h5_object_attr(o, name);
    if (!a)
        return h5_fail(err, H5_NOTFOUND, o->oh.addr, "attribute %s: none of this name", name);
    if (a->type.cls == H5_CLASS_OTHER)
        return h5_fail(err, H5_UNSUPPORTED, o->oh.addr, "attribute %s: its type or shape", name);
    if (a->bytes != a->type.size)
        return h5_fail(err, H5_FORMAT, o->oh.addr, "attribute %s: not a single value", name);
    return H5_OK;
}

int h5_attr_int(const h5_object *o, const char *name, int64_t *out, h5_error *err)
{
    const h5_attr *a;
    *out = 0;
    H5_TRY(find_scalar(o, name, &a, err));
    if (a->type.cls != H5_CLASS_INTEGER)
        return h5_fail(err, H5_FORMAT, o->oh.addr, "attribute %s: not an integer", name);
    uint64_t v = h5_conv_bits(&a->type, a->data);
    if (!a->type.is_signed && v > INT64_MAX)
        return h5_fail(err, H5_FORMAT, o->oh.addr, "attribute %s: %" PRIu64 " does not fit", name,
                       v);
    memcpy(out, &v, sizeof *out);
    return H5_OK;
}

int h5_attr_real(const h5_object *o, const char *name, double *out, h5_error *err)
{
    const h5_attr *a;
    *out = 0;
    H5_TRY(find_scalar(o, name, &a, err));
    uint64_t v = h5_conv_bits(&a->type, a->data);
    if (a->type.cls == H5_CLASS_FLOAT && a->type.size == 8) {
        memcpy(out, &v, sizeof *out);
    } else if (a->type.cls == H5_CLASS_FLOAT) {
        uint32_t bits = (uint32_t)v;
        float single;
        memcpy(&single, &bits, sizeof single);
        *out = single;
    } else if (a->type.cls == H5_CLASS_INTEGER) {
        int64_t i;
        memcpy(&i, &v, sizeof i);
        *out = a->type.is_signed ? (double)i : (double)v;
    } else {
        return h5_fail(err, H5_FORMAT, o->oh.addr, "attribute %s: not a number", name);
    }
    return H5_OK;
}

int h5_attr_text(const h5_object *o, const char *name, char **out, h5_error *err)
{
    const h5_attr *a;
    *out = NULL;
    H5_TRY(find_scalar(o, name, &a, err));
    if (a->type.cls != H5_CLASS_STRING)
        return h5_fail(err, H5_FORMAT, o->oh.addr, "attribute %s: not a string", name);
    size_t n = 0;
    while (n < a->bytes && a->data[n])
        n++;
    while (a->type.str_pad == 2 && n > 0 && a->data[n - 1] == ' ')
        n--;
    char *s = h5_malloc(n + 1);
    if (!s)
        return h5_fail_nomem(err, "the text of an attribute");
    memcpy(s, a->data, n);
    s[n] = 0;
    *out = s;
    return H5_OK;
}
