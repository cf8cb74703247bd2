/*
 * sql_plan.c - xBestIndex: which parts of a WHERE the table answers itself, and in what order its
 * rows come.
 *
 * The plan is idxStr, in words that EXPLAIN QUERY PLAN shows, then '~' and one code an argument of
 * xFilter:
 *
 *     knn:flat filter:time,session text:bm25 order:score limit~v,t,3ge,4eq,L
 *     knn:flat   a vector part, exact (knn:ivf, knn:ivfpq, knn:rairs: through lists where they pay;
 *                knn:auto: the store has not been read yet)
 *     text:bm25  a text part
 *     id         one row by its id         scan       none of these
 *     filter:    columns compared inside (timestamp reads time)
 *     order:     what the rows are sorted by; "desc" for the direction that is not the usual one
 *     k, limit   a cap; how many rows will be read, as a hint
 *
 *     codes      v vector, t text by content, T text by the table's column, s<hidden column>
 *                setting, L LIMIT, O OFFSET,
 *                <column><op> with op eq ne lt le gt ge is in null full like glob tag
 *
 * A constraint is taken over for good (omit) only where its comparison is SQLite's for whatever
 * value comes: on columns of numbers and blobs. Text is rechecked, because what a number means
 * beside it cannot be told from the value (sql_term.c). LIMIT is a hint: SQLite counts. MATCH, the
 * table's own column and settings must be usable or the plan is refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <string.h>

#include "sql.h"

typedef struct plan {
    sql_table *t;
    sqlite3_index_info *info;
    int vector, text, k; /* 1 + the constraint's index; 0 = none */
    int by_equals;       /* the text part is `memory = 'words'` */
    int limit, offset;
    int setting[SQL_HID_N];
    int id; /* 1 + the constraint that gives one id */
    int nfilter;
    int unusable; /* a part that cannot be left out is not usable in this plan */
    double share; /* of the rows that the filters leave */
    int narg;
    sqlite3_str *filters, *codes;
} plan;

typedef struct op_row {
    unsigned char op;
    const char *code;
    double share; /* guess of the rows that pass */
} op_row;

static const op_row ops[] = {
    {SQLITE_INDEX_CONSTRAINT_EQ, "eq", 0.1},
    {SQLITE_INDEX_CONSTRAINT_NE, "ne", 0.9},
    {SQLITE_INDEX_CONSTRAINT_LT, "lt", 0.3},
    {SQLITE_INDEX_CONSTRAINT_LE, "le", 0.3},
    {SQLITE_INDEX_CONSTRAINT_GT, "gt", 0.3},
    {SQLITE_INDEX_CONSTRAINT_GE, "ge", 0.3},
    {SQLITE_INDEX_CONSTRAINT_IS, "is", 0.1},
    {SQL_OP_IN, "in", 0.2},
    {SQLITE_INDEX_CONSTRAINT_ISNULL, "null", 0.5},
    {SQLITE_INDEX_CONSTRAINT_ISNOTNULL, "full", 0.5},
    {SQLITE_INDEX_CONSTRAINT_LIKE, "like", 0.1},
    {SQLITE_INDEX_CONSTRAINT_GLOB, "glob", 0.1},
    {SQL_OP_TAG, "tag", 0.1},
};

static const op_row *find_op(int op)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ops[i].op == op) {
            return &ops[i];
        }
    }
    return NULL;
}

/* -------------------------------------------------------------------------------- the arguments */

static void add_code(plan *p, int constraint, int omit, const char *fmt, ...) SQL_PRINTF(4, 5);
static void add_code(plan *p, int constraint, int omit, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sqlite3_str_appendall(p->codes, p->narg ? "," : "~");
    sqlite3_str_vappendf(p->codes, fmt, ap);
    va_end(ap);
    p->info->aConstraintUsage[constraint].argvIndex = ++p->narg;
    p->info->aConstraintUsage[constraint].omit = (unsigned char)omit;
}

const char *sql_plan_args(const char *idx_str)
{
    const char *s = idx_str ? strchr(idx_str, '~') : NULL;
    return s ? s + 1 : "";
}

static int read_int(const char **s)
{
    int v = 0;
    while (**s >= '0' && **s <= '9') {
        v = v * 10 + (*(*s)++ - '0');
    }
    return v;
}

