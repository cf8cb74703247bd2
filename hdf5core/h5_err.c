/*
 * h5_err.c - the error record: the first failure is kept, with code, errno, file offset and text
 *
 * All failures of hdf5core are born in h5_fail, so a breakpoint there sees every one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "h5_base.h"

void h5_error_clear(h5_error *err)
{
    err->code = H5_OK;
    err->os_errno = 0;
    err->offset = H5_UNDEF;
    err->text[0] = 0;
}

int h5_fail(h5_error *err, int code, uint64_t offset, const char *fmt, ...)
{
    if (err && err->code == H5_OK) {
        int os = code == H5_IO ? errno : 0;
        err->code = code;
        err->os_errno = os;
        err->offset = offset;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        // Names and paths in the text may hold anything; the record promises one line.
        for (char *c = err->text; *c; c++)
            if ((unsigned char)*c < ' ')
                *c = '?';
    }
    return code;
}

int h5_fail_as(h5_error *err, const h5_error *from)
{
    if (err && err->code == H5_OK)
        *err = *from;
    return from->code;
}

const char *h5_code_name(int code)
{
    switch (code) {
    case H5_OK:
        return "ok";
    case H5_NOMEM:
        return "out of memory";
    case H5_IO:
        return "input/output";
    case H5_FORMAT:
        return "file format";
    case H5_UNSUPPORTED:
        return "unsupported";
    case H5_NOTFOUND:
        return "not found";
    case H5_MISUSE:
        return "misuse";
    case H5_LIMIT:
        return "limit exceeded";
    default:
        return "unknown code";
    }
}
