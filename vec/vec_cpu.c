/*
 * vec_cpu.c - CPUID, the saved register state, and levels switched off by hand
 *
 * A processor that knows AVX is not enough: the operating system must save the wide registers at a
 * task switch, else they are lost between two instructions. So the order is: does CPUID offer
 * OSXSAVE and AVX, does xgetbv say that the state is saved, and only then which instruction sets
 * there are.
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_cpu.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static unsigned saved_state(void)
{
    unsigned lo, hi;

    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    (void)hi; // no register set we use has its bit up there
    return lo;
}

static unsigned detect(void)
{
    const unsigned ymm = 1u << 1 | 1u << 2;                 // XCR0: xmm, upper halves of ymm
    const unsigned zmm = ymm | 1u << 5 | 1u << 6 | 1u << 7; // masks, upper halves of zmm, zmm16-31
    const unsigned base = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
    const unsigned wide = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d, state, have = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & base) != base)
        return 0;
    state = saved_state();
    if ((state & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return 0;
    have = VEC_CPU_AVX2;
    if ((state & zmm) == zmm && (b & wide) == wide)
        have |= VEC_CPU_AVX512 | (c & bit_AVX512VNNI ? VEC_CPU_VNNI : 0);
    return have;
}

#elif defined(__aarch64__)

#if defined(__APPLE__)
#include <sys/sysctl.h>

static int has_dotprod(void)
{
    int yes = 0;
    size_t n = sizeof yes;

    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &yes, &n, NULL, 0) == 0 && yes;
}

#elif defined(__linux__)
#include <sys/auxv.h>

static int has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

#else

static int has_dotprod(void)
{
    return 0;
}

#endif

static unsigned detect(void)
{
    return VEC_CPU_NEON | (has_dotprod() ? VEC_CPU_DOTPROD : 0);
}

#else

static unsigned detect(void)
{
    return 0;
}

#endif

static int listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (*list) {
        size_t word = strcspn(list, ",");

        if (word == n && memcmp(list, name, n) == 0)
            return 1;
        list += word;
        list += *list == ',';
    }
    return 0;
}

unsigned vec_cpu_features(void)
{
    unsigned have = detect();
    const char *off = getenv("VEC_DISABLE");

    if (!off)
        return have;
    if (listed(off, "avx2"))
        have &= ~(unsigned)VEC_CPU_AVX2;
    if (listed(off, "avx512"))
        have &= ~(unsigned)(VEC_CPU_AVX512 | VEC_CPU_VNNI);
    if (listed(off, "avx512vnni"))
        have &= ~(unsigned)VEC_CPU_VNNI;
    if (listed(off, "neon"))
        have &= ~(unsigned)(VEC_CPU_NEON | VEC_CPU_DOTPROD);
    if (listed(off, "dotprod"))
        have &= ~(unsigned)VEC_CPU_DOTPROD;
    return have;
}