int sql_plan_next_arg(const char **at, sql_arg *out)
{
    const char *s = *at;
    memset(out, 0, sizeof *out);
    if (!*s) {
        return 0;
    }
    switch (*s) {
    case 'v':
        out->kind = SQL_ARG_VECTOR;
        s++;
        break;
    case 't':
    case 'T':
        out->kind = SQL_ARG_TEXT;
        out->col = *s++ == 'T' ? SQL_HID_TABLE : -1;
        break;
    case 'L':
    case 'O':
        out->kind = *s++ == 'L' ? SQL_ARG_LIMIT : SQL_ARG_OFFSET;
        break;
    case 's':
        s++;
        out->kind = SQL_ARG_SETTING;
        out->col = read_int(&s);
        break;
    default:
        out->kind = SQL_ARG_TERM;
        out->col = read_int(&s);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            size_t n = 0;
            while (ops[i].code[n] && s[n] == ops[i].code[n]) {
                n++;
            }
            if (!ops[i].code[n] && (s[n] == ',' || !s[n])) {
                out->op = ops[i].op;
                s += n;
                break;
            }
        }
    }
    *at = *s == ',' ? s + 1 : s;
    return 1;
}

/* -------------------------------------------------------------------------- what is constrained */

static int twice(plan *p, const char *what)
{
    return sql_fail(p->t, SQLITE_ERROR, "two MATCH on the %s part in one WHERE; one is possible",
                    what);
}

static int take_match(plan *p, int i, int hidden, int col)
{
    int *slot = !hidden && col == ST_COL_EMBEDDING ? &p->vector : &p->text;
    if (hidden ? col != SQL_HID_TABLE : col != ST_COL_EMBEDDING && col != ST_COL_CONTENT) {
        return sql_fail(p->t, SQLITE_ERROR, "MATCH works on embedding, content and %s, not on %s",
                        p->t->name, hidden ? sql_hidden_names[col] : sql_column_name(p->t, col));
    }
    if (!p->info->aConstraint[i].usable) {
        p->unusable = 1;
        return SQLITE_OK;
    }
    if (*slot) {
        return twice(p, slot == &p->vector ? "vector" : "text");
    }
    *slot = i + 1;
    return SQLITE_OK;
}

// k, the table's own column and the settings: one value each, by `=`.
static int take_setting(plan *p, int i, int col, int op)
{
    const char *name = col == SQL_HID_TABLE ? p->t->name : sql_hidden_names[col];
    if (op == SQLITE_INDEX_CONSTRAINT_ISNULL || op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) {
        return SQLITE_OK;
    }
    if (op != SQLITE_INDEX_CONSTRAINT_EQ && op != SQLITE_INDEX_CONSTRAINT_IS) {
        return sql_fail(p->t, SQLITE_ERROR, "%s takes one value, by %s = value", name, name);
    }
    if (!p->info->aConstraint[i].usable) {
        p->unusable = 1;
        return SQLITE_OK;
    }
    if (sqlite3_vtab_in(p->info, i, -1)) {
        return sql_fail(p->t, SQLITE_ERROR, "%s takes one value, not a list", name);
    }
    if (col == SQL_HID_TABLE) {
        // A second `=` is left to SQLite too: it comes when FROM memory('words') meets an OR.
        if (p->text && !p->by_equals) {
            return twice(p, "text");
        }
        p->text = p->text ? p->text : i + 1;
        p->by_equals = 1;
    } else if (!p->setting[col]) {
        p->setting[col] = i + 1; // a second one is left to SQLite, which finds it true or false
    }
    return SQLITE_OK;
}

static int is_in(plan *p, int i)
{
    return p->info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
           sqlite3_vtab_in(p->info, i, -1);
}

static int classify(plan *p, int i)
{
    const struct sqlite3_index_constraint *c = &p->info->aConstraint[i];
    int col;
    if (c->op == SQLITE_INDEX_CONSTRAINT_LIMIT || c->op == SQLITE_INDEX_CONSTRAINT_OFFSET) {
        if (c->usable) {
            *(c->op == SQLITE_INDEX_CONSTRAINT_LIMIT ? &p->limit : &p->offset) = i + 1;
        }
        return SQLITE_OK;
    }
    int hidden = sql_column_split(p->t, c->iColumn, &col);
    if (c->op == SQLITE_INDEX_CONSTRAINT_MATCH) {
        return take_match(p, i, hidden, col);
    }
    if (hidden && (col < SQL_HID_DISTANCE || col > SQL_HID_SCORE)) {
        return take_setting(p, i, col, c->op);
    }
    if (!hidden && col == ST_COL_ID && c->usable && c->op == SQLITE_INDEX_CONSTRAINT_EQ &&
        !is_in(p, i) && !p->id) {
        p->id = i + 1;
    }
    return SQLITE_OK;
}

