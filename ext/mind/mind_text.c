/*
 * mind_text.c - code points, letters without case and marks.
 *
 * The tables are small on purpose: what they do not know stays as it is and counts as a letter, so
 * that a message in a script without a table here is never taken for empty.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind_text.h"

uint32_t mind_next(const uint8_t *s, size_t n, size_t *at)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint8_t b = s[(*at)++];
    int more = b < 0x80 ? 0 : b >= 0xC2 && b < 0xE0 ? 1 : b >= 0xE0 && b < 0xF0 ? 2 : 3;
    if (more == 0) {
        return b;
    }
    if (b < 0xC2 || b > 0xF4 || n - *at < (size_t)more) {
        return MIND_BROKEN;
    }
    uint32_t c = b & (0x3Fu >> more);
    for (int i = 0; i < more; i++) {
        if ((s[*at + (size_t)i] & 0xC0) != 0x80) {
            return MIND_BROKEN;
        }
        c = c << 6 | (s[*at + (size_t)i] & 0x3F);
    }
    if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        return MIND_BROKEN;
    }
    *at += (size_t)more;
    return c;
}

/* U+00C0 to U+017F without their marks; a second letter below. */
static const char latin[] = "aaaaaaaceeeeiiiidnooooo*ouuuuyts"
                            "aaaaaaaceeeeiiiidnooooo/ouuuuyty"
                            "aaaaaaccccccccddddeeeeeeeeeegggg"
                            "gggghhhhiiiiiiiiiiiijjkkklllllll"
                            "lllnnnnnnnnnoooooooorrrrrrssssss"
                            "ssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
/* U+1E00 to U+1EFF likewise. */
static const char latin2[] = "aabbbbbbccddddddddddeeeeeeeeeeff"
                             "gghhhhhhhhhhiiiikkkkkkllllllllmm"
                             "mmmmnnnnnnnnoooooooopppprrrrrrrr"
                             "ssssssssssttttttttuuuuuuuuuuvvvv"
                             "wwwwwwwwwwxxxxyyzzzzzzhtwyasssss"
                             "aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
                             "eeeeeeeeiiiioooooooooooooooooooo"
                             "oooouuuuuuuuuuuuuuyyyyyyyyllvvyy";

_Static_assert(sizeof latin == 0xC0 + 1 && sizeof latin2 == 0x100 + 1, "a letter a code point");

static uint32_t second_of(uint32_t c)
{
    switch (c) {
    case 0xC6:
    case 0xE6: // ae
    case 0x152:
    case 0x153: // oe
        return 'e';
    case 0xDF: // ss
        return 's';
    case 0xDE:
    case 0xFE: // th
        return 'h';
    default:
        return 0;
    }
}

static uint32_t fold_arabic(uint32_t c)
{
    if ((c >= 0x64B && c <= 0x65F) || c == 0x670 || c == 0x640) {
        return 0;
    }
    return c >= 0x622 && c <= 0x625 && c != 0x624 ? 0x627
           : c == 0x649 || c == 0x6CC             ? 0x64A
           : c == 0x629                           ? 0x647
           : c == 0x6A9                           ? 0x643
                                                  : c;
}

uint32_t mind_fold(uint32_t c, uint32_t *more)
{
    *more = 0;
    if (c < 0x80) {
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    }
    if (c >= 0xC0 && c <= 0x17F) {
        *more = second_of(c);
        return (uint32_t)(unsigned char)latin[c - 0xC0];
    }
    if (c >= 0x1E00 && c <= 0x1EFF) {
        return (uint32_t)(unsigned char)latin2[c - 0x1E00];
    }
    if (c == 0x1A0 || c == 0x1A1) { // Vietnamese o and u with a horn
        return 'o';
    }
    if (c == 0x1AF || c == 0x1B0) {
        return 'u';
    }
    if (c >= 0x300 && c <= 0x36F) { // marks that stand alone
        return 0;
    }
    if (c >= 0x391 && c <= 0x3A9) {
        return c + 32;
    }
    if (c >= 0x400 && c <= 0x42F) {
        c += c < 0x410 ? 80 : 32;
    }
    if (c == 0x451) {
        return 0x435;
    }
    if (c >= 0x600 && c <= 0x6FF) {
        return fold_arabic(c);
    }
    if (c >= 0xFF01 && c <= 0xFF5E) {
        c -= 0xFEE0;
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    }
    return c;
}

int mind_is_upper(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) ||
           (c >= 0x391 && c <= 0x3A9) || (c >= 0x400 && c <= 0x42F) ||
           (c >= 0x100 && c <= 0x137 && !(c & 1)) || (c >= 0x139 && c <= 0x148 && (c & 1)) ||
           (c >= 0x14A && c <= 0x177 && !(c & 1)) || c == 0x178 || c == 0x179 || c == 0x17B ||
           c == 0x17D || (c >= 0x1E00 && c <= 0x1EFF && !(c & 1));
}

