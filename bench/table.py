#!/usr/bin/env python3
"""table.py PRINTED... - puts what `make bench` has printed into bench/README.md, in place of the table there

    make bench BENCH_OUT=.build/bench.json | tee .build/bench.txt && python3 bench/table.py .build/bench.txt

Every row of the list must be there, with its check passed; of a row that several files have, the last one counts.
With --peers it is what `make bench-peers` has printed, as it stands.

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
PEERS, PEERS_END = "<!-- make bench-peers prints -->", "<!-- up to there -->"
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


def put(begin, end, body):
    before, _, rest = README.read_text(encoding="utf-8").partition(begin)
    README.write_text(f"{before}{begin}\n\n{body}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def peers(paths):
    """A block of what was printed, but for what building said."""
    text = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in paths)
    text = re.sub(r"^(CC|LD|CXX|AR) .*\n", "", text, flags=re.M)
    if "FAILED" in text:
        sys.exit("a row failed")
    put(PEERS, PEERS_END, "```\n" + "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n```")


def main():
    if sys.argv[1:2] == ["--peers"]:
        peers(sys.argv[2:])
        return
    lines = [line for path in sys.argv[1:] for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    head = [line for line in lines if line.startswith(("| row |", "|---"))][:2]
    rows = {names_of(line)[0]: line for line in lines if names_of(line)}
    if set(listed()) - set(rows):
        sys.exit(f"rows are missing: {sorted(set(listed()) - set(rows))}")
    table = head + [rows[name] for name in listed()]
    if any("FAILED" in line for line in table):
        sys.exit("a row failed")
    machine = next(line for line in lines if re.search(r", \d+ cores, ", line))
    put(BEGIN, END, machine + "\n\n" + "\n".join(re.sub(r" +", " ", line) for line in table))


if __name__ == "__main__":
    main()
