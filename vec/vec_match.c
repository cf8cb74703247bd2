/*
 * vec_match.c - phrases, prefixes, NEAR groups and operators: which rows have them, how often
 *
 * A single word of a single field is a list of postings as it stands. Everything else is matched
 * once, when the query is prepared, into a list of its own in memory, so that whoever counts and
 * scores sees postings and nothing else.
 *
 * Several lists for one word (a prefix, more than one field) are added up in an array of counts by
 * row. A phrase or a group is found row by row: the words' lists are stepped to a row that all of
 * them hold, then their positions are compared. A word of a phrase with several lists (a prefix) is
 * first turned into one sorted list of row and position.
 *
 * Operators work on bitmaps of all rows, on a stack.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT, VEC_MISUSE (operators that do not add up), VEC_ABORT
 * THREADS  one call, one thread
 * TESTS    t_vec_match.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_words.h"

/* The lists of one word. */
typedef struct lists {
    vec_buf refs; // vec_ref
} lists;

static size_t nref(const lists *l)
{
    return l->refs.n / sizeof(vec_ref);
}

static const vec_ref *ref_at(const lists *l, size_t i)
{
    return (const vec_ref *)(const void *)l->refs.p + i;
}

static int add_ref(void *ctx, const vec_ref *ref)
{
    return ref->df ? vec_buf_add(&((lists *)ctx)->refs, ref, sizeof *ref) : VEC_OK;
}

/* Adds what a word has in a field. */
static int find_word(const vec_source *src, const vec_word *word, unsigned field, lists *out)
{
    uint8_t key[VEC_TERM_MAX];
    uint32_t n = vec_term_key(key, field, word->s, word->n);
    vec_ref ref;
    int rc = VEC_OK;

    if (word->prefix)
        return src->run ? vec_run_prefix(src->run, key, n, add_ref, out)
                        : vec_text_prefix(src->text, key, n, add_ref, out);
    if (src->run)
        rc = vec_run_find(src->run, key, n, &ref);
    else
        vec_text_find(src->text, key, n, &ref);
    return rc ? rc : add_ref(out, &ref);
}

/* The postings of leaf i are these, by ascending ordinal. */
static int take_made(vec_words *w, size_t source, size_t leaf, const vec_post *post, size_t n)
{
    vec_chunk *c;

    if (n == 0)
        return VEC_OK;
    c = vec_alloc(sizeof *c + n * sizeof *post);
    if (!c)
        return VEC_NOMEM;
    c->next = NULL;
    c->n = c->cap = (uint32_t)n;
    memcpy(c->post, post, n * sizeof *post);
    w->made[source * w->ask.nphrase + leaf] = c;
    *vec_words_ref(w, source, leaf) = (vec_ref){.df = (uint32_t)n, .chunk = c};
    return VEC_OK;
}

/* --------------------------------------------------------------------------------- single words */

/* Adds up the counts of all lists. */
static int sum_lists(vec_words *w, size_t source, size_t leaf, const lists *l)
{
    uint32_t nrow = w->parts[source].nrow, n = 0;
    uint32_t *count = vec_alloc_zero(nrow, sizeof *count);
    vec_post *post = NULL;
    vec_cursor c;
    int rc = count ? VEC_OK : VEC_NOMEM;

    for (size_t i = 0; i < nref(l) && !rc; i++) {
        rc = vec_cursor_open(&c, ref_at(l, i), nrow);
        while (!rc && (rc = vec_cursor_next(&c)) == 1) {
            for (uint32_t k = 0; k < c.n; k++) {
                uint32_t tf = vec_cursor_tf(&c, k), *to = &count[c.ord[k]];

                n += *to == 0;
                *to = *to > UINT32_MAX - tf ? UINT32_MAX : *to + tf;
            }
            rc = VEC_OK;
        }
    }
    post = rc ? NULL : vec_alloc_array(n, sizeof *post);
    n = 0;
    for (uint32_t i = 0; post && i < nrow; i++)
        if (count[i])
            post[n++] = (vec_post){i, count[i], 0};
    rc = rc ? rc : post ? take_made(w, source, leaf, post, n) : VEC_NOMEM;
    vec_free(count);
    vec_free(post);
    return rc;
}

