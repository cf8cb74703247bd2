/*
 * vec_fuse.c - reciprocal-rank fusion of complete rankings
 *
 * A table from row to place in the result, four bytes a row: the lists are complete rankings, so
 * most rows are in one of them, and a hash table would cost more than it saves.
 *
 * ERRORS   VEC_NOMEM, VEC_LIMIT (more than 2^32 - 2 hits), VEC_MISUSE (a row not below nrow)
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_base.h"

int vec_fuse_rrf(const vec_list *lists, size_t nlist, double k, uint64_t nrow, vec_hit **out,
                 size_t *n)
{
    size_t total = 0, used = 0;
    vec_hit *hits = NULL;
    uint32_t *place = NULL; // place in hits + 1; 0 = not yet there
    int rc = VEC_NOMEM;

    *out = NULL;
    *n = 0;
    for (size_t l = 0; l < nlist; l++) {
        if (lists[l].n >= UINT32_MAX - total)
            return VEC_LIMIT;
        total += lists[l].n;
    }
    if (total > nrow)
        total = (size_t)nrow;
    if (nrow > SIZE_MAX / sizeof *place)
        return VEC_NOMEM;
    hits = vec_hits_alloc(total);
    place = vec_alloc_zero((size_t)nrow, sizeof *place);
    if (!hits || !place)
        goto done;
    rc = VEC_MISUSE;
    for (size_t l = 0; l < nlist; l++) {
        for (size_t i = 0; i < lists[l].n; i++) {
            const vec_hit *h = &lists[l].hits[i];

            if (h->row >= nrow)
                goto done;
            if (!place[h->row]) {
                hits[used] = (vec_hit){0, h->id, h->row};
                place[h->row] = (uint32_t)++used;
            }
            hits[place[h->row] - 1].key -= lists[l].weight / (k + (double)(i + 1));
        }
    }
    rc = VEC_OK;
    *out = hits;
    *n = used;
    hits = NULL;
done:
    vec_free(hits);
    vec_free(place);
    return rc;
}
