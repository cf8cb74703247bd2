/*
 * fuzz.h - the entry that a fuzz target defines; libFuzzer or driver.c calls it
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input; gives 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
