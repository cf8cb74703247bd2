/*
 * sql_stop.c - the words of an English question that say nothing about what it asks.
 *
 * Function words, and what tokenizers leave of contractions (don't: "don", "t"). No word that alone
 * could be the matter of a question: "may" and "like" are not here.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "sql_ask.h"

enum { LONGEST = 12 };

static const char *const words[] = {
    "a",         "about",   "above",    "after",    "again",   "against",    "all",
    "almost",    "also",    "although", "am",       "among",   "an",         "and",
    "any",       "are",     "aren",     "around",   "as",      "at",         "be",
    "because",   "been",    "before",   "behind",   "being",   "below",      "between",
    "both",      "but",     "by",       "can",      "cannot",  "could",      "couldn",
    "d",         "did",     "didn",     "do",       "does",    "doesn",      "doing",
    "don",       "done",    "down",     "during",   "each",    "either",     "else",
    "ever",      "every",   "few",      "for",      "from",    "had",        "hadn",
    "has",       "hasn",    "have",     "haven",    "having",  "he",         "her",
    "here",      "hers",    "herself",  "him",      "himself", "his",        "how",
    "however",   "i",       "if",       "in",       "instead", "into",       "is",
    "isn",       "it",      "its",      "itself",   "just",    "let",        "ll",
    "m",         "many",    "me",       "might",    "mightn",  "more",       "most",
    "much",      "must",    "mustn",    "my",       "myself",  "neither",    "no",
    "nor",       "not",     "of",       "off",      "on",      "once",       "only",
    "onto",      "or",      "other",    "others",   "ought",   "our",        "ours",
    "ourselves", "out",     "over",     "own",      "perhaps", "re",         "really",
    "s",         "same",    "shall",    "shan",     "she",     "should",     "shouldn",
    "since",     "so",      "some",     "still",    "such",    "t",          "than",
    "that",      "the",     "their",    "theirs",   "them",    "themselves", "then",
    "there",     "these",   "they",     "this",     "those",   "though",     "through",
    "to",        "too",     "under",    "unless",   "until",   "up",         "upon",
    "us",        "ve",      "very",     "via",      "was",     "wasn",       "we",
    "were",      "weren",   "what",     "whatever", "when",    "whenever",   "where",
    "wherever",  "whether", "which",    "while",    "who",     "whom",       "whose",
    "why",       "will",    "with",     "within",   "without", "would",      "wouldn",
    "yes",       "yet",     "you",      "your",     "yours",   "yourself",   "yourselves",
};

static int by_text(const void *key, const void *word)
{
    return strcmp(key, *(const char *const *)word);
}

int sql_is_stop_word(const char *s, size_t n)
{
    char key[LONGEST + 1];
    if (n == 0 || n > LONGEST) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        key[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + ('a' - 'A') : s[i]);
    }
    key[n] = 0;
    return bsearch(key, words, sizeof words / sizeof *words, sizeof *words, by_text) != NULL;
}