static int match_word(vec_words *w, size_t source, size_t leaf)
{
    const vec_phrase *p = &w->ask.phrases[leaf];
    lists l = {{0}};
    int rc = VEC_OK;

    for (unsigned f = 0; f < VEC_FIELDS && !rc; f++)
        for (uint32_t i = 0; (p->fields >> f & 1) && i < p->nword && !rc; i++)
            rc = find_word(&w->a.sources[source], &w->ask.words[p->word + i], f, &l);
    if (!rc && nref(&l) == 1)
        *vec_words_ref(w, source, leaf) = *ref_at(&l, 0);
    else if (!rc && nref(&l) > 1)
        rc = sum_lists(w, source, leaf, &l);
    vec_buf_free(&l.refs);
    return rc;
}

/* --------------------------------------------------------------------- one position of a phrase */

typedef struct slot {
    vec_cursor c;   // where there is a single list
    vec_buf sorted; // else u64: ordinal << 32 | position
    size_t at;
    uint32_t ord; // where it stands
    vec_buf pos;  // u32: the positions there
    int many;
} slot;

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t sorted_at(const slot *s, size_t i)
{
    uint64_t v;

    memcpy(&v, s->sorted.p + 8 * i, 8);
    return v;
}

static int add_sorted(slot *s, const vec_ref *ref, uint32_t nrow)
{
    int rc = vec_cursor_open(&s->c, ref, nrow);

    while (!rc && (rc = vec_cursor_next(&s->c)) == 1) {
        rc = VEC_OK;
        for (uint32_t i = 0; i < s->c.n && !rc; i++) {
            s->pos.n = 0;
            rc = vec_cursor_positions(&s->c, i, &s->pos);
            for (size_t k = 0; k < s->pos.n && !rc; k += 4) {
                uint64_t v = (uint64_t)s->c.ord[i] << 32 | vec_get32(s->pos.p + k);

                rc = vec_buf_add(&s->sorted, &v, sizeof v);
            }
        }
    }
    return rc;
}

/* Opens a slot on the lists of its words; *any = 0: they have none. */
static int slot_open(slot *s, const lists *l, uint32_t nrow, int *any)
{
    int rc = VEC_OK;

    *any = nref(l) > 0;
    s->many = nref(l) > 1;
    s->at = 0;
    s->sorted.n = 0;
    if (nref(l) == 1)
        return vec_cursor_open(&s->c, ref_at(l, 0), nrow);
    for (size_t i = 0; i < nref(l) && !rc; i++)
        rc = add_sorted(s, ref_at(l, i), nrow);
    if (!rc && s->sorted.n)
        qsort(s->sorted.p, s->sorted.n / 8, 8, by_number);
    return rc;
}

/* To the first ordinal not below ord: 1, 0 at the end, or a code. */
static int slot_seek(slot *s, uint32_t ord)
{
    size_t lo = s->at, hi = s->sorted.n / 8;
    int rc;

    if (!s->many) {
        rc = vec_cursor_seek(&s->c, ord);
        s->ord = rc == 1 ? s->c.ord[s->c.at] : 0;
        return rc;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (sorted_at(s, mid) >> 32 < ord)
            lo = mid + 1;
        else
            hi = mid;
    }
    s->at = lo;
    if (lo == s->sorted.n / 8)
        return 0;
    s->ord = (uint32_t)(sorted_at(s, lo) >> 32);
    return 1;
}

static int slot_positions(slot *s)
{
    int rc = VEC_OK;

    s->pos.n = 0;
    if (!s->many)
        return vec_cursor_positions(&s->c, s->c.at, &s->pos);
    for (size_t i = s->at; i < s->sorted.n / 8 && sorted_at(s, i) >> 32 == s->ord && !rc; i++) {
        uint32_t p = (uint32_t)sorted_at(s, i);

        if (i == s->at || p != (uint32_t)sorted_at(s, i - 1))
            rc = vec_buf_add(&s->pos, &p, sizeof p);
    }
    return rc;
}

/* -------------------------------------------------------------------------------------- phrases */

/* One phrase of a group in one field. */
typedef struct part {
    uint32_t slot; // its first
    uint32_t nslot;
    int initial;
    vec_buf start; // u32: where it begins in the row at hand
    vec_buf post;  // vec_post: what was found
} part;

