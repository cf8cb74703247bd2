/*
 * mind.h - what makes rows memories: what is worth keeping, how it ages, what it becomes. The only
 * header of ext/mind that ext/sql includes.
 *
 * Works on texts and arrays that the caller hands in and keeps nothing; ext/sql brings the rows and
 * writes the decisions back inside a transaction.
 *
 * THREADS   every function may be called from any thread.
 * SPDX-License-Identifier: MIT
 */
#ifndef MIND_H
#define MIND_H

/* ------------------------------------------------------------------------------------ ageing */

/* What is left of a value after some seconds: half of it each half_life. A clock that went back
 * (seconds < 0, or NaN) takes nothing away; a half-life that is not above 0 keeps everything. */
double mind_decay(double value, double seconds, double half_life);

#endif
