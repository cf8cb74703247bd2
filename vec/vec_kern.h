/*
 * vec_kern.h - how the kernel tables are put together; the contract of a kernel is in vec.h
 *
 * Every level has one table. It starts as a copy of the level below, scalar at the bottom, and the
 * level's file overwrites the cells it has something better for. So every cell is always filled,
 * and a new kernel needs only its scalar version.
 *
 * ORDER     A level fixes the lane of a product by its position alone, and the tree in which the
 *           lanes are summed. Its pair and rows kernels are built from the same inlined steps; that
 *           is what makes them bit-equal.
 *
 * Instruction sets are switched on a function at a time, never for a file: a compiler that may use
 * AVX everywhere puts it into code that runs on processors without. Hence the check below.
 *
 * THREADS  written once by vec_init, then constant
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_KERN_H
#define VEC_KERN_H

#include "vec.h"

#if defined(__x86_64__) && (defined(__AVX__) || defined(__FMA__))
#error "vec chooses instruction sets at run time: build it without -mavx*, -mfma and -march=native"
#endif

#define VEC_INLINE static inline __attribute__((always_inline))

void vec_kern_fill_scalar(vec_kernels *k);
#if defined(__x86_64__)
void vec_kern_fill_avx2(vec_kernels *k);
void vec_kern_fill_avx512(vec_kernels *k);
#elif defined(__aarch64__)
void vec_kern_fill_neon(vec_kernels *k);
#endif

#endif
