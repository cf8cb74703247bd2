#!/usr/bin/env python3
"""lists.py - near neighbours through lists beside vectorlite (HNSW) and FAISS (IVF-PQ fast scan with refinement)

    make && python3 bench/peers/lists.py [--rows 100000] [--queries 1000] [--data sentences|uniform|FILE]
                                         [--vectorlite vectorlite.so] [--threads 1]

Prints a line a searcher and setting: recall@10 against the exact answer, median and 95th percentile of one query from
Python with its ten rows, and how long it took from the first vector to an index that answers. h5mem and vectorlite are
asked through SQL, h5mem with so many threads (to train
its lists, and to scan), FAISS through its Python module with one; where a peer is not there its lines are left out.
vectorlite: npm pack @1yefuwang1/vectorlite-linux-x64; FAISS: pip install faiss-cpu. Needs numpy.

sentences  the 458 sentence embeddings of sql/demo.h5 (all-MiniLM-L6-v2, 384 dimensions), stretched: one of them, plus
           0.2 to 0.6 of another one's difference from the mean, plus half of a normal deviate with their covariance,
           scaled to length 1. Queries are made alike from other numbers.
uniform    each component uniform in -1 .. 1: the hard case
FILE       float32, little-endian, 384 a row; the last thousand are the queries

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIM = 384


def connection(path):
    con = sqlite3.connect(path, isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(str(ROOT / "h5mem"))
    return con


def sentences(folder):
    con = connection(folder / "demo.db")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{ROOT / 'sql' / 'demo.h5'}', readonly=on)")
    rows = con.execute("SELECT embedding FROM memory WHERE embedding IS NOT NULL ORDER BY id").fetchall()
    con.close()
    return np.frombuffer(b"".join(row for row, in rows), "<f4").reshape(-1, DIM).astype(np.float64)


def stretched(base, n, rng):
    mean = base.mean(0)
    values, vectors = np.linalg.eigh(np.cov((base - mean).T))
    spread = (vectors * np.sqrt(np.maximum(values, 0))).T
    parts = []
    for at in range(0, n, 10000):
        m = min(10000, n - at)
        one, other = base[rng.integers(0, len(base), m)], base[rng.integers(0, len(base), m)]
        x = one + rng.uniform(0.2, 0.6, (m, 1)) * (other - mean) + 0.5 * (rng.standard_normal((m, DIM)) @ spread)
        parts.append((x / np.linalg.norm(x, axis=1, keepdims=True)).astype("<f4"))
    return np.concatenate(parts)


def load(args, folder):
    rng = np.random.default_rng(1)
    if args.data == "uniform":
        rows, queries = (rng.uniform(-1, 1, (n, DIM)).astype("<f4") for n in (args.rows, args.queries))
    elif args.data == "sentences":
        base = sentences(folder)
        rows, queries = stretched(base, args.rows, rng), stretched(base, args.queries, rng)
    else:
        every = np.fromfile(args.data, "<f4").reshape(-1, DIM)
        rows, queries = every[: args.rows], every[-1000:][: args.queries]
    return rows, queries / np.linalg.norm(queries, axis=1, keepdims=True)


def measure(name, ask, queries, truth, build):
    answers, times = [], []
    for q in queries:
        start = time.perf_counter()
        answers.append(ask(q))
        times.append((time.perf_counter() - start) * 1e6)
    recall = sum(len(set(a) & set(t)) for a, t in zip(answers, truth)) / sum(map(len, truth))
    parts = [statistics.median(times[len(times) * i // 5:len(times) * (i + 1) // 5]) for i in range(5)]
    times.sort()
    p50, p95 = times[len(times) // 2], times[len(times) * 95 // 100]
    if os.environ.get("BENCH_OUT"):
        with open(os.environ["BENCH_OUT"], "a", encoding="utf-8") as out:
            print(json.dumps({"row": f"lists {name}", "part": "lists", "n": len(times), "p50": p50 * 1e3,
                              "p95": p95 * 1e3, "parts": [part * 1e3 for part in parts], "recall": recall,
                              "build_s": build, "check": True}), file=out)
    print(f"{name:44} recall {recall:.4f}  p50 {p50:8.1f} us  p95 {p95:8.1f} us  build {build:7.1f} s", flush=True)
    return answers


def ours(rows, queries, folder, threads):
    con = connection(folder / "ours.db")
    con.execute(f"CREATE VIRTUAL TABLE m USING h5mem('ours.h5', dim={DIM}, threads={threads})")
    start = time.perf_counter()
    con.execute("BEGIN")
    con.executemany("INSERT INTO m(id, embedding, timestamp) VALUES (?, ?, 0)",
                    ((i, x.tobytes()) for i, x in enumerate(rows)))
    con.execute("COMMIT")
    con.execute("SELECT h5mem_optimize('m')")
    build = time.perf_counter() - start
    about = json.loads(con.execute("SELECT h5mem_stats('m')").fetchone()[0])
    print({name: about.get(name) for name in ("index", "index_recall", "index_bytes", "file_bytes")})

    def ask(setting):
        sql = f"SELECT id, distance FROM m WHERE embedding MATCH ? AND k = 10{setting}"
        return lambda q: [i for i, _ in con.execute(sql, (q.tobytes(),))]

    truth = [ask(" AND exact = 1")(q) for q in queries]
    for setting in (" AND exact = 1", "", " AND recall = 0.95", " AND recall = 0.999"):
        measure("h5mem" + (setting or " (recall 0.99)"), ask(setting), queries, truth, build)
    for share in (0.5, 0.1, 0.01, 0.001):
        part = f" AND id < {int(len(rows) * share)}"
        few = queries[:200]
        inside = [ask(part + " AND exact = 1")(q) for q in few]
        measure(f"h5mem exact, filter {share:g}", ask(part + " AND exact = 1"), few, inside, build)
        measure(f"h5mem, filter {share:g}", ask(part), few, inside, build)
    con.close()
    return truth


def hnsw(args, rows, queries, truth):
    con = sqlite3.connect(":memory:", isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(args.vectorlite.removesuffix(".so"))
    con.execute(f"CREATE VIRTUAL TABLE v USING vectorlite(e float32[{DIM}] cosine, hnsw(max_elements={len(rows)}))")
    start = time.perf_counter()
    con.executemany("INSERT INTO v(rowid, e) VALUES (?, ?)", ((i, x.tobytes()) for i, x in enumerate(rows)))
    build = time.perf_counter() - start
    for ef in (10, 40, 100, 200):
        sql = f"SELECT rowid, distance FROM v WHERE knn_search(e, knn_param(?, 10, {ef}))"

        def ask(q):
            return [i for i, _ in con.execute(sql, (q.tobytes(),))]

        measure(f"vectorlite ef={ef}", ask, queries[:200], truth[:200], build)


def fast_scan(rows, queries, truth):
    import faiss
    faiss.omp_set_num_threads(1)
    x = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    start = time.perf_counter()
    index = faiss.index_factory(DIM, "IVF1024,PQ96x4fs,RFlat")
    index.train(x)
    index.add(x)
    build = time.perf_counter() - start
    base = faiss.extract_index_ivf(index)
    for probes, factor in ((8, 10), (32, 10), (64, 20), (128, 40)):
        base.nprobe, index.k_factor = probes, factor
        name = f"FAISS IVF1024,PQ96x4fs,RFlat nprobe={probes} x{factor}"
        measure(name, lambda q: index.search(q[None], 10)[1][0].tolist(), queries, truth, build)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=100000)
    p.add_argument("--queries", type=int, default=1000)
    p.add_argument("--data", default="sentences")
    p.add_argument("--vectorlite")
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows, queries = load(args, pathlib.Path(name))
        truth = ours(rows, queries, pathlib.Path(name), args.threads)
    try:
        fast_scan(rows, queries, truth)
    except ImportError:
        print("SKIP FAISS: no module faiss")
    if args.vectorlite:
        hnsw(args, rows, queries, truth)
    else:
        print("SKIP vectorlite: --vectorlite names its module")


if __name__ == "__main__":
    main()
