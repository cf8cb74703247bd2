/*
 * mind_decay.c - decay by elapsed time.
 *
 * By time and not by call: a store that is ticked a hundred times a day ages as one that is ticked
 * once a month.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind.h"

#include <math.h>

double mind_decay(double value, double seconds, double half_life)
{
    if (!(seconds > 0) || !(half_life > 0)) {
        return value;
    }
    return value * exp2(-seconds / half_life);
}
