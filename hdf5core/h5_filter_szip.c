/*
 * h5_filter_szip.c - szip: Rice coding of CCSDS 121.0-B as HDF5 uses it
 *
 * FORMAT   CCSDS 121.0-B-2, Lossless Data Compression, sections 3 to 5; what szip does around it is
 *          from the documentation of libaec (szip compatibility) and of H5Pset_szip
 *   client data: options (16 most significant byte first, 32 nearest neighbour) | pixels a block |
 *                bits a pixel | pixels a scanline
 *   chunk: decoded bytes 4 LE | string of bits, most significant first: the scanlines one after
 *          the other, each a reference sample interval of its own
 *     block: option identifier, of 3, 4, 5 bits for up to 8, 16, 32 bits a pixel
 *       all ones      the pixels as they are
 *       k + 1         each pixel's upper part in unary, then the k lower bits of each
 *       0, then 1     second extension: pairs of pixels as one unary number
 *       0, then 0     unary: that many blocks of zeros, less 1; 4 means up to the end of the
 *                     segment of 64 blocks or of the scanline, larger numbers count one less
 *     With nearest neighbour the first pixel of a scanline is stored as it is behind the first
 *     identifier, and all others are mapped differences from the one before.
 *   A scanline that is no whole number of blocks is padded. Pixels of 32 and 64 bits are coded as
 *   all first bytes, then all second bytes, ..., with 8 bits a pixel. A pixel takes 1, 2, 4 bytes.
 *
 * ERRORS   H5_FORMAT; H5_NOMEM
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { VALUE_OPTIONS, VALUE_BLOCK, VALUE_BITS, VALUE_LINE, NVALUE };
enum { OPTION_MSB = 16, OPTION_NEIGHBOUR = 32 };
enum { BLOCK_MAX = 32, LINE_BLOCKS_MAX = 128, SEGMENT = 64, TO_SEGMENT_END = 5 };

typedef struct szip {
    h5_bits in;
    unsigned bits, id_bits; /* of a pixel, of an option identifier */
    uint32_t max;           /* the largest pixel */
    unsigned block, blocks; /* pixels a block, blocks a scanline */
    uint32_t line;          /* pixels of a scanline that are kept */
    int neighbour;
    uint32_t pixel[BLOCK_MAX * LINE_BLOCKS_MAX]; /* a scanline */
} szip;

static int wrong(h5_error *err, const char *what)
{
    return h5_fail(err, H5_FORMAT, H5_UNDEF, "szip: %s", what);
}

/* The pixels of a block from the first-th on, split into unary and k lower bits. */
static int split(szip *s, uint32_t *p, unsigned first, unsigned k)
{
    for (unsigned i = first; i < s->block; i++) {
        uint64_t upper = h5_bits_unary(&s->in);
        if (upper > s->max >> k)
            return 0;
        p[i] = (uint32_t)upper << k;
    }
    for (unsigned i = first; k > 0 && i < s->block; i++)
        p[i] |= h5_bits_get(&s->in, k);
    return 1;
}

/* Pairs of pixels: their sum is the largest t with t (t + 1) / 2 <= m, the second is the rest. */
static int pairs(szip *s, uint32_t *p, unsigned first)
{
    for (unsigned i = 0; i < s->block; i += 2) {
        uint64_t m = h5_bits_unary(&s->in);
        uint32_t sum = 0;
        while ((uint64_t)(sum + 1) * (sum + 2) / 2 <= m)
            sum++;
        uint32_t second = (uint32_t)(m - (uint64_t)sum * (sum + 1) / 2);
        if (sum - second > s->max || second > s->max)
            return 0;
        if (i >= first)
            p[i] = sum - second;
        p[i + 1] = second;
    }
    return 1;
}

/* Blocks of zeros from block at on; gives their number, 0 for one that cannot be. */
static unsigned zeros(szip *s, unsigned at, unsigned first)
{
    uint64_t n = h5_bits_unary(&s->in) + 1;
    unsigned left = s->blocks - at;
    if (n == TO_SEGMENT_END) {
        n = SEGMENT - at % SEGMENT;
        n = n < left ? n : left;
    } else if (n > TO_SEGMENT_END) {
        n--;
    }
    if (n > left)
        return 0;
    uint32_t *p = s->pixel + (size_t)at * s->block;
    memset(p + first, 0, ((size_t)n * s->block - first) * sizeof *p);
    return (unsigned)n;
}

