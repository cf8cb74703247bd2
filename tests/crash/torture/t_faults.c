/*
 * t_faults.c - calls and allocations that fail
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_run.h"

int t_faults(t_run *run)
{
    (void)run;
    return 0;
}
