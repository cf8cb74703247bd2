/*
 * t_text.c - see t_text.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {"brook", "cedar", "delta", "ember", "fjord", "grove",
                                    "heath", "inlet", "jetty", "knoll", "ledge", "\xc3\xa9ni"};

const char *t_text(int n, char *buf)
{
    size_t used;
    if (n < 0) {
        return NULL;
    }
    if (n == 0) {
        return strcpy(buf, "");
    }
    used = (size_t)snprintf(buf, T_TEXT_MOST, "amber %d", n);
    for (int i = 0, many = n % 41 == 0 ? 600 + n % 500 : n % 12; i < many; i++) {
        used += (size_t)snprintf(buf + used, T_TEXT_MOST - used, " %s", words[(n + i * i) % 12]);
    }
    return buf;
}

int t_text_has_words(int n)
{
    return n > 0;
}

const char *t_vector_hex(int n, char *buf)
{
    *buf = 0;
    for (int i = 0; n && i < 4; i++) {
        float x = (float)(n % (i + 3) - 1 + (i == 3));
        uint32_t bits;
        memcpy(&bits, &x, 4);
        snprintf(buf + 8 * i, 9, "%02X%02X%02X%02X", bits & 255, bits >> 8 & 255, bits >> 16 & 255,
                 bits >> 24);
    }
    return buf;
}

const char *t_vector_json(int n, char *buf)
{
    snprintf(buf, T_HEX_MOST, "[%d,%d,%d,%d]", n % 3 - 1, n % 4 - 1, n % 5 - 1, n % 6);
    return buf;
}
