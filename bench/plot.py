#!/usr/bin/env python3
"""plot.py RESULTS... - draws bench/plots/*.svg from files of BENCH_OUT (make bench, make bench-peers)

latency.svg  the median of a query against the rows there are; recall.svg  the median against recall@10 over 100,000
rows; bytes.svg  bytes against rows. Ours as lines, peers that ran beside them dashed. Only what the files hold is
drawn. Needs matplotlib (Debian: python3-matplotlib).

SPDX-License-Identifier: MIT
"""
import json
import pathlib
import re
import sys

OUT = pathlib.Path(__file__).resolve().parent / "plots"
SIZES = {"1k": 1000, "10k": 10000, "100k": 100000, "1m": 1000000, "100": 100}

# label, pattern of the row's name (its group is the number of rows), what is drawn of it, line
LATENCY = [
    ("h5mem exact", r"exact_(1k|10k|100k|1m)", "p50", "-o"),
    ("h5mem near, recall 0.99", r"near_rairs_(10k|100k)", "p50", "-s"),
    ("h5mem words", r"bm25_(10k|100k)", "p50", "-^"),
    ("h5mem both, by ranks", r"rrf_(1k|10k|100k)", "p50", "-v"),
    ("sqlite-vec, exact", r"exact_top10_vec0_real_(1k|10k|100k)", "theirs", "--o"),
    ("FTS5, words", r"locomo_(10k|100k)", "theirs", "--^"),
]
BYTES = [
    ("h5mem", r"bytes_(100|1k|10k|100k)", "file_bytes", "-o"),
    ("sqlite-vec and FTS5", r"bytes_vec0_fts5_(1k|10k)", "peer_bytes", "--o"),
]
RECALL = [
    ("h5mem", r"lists h5mem(?!.*filter).*", "-s"),
    ("vectorlite (HNSW)", r"lists vectorlite.*", "--o"),
    ("FAISS (IVF-PQ)", r"lists FAISS.*", "--^"),
]


def read(paths):
    rows = []
    for path in paths:
        rows += [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if "row" in row and "none" not in row]


def value_of(row, key):
    value = row.get(key, (row.get("facts") or {}).get(key))
    return None if value is None else float(value)


def against_rows(rows, pattern, key):
    """(rows there are, value) of every row whose name matches, by size."""
    found = []
    for row in rows:
        match = re.fullmatch(pattern, row["row"])
        value = value_of(row, key) if match else None
        if value is not None:
            found.append((SIZES[match[1]], value))
    return sorted(found)


def against_recall(rows, pattern):
    found = [(row["recall"], row["p50"] / 1e3) for row in rows
             if "recall" in row and re.fullmatch(pattern, row["row"])]
    return sorted(found)


def draw(name, title, x, y, curves, logs="xy"):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "h5mem"
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for label, points, style in curves:
        if points:
            axes.plot(*zip(*points), style, label=label, markersize=4)
    if "x" in logs:
        axes.set_xscale("log")
    if "y" in logs:
        axes.set_yscale("log")
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / name, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    pyplot.close(figure)
    print(OUT / name)


def main():
    rows = read(sys.argv[1:])
    draw("latency.svg", "Ten best rows, one query, through SQL", "rows", "median, us",
         [(label, [(n, v / 1e3) for n, v in against_rows(rows, pattern, key)], style)
          for label, pattern, key, style in LATENCY])
    draw("recall.svg", "Ten near neighbours of 100,000 x 384", "recall@10 against the exact answer", "median, us",
         [(label, against_recall(rows, pattern), style) for label, pattern, style in RECALL], "y")
    draw("bytes.svg", "Bytes of a store: text of 200 bytes, 384 floats, both indexes", "rows", "bytes",
         [(label, against_rows(rows, pattern, key), style) for label, pattern, key, style in BYTES])


if __name__ == "__main__":
    main()
