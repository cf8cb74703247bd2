/*
 * sql_md.h - a Markdown file as sections, and how rows remember theirs. No SQLite handle.
 *
 * A section is a run of the file's bytes, from one heading to the next; put one after the other
 * they are the file again.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_MD_H
#define SQL_MD_H

#include <stddef.h>
#include <stdint.h>

typedef struct sql_md_section {
    size_t at, n;         /* bytes of the file */
    int level;            /* 1 to 6; 0: what stands before the first heading */
    size_t title, ntitle; /* of the heading, without marks and white space around; may have newlines
                             inside where it is underlined */
} sql_md_section;

/* Splits at headings of a level from `from` on. *out by sqlite3_malloc; an SQLite code. */
int sql_md_split(const char *s, size_t n, int from, sql_md_section **out, size_t *count);

/* The date of `date:` in the front matter, in Unix seconds; 0: there is none. */
int sql_md_front_date(const char *s, size_t n, double *out);
/* YYYY-MM-DD in the last part of a path. */
int sql_md_path_date(const char *path, double *out);
/* A time of day, such as 14:30, 9:05:30 or 2:30 pm, that a title begins with, in seconds. */
int sql_md_clock(const char *title, size_t n, double *out);

/* A path without what does not matter: "./", "//", "/" at the end. By sqlite3_malloc. */
char *sql_md_path(const char *path);

/* The channel of a section is its file's path, and behind it "::" and a title for each heading that
 * it stands under, its own last. */
#define SQL_MD_TITLE_MAX 200 /* bytes of a title in it */
/* s, n: the file; chain: sections by level, 1 to 6, those above this one and itself; NULL: none.
 * By sqlite3_malloc. */
char *sql_md_channel(const char *path, const char *s, const sql_md_section *const chain[7]);

/* Tags of a section's row: "markdown", "section-N". N, or -1 where the row is no section. */
int64_t sql_md_section_of(const char *tags, size_t n);
/* tags with N set to number; others stay. By sqlite3_malloc. */
char *sql_md_tags(const char *tags, size_t n, int64_t number);

/* What a file of rows that came from no Markdown begins with. */
#define SQL_MD_MARK "<!-- h5mem rows"
/* And what begins the comment below the heading of each (sql_door_md_rows.c). */
#define SQL_MD_ROW  "<!-- h5mem row "
/* Is a file such rows? */
int sql_md_has_rows(const char *s, size_t n);

#endif
