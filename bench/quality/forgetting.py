#!/usr/bin/env python3
"""forgetting.py - does a store that forgets keep what is asked for later? Prints two tables

    /usr/bin/python3 bench/quality/forgetting.py [--locomo FOLDER] [--model FOLDER] [--share 0.3]
        [--held-out] [--set OPTION=VALUE]...

Each conversation of LoCoMo is replayed in order, a session at a time: its turns come in; the earlier questions
whose evidence is then complete are asked, and the five rows that answer are touched; then the store
consolidates, at the time of the session's last turn, down to a share of the conversation's rows. When all is
said, the later questions are asked. Beside it, over the same replay: a store that forgets nothing, one that
drops rows at random, and one that drops the oldest.

Questions are split in two ways. By time: ordered by their last turn of evidence, the first half is earlier, the
second later. Mixed: a seeded half is earlier, each asked as soon as its evidence is there; the others are later,
all asked at the end, about the whole conversation.

--held-out fits the weights of importance on four conversations and replays the fifth with them, for each in
turn, beside the shipped ones.

SPDX-License-Identifier: MIT
"""
import argparse
import math
import pathlib
import random
import sys
import tempfile

import engines
import figures
import locomo
import quality
import vectors

TOUCHED = 5
SIGNALS = ("surprise", "facts", "length", "words", "question")
ASK = "SELECT id FROM memory WHERE content MATCH ? AND embedding MATCH ? ORDER BY score DESC LIMIT 10"


class Store:
    """One conversation's rows in a store that is told what its policy is."""

    settings = ()  # of --set

    def __init__(self, folder, corpus, policy, share, weights=None):
        self.corpus, self.policy, self.rng = corpus, policy, random.Random(7)
        self.most = int(share * len(corpus.rows))
        self.con = engines.connect()
        self.con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{folder}/{corpus.name}.h5', dim=384)")
        self.set("synchronous", "off")
        self.set("working_capacity", self.most - self.most // 2)
        self.set("episodic_capacity", self.most // 2)
        for name, value in (weights or {}).items():
            self.set(f"importance_{name}", value)
        for name, value in Store.settings:
            self.set(name, value)

    def set(self, name, value):
        self.con.execute("SELECT h5mem_config('memory', ?, ?)", (name, value)).fetchone()

    def add(self, first, end):
        self.con.execute("BEGIN")
        self.con.executemany(
            "INSERT INTO memory(id, content, timestamp, session, embedding) VALUES (?, ?, ?, ?, ?)",
            [(*self.corpus.rows[i], self.corpus.row_vectors[i].tobytes()) for i in range(first, end)])
        self.con.execute("COMMIT")

    def ask(self, place):
        text, _, _ = self.corpus.questions[place]
        vector = self.corpus.question_vectors[place].tobytes()
        return [row[0] for row in self.con.execute(ASK, (text, vector))]

    def touch(self, ids, now):
        for row_id in ids:
            self.con.execute("SELECT h5mem_touch('memory', ?, ?)", (row_id, now)).fetchone()

    def forget(self, now):
        if self.policy == "consolidation":
            self.con.execute("SELECT h5mem_consolidate('memory', ?)", (now,)).fetchone()
        elif self.policy != "nothing":
            ids = [row[0] for row in self.con.execute("SELECT id FROM memory ORDER BY id")]
            count = max(0, len(ids) - self.most)
            gone = ids[:count] if self.policy == "oldest" else self.rng.sample(ids, count)
            self.con.executemany("DELETE FROM memory WHERE id = ?", [(i,) for i in gone])

    def ids(self):
        return {row[0] for row in self.con.execute("SELECT id FROM memory")}


def split(corpus, kind):
    """Places of the earlier and of the later questions, each in the order of their last evidence."""
    order = sorted(range(len(corpus.questions)), key=lambda i: (max(corpus.questions[i][1]), i))
    half = len(order) // 2
    if kind == "by time":
        return order[:half], order[half:]
    earlier = set(random.Random(1).sample(order, half))
    return [i for i in order if i in earlier], [i for i in order if i not in earlier]


def replay(store, earlier):
    """All sessions; returns the ids touched."""
    rows, queue, touched = store.corpus.rows, list(earlier), set()
    first = 0
    while first < len(rows):
        end = first
        while end < len(rows) and rows[end][3] == rows[first][3]:
            end += 1
        store.add(first, end)
        now = rows[end - 1][2]
        while queue and max(store.corpus.questions[queue[0]][1]) <= rows[end - 1][0]:
            hits = store.ask(queue.pop(0))[:TOUCHED]
            store.touch(hits, now)
            touched |= set(hits)
        store.forget(now)
        first = end
    return touched


def run(corpora, kind, policy, share, weights=None):
    """-> figures of the later questions, and what there is to say of the stores."""
    out, kept, rows, evidence, known = [], 0, 0, 0, 0
    for corpus in corpora:
        earlier, later = split(corpus, kind)
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder, corpus, policy, share, weights and weights[corpus.name])
            touched = replay(store, earlier)
            kept += len(store.ids())
            rows += len(corpus.rows)
            wanted = set().union(*(corpus.questions[i][1] for i in later))
            evidence += len(wanted)
            known += len(wanted & touched)
            out += [figures.of_question(store.ask(i), corpus.questions[i][1]) for i in later]
            store.con.close()
    return out, {"rows": kept / rows, "touched": known / evidence}


def mean(rows, name):
    at = figures.NAMES.index(name)
    return 100 * sum(row[at] for row in rows) / len(rows)


def table(corpora, kind, share, extra=()):
    """extra: more lines, as (name, weights)."""
    lines = [("forgets nothing", "nothing", None), ("at random", "random", None), ("the oldest", "oldest", None),
             ("consolidation", "consolidation", None), *((name, "consolidation", w) for name, w in extra)]
    done, facts = {}, {}
    for name, policy, weights in lines:
        done[name], facts[name] = run(corpora, kind, policy, share, weights)
    print(f"\nsplit {kind}: {len(done['consolidation'])} later questions; the earlier ones have touched "
          f"{100 * facts['consolidation']['touched']:.0f} % of the turns that the later ones want")
    print(f"{'':<30}{'rows':>6} {'Hit@1':>6} {'Hit@5':>6} {'Hit@10':>6} {'of full':>8}   "
          "Hit@5 beside the oldest, at random [95 % of resamplings]")
    full = mean(done["forgets nothing"], "Hit@5")
    for name, rows in done.items():
        hit = mean(rows, "Hit@5")
        beside = ""
        if name in ("consolidation", *(n for n, _ in extra)):
            for base in ("the oldest", "at random"):
                low, high = figures.interval(rows, "Hit@5", done[base])
                beside += f"   {hit - mean(done[base], 'Hit@5'):+5.1f} [{low:+.1f} {high:+.1f}]"
        print(f"{name:<30}{100 * facts[name]['rows']:5.0f}% {mean(rows, 'Hit@1'):6.1f} {hit:6.1f} "
              f"{mean(rows, 'Hit@10'):6.1f} {100 * hit / full:7.1f}%{beside}", flush=True)
    return done


# ----------------------------------------------------------------------------------------------- weights


def signals(corpus):
    """What importance sees of each turn when it comes, read back through weights of 0 and 1."""
    import numpy

    out = numpy.zeros((len(corpus.rows), len(SIGNALS)))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, corpus, "nothing", 1)
        for name in ("base", *SIGNALS):
            store.set(f"importance_{name}", 0)
        for place, (row_id, text, when, session) in enumerate(corpus.rows):
            vector = corpus.row_vectors[place].tobytes()
            for at, name in enumerate(SIGNALS):
                store.set(f"importance_{name}", 1)
                found = store.con.execute("SELECT h5mem_importance('memory', ?, ?, NULL)", (text, vector))
                p = found.fetchone()[0]  # rounded to four decimals
                out[place, at] = math.log(p / (1 - p))
                store.set(f"importance_{name}", 0)
            store.add(place, place + 1)
        store.con.close()
    return out


