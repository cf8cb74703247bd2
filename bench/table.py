#!/usr/bin/env python3
"""table.py PRINTED... - puts what `make bench` has printed into bench/README.md, in place of the table there

    make bench BENCH_OUT=.build/bench.json | tee .build/bench.txt && python3 bench/table.py .build/bench.txt

Every row of the list must be there, with its check passed; of a row that several files have, the last one counts.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
README = HERE / "README.md"
BEGIN, END = "<!-- make bench prints -->", "<!-- up to here -->"
NAME = re.compile(r"\| ([a-z0-9_.]+) \|")


def names_of(text):
    """The rows of a table in Markdown, in their order."""
    found = (NAME.match(line) for line in text.splitlines())
    return [match[1] for match in found if match and match[1] != "row"]


def shown(readme=README):
    """The table in the README."""
    return readme.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def listed(forms=("short", "normal")):
    """Names of the rows that a run of normal length has."""
    build = os.environ.get("H5MEM_BUILD", HERE.parent / ".build/gcc")
    done = subprocess.run(["sh", str(HERE / "run.sh"), str(build), "-", "list"], capture_output=True, text=True,
                          check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.split()[2] in forms]


def main():
    lines = [line for path in sys.argv[1:] for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    head = [line for line in lines if line.startswith(("| row |", "|---"))][:2]
    rows = {names_of(line)[0]: line for line in lines if names_of(line)}
    if set(listed()) - set(rows):
        sys.exit(f"rows are missing: {sorted(set(listed()) - set(rows))}")
    table = head + [rows[name] for name in listed()]
    if any("FAILED" in line for line in table):
        sys.exit("a row failed")
    machine = next(line for line in lines if line.strip() and not line.startswith("|"))
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    body = "\n".join(re.sub(r" +", " ", line) for line in table)
    README.write_text(f"{before}{BEGIN}\n\n{machine}\n\n{body}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
