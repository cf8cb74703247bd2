/*
 * sql_h5_index.c - comparisons of indices (i0, i1, ..., rowid) handed down by SQLite.
 *
 * idxStr holds two letters for each comparison: = > g < l (g and l: or equal) and the dimension,
 * from A on; its value is the next of xFilter's arguments. All are checked by SQLite again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "sql_h5.h"

static char letter(int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    default:
        return 0;
    }
}

/* 1 when rows that come in C order need no sorting. */
static int in_order(const sqlite3_index_info *info, int (*dimension)(int col))
{
    for (int i = 0; i < info->nOrderBy; i++) {
        if (info->aOrderBy[i].desc || dimension(info->aOrderBy[i].iColumn) != i) {
            return 0;
        }
    }
    return info->nOrderBy > 0;
}

int sql_h5_plan_indices(sqlite3_index_info *info, int (*dimension)(int col), int next)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *k = &info->aConstraint[i];
        int dim = dimension(k->iColumn);
        if (!k->usable || dim < 0 || !letter(k->op)) {
            continue;
        }
        info->aConstraintUsage[i].argvIndex = next++;
        sqlite3_str_appendf(s, "%c%c", letter(k->op), 'A' + dim);
        double part = k->op == SQLITE_INDEX_CONSTRAINT_EQ ? 0.01 : 0.5;
        info->estimatedCost *= part;
        info->estimatedRows = (sqlite3_int64)((double)info->estimatedRows * part) + 1;
    }
    info->orderByConsumed = in_order(info, dimension);
    if (sqlite3_str_length(s) == 0) {
        sqlite3_free(sqlite3_str_finish(s));
        return SQLITE_OK;
    }
    info->idxStr = sqlite3_str_finish(s);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* A comparison of an index with a value narrows lo..hi, both inclusive. What is no number changes
 * nothing. */
static void narrow(char op, sqlite3_value *v, int64_t *lo, int64_t *hi)
{
    int type = sqlite3_value_type(v);
    int64_t below, above; // the whole numbers next to v, the same when v is one
    if (type == SQLITE_INTEGER) {
        below = above = sqlite3_value_int64(v);
    } else if (type == SQLITE_FLOAT) {
        double x = sqlite3_value_double(v);
        if (!(fabs(x) < 9e18)) {
            return;
        }
        below = (int64_t)floor(x);
        above = (int64_t)ceil(x);
    } else {
        return;
    }
    int whole = below == above;
    int64_t to = *hi, from = *lo;
    switch (op) {
    case '=':
        from = above;
        to = below;
        break;
    case '>':
        from = whole && above < INT64_MAX ? above + 1 : above;
        break;
    case 'g':
        from = above;
        break;
    case '<':
        to = whole && below > INT64_MIN ? below - 1 : below;
        break;
    case 'l':
        to = below;
        break;
    default:
        break;
    }
    *lo = from > *lo ? from : *lo;
    *hi = to < *hi ? to : *hi;
}

/* Along one dimension, the indices of the box within lo..hi. */
static void cut(sql_h5_box *box, int dim, int64_t lo, int64_t hi)
{
    uint64_t stride = box->stride[dim], start = box->start[dim];
    if (hi < 0 || hi < lo || (uint64_t)hi < start) {
        box->count[dim] = 0;
        return;
    }
    uint64_t most = ((uint64_t)hi - start) / stride + 1;
    box->count[dim] = most < box->count[dim] ? most : box->count[dim];
    if (lo > 0 && (uint64_t)lo > start) {
        uint64_t skip = ((uint64_t)lo - start - 1) / stride + 1;
        skip = skip < box->count[dim] ? skip : box->count[dim];
        box->start[dim] += skip * stride;
        box->count[dim] -= skip;
    }
}

int sql_h5_box_narrow(sql_h5_box *box, int rank, const char *idx_str, sqlite3_value **argv)
{
    for (; idx_str && *idx_str; idx_str += 2, argv++) {
        int dim = idx_str[1] - 'A';
        int64_t lo = 0, hi = INT64_MAX;
        if (dim >= rank || sqlite3_value_type(*argv) == SQLITE_NULL) {
            return 0; // no comparison with NULL is true
        }
        narrow(idx_str[0], *argv, &lo, &hi);
        cut(box, dim, lo, hi);
    }
    return 1;
}
