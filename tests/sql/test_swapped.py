"""A file that changes place or length under an open store: noticed, and nobody's rows are written over.

SPDX-License-Identifier: MIT
"""

import os
import time

import pytest

CREATE = "CREATE VIRTUAL TABLE memory USING h5mem('{}', dim=2)"


def make(connect, folder, name, rows):
    db = connect(folder / f"{name}.db")
    db.execute(CREATE.format(f"{name}.h5"))
    for row in rows:
        db.execute("INSERT INTO memory(content) VALUES(?)", (row,))
    return db


@pytest.mark.parametrize("flushed", [False, True])
def test_another_store_in_its_place(connect, tmp_path, flushed):
    """Two young stores have the same superblock, byte for byte; only the uuid differs."""
    ours = make(connect, tmp_path, "ours", [])
    other = make(connect, tmp_path, "other", ["theirs"] if flushed else [])
    other.close()
    theirs = (tmp_path / "other.h5").read_bytes()
    ours.execute("INSERT INTO memory(content) VALUES('in the log')")
    os.rename(tmp_path / "other.h5", tmp_path / "ours.h5")
    for sql in ("INSERT INTO memory(content) VALUES('new')", "SELECT h5mem_flush('memory')",
                "SELECT h5mem_compact('memory')"):
        with pytest.raises(Exception, match="ours.h5.*replaced"):
            ours.execute(sql).fetchall()
    assert ours.execute("SELECT content FROM memory").fetchall() == [("in the log",)]
    ours.close()
    assert (tmp_path / "ours.h5").read_bytes() == theirs


def test_cut_while_open(connect, tmp_path):
    db = make(connect, tmp_path, "ours", [f"row {i} " + "x" * 500 for i in range(200)])
    db.execute("SELECT h5mem_flush('memory')").fetchall()
    assert db.execute("SELECT count(*) FROM memory").fetchone() == (200,)
    os.truncate(tmp_path / "ours.h5", 100)
    time.sleep(1.1)
    with pytest.raises(Exception, match="ours.h5.*cut"):
        db.execute("SELECT count(content) FROM memory").fetchall()
