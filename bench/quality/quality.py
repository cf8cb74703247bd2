#!/usr/bin/env python3
"""quality.py - does a search find what was asked for? Prints the tables of `make quality`

    /usr/bin/python3 bench/quality/quality.py [--locomo FOLDER] [--longmemeval FILE] [--arena FILE]
                                              [--model FOLDER] [--no-vectors]

LoCoMo (LOCOMO_DIR, or locomo/ in the data folder): turns as rows, the questions of category 1 to 4
that have evidence, once with a store a conversation and once with one store for all. LongMemEval
(LONGMEMEVAL_FILE, its official JSON): see longmemeval.py. One memory of many sessions: arena.py. All
sides run over the same rows; the baseline is FTS5 with porter and the product's stop list.

SPDX-License-Identifier: MIT
"""
import argparse
import os
import pathlib
import sys
import tempfile

import arena
import engines
import figures
import locomo
import longmemeval
import vectors

HERE = pathlib.Path(__file__).resolve().parent
CACHE = engines.ROOT / ".build/quality"
DATA = pathlib.Path(os.environ.get("H5MEM_DATA", engines.ROOT.parent / "shared/data"))
BASE = "FTS5 porter, stop list"


class Corpus:
    """Rows, questions (text, wanted, category), and their vectors or None."""

    def __init__(self, name, rows, questions):
        self.name, self.rows, self.questions = name, rows, questions
        self.row_vectors = self.question_vectors = None

    def embed(self, embedder):
        self.row_vectors = embedder.embed([row[1] for row in self.rows], self.name)
        self.question_vectors = embedder.embed([q[0] for q in self.questions], f"{self.name}, questions")


def one_of_all(corpora):
    """The corpora as one: ids and sessions made distinct."""
    rows, questions, offset = [], [], 0
    for corpus in corpora:
        rows += [(row_id + offset, text, when, f"{corpus.name}/{session}")
                 for row_id, text, when, session in corpus.rows]
        questions += [(text, {w + offset for w in wanted}, kind) for text, wanted, kind in corpus.questions]
        offset += len(corpus.rows)
    whole = Corpus("all", rows, questions)
    if all(corpus.row_vectors is not None for corpus in corpora) and corpora:
        import numpy

        whole.row_vectors = numpy.concatenate([corpus.row_vectors for corpus in corpora])
        whole.question_vectors = numpy.concatenate([corpus.question_vectors for corpus in corpora])
    return whole


def text_lines(stop):
    """name, store, how it is asked: what each lever adds, one line after the other."""
    def fts5(tokenizer, words):
        return lambda corpus, folder: engines.Fts5(corpus.rows, tokenizer, words), {}

    def ours(settings="", drop_mark=False, **store):
        def make(corpus, folder):
            return engines.H5mem(folder, corpus.rows, **store)
        return make, {"settings": settings, "drop_mark": drop_mark}

    return [
        ("FTS5 unicode61", *fts5(engines.PLAIN, frozenset())),
        ("FTS5 porter", *fts5(engines.PORTER, frozenset())),
        (BASE, *fts5(engines.PORTER, stop)),
        ("h5mem, no stemming, no context", *ours("AND context = 0", tokenizer=engines.PLAIN)),
        ("h5mem, no context", *ours("AND context = 0")),
        ("h5mem, no speakers", *ours(spoken=False)),
        ("h5mem, no dates, no question mark", *ours(drop_mark=True, dated=False)),
        ("h5mem, no dates", *ours(dated=False)),
        ("h5mem", *ours()),
        ("h5mem, expand = 1", *ours("AND expand = 1")),
    ]


def vector_lines():
    def ours(parts, settings=""):
        return (lambda corpus, folder: engines.H5mem(folder, corpus.rows, corpus.row_vectors),
                {"settings": settings, "parts": parts})

    return [
        ("vectors alone", *ours("vector")),
        ("vectors, context 0.3", *ours("vector", "AND context = 0.3")),
        ("hybrid, no context", *ours("both", "AND context = 0")),
        ("hybrid, no context, weighted", *ours("both", "AND context = 0 AND fusion = 'weighted'")),
        ("hybrid, weighted", *ours("both", "AND fusion = 'weighted'")),
        ("hybrid", *ours("both")),
    ]


def run(corpora, make, how):
    """All questions of all corpora -> [of_question], [category]."""
    how = dict(how)
    drop = how.pop("drop_mark", False)
    rows, kinds = [], []
    for corpus in corpora:
        with tempfile.TemporaryDirectory() as folder:
            engine = make(corpus, folder)
            for place, (text, wanted, kind) in enumerate(corpus.questions):
                vector = None if corpus.question_vectors is None else corpus.question_vectors[place]
                ranking = engine.ask(text.rstrip(" ?") if drop else text, vector, **how)
                rows.append(figures.of_question(ranking, wanted))
                kinds.append(kind)
            engine.close()
    return rows, kinds