/* Decodes the block at `at`; gives the number of blocks that this was, 0 for damage. */
static unsigned block(szip *s, unsigned at)
{
    uint32_t *p = s->pixel + (size_t)at * s->block;
    unsigned id = h5_bits_get(&s->in, s->id_bits), first = at == 0 && s->neighbour, good = 1;
    if (id == (1u << s->id_bits) - 1) {
        for (unsigned i = 0; i < s->block; i++)
            p[i] = h5_bits_get(&s->in, s->bits);
        return !s->in.bad;
    }
    unsigned extension = id == 0 ? h5_bits_get(&s->in, 1) : 0;
    if (first)
        p[0] = h5_bits_get(&s->in, s->bits);
    if (id > 0)
        good = id - 1 <= s->bits && split(s, p, first, id - 1);
    else if (extension)
        good = pairs(s, p, first);
    else
        good = zeros(s, at, first);
    return s->in.bad ? 0 : good;
}

/* Undoes the mapping of differences: small numbers are alternately up and down, what exceeds the
** nearer end of the range is one-sided. */
static void neighbours(szip *s, uint32_t n)
{
    uint32_t last = s->pixel[0], middle = s->max / 2 + 1;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t d = s->pixel[i], half = (d >> 1) + (d & 1);
        uint32_t room = last < middle ? last : s->max - last;
        if (half <= room)
            last = d & 1 ? last - half : last + half;
        else
            last = last < middle ? d : s->max - d;
        s->pixel[i] = last & s->max;
    }
}

/* Decodes one scanline of which n pixels are wanted. */
static int scanline(szip *s, uint32_t n, h5_error *err)
{
    for (unsigned at = 0; (uint64_t)at * s->block < n;) {
        unsigned made = block(s, at);
        if (made == 0)
            return wrong(err, s->in.bad ? "the bits end early" : "a block that cannot be");
        at += made;
    }
    if (s->neighbour)
        neighbours(s, n);
    return H5_OK;
}

static int scanlines(szip *s, int big_endian, uint8_t *out, size_t bytes, h5_error *err)
{
    unsigned width = s->bits > 16 ? 4 : s->bits > 8 ? 2 : 1;
    if (bytes % width != 0)
        return wrong(err, "the size is no whole number of pixels");
    for (size_t left = bytes / width; left > 0;) {
        uint32_t n = left < s->line ? (uint32_t)left : s->line;
        H5_TRY(scanline(s, n, err));
        for (uint32_t i = 0; i < n; i++, out += width)
            for (unsigned k = 0; k < width; k++)
                out[big_endian ? width - 1 - k : k] = (uint8_t)(s->pixel[i] >> 8 * k);
        left -= n;
    }
    return H5_OK;
}

static int szip_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                       size_t *out_n, h5_error *err)
{
    int rc = H5_OK;
    uint8_t *bytes = NULL;
    const uint32_t *v = h5_filter_values(f);
    uint32_t pixels = v[VALUE_BLOCK], bits = v[VALUE_BITS], line = v[VALUE_LINE];
    size_t planes = bits == 32 || bits == 64 ? bits / 8 : 1;
    h5_cur c = h5_cur_on(in, n);
    size_t size = h5_cur_u32(&c);
    if (c.bad || size > cap)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "szip: %zu bytes for a chunk of %zu", size, cap);
    if (pixels < 2 || pixels > BLOCK_MAX || pixels % 2 || bits == 0 || (bits > 24 && planes == 1) ||
        line == 0 || line > pixels * LINE_BLOCKS_MAX || size % planes != 0)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "szip: %u bits a pixel, %u pixels a block, %u a scanline", (unsigned)bits,
                       (unsigned)pixels, (unsigned)line);
    szip *s = h5_malloc(sizeof *s);
    if (planes > 1)
        bytes = h5_malloc(size);
    if (!s || (planes > 1 && !bytes)) {
        rc = h5_fail_nomem(err, "szip");
        goto done;
    }
    s->in = h5_bits_on(c.p, c.left);
    s->bits = planes > 1 ? 8 : bits;
    s->id_bits = s->bits > 16 ? 5 : s->bits > 8 ? 4 : 3;
    s->max = (uint32_t)(((uint64_t)1 << s->bits) - 1);
    s->block = pixels;
    s->blocks = (line + pixels - 1) / pixels;
    s->line = line;
    s->neighbour = (v[VALUE_OPTIONS] & OPTION_NEIGHBOUR) != 0;
    H5_TRY_DONE(scanlines(s, (v[VALUE_OPTIONS] & OPTION_MSB) != 0, bytes ? bytes : out, size, err));
    if (bytes)
        h5_unshuffle(bytes, out, size / planes, planes);
    *out_n = size;
done:
    h5_free(s);
    h5_free(bytes);
    return rc;
}

const h5_filter_row h5_filter_szip = {
    .id = 4,
    .name = "szip",
    .nvalue = NVALUE,
    .expansion =
        8192, // 64 blocks of 32 four-byte pixels in 11 bits, and more blocks than that to a
              // scanline need more bits
    .decode = szip_decode,
};
