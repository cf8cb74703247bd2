/*
 * sql_value.h - text to numbers, vectors and times, and back; no state, no SQLite handle.
 *
 * Text is never NUL-terminated here: pointer and length. Nothing depends on the locale.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_VALUE_H
#define SQL_VALUE_H

#include <stddef.h>
#include <stdint.h>

/* The JSON number that s starts with, as the nearest 32-bit float (ties to even) for any number
 * of digits; infinity when it is too large. Returns the bytes read, 0 when no number starts
 * there. */
size_t sql_scan_f32(const char *s, size_t n, float *out);

/* The same as a double: the nearest one for any text of up to 120 significant digits. */
size_t sql_scan_f64(const char *s, size_t n, double *out);

/* The shortest decimal that sql_scan_f32 reads back as x (finite), NUL-terminated; returns its
 * length. */
#define SQL_F32_TEXT 32
int sql_print_f32(float x, char out[SQL_F32_TEXT]);

/* The shortest decimal of 15 to 17 digits that sql_scan_f64 reads back as x (no NaN; infinity is
 * 9e999); returns its length. */
#define SQL_F64_TEXT 32
int sql_print_f64(double x, char out[SQL_F64_TEXT]);

/* A JSON array of numbers. The first room values go to out; *count is how many the array holds,
 * also beyond room. Returns 1, or 0 with the reason in why ("is no JSON array of numbers: ...",
 * "holds ... at [i]"). */
int sql_scan_vector(const char *s, size_t n, float *out, size_t room, size_t *count, char *why,
                    size_t nwhy);

/* ISO 8601: YYYY-MM-DD, then after 'T' or white space HH:MM, HH:MM:SS or HH:MM:SS.fraction (','
 * too), then Z, +hh:mm, +hhmm or +hh or nothing (UTC). Unix seconds go to *out. Returns 1, or 0
 * when the text is anything else or names no real date. */
int sql_scan_time(const char *s, size_t n, double *out);

/* n floats of 4 bytes each, little-endian, to native order, and back. */
void sql_floats_load(const void *bytes, size_t n, float *out);
void sql_floats_store(const float *x, size_t n, void *bytes);

/* 1 and the value when x is a whole number that an int64 holds. */
int sql_whole(double x, int64_t *out);

#endif