def fit(x, y):
    """A logistic regression by Newton's method, with a little ridge."""
    import numpy

    mean_x, scale = x.mean(0), x.std(0) + 1e-9
    z = numpy.c_[numpy.ones(len(x)), (x - mean_x) / scale]
    w = numpy.zeros(z.shape[1])
    for _ in range(25):
        p = 1 / (1 + numpy.exp(-z @ w))
        slope = z.T @ (p - y) + numpy.r_[0, w[1:]]
        w -= numpy.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + numpy.eye(len(w)), slope)
    b = w[1:] / scale
    return w[0] - (b * mean_x).sum(), b


# Fitted weights rate the one turn in four that some question wants; the shipped base is higher by this, so
# that a turn which is likely wanted reaches promote_importance.
LIFT = 1.0


def held_out(corpora):
    """name -> weights fitted on the other conversations."""
    import numpy

    seen = {c.name: signals(c) for c in corpora}
    wanted = {}
    for c in corpora:
        asked = set().union(*(q[1] for q in c.questions))
        wanted[c.name] = numpy.array([float(row[0] in asked) for row in c.rows])
    out = {}
    for c in [*corpora, None]:
        names = [o.name for o in corpora if o is not c]
        base, weights = fit(numpy.vstack([seen[n] for n in names]), numpy.concatenate([wanted[n] for n in names]))
        found = {"base": base + LIFT, **dict(zip(SIGNALS, weights))}
        print(f"fitted without {c.name if c else 'none'}: " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()))
        if c:
            out[c.name] = found
    return out


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--locomo", type=pathlib.Path, default=quality.DATA / "locomo")
    arg.add_argument("--model")
    arg.add_argument("--share", type=float, default=0.3)
    arg.add_argument("--held-out", action="store_true")
    arg.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="of h5mem_config")
    given = arg.parse_args()
    Store.settings = [tuple(one.split("=", 1)) for one in given.set]
    folder, why = vectors.model_folder(quality.CACHE, given.model)
    paths = sorted(given.locomo.glob("conv-*.json"))
    if not folder or not paths:
        sys.exit(why or f"no conversations in {given.locomo}")
    embedder = vectors.Embedder(quality.CACHE, folder)
    corpora = [quality.Corpus(path.stem, *locomo.load(path)) for path in paths]
    for corpus in corpora:
        corpus.embed(embedder)
    print(f"{len(corpora)} conversations, {sum(len(c.rows) for c in corpora)} turns; stores held to "
          f"{100 * given.share:.0f} % of them")
    extra = [("consolidation, held out", held_out(corpora))] if given.held_out else []
    for kind in ("by time", "mixed"):
        table(corpora, kind, given.share, extra)


if __name__ == "__main__":
    main()