def show(rows, base):
    held = figures.Figures()
    held.rows = rows
    v = held.values()
    line = (f"{v['Hit@1']:6.1f} {v['Hit@5']:6.1f} {v['Hit@10']:6.1f} {v['MRR@10']:7.3f} {v['recall@10']:7.1f} "
            f"{v['all@10']:7.1f}")
    if base and base is not rows:
        hit, mrr = (figures.interval(rows, name, base) for name in ("Hit@5", "MRR@10"))
        b = figures.Figures()
        b.rows = base
        bv = b.values()
        line += (f"   {v['Hit@5'] - bv['Hit@5']:+5.1f} [{hit[0]:+.1f} {hit[1]:+.1f}]"
                 f"  {v['MRR@10'] - bv['MRR@10']:+.3f} [{mrr[0]:+.3f} {mrr[1]:+.3f}]")
    return line


def table(title, corpora, lines):
    count = sum(len(corpus.questions) for corpus in corpora)
    print(f"\n{title}: {sum(len(corpus.rows) for corpus in corpora)} turns, {count} questions")
    print(f"{'':<36}{'Hit@1':>6} {'Hit@5':>6} {'Hit@10':>6} {'MRR@10':>7} {'recall':>7} {'all@10':>7}   "
          "Hit@5 and MRR beside the baseline [95 % of resamplings]")
    done = {}
    for name, make, how in lines:
        done[name] = run(corpora, make, how)
        base = done.get(BASE, (None,))[0]
        print(f"{name:<36}{show(done[name][0], base)}", flush=True)
    return done


def by_conversation(done, corpora, names):
    """Does what is gained on the whole come from each of them?"""
    print("\nby conversation, Hit@5 and MRR@10")
    for name in names:
        rows, line, start = done[name][0], "", 0
        for corpus in corpora:
            part = rows[start:start + len(corpus.questions)]
            start += len(part)
            held = figures.Figures()
            held.rows = part
            line += f"{held.values()['Hit@5']:7.1f} {held.values()['MRR@10']:.3f}"
        print(f"{name:<24}{line}")


def by_category(done, names):
    kinds = sorted(set(done[BASE][1]))
    print("\nby category")
    for kind in kinds:
        picked = [i for i, k in enumerate(done[BASE][1]) if k == kind]
        base = [done[BASE][0][i] for i in picked]
        for name in names:
            print(f"{kind + ', ' + str(len(picked)):<18}{name:<24}{show([done[name][0][i] for i in picked], base)}")


def locomo_tables(folder, embedder):
    files = sorted(pathlib.Path(folder).glob("conv-*.json"))
    if not files:
        print(f"LoCoMo: skipped, no conv-*.json in {folder} (LOCOMO_DIR names the folder)")
        return
    corpora = [Corpus(path.stem, *locomo.load(path)) for path in files]
    if embedder:
        for corpus in corpora:
            corpus.embed(embedder)
    lines = text_lines(engines.stop_words()) + (vector_lines() if embedder else [])
    shown = [name for name in (BASE, "h5mem", "hybrid") if any(line[0] == name for line in lines)]
    done = table("LoCoMo, one store a conversation", corpora, lines)
    by_category(done, shown)
    by_conversation(done, corpora, shown)
    lines = [line for line in lines if line[0] in (BASE, "h5mem, no context", "h5mem", "hybrid")]
    table("LoCoMo, one store for all", [one_of_all(corpora)], lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--locomo", default=os.environ.get("LOCOMO_DIR") or str(DATA / "locomo"))
    parser.add_argument("--longmemeval", default=os.environ.get("LONGMEMEVAL_FILE"))
    parser.add_argument("--arena", default=os.environ.get("ARENA_FILE"))
    parser.add_argument("--model")
    parser.add_argument("--no-vectors", action="store_true")
    args = parser.parse_args()
    embedder = None
    if not args.no_vectors:
        folder, reason = vectors.model_folder(CACHE, args.model)
        if folder:
            embedder = vectors.Embedder(CACHE, folder)
        else:
            print(f"hybrid rows skipped: {reason}")
    locomo_tables(args.locomo, embedder)
    if args.longmemeval:
        longmemeval.tables(args.longmemeval, embedder)
    else:
        print("\nLongMemEval: skipped, LONGMEMEVAL_FILE names its JSON")
    arena.tables(arena.made_here(), embedder)
    if args.arena:
        arena.tables(arena.from_file(args.arena), embedder)
    else:
        print("\nclawhdf5's conversation: skipped, ARENA_FILE names its memory_arena.rs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
