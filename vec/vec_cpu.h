/*
 * vec_cpu.h - which instruction sets this processor and its operating system offer
 *
 * THREADS  no state but the environment, which is read once by vec_init
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_CPU_H
#define VEC_CPU_H

enum {
    VEC_CPU_AVX2 = 1, /* AVX2, FMA and F16C, and the system saves the ymm registers */
    VEC_CPU_AVX512 =
        2, /* AVX-512 F, BW, DQ and VL on top of AVX2, and the system saves zmm and masks */
    VEC_CPU_NEON = 4,    /* Advanced SIMD of 64-bit Arm, which always has it */
    VEC_CPU_VNNI = 8,    /* AVX-512 VNNI on top of AVX-512 */
    VEC_CPU_DOTPROD = 16 /* the 8-bit dot products of Armv8.2 */
};

/* The bits above that hold, without those named in the environment variable VEC_DISABLE (avx2,
 * avx512, avx512vnni, neon, dotprod). Disabling AVX2 leaves AVX-512 as it is; disabling AVX-512
 * takes VNNI along, and NEON the dot products. */
unsigned vec_cpu_features(void);

#endif
