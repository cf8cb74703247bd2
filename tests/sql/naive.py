"""naive.py - what an h5mem table should answer, computed the slow and obvious way

Distances in double precision over all rows, BM25 from whole token lists, reciprocal rank fusion over
full rankings. Tokens come from SQLite's own FTS5 tokenizer through its vocabulary table. Nothing
here looks at the module under test.

SPDX-License-Identifier: MIT
"""
import collections
import math
import sqlite3

import numpy as np

TOKENIZER = "porter unicode61 remove_diacritics 2"
K1, B = 1.2, 0.75
RRF_K = 60


def tokenize(texts, tokenizer=TOKENIZER):
    """The tokens of each text, in order."""
    con = sqlite3.connect(":memory:")
    con.execute(f"CREATE VIRTUAL TABLE f USING fts5(body, tokenize = '{tokenizer}')")
    con.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance')")
    con.executemany("INSERT INTO f(rowid, body) VALUES (?, ?)", enumerate(texts))
    lists = [[] for _ in texts]
    for number, term in con.execute("SELECT doc, term FROM v ORDER BY doc, offset"):
        lists[number].append(term)
    con.close()
    return lists


def distance(metric, a, b):
    """Distance of two vectors; a cosine with a zero vector is 1."""
    a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
    if metric == "l2":
        return float(np.sqrt(((a - b) ** 2).sum()))
    if metric == "ip":
        return -float(a @ b)
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return 1.0 - float(a @ b) / lengths if lengths > 0 else 1.0


def nearest(metric, vectors, query, only=None):
    """[(id, distance)] of the rows that have a vector, nearest first, ties by id."""
    rows = [(row_id, distance(metric, vector, query)) for row_id, vector in vectors.items()
            if vector is not None and (only is None or row_id in only)]
    return sorted(rows, key=lambda row: (row[1], row[0]))


class Bm25:
    """BM25 over {id: text}: a sum over the query's tokens."""

    def __init__(self, texts, tokenizer=TOKENIZER):
        self.tokenizer = tokenizer
        lists = dict(zip(texts, tokenize(list(texts.values()), tokenizer)))
        self.counts = {row_id: collections.Counter(tokens) for row_id, tokens in lists.items()}
        self.lengths = {row_id: len(tokens) for row_id, tokens in lists.items()}
        self.average = sum(self.lengths.values()) / max(1, len(self.lengths))
        self.frequency = collections.Counter(t for tokens in lists.values() for t in set(tokens))

    def score(self, row_id, tokens):
        total = 0.0
        for token in tokens:
            count = self.counts[row_id][token]
            if count:
                n, df = len(self.counts), self.frequency[token]
                idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                length = 1 - B + B * self.lengths[row_id] / self.average
                total += idf * count * (K1 + 1) / (count + K1 * length)
        return total

    def search(self, query, only=None):
        """[(id, score)] of the rows that hold any of the words, best first, ties by id."""
        tokens = tokenize([query], self.tokenizer)[0]
        rows = [(row_id, self.score(row_id, tokens)) for row_id in self.counts
                if (only is None or row_id in only) and any(self.counts[row_id][t] for t in tokens)]
        return sorted(rows, key=lambda row: (-row[1], row[0]))


def fuse(*rankings):
    """[(id, score)]: the sum of 1 / (60 + place) over full rankings, best first, ties by id."""
    scores = collections.defaultdict(float)
    for ranking in rankings:
        for place, (row_id, _) in enumerate(ranking, 1):
            scores[row_id] += 1.0 / (RRF_K + place)
    return sorted(scores.items(), key=lambda row: (-row[1], row[0]))
