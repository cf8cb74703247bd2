/*
 * vec_ivf.c - opening, checking and renumbering an index of lists; tails
 *
 * TRUST     Nothing in an image is believed. The header's numbers give the places of all sections,
 *           which must fill the image exactly; lists must name blocks and cells that are there; a
 *           sum covers what opening reads. Rows, codes, cells and owners are bounded where they are
 *           used, since summing them would read the whole image; vec_ivf_check does.
 *
 * ERRORS    VEC_FORMAT, VEC_NOMEM, VEC_LIMIT
 * THREADS   an open index and an open tail are constant
 * TESTS     t_vec_ivf.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_ivf.h"

#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_pq.h"

#define IMAGE_MAGIC   0x49636576u /* "vecI" */
#define TAIL_MAGIC    0x54636576u /* "vecT" */
#define VERSION       1
#define AT_TUNE       80
#define AT_HEADER_SUM 504
#define BYTES_MAX     ((uint64_t)1 << 40)

const double vec_tune_recall[TUNE_R] = {0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999};

/* ---------------------------------------------------------------------------------------- bytes */

static float get_f32(const uint8_t *p)
{
    uint32_t bits = vec_get32(p);
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static void put_f32(uint8_t *p, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    vec_put32(p, bits);
}

uint64_t vec_ivf_sum(const uint8_t *p, size_t n)
{
    uint64_t s[4] = {1, 2, 3, 4}, tail = 0;
    size_t i = 0;

    for (; n - i >= 32; i += 32)
        for (int j = 0; j < 4; j++) {
            s[j] = (s[j] ^ vec_get64(p + i + 8 * (size_t)j)) * 0x9e3779b97f4a7c15u;
            s[j] ^= s[j] >> 29;
        }
    for (; i < n; i++)
        tail = (tail ^ p[i]) * 0x100000001b3u + 1;
    for (int j = 0; j < 4; j++) {
        tail = (tail ^ s[j]) * 0xbf58476d1ce4e5b9u;
        tail ^= tail >> 32;
    }
    return tail ^ n;
}

/* --------------------------------------------------------------------------------------- layout */

static uint64_t section(uint64_t *end, uint64_t bytes)
{
    uint64_t at = (*end + 63) / 64 * 64;

    *end = at + bytes;
    return at;
}

int vec_ivf_lay_out(int kind, int metric, size_t dim, uint32_t nlist, uint32_t nblock,
                    uint32_t ncell, vec_ivf_layout *out)
{
    int codes = kind != VEC_IVF, squares = codes && metric == VEC_L2;
    uint64_t end = VEC_IVF_HEADER, places = (uint64_t)nblock * VEC_PQ_BLOCK;

    memset(out, 0, sizeof *out);
    if (dim == 0 || dim > VEC_PLANE_DIM_MAX)
        return VEC_LIMIT;
    out->lists = (size_t)section(&end, (uint64_t)nlist * 16);
    out->centroids = (size_t)section(&end, (uint64_t)nlist * vec_plane_stride(dim));
    out->book = (size_t)section(&end, codes ? vec_pq_book_floats(dim) * 4 : 0);
    out->owner = (size_t)section(&end, (uint64_t)nblock * 4);
    out->rows = (size_t)section(&end, places * 4);
    out->square = (size_t)section(&end, squares ? places * 4 : 0);
    out->cells = (size_t)section(&end, (uint64_t)ncell * 8);
    out->codes = (size_t)section(&end, codes ? nblock * (uint64_t)vec_pq_block_bytes(dim) : 0);
    out->end = (size_t)end;
    return end <= BYTES_MAX && end <= SIZE_MAX ? VEC_OK : VEC_LIMIT;
}

static void put_tune(uint8_t *p, const vec_tune *t)
{
    for (int h = 0; h < TUNE_H; h++, p += 4)
        put_f32(p, t->far[h]);
    for (int i = 0; i < TUNE_R * TUNE_H; i++, p += 4)
        put_f32(p, t->reach[i / TUNE_H][i % TUNE_H]);
    for (int k = 0; k < TUNE_K; k++)
        for (int r = 0; r < TUNE_R; r++, p += 4)
            put_f32(p, t->probes[k][r]);
    for (int r = 0; r < TUNE_R; r++, p += 4)
        put_f32(p, t->margin[r]);
    vec_put32(p, t->queries);
    put_f32(p + 4, t->recall);
    put_f32(p + 8, t->looked);
}

static void get_tune(const uint8_t *p, vec_tune *t)
{
    for (int h = 0; h < TUNE_H; h++, p += 4)
        t->far[h] = get_f32(p);
    for (int i = 0; i < TUNE_R * TUNE_H; i++, p += 4)
        t->reach[i / TUNE_H][i % TUNE_H] = get_f32(p);
    for (int k = 0; k < TUNE_K; k++)
        for (int r = 0; r < TUNE_R; r++, p += 4)
            t->probes[k][r] = get_f32(p);
    for (int r = 0; r < TUNE_R; r++, p += 4)
        t->margin[r] = get_f32(p);
    t->queries = vec_get32(p);
    t->recall = get_f32(p + 4);
    t->looked = get_f32(p + 8);
}

void vec_ivf_seal(uint8_t *b, const vec_ivf *ix)
{
    memset(b, 0, VEC_IVF_HEADER);
    vec_put32(b, IMAGE_MAGIC);
    vec_put32(b + 4, VERSION);
    vec_put64(b + 8, ix->at.end);
    vec_put32(b + 16, (uint32_t)ix->kind);
    vec_put32(b + 20, (uint32_t)ix->metric);
    vec_put32(b + 24, (uint32_t)ix->dim);
    vec_put32(b + 28, ix->nlist);
    vec_put64(b + 32, ix->nrow);
    vec_put64(b + 40, ix->nin);
    vec_put32(b + 48, ix->nblock);
    vec_put32(b + 52, ix->ncell);
    put_f32(b + 56, ix->scale);
    put_f32(b + 60, ix->radius);
    vec_put64(b + 64, vec_ivf_sum(b + ix->at.lists, ix->at.owner - ix->at.lists));
    vec_put64(b + 72, vec_ivf_sum(b + ix->at.owner, ix->at.end - ix->at.owner));
    put_tune(b + AT_TUNE, &ix->tune);
    vec_put64(b + AT_HEADER_SUM, vec_ivf_sum(b, AT_HEADER_SUM));
}

/* -------------------------------------------------------------------------------------- opening */

static int read_header(const uint8_t *b, size_t n, vec_ivf *ix)
{
    uint32_t kind, metric;

    if (n < VEC_IVF_HEADER || vec_get32(b) != IMAGE_MAGIC || vec_get32(b + 4) != VERSION ||
        vec_get64(b + 8) != n || vec_get64(b + AT_HEADER_SUM) != vec_ivf_sum(b, AT_HEADER_SUM))
        return VEC_FORMAT;
    kind = vec_get32(b + 16);
    metric = vec_get32(b + 20);
    ix->bytes = b;
    ix->dim = vec_get32(b + 24);
    ix->nlist = vec_get32(b + 28);
    ix->nrow = vec_get64(b + 32);
    ix->nin = vec_get64(b + 40);
    ix->nblock = vec_get32(b + 48);
    ix->ncell = vec_get32(b + 52);
    ix->scale = get_f32(b + 56);
    ix->radius = get_f32(b + 60);
    if (kind < VEC_IVF || kind > VEC_RAIRS || metric > VEC_IP || ix->nlist == 0 ||
        ix->nrow > UINT32_MAX || !(ix->scale > 0 && ix->scale < INFINITY))
        return VEC_FORMAT;
    ix->kind = (int)kind;
    ix->metric = (int)metric;
    get_tune(b + AT_TUNE, &ix->tune);
    if (vec_ivf_lay_out(ix->kind, ix->metric, ix->dim, ix->nlist, ix->nblock, ix->ncell, &ix->at) !=
        VEC_OK)
        return VEC_FORMAT;
    return ix->at.end == n ? VEC_OK : VEC_FORMAT;
}

static int read_lists(vec_ivf *ix)
{
    ix->list = vec_alloc_array(ix->nlist, sizeof *ix->list);
    if (!ix->list)
        return VEC_NOMEM;
    for (uint32_t i = 0; i < ix->nlist; i++) {
        const uint8_t *p = ix->bytes + ix->at.lists + (size_t)16 * i;
        vec_ivf_list l = {vec_get32(p), vec_get32(p + 4), vec_get32(p + 8), vec_get32(p + 12)};

        if (l.block > ix->nblock || l.nblock > ix->nblock - l.block || l.cell > ix->ncell ||
            l.ncell > ix->ncell - l.cell)
            return VEC_FORMAT;
        ix->list[i] = l;
    }
    return VEC_OK;
}

static int read_book(vec_ivf *ix)
{
    size_t n = vec_pq_book_floats(ix->dim);

    if (ix->kind == VEC_IVF)
        return VEC_OK;
    ix->book = vec_alloc_array(n, sizeof *ix->book);
    if (!ix->book)
        return VEC_NOMEM;
    for (size_t i = 0; i < n; i++)
        ix->book[i] = get_f32(ix->bytes + ix->at.book + 4 * i);
    return VEC_OK;
}

int vec_ivf_open(const uint8_t *bytes, size_t n, vec_ivf **out)
{
    vec_ivf *ix = vec_alloc_zero(1, sizeof *ix);
    int rc;

    *out = NULL;
    if (!ix)
        return VEC_NOMEM;
    rc = read_header(bytes, n, ix);
    if (rc == VEC_OK &&
        vec_get64(bytes + 64) != vec_ivf_sum(bytes + ix->at.lists, ix->at.owner - ix->at.lists))
        rc = VEC_FORMAT;
    rc = rc ? rc : read_lists(ix);
    rc = rc ? rc : read_book(ix);
    rc = rc ? rc : vec_centroids_open(bytes + ix->at.centroids, ix->nlist, ix->dim, &ix->centroids);
    if (rc < 0) {
        vec_ivf_close(ix);
        return rc;
    }
    *out = ix;
    return VEC_OK;
}

void vec_ivf_close(vec_ivf *ix)
{
    if (!ix)
        return;
    vec_centroids_close(&ix->centroids);
    vec_free(ix->list);
    vec_free(ix->book);
    vec_free(ix);
}

int vec_ivf_check(const vec_ivf *ix)
{
    const uint8_t *b = ix->bytes;
    uint64_t in = 0;

    if (vec_get64(b + 72) != vec_ivf_sum(b + ix->at.owner, ix->at.end - ix->at.owner))
        return VEC_FORMAT;
    for (size_t i = 0; i < (size_t)ix->nblock * VEC_PQ_BLOCK; i++) {
        uint32_t row = vec_get32(b + ix->at.rows + 4 * i);

        if (row != VEC_IVF_NO_ROW && row >= ix->nrow)
            return VEC_FORMAT;
        in += row != VEC_IVF_NO_ROW;
    }
    for (uint32_t i = 0; i < ix->nblock; i++)
        if (vec_get32(b + ix->at.owner + 4 * (size_t)i) >= ix->nlist)
            return VEC_FORMAT;
    return in == ix->nin ? VEC_OK : VEC_FORMAT;
}

void vec_ivf_get_info(const vec_ivf *ix, vec_ivf_info *out)
{
    *out = (vec_ivf_info){.kind = ix->kind,
                          .metric = ix->metric,
                          .dim = ix->dim,
                          .nrow = ix->nrow,
                          .vectors = ix->nin,
                          .lists = ix->nlist,
                          .bytes = ix->at.end,
                          .probes = vec_tune_probes(&ix->tune, 0.99, 10, ix->nlist),
                          .queries = ix->tune.queries,
                          .recall = (double)ix->tune.recall,
                          .looked = (double)ix->tune.looked};
}

uint64_t vec_ivf_places(const vec_ivf *ix)
{
    return (uint64_t)ix->nblock * VEC_PQ_BLOCK;
}

uint32_t vec_ivf_row(const vec_ivf *ix, uint64_t place)
{
    return vec_get32(ix->bytes + ix->at.rows + 4 * (size_t)place);
}

float vec_ivf_space(const vec_ivf *ix, const float *x, float norm, float *y)
{
    float by = ix->metric == VEC_COSINE ? norm : ix->scale;
    double f = by > 0 ? 1 / (double)by : 0;

    for (size_t i = 0; i < ix->dim; i++)
        y[i] = (float)((double)x[i] * f);
    return vec_norm_f32(y, ix->dim);
}

int vec_ivf_assign(const vec_ivf *ix, const float *x, float norm, uint32_t *list)
{
    vec_centroid_query s;
    float *y = vec_alloc_array(ix->dim, sizeof *y);
    int rc = y ? vec_centroid_query_new(&ix->centroids, &s) : VEC_NOMEM;

    *list = 0;
    if (rc == VEC_OK) {
        float length = vec_ivf_space(ix, x, norm, y);

        if (length < INFINITY) {
            vec_centroid_scores(&ix->centroids, y, length, &s);
            *list = (uint32_t)vec_centroid_best(&s, ix->nlist);
        }
        vec_centroid_query_free(&s);
    }
    vec_free(y);
    return rc;
}

int vec_ivf_renumber(const vec_ivf *ix, const uint64_t *live, uint8_t **out, size_t *n)
{
    vec_ivf head = *ix;
    uint32_t *number = vec_alloc_array((size_t)ix->nrow + 1, sizeof *number);
    uint8_t *b = vec_alloc(ix->at.end);
    uint32_t next = 0;

    *out = NULL;
    *n = 0;
    if (!number || !b) {
        vec_free(number);
        vec_free(b);
        return VEC_NOMEM;
    }
    for (uint64_t r = 0; r < ix->nrow; r++)
        number[r] = live[r >> 6] >> (r & 63) & 1 ? next++ : VEC_IVF_NO_ROW;
    memcpy(b, ix->bytes, ix->at.end);
    head.nrow = next;
    head.nin = 0;
    for (size_t i = 0; i < (size_t)ix->nblock * VEC_PQ_BLOCK; i++) {
        uint32_t row = vec_get32(b + ix->at.rows + 4 * i);

        row = row < ix->nrow ? number[row] : VEC_IVF_NO_ROW;
        head.nin += row != VEC_IVF_NO_ROW;
        vec_put32(b + ix->at.rows + 4 * i, row);
    }
    vec_ivf_seal(b, &head);
    vec_free(number);
    *out = b;
    *n = ix->at.end;
    return VEC_OK;
}

/* ---------------------------------------------------------------------------------------- tails */

static int by_list(const void *a, const void *b)
{
    const vec_pair *x = a, *y = b;

    if (x->list != y->list)
        return x->list < y->list ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

int vec_tail_image(vec_pair *pairs, size_t n, uint8_t **bytes, size_t *size)
{
    uint8_t *b = n <= (SIZE_MAX - VEC_TAIL_HEADER) / 8 ? vec_alloc(VEC_TAIL_HEADER + 8 * n) : NULL;
    uint32_t first = n ? UINT32_MAX : 0, last = 0;

    *bytes = b;
    *size = b ? VEC_TAIL_HEADER + 8 * n : 0;
    if (!b)
        return VEC_NOMEM;
    qsort(pairs, n, sizeof *pairs, by_list);
    for (size_t i = 0; i < n; i++) {
        vec_put32(b + VEC_TAIL_HEADER + 4 * i, pairs[i].list);
        vec_put32(b + VEC_TAIL_HEADER + 4 * (n + i), pairs[i].row);
        first = pairs[i].row < first ? pairs[i].row : first;
        last = pairs[i].row > last ? pairs[i].row : last;
    }
    vec_put32(b, TAIL_MAGIC);
    vec_put32(b + 4, VERSION);
    vec_put64(b + 8, n);
    vec_put64(b + 16, first);
    vec_put64(b + 24, last);
    vec_put64(b + 32, vec_ivf_sum(b + VEC_TAIL_HEADER, 8 * n));
    vec_put64(b + 40, vec_ivf_sum(b, 40));
    return VEC_OK;
}

int vec_tail_open(const uint8_t *b, size_t n, vec_tail **out)
{
    vec_tail *t;

    *out = NULL;
    if (n < VEC_TAIL_HEADER || vec_get32(b) != TAIL_MAGIC || vec_get32(b + 4) != VERSION ||
        vec_get64(b + 8) != (n - VEC_TAIL_HEADER) / 8 || (n - VEC_TAIL_HEADER) % 8 ||
        vec_get64(b + 40) != vec_ivf_sum(b, 40) || vec_get64(b + 24) > UINT32_MAX)
        return VEC_FORMAT;
    t = vec_alloc(sizeof *t);
    if (!t)
        return VEC_NOMEM;
    *t = (vec_tail){b, vec_get64(b + 8), vec_get64(b + 16), vec_get64(b + 24)};
    *out = t;
    return VEC_OK;
}

void vec_tail_close(vec_tail *t)
{
    vec_free(t);
}

uint64_t vec_tail_count(const vec_tail *t)
{
    return t->n;
}

uint64_t vec_tail_first(const vec_tail *t)
{
    return t->first;
}

uint64_t vec_tail_last(const vec_tail *t)
{
    return t->last;
}

vec_pair vec_tail_pair(const vec_tail *t, uint64_t i)
{
    const uint8_t *p = t->bytes + VEC_TAIL_HEADER;

    return (vec_pair){vec_get32(p + 4 * i), vec_get32(p + 4 * (t->n + i))};
}

int vec_tail_check(const vec_tail *t, size_t nlist)
{
    vec_pair before = {0, 0};

    if (vec_get64(t->bytes + 32) != vec_ivf_sum(t->bytes + VEC_TAIL_HEADER, 8 * (size_t)t->n))
        return VEC_FORMAT;
    for (uint64_t i = 0; i < t->n; i++) {
        vec_pair p = vec_tail_pair(t, i);

        if (p.list >= nlist || p.row < t->first || p.row > t->last ||
            (i && by_list(&before, &p) >= 0))
            return VEC_FORMAT;
        before = p;
    }
    return VEC_OK;
}

/* --------------------------------------------------------------------------------------- tuning */

static double between(double a, double b, double x)
{
    return a + (b - a) * x;
}

/* Where recall lies in the table: the entry below, and how far on from it by the logarithm of what
 * is missed. */
static int place(double recall, double *part)
{
    int r = 0;
    double miss = fmax(1 - recall, 1 - vec_tune_recall[TUNE_R - 1]);

    while (r + 2 < TUNE_R && 1 - vec_tune_recall[r + 1] > miss)
        r++;
    *part = log((1 - vec_tune_recall[r]) / miss) /
            log((1 - vec_tune_recall[r]) / (1 - vec_tune_recall[r + 1]));
    *part = fmin(fmax(*part, 0), 1);
    return r;
}

size_t vec_tune_probes(const vec_tune *t, double recall, double k, size_t nlist)
{
    double part, log_k = log10(fmax(k, 10) / 10), at[TUNE_K], n;
    int r = place(recall, &part);

    for (int i = 0; i < TUNE_K; i++)
        at[i] = fmax(between((double)t->probes[i][r], (double)t->probes[i][r + 1], part), 1);
    n = ceil(at[0] * pow(fmax(at[1] / at[0], 1), log_k));
    return n < (double)nlist ? (size_t)n : nlist; // NaN: all
}

float vec_tune_margin(const vec_tune *t, double recall)
{
    double part;
    int r = place(recall, &part);

    return (float)between((double)t->margin[r], (double)t->margin[r + 1], part);
}

void vec_tune_reach(const vec_tune *t, double recall, float *reach)
{
    double part;
    int r = place(recall, &part);

    for (int h = 0; h < TUNE_H; h++)
        reach[h] = (float)between((double)t->reach[r][h], (double)t->reach[r + 1][h], part);
}

float vec_tune_reach_at(const vec_tune *t, const float *reach, float far)
{
    int h = 0;

    while (h + 1 < TUNE_H && far > t->far[h + 1])
        h++;
    if (!(far > t->far[0]))
        return reach[0];
    if (h + 1 == TUNE_H)
        return reach[h];
    return reach[h] + (reach[h + 1] - reach[h]) * (far - t->far[h]) /
                          (t->far[h + 1] - t->far[h]); // the divisor is above 0: far is beyond it
}

static float wanted_square(const vec_ivf *ix, float length, float t)
{
    return length * length + (ix->metric == VEC_COSINE ? 1 + 2 * t : t);
}

float vec_ivf_far(const vec_ivf *ix, float length, float t)
{
    float square = wanted_square(ix, length, t);

    if (!(ix->radius > 0))
        return 0;
    if (ix->metric == VEC_IP)
        return t / ((length > 0 ? length : 1) * ix->radius);
    return sqrtf(square > 0 ? square : 0) / ix->radius;
}

/* With c the centroid and r = y - c: q.y = q.c + q.r, and |q - y|^2 = |q - c|^2 + |r|^2 -
 * 2 (q - c).r. Solved for the cosine between q - c (inner product: q) and r that brings y as near
 * as the key says, |r| being the radius. */
float vec_ivf_needed(const vec_ivf *ix, float length, float square, float dot, float t)
{
    float wanted = wanted_square(ix, length, t);

    if (!(ix->radius > 0))
        return ix->metric == VEC_IP ? -t - dot : square - wanted;
    if (ix->metric == VEC_IP)
        return (-t - dot) / ((length > 0 ? length : 1) * ix->radius);
    return (square + ix->radius * ix->radius - wanted) /
           (2 * sqrtf(square > 1e-12f ? square : 1e-12f) * ix->radius);
}