typedef struct group {
    vec_words *w;
    size_t source;
    size_t leaf; // its first phrase
    uint32_t n;  // phrases
    uint32_t near;
    part *parts;
    slot *slots;
    uint32_t nslot;
    uint32_t **near_pos;
    size_t *near_count; // n, and room for vec_near_trim
    uint32_t *near_words;
} group;

/* Where the phrase begins: positions p of its first word with its k-th at p + k. */
static int find_starts(group *g, part *p)
{
    slot *first = &g->slots[p->slot];
    size_t at[64] = {0}; // of the first slots; further ones are searched from the front

    p->start.n = 0;
    for (size_t i = 0; i < first->pos.n; i += 4) {
        uint32_t pos = vec_get32(first->pos.p + i), k = 1;
        int rc;

        if (p->initial && pos > 0)
            break;
        for (; k < p->nslot; k++) {
            const vec_buf *b = &g->slots[p->slot + k].pos;
            size_t j = k < 64 ? at[k] : 0;

            while (j < b->n && vec_get32(b->p + j) < (uint64_t)pos + k)
                j += 4;
            if (k < 64)
                at[k] = j;
            if (j == b->n || vec_get32(b->p + j) != (uint64_t)pos + k)
                break;
        }
        if (k == p->nslot && (rc = vec_buf_add(&p->start, &pos, sizeof pos)))
            return rc;
    }
    return VEC_OK;
}

void vec_near_trim(uint32_t *const *pos, size_t *count, const uint32_t *nword, size_t n,
                   uint32_t near, size_t *at)
{
    size_t *out = at + n;

    memset(at, 0, 2 * n * sizeof *at);
    for (size_t i = 0; i < n; i++)
        if (count[i] == 0)
            goto done;
    for (;;) {
        uint64_t max = pos[0][at[0]], least = UINT64_MAX;
        size_t next = 0;
        int fits;

        do { // step those that lie too far behind until all are within reach of the last
            fits = 1;
            for (size_t i = 0; i < n; i++) {
                while ((uint64_t)pos[i][at[i]] + nword[i] + near < max) {
                    fits = 0;
                    if (++at[i] == count[i])
                        goto done;
                }
                if (pos[i][at[i]] > max) {
                    max = pos[i][at[i]];
                    fits = 0;
                }
            }
        } while (!fits);
        for (size_t i = 0; i < n; i++) {
            uint32_t p = pos[i][at[i]];

            if (out[i] == 0 || pos[i][out[i] - 1] != p)
                pos[i][out[i]++] = p;
        }
        for (size_t i = 0; i < n; i++) {
            if (at[i] + 1 < count[i] && pos[i][at[i] + 1] < least) {
                least = pos[i][at[i] + 1];
                next = i;
            }
        }
        if (least == UINT64_MAX)
            break;
        at[next]++;
    }
done:
    for (size_t i = 0; i < n; i++)
        count[i] = out[i];
}

/* All slots stand at this ordinal: does the group match there? */
static int match_row(group *g, uint32_t ord)
{
    int rc = VEC_OK, any = 1;

    for (uint32_t i = 0; i < g->nslot && !rc; i++)
        rc = slot_positions(&g->slots[i]);
    for (uint32_t i = 0; i < g->n && !rc && any; i++) {
        rc = find_starts(g, &g->parts[i]);
        g->near_count[i] = g->parts[i].start.n / 4;
        any = g->near_count[i] > 0;
    }
    if (rc || !any)
        return rc;
    if (g->n > 1) {
        for (uint32_t i = 0; i < g->n; i++)
            g->near_pos[i] = (uint32_t *)(void *)g->parts[i].start.p;
        vec_near_trim(g->near_pos, g->near_count, g->near_words, g->n, g->near,
                      g->near_count + g->n);
    }
    for (uint32_t i = 0; i < g->n && !rc; i++) {
        vec_post post = {ord, (uint32_t)g->near_count[i], 0};

        rc = post.tf ? vec_buf_add(&g->parts[i].post, &post, sizeof post) : VEC_OK;
    }
    return rc;
}

