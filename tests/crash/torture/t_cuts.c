/*
 * t_cuts.c - the power goes at some call of a working process
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_run.h"

int t_power_cuts(t_run *run)
{
    (void)run;
    return 0;
}