int mind_is_lower(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 0xDF && c <= 0x17F && c != 0xF7 && !mind_is_upper(c)) ||
           (c >= 0x3B1 && c <= 0x3C9) || (c >= 0x430 && c <= 0x45F) ||
           (c >= 0x1E00 && c <= 0x1EFF && (c & 1));
}

typedef struct range {
    uint32_t from, to;
} range;

static int in_ranges(uint32_t c, const range *r, size_t n)
{
    size_t low = 0;
    while (low < n) {
        size_t mid = low + (n - low) / 2;
        if (c > r[mid].to) {
            low = mid + 1;
        } else {
            n = mid;
        }
    }
    return c >= r[low].from && c <= r[low].to;
}

/* Ascending; each table ends with a range that nothing is above of. */
static const range symbols[] = {
    {0x80, 0xA9},       {0xAB, 0xB1},       {0xB4, 0xB4},        {0xB6, 0xB8},
    {0xBB, 0xBB},       {0xBF, 0xBF},       {0xD7, 0xD7},        {0xF7, 0xF7},
    {0x2C2, 0x2DF},     {0x37E, 0x37E},     {0x387, 0x387},      {0x55A, 0x55F},
    {0x589, 0x58A},     {0x5BE, 0x5BE},     {0x5F3, 0x5F4},      {0x600, 0x60F},
    {0x61B, 0x61F},     {0x66A, 0x66D},     {0x6D4, 0x6D4},      {0x964, 0x965},
    {0x970, 0x970},     {0xE3F, 0xE3F},     {0xE4F, 0xE4F},      {0x1361, 0x1368},
    {0x2000, 0x206F},   {0x20A0, 0x20FF},   {0x2190, 0x245F},    {0x2500, 0x2775},
    {0x2794, 0x2BFF},   {0x2E00, 0x2E7F},   {0x3000, 0x3004},    {0x3008, 0x3020},
    {0x3030, 0x3030},   {0x303D, 0x303F},   {0x30FB, 0x30FB},    {0xE000, 0xF8FF},
    {0xFE00, 0xFE6F},   {0xFEFF, 0xFEFF},   {0xFF01, 0xFF0F},    {0xFF1A, 0xFF20},
    {0xFF3B, 0xFF40},   {0xFF5B, 0xFF65},   {0xFFE0, 0xFFFF},    {0x1F000, 0x1F0FF},
    {0x1F10D, 0x1FAFF}, {0xE0000, 0xE0FFF}, {0xF0000, 0x10FFFF},
};
static const range digits[] = {
    {0xB2, 0xB3},       {0xB9, 0xB9},       {0xBC, 0xBE},         {0x660, 0x669},
    {0x6F0, 0x6F9},     {0x7C0, 0x7C9},     {0x966, 0x96F},       {0x9E6, 0x9EF},
    {0xA66, 0xA6F},     {0xAE6, 0xAEF},     {0xB66, 0xB6F},       {0xBE6, 0xBEF},
    {0xC66, 0xC6F},     {0xCE6, 0xCEF},     {0xD66, 0xD6F},       {0xE50, 0xE59},
    {0xED0, 0xED9},     {0xF20, 0xF29},     {0x1040, 0x1049},     {0x17E0, 0x17E9},
    {0x1810, 0x1819},   {0x2070, 0x2079},   {0x2080, 0x2089},     {0x2150, 0x218B},
    {0x2460, 0x249B},   {0x24EA, 0x24FF},   {0x2776, 0x2793},     {0xFF10, 0xFF19},
    {0x1D7CE, 0x1D7FF}, {0x1F100, 0x1F10C}, {0x110000, 0x110000},
};
static const range alone[] = {
    {0xE00, 0xEFF},   {0x1000, 0x109F}, {0x1780, 0x17FF},   {0x3005, 0x3007},     {0x3021, 0x3029},
    {0x3031, 0x3035}, {0x3040, 0x30FF}, {0x31F0, 0x31FF},   {0x3400, 0x4DBF},     {0x4E00, 0x9FFF},
    {0xF900, 0xFAFF}, {0xFF66, 0xFF9F}, {0x20000, 0x3FFFF}, {0x110000, 0x110000},
};
#define COUNT(a) (sizeof(a) / sizeof *(a)-1)

int mind_is_symbol(uint32_t c)
{
    if (c < 0x80) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
    }
    return in_ranges(c, symbols, COUNT(symbols));
}

int mind_is_digit(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : in_ranges(c, digits, COUNT(digits));
}

int mind_is_alone(uint32_t c)
{
    return c >= 0xE00 && in_ranges(c, alone, COUNT(alone));
}