// A comparison on a column, or on distance, rank, score, where it can be handed down.
static void add_term(plan *p, int i)
{
    const struct sqlite3_index_constraint *c = &p->info->aConstraint[i];
    int col, in = c->usable && is_in(p, i);
    int hidden = sql_column_split(p->t, c->iColumn, &col);
    const op_row *op = find_op(in ? SQL_OP_IN : c->op);
    if (!c->usable || !op || p->info->aConstraintUsage[i].argvIndex ||
        (hidden && (col < SQL_HID_DISTANCE || col > SQL_HID_SCORE))) {
        return;
    }
    if (hidden) {
        col += ST_COL_DISTANCE - SQL_HID_DISTANCE;
    }
    int text = sql_column_type(p->t, col) == ST_TEXT;
    if (sql_op_is_pattern(op->op)
            ? !text
            : text && sqlite3_stricmp(sqlite3_vtab_collation(p->info, i), "BINARY") != 0) {
        return;
    }
    if (in) {
        sqlite3_vtab_in(p->info, i, 1);
    }
    add_code(p, i, !text, "%d%s", col, op->code);
    sqlite3_str_appendf(p->filters, "%s%s", p->nfilter++ ? "," : " filter:",
                        col == ST_COL_TIMESTAMP ? "time" : sql_column_name(p->t, col));
    p->share *= op->share;
}

/* ---------------------------------------------------------------------------------------- order */

static int order_column(const plan *p, int term)
{
    int col;
    int hidden = sql_column_split(p->t, p->info->aOrderBy[term].iColumn, &col);
    return !hidden ? col
           : col >= SQL_HID_DISTANCE && col <= SQL_HID_SCORE
               ? col + ST_COL_DISTANCE - SQL_HID_DISTANCE
               : -1;
}

// The order ORDER BY asks for, if the rows can come in it; -1 if SQLite must sort. *name what it is
// called, *by what a search ranks by.
static int asked_order(const plan *p, const char **name, int *by)
{
    int key = order_column(p, 0), desc = p->info->aOrderBy[0].desc, worst;
    if (!p->vector && !p->text) {
        if (key == ST_COL_TIMESTAMP) {
            *name = "time";
            int by_id = p->info->nOrderBy > 1 && order_column(p, 1) == ST_COL_ID &&
                        !p->info->aOrderBy[1].desc;
            return p->info->nOrderBy > 1 && !by_id ? -1 : desc ? ST_ORDER_TIME_DESC : ST_ORDER_TIME;
        }
        *name = "id";
        return key != ST_COL_ID ? -1 : desc ? ST_ORDER_ID_DESC : ST_ORDER_ID;
    }
    if (key == ST_COL_SCORE) {
        worst = !desc;
    } else if ((key == ST_COL_DISTANCE && p->vector && !p->text) ||
               (key == ST_COL_RANK && p->text && !p->vector)) {
        worst = desc;
    } else {
        return -1;
    }
    *name = sql_column_name(p->t, key);
    *by = key == ST_COL_SCORE ? ST_BY_SCORE : key == ST_COL_RANK ? ST_BY_RANK : ST_BY_DISTANCE;
    if (worst && p->setting[SQL_HID_K]) {
        return -1; // the k best rows, backwards
    }
    // Ties come by id. Two distances can round to one score, so only the key that was ranked by
    // says where there is a tie.
    int exact = key != ST_COL_SCORE || p->text;
    if (p->info->nOrderBy > 1 &&
        !(exact && order_column(p, 1) == ST_COL_ID && !p->info->aOrderBy[1].desc)) {
        return -1;
    }
    return worst ? ST_ORDER_WORST : ST_ORDER_BEST;
}

static const char *natural_order(const plan *p)
{
    return p->text ? "score" : p->vector ? "distance" : NULL;
}

/* ---------------------------------------------------------------------------------------- costs */

static double rows_known(const plan *p)
{
    uint64_t rows = p->t->store->rows;
    return rows ? (double)rows : 100000.0;
}

// A scan must look dearer than ten searches, whatever the filters leave: `a MATCH x OR b MATCH y`
// is two searches or, where SQLite finds one scan cheaper, a MATCH that nobody can answer.
static void set_cost(plan *p)
{
    sqlite3_index_info *info = p->info;
    double rows = rows_known(p), kept = rows * p->share;
    if (p->vector || p->text) {
        info->estimatedCost = 100 + rows * 0.01 + kept * 0.05;
        kept = kept > 100 ? 100 : kept; // most queries read a page of the ranking
    } else {
        info->estimatedCost = 1100 + rows * 0.11 + kept;
    }
    info->estimatedRows = kept < 1 ? 1 : (sqlite3_int64)kept;
}

/* ------------------------------------------------------------------------------------- together */

// What else is compared is left to SQLite, but times go along, so that one compared with text is an
// error here too.
static void plan_by_id(plan *p)
{
    int col;
    add_code(p, p->id - 1, 1, "%d%s", ST_COL_ID, "eq");
    for (int i = 0; i < p->info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &p->info->aConstraint[i];
        const op_row *op = find_op(c->op);
        if (c->usable && op && !sql_op_is_pattern(op->op) && !is_in(p, i) &&
            !sql_column_split(p->t, c->iColumn, &col) && sql_column_is_time(col)) {
            add_code(p, i, 0, "%d%s", col, op->code);
        }
    }
    p->info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
    p->info->idxNum = SQL_PLAN_ID;
    p->info->orderByConsumed = 1;
    p->info->estimatedCost = 10;
    p->info->estimatedRows = 1;
}

