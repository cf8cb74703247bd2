#!/usr/bin/env python3
"""table.py PRINTED - puts what `make bench` has printed into bench/README.md, in place of the table there

    make bench BENCH_OUT=.build/bench.json | tee .build/bench.txt && python3 bench/table.py .build/bench.txt

Only a whole run is taken: every row of the list, in its order, all checks passed.

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
    lines = [line for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line.strip()]
    table = [line for line in lines if line.startswith("|")]
    if names_of("\n".join(table)) != listed():
        sys.exit("not a whole run: its rows are not those of `make bench-list`")
    if any("FAILED" in line for line in lines):
        sys.exit("a row failed")
    machine = next(line for line in lines if not line.startswith("|"))
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    body = "\n".join(re.sub(r" +", " ", line) for line in table)
    README.write_text(f"{before}{BEGIN}\n\n{machine}\n\n{body}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