/* Opens all slots on one field; *any = 0: some word is not there. */
static int open_field(group *g, unsigned field, int *any)
{
    lists l = {{0}};
    int rc = VEC_OK;

    *any = 1;
    for (uint32_t i = 0; i < g->n && !rc && *any; i++) {
        const vec_phrase *p = &g->w->ask.phrases[g->leaf + i];
        uint32_t at = g->parts[i].slot;

        for (uint32_t k = 0; k < p->nword && !rc && *any; at++) {
            l.refs.n = 0;
            do
                rc = find_word(&g->w->a.sources[g->source], &g->w->ask.words[p->word + k], field,
                               &l);
            while (++k < p->nword && g->w->ask.words[p->word + k].colocated && !rc);
            rc = rc ? rc : slot_open(&g->slots[at], &l, g->w->parts[g->source].nrow, any);
        }
    }
    vec_buf_free(&l.refs);
    return rc;
}

static int match_field(group *g, unsigned field)
{
    uint32_t ord = 0, rounds = 0;
    int any, rc = open_field(g, field, &any);

    while (!rc && any) {
        uint32_t to = ord;

        if ((++rounds & 4095) == 0 && vec_words_stop(g->w))
            return VEC_ABORT;
        for (uint32_t i = 0; i < g->nslot; i++) {
            int found = slot_seek(&g->slots[i], to);

            if (found != 1)
                return found;
            to = g->slots[i].ord;
        }
        if (to == g->slots[0].ord) { // the last is at or behind the first, which is behind none
            rc = match_row(g, to);
            if (to == UINT32_MAX)
                break;
            to++;
        }
        ord = to;
    }
    return rc;
}

static int by_ord(const void *a, const void *b)
{
    const vec_post *x = a, *y = b;

    return (x->ord > y->ord) - (x->ord < y->ord);
}

/* What was found in several fields, added up by row. */
static size_t join_fields(vec_post *post, size_t n)
{
    size_t kept = 0;

    qsort(post, n, sizeof *post, by_ord);
    for (size_t i = 0; i < n; i++) {
        if (kept && post[kept - 1].ord == post[i].ord)
            post[kept - 1].tf += post[i].tf;
        else
            post[kept++] = post[i];
    }
    return kept;
}

static uint32_t count_slots(const vec_words *w, const vec_phrase *p)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < p->nword; k++)
        n += k == 0 || !w->ask.words[p->word + k].colocated;
    return n;
}

static int group_new(group *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->nslot += count_slots(g->w, &g->w->ask.phrases[g->leaf + i]);
    g->parts = vec_alloc_zero(g->n, sizeof *g->parts);
    g->slots = vec_alloc_zero(g->nslot, sizeof *g->slots);
    g->near_pos = vec_alloc_zero(g->n, sizeof *g->near_pos);
    g->near_count = vec_alloc_zero(3 * (size_t)g->n, sizeof *g->near_count);
    g->near_words = vec_alloc_zero(g->n, sizeof *g->near_words);
    if (!g->parts || !g->slots || !g->near_pos || !g->near_count || !g->near_words)
        return VEC_NOMEM;
    for (uint32_t i = 0, at = 0; i < g->n; i++) {
        const vec_phrase *p = &g->w->ask.phrases[g->leaf + i];

        g->parts[i].slot = at;
        g->parts[i].nslot = g->near_words[i] = count_slots(g->w, p);
        g->parts[i].initial = p->initial;
        at += g->parts[i].nslot;
    }
    return VEC_OK;
}

static void group_free(group *g)
{
    for (uint32_t i = 0; g->parts && i < g->n; i++) {
        vec_buf_free(&g->parts[i].start);
        vec_buf_free(&g->parts[i].post);
    }
    for (uint32_t i = 0; g->slots && i < g->nslot; i++) {
        vec_buf_free(&g->slots[i].sorted);
        vec_buf_free(&g->slots[i].pos);
    }
    vec_free(g->parts);
    vec_free(g->slots);
    vec_free(g->near_pos);
    vec_free(g->near_count);
    vec_free(g->near_words);
}

