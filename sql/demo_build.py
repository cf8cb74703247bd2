#!/usr/bin/env python3
"""demo_build.py - makes sql/demo.h5 out of sql/demo.txt; a tool, not part of `make demo`

    make && /usr/bin/python3 sql/demo_build.py [--model FOLDER]

Every turn becomes one row of an h5mem table: ids from 1 in reading order, 45 seconds a turn, an
embedding by minilm.py. The rows are INSERTed in one transaction and flushed; the .h5 file alone is
kept, since after a flush the log holds nothing. Run it again when demo.txt or the store's format
changes. Needs numpy and the package that minilm.py names (or a folder with the same files), and a
Python whose sqlite3 can load extensions.

SPDX-License-Identifier: MIT
"""
import argparse
import calendar
import pathlib
import shutil
import sqlite3
import tempfile
import time

from minilm import MiniLM

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_A_TURN = 45
COLUMNS = ("id", "content", "embedding", "timestamp", "session", "channel", "source", "tags")


def read_talk(path):
    """The rows of demo.txt as dicts, without embeddings."""
    rows, head, place = [], None, 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("== "):
            session, start, channel, *tags = (part.strip() for part in line[3:].split("|"))
            start = calendar.timegm(time.strptime(start, "%Y-%m-%d %H:%M"))
            head, place = (session, start, channel, tags[0] if tags else None), 0
            continue
        label, colon, content = line.partition(": ")
        if not colon or head is None:
            raise ValueError(f"{path.name}:{number}: neither a session nor a turn: {line!r}")
        session, start, channel, tags = head
        asked = channel == "query"
        rows.append({
            "id": len(rows) + 1, "content": content, "timestamp": start + SECONDS_A_TURN * place,
            "session": session, "channel": channel, "source": "system" if asked else label,
            "tags": label if asked else tags,
        })
        place += 1
    return rows


def build(rows, vectors, folder):
    """A store of these rows in `folder`; gives the path of the .h5 file."""
    con = sqlite3.connect(folder / "demo.db", isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(str(HERE.parent / "h5mem"))
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('demo.h5', dim=384, agent='demo',"
                " embedder='all-MiniLM-L6-v2', compression=deflate:6)")
    places = ", ".join("?" * len(COLUMNS))
    insert = f"INSERT INTO memory({', '.join(COLUMNS)}) VALUES ({places})"
    con.execute("BEGIN")
    for row, vector in zip(rows, vectors):
        values = dict(row, embedding=vector.tobytes())
        con.execute(insert, [values[name] for name in COLUMNS])
    con.execute("COMMIT")
    flushed = con.execute("SELECT h5mem_flush('memory')").fetchone()[0]
    if flushed != len(rows):
        raise RuntimeError(f"{len(rows)} rows were written, {flushed} flushed")
    con.close()
    return folder / "demo.h5"


def main():
    parser = argparse.ArgumentParser(description="make sql/demo.h5 out of sql/demo.txt")
    parser.add_argument("--model", help="folder with the model's files (default: the package)")
    arguments = parser.parse_args()
    rows = read_talk(HERE / "demo.txt")
    vectors = MiniLM(arguments.model).embed([row["content"] for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        made = build(rows, vectors, pathlib.Path(folder))
        shutil.copyfile(made, HERE / "demo.h5")
    print(f"sql/demo.h5: {len(rows)} rows, {(HERE / 'demo.h5').stat().st_size} bytes")


if __name__ == "__main__":
    main()
