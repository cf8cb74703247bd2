"""make_unicode.py - writes sql_unicode.h: how FTS5's unicode61 with remove_diacritics 2 takes each character.

    python3 ext/sql/make_unicode.py >ext/sql/sql_unicode.h

Asks the FTS5 of this Python's SQLite about every code point, between two letters: does it part them, vanish, or
stand in the token, and as what?

SPDX-License-Identifier: MIT
"""

import sqlite3

HEAD = """/*
 * sql_unicode.h - made by make_unicode.py: do not edit. How FTS5's unicode61 with
 * remove_diacritics 2 takes characters beyond ASCII.
 *
 * letters    runs of characters that are part of a token: first << 11 | how many
 * folds      runs of letters that become another one: first << 11 | every second only << 10 | how
 *            many, and what is added to get it
 * marks      runs of characters that vanish within a token
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_UNICODE_H
#define SQL_UNICODE_H

#include <stdint.h>

typedef struct sql_fold {
    uint32_t run;
    int32_t add;
} sql_fold;
"""


def ask():
    """{code point: what it becomes, '' for one that vanishes}"""
    con = sqlite3.connect(":memory:")
    con.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='unicode61 remove_diacritics 2', detail=full)")
    con.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    codes = [c for c in range(128, 0x110000) if not 0xD800 <= c < 0xE000]
    con.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", ((c, f"qx{chr(c)}xq") for c in codes))
    return {doc: term[2:-2] for term, doc in con.execute("SELECT term, doc FROM v")
            if term.startswith("qx") and term.endswith("xq") and len(term) >= 4}


def letter_runs(letters):
    runs = []
    for c in letters:
        if runs and runs[-1][0] + runs[-1][1] == c and runs[-1][1] < 2047:
            runs[-1][1] += 1
        else:
            runs.append([c, 1])
    return [first << 11 | n for first, n in runs]


def fold_runs(folds):
    runs = []
    for c, to in folds:
        if runs:
            run = runs[-1]
            step = c - run["last"]
            if to - c == run["delta"] and step in (1, 2) and run["step"] in (0, step) and run["n"] < 1023:
                run.update(last=c, step=step, n=run["n"] + 1)
                continue
        runs.append({"first": c, "last": c, "delta": to - c, "step": 0, "n": 1})
    return [(r["first"] << 11 | (r["step"] == 2) << 10 | r["n"], r["delta"]) for r in runs]


def table(name, kind, values, per):
    print(f"\nstatic const {kind} {name}[] = {{")
    for i in range(0, len(values), per):
        print("    " + ", ".join(values[i:i + per]) + ",")
    print("};")


def main():
    becomes = ask()
    marks = sorted(c for c, to in becomes.items() if not to)
    letters = sorted(c for c, to in becomes.items() if to)
    folds = sorted((c, ord(to)) for c, to in becomes.items() if to and to != chr(c))
    mark_runs = letter_runs(marks)
    print(HEAD, end="")
    table("sql_unicode_letters", "uint32_t", [f"0x{v:08x}" for v in letter_runs(letters)], 7)
    table("sql_unicode_folds", "sql_fold",
          [f"{{0x{v:08x}, {add}}}" for v, add in fold_runs(folds)], 4)
    table("sql_unicode_marks", "uint32_t", [f"0x{v:08x}" for v in mark_runs], 7)
    print("\n#endif")


if __name__ == "__main__":
    main()
