"""figures.py - what a list of rankings is worth: Hit@1, 5, 10, MRR@10, how much of the evidence is found

A ranking is a list of ids, best first; each question wants a set of ids. Intervals are those of a
bootstrap over questions (Efron 1979), 1,000 samples with a fixed seed; that of a difference takes
the same questions for both sides.

SPDX-License-Identifier: MIT
"""
import random

CUTS = (1, 5, 10)
NAMES = ("Hit@1", "Hit@5", "Hit@10", "MRR@10", "recall@10", "all@10")
SAMPLES = 1000


def of_question(ranking, wanted):
    """Hit@1, Hit@5, Hit@10, reciprocal rank, share of the evidence and all of it among ten."""
    first = next((n for n, row_id in enumerate(ranking[:10], 1) if row_id in wanted), None)
    found = len(wanted & set(ranking[:10]))
    return (*(float(first is not None and first <= cut) for cut in CUTS), 1 / first if first else 0.0,
            found / len(wanted), float(found == len(wanted)))


class Figures:
    """A growing number of rankings."""

    def __init__(self):
        self.rows = []

    def add(self, ranking, wanted):
        self.rows.append(of_question(ranking, wanted))

    @property
    def count(self):
        return len(self.rows)

    def values(self):
        means = [sum(column) / max(len(self.rows), 1) for column in zip(*self.rows)] or [0.0] * len(NAMES)
        return {name: mean if name == "MRR@10" else 100 * mean for name, mean in zip(NAMES, means)}

    def line(self, name):
        v = self.values()
        return (f"{name:<8} n={self.count}  Hit@1 {v['Hit@1']:.1f}  Hit@5 {v['Hit@5']:.1f}  "
                f"Hit@10 {v['Hit@10']:.1f}  MRR@10 {v['MRR@10']:.3f}")


def interval(rows, name, base=None, seed=1):
    """The 95 % interval of a mean, or of its difference from that of base over the same questions."""
    at, rng = NAMES.index(name), random.Random(seed)
    values = [row[at] - (base[i][at] if base else 0) for i, row in enumerate(rows)]
    scale = 1 if name == "MRR@10" else 100
    means = sorted(scale * sum(rng.choices(values, k=len(values))) / len(values) for _ in range(SAMPLES))
    return means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES)]
