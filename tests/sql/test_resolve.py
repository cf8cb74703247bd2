"""test_resolve.py - what keeps writers out until somebody decides, and which file is behind

h5mem_config(t, 'resolve') says "doubt", "foreign" or nothing; with a third argument it decides.

SPDX-License-Identifier: MIT
"""
import json
import shutil
import sqlite3

import pytest

CREATE = "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)"


def contents(con):
    return [r[0] for r in con.execute("SELECT content FROM memory ORDER BY id")]


def resolve(con, *how):
    marks = ", ?" * len(how)
    return con.execute(f"SELECT h5mem_config('memory', 'resolve'{marks})", how).fetchone()[0]


def stats(con):
    return json.loads(con.execute("SELECT h5mem_stats('memory')").fetchone()[0])


def test_nothing_to_resolve(connect, in_tmp):
    con = connect("a.db")
    con.execute(CREATE)
    assert resolve(con) == ""
    for how, text in (("adopt", "no other program has changed the file"), ("commit", "no transaction is in doubt"),
                      ("abort", "no transaction is in doubt"), ("maybe", "resolve cannot be 'maybe'")):
        with pytest.raises(sqlite3.OperationalError, match=f"h5mem: memory: m.h5: {text}"):
            resolve(con, how)


def test_a_file_changed_by_another_program(connect, in_tmp):
    h5py = pytest.importorskip("h5py")
    con = connect("a.db")
    con.execute(CREATE)
    con.execute("INSERT INTO memory(content, embedding) VALUES ('one', '[1, 0]')")
    con.execute("SELECT h5mem_flush('memory')")
    con.close()
    with h5py.File("m.h5", "r+") as f:
        f["memory"].attrs["note"] = "added"
        f.create_group("extra")
    con = connect("a.db")
    assert contents(con) == ["one"] and resolve(con) == "foreign"
    with pytest.raises(sqlite3.OperationalError, match="changed by another program.*resolve"):
        con.execute("INSERT INTO memory(content) VALUES ('two')")
    assert resolve(con, "adopt") == "adopt" and resolve(con) == ""
    con.execute("INSERT INTO memory(content) VALUES ('two')")
    con.execute("SELECT h5mem_flush('memory')")
    assert contents(con) == ["one", "two"]
    assert con.execute("SELECT h5mem_verify('memory')").fetchone()[0] == "ok"


@pytest.mark.parametrize("how, want", [("commit", ["one", "two", "three"]), ("abort", ["one", "three"])])
def test_a_host_that_is_gone(connect, tmp_path, monkeypatch, how, want):
    """The files as a death between the two phases leaves them, without the host that could decide."""
    for name in ("lived", "left"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "lived")
    con, reader = connect("a.db"), connect("a.db")
    con.execute(CREATE)
    con.execute("CREATE TABLE plain(x)")
    con.execute("INSERT INTO plain VALUES (0)")
    con.execute("INSERT INTO memory(content) VALUES ('one')")
    reading = reader.execute("SELECT x FROM plain UNION ALL SELECT 1")
    reading.fetchone()
    con.execute("PRAGMA busy_timeout = 0")
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('two')")
    con.execute("INSERT INTO plain VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        con.execute("COMMIT")
    for name in ("m.h5", "m.h5-wal"):
        shutil.copy(name, tmp_path / "left" / name)
    con.execute("ROLLBACK")
    monkeypatch.chdir(tmp_path / "left")
    other = connect("b.db")
    other.execute(CREATE)
    assert contents(other) == ["one"] and resolve(other) == "doubt"
    with pytest.raises(sqlite3.OperationalError, match="belongs to the database '.*a.db'.*resolve"):
        other.execute("INSERT INTO memory(content) VALUES ('three')")
    assert resolve(other, how) == how and resolve(other) == ""
    other.execute("INSERT INTO memory(content) VALUES ('three')")
    assert contents(other) == want
    assert other.execute("SELECT h5mem_verify('memory')").fetchone()[0] == "ok"


@pytest.mark.parametrize("older, late", [("a.db", "host"), ("m.h5", "store")])
def test_a_restored_file_is_behind(connect, in_tmp, older, late):
    con = connect("a.db")
    con.execute(CREATE)
    for word in ("one", "two"):
        con.execute("BEGIN")
        con.execute("INSERT INTO memory(content) VALUES (?)", (word,))
        con.execute("COMMIT")
        assert stats(con)["behind"] is None
        con.close()
        if word == "one":
            shutil.copytree(".", "../old", dirs_exist_ok=True)
        con = connect("a.db")
    con.close()
    names = [older] if older == "a.db" else ["m.h5", "m.h5-wal"]
    for name in names:
        shutil.copy(f"../old/{name}", name)
    con = connect("a.db")
    assert stats(con)["behind"] == late
    assert contents(con) == (["one", "two"] if late == "host" else ["one"])
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('three')")
    con.execute("COMMIT")
    assert stats(con)["behind"] is None