static void plan_search(plan *p, const char **order, int *desc)
{
    sqlite3_index_info *info = p->info;
    int sorted = ST_ORDER_BEST, by = ST_BY_SCORE;
    if (p->vector) {
        add_code(p, p->vector - 1, 1, "v");
    }
    if (p->text) {
        int col;
        int hidden = sql_column_split(p->t, info->aConstraint[p->text - 1].iColumn, &col);
        add_code(p, p->text - 1, 1, hidden ? "T" : "t");
    }
    for (int h = SQL_HID_K; h < SQL_HID_N; h++) {
        if (p->setting[h]) {
            add_code(p, p->setting[h] - 1, 1, "s%d", h);
        }
    }
    for (int i = 0; i < info->nConstraint; i++) {
        add_term(p, i);
    }
    *order = natural_order(p);
    if (info->nOrderBy > 0) {
        int asked = asked_order(p, order, &by);
        info->orderByConsumed = asked >= 0;
        by = asked >= 0 ? by : ST_BY_SCORE;
        sorted = asked >= 0 ? asked : ST_ORDER_BEST;
        *order = asked >= 0 ? *order : natural_order(p);
    }
    *desc = sorted == ST_ORDER_WORST || sorted == ST_ORDER_ID_DESC || sorted == ST_ORDER_TIME_DESC;
    if (p->limit && (info->nOrderBy == 0 || info->orderByConsumed)) {
        add_code(p, p->limit - 1, 0, "L");
        if (p->offset) {
            add_code(p, p->offset - 1, 0, "O");
        }
    }
    info->idxNum = (p->vector ? SQL_PLAN_VECTOR : 0) | (p->text ? SQL_PLAN_TEXT : 0) |
                   sorted << SQL_PLAN_ORDER | by << SQL_PLAN_BY;
    set_cost(p);
}

// What vectors are searched with. The store is not opened to find out.
static const char *vector_part(const plan *p)
{
    const char *index = p->t->store->conn ? st_conn_index(p->t->store->conn) : NULL;
    return !index                                                               ? "knn:auto"
           : p->setting[SQL_HID_EXACT] || p->text || strcmp(index, "flat") == 0 ? "knn:flat"
           : strcmp(index, "ivf") == 0                                          ? "knn:ivf"
           : strcmp(index, "ivfpq") == 0                                        ? "knn:ivfpq"
                                                                                : "knn:rairs";
}

static int describe(plan *p, const char *order, int desc)
{
    int rc = sqlite3_str_errcode(p->filters) | sqlite3_str_errcode(p->codes);
    char *filters = sqlite3_str_finish(p->filters), *codes = sqlite3_str_finish(p->codes);
    sqlite3_str *s = sqlite3_str_new(NULL);
    if (p->info->idxNum == SQL_PLAN_ID) {
        sqlite3_str_appendall(s, "id");
    } else {
        sqlite3_str_appendf(s, "%s%s%s",
                            p->vector ? vector_part(p)
                            : p->text ? "text:bm25"
                                      : "scan",
                            filters ? filters : "", p->vector && p->text ? " text:bm25" : "");
        if (order) {
            sqlite3_str_appendf(s, " order:%s%s", order, desc ? " desc" : "");
        }
        sqlite3_str_appendf(s, "%s%s", p->setting[SQL_HID_K] ? " k" : "", p->limit ? " limit" : "");
    }
    sqlite3_str_appendf(s, "%s", codes ? codes : "");
    sqlite3_free(filters);
    sqlite3_free(codes);
    p->info->idxStr = sqlite3_str_finish(s);
    p->info->needToFreeIdxStr = 1;
    // a plan that lost a part for want of memory would be another plan
    return rc == SQLITE_OK && p->info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

int sql_plan_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    plan p;
    memset(&p, 0, sizeof p);
    p.t = (sql_table *)v;
    p.info = info;
    p.share = 1;
    for (int i = 0; i < info->nConstraint; i++) {
        int rc = classify(&p, i);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    if (p.unusable) {
        return SQLITE_CONSTRAINT;
    }
    const char *order = NULL;
    int desc = 0;
    p.filters = sqlite3_str_new(NULL);
    p.codes = sqlite3_str_new(NULL);
    if (p.id && !p.vector && !p.text && !p.setting[SQL_HID_K] && !p.setting[SQL_HID_AS_OF]) {
        plan_by_id(&p);
    } else {
        plan_search(&p, &order, &desc);
    }
    return describe(&p, order, desc);
}