static int match_group(vec_words *w, size_t source, size_t leaf)
{
    const vec_phrase *p = &w->ask.phrases[leaf];
    group g = {.w = w, .source = source, .leaf = leaf, .n = p->group, .near = p->near};
    int rc = VEC_OK;

    for (uint32_t i = 0; i < g.n; i++)
        if (p[i].nword == 0)
            return VEC_OK; // an empty phrase is nowhere
    rc = group_new(&g);
    for (unsigned f = 0; f < VEC_FIELDS && !rc; f++)
        if (p->fields >> f & 1)
            rc = match_field(&g, f);
    for (uint32_t i = 0; i < g.n && !rc; i++) {
        vec_post *post = (vec_post *)(void *)g.parts[i].post.p;
        size_t n = g.parts[i].post.n / sizeof *post;

        rc = n ? take_made(w, source, leaf + i, post, join_fields(post, n)) : VEC_OK;
    }
    group_free(&g);
    return rc;
}

int vec_match_source(vec_words *w, size_t source)
{
    int rc = VEC_OK;

    for (size_t i = 0; i < w->ask.nphrase && !rc; i++) {
        const vec_phrase *p = &w->ask.phrases[i];

        if (p->group == 0)
            continue; // came with its first
        if (p->group == 1 && !p->initial && p->nword <= 1)
            rc = match_word(w, source, i);
        else
            rc = match_group(w, source, i);
    }
    return rc;
}

/* ------------------------------------------------------------------------------------ operators */

static int set_rows(const vec_words *w, size_t leaf, uint64_t *bits)
{
    vec_cursor c;
    int rc = VEC_OK;

    for (size_t s = 0; s < w->a.nsource && !rc; s++) {
        const vec_part *p = &w->parts[s];
        const vec_ref *ref = vec_words_ref(w, s, leaf);

        rc = ref->df ? vec_cursor_open(&c, ref, p->nrow) : VEC_OK;
        while (!rc && ref->df && (rc = vec_cursor_next(&c)) == 1) {
            rc = VEC_OK;
            for (uint32_t i = 0; i < c.n; i++) {
                uint32_t off = vec_part_off(p, c.ord[i]);

                if (off > p->span)
                    return VEC_FORMAT;
                bits[(p->first + off) >> 6] |= (uint64_t)1 << ((p->first + off) & 63);
            }
        }
        if (vec_words_stop(w))
            return VEC_ABORT;
    }
    return rc;
}

static int push(const vec_words *w, const vec_op *op, size_t words, uint64_t **out)
{
    *out = vec_alloc_zero(words, sizeof **out);
    if (!*out)
        return VEC_NOMEM;
    if (op->op == VEC_OP_PHRASE)
        return op->phrase < w->ask.nphrase ? set_rows(w, op->phrase, *out) : VEC_MISUSE;
    memset(*out, 0xff, words * sizeof **out);
    return VEC_OK;
}

static void join(int op, uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t i = 0; i < words; i++)
        a[i] = op == VEC_OP_AND ? a[i] & b[i] : op == VEC_OP_OR ? a[i] | b[i] : a[i] & ~b[i];
}

int vec_match_ops(vec_words *w)
{
    size_t words = (size_t)((w->a.nrow + 63) / 64), depth = 0;
    uint64_t **stack;
    int rc = VEC_OK;

    if (w->ask.nop == 0)
        return VEC_OK;
    stack = vec_alloc_zero(w->ask.nop, sizeof *stack);
    if (!stack)
        return VEC_NOMEM;
    for (size_t i = 0; i < w->ask.nop && !rc; i++) {
        const vec_op *op = &w->ask.ops[i];

        if (op->op == VEC_OP_PHRASE || op->op == VEC_OP_ALL) {
            rc = push(w, op, words, &stack[depth]);
            depth++;
        } else if (depth < 2 || op->op > VEC_OP_NOT) {
            rc = VEC_MISUSE;
        } else {
            depth--;
            join(op->op, stack[depth - 1], stack[depth], words);
            vec_free(stack[depth]);
            stack[depth] = NULL;
        }
    }
    rc = rc ? rc : depth == 1 ? VEC_OK : VEC_MISUSE;
    if (!rc) {
        w->allow = stack[0];
        stack[0] = NULL;
    }
    for (size_t i = 0; i < depth; i++)
        vec_free(stack[i]);
    vec_free(stack);
    return rc;
}
