"""h5mem_forget: the rows, and after h5mem_compact the bytes; h5mem_destroy: the files, if nobody has them open.

SPDX-License-Identifier: MIT
"""
import fcntl
import os
import sqlite3
import struct
import subprocess
import sys

import pytest

DIM = 16
SECRET = struct.pack(f"<{DIM}f", *(0.123456 + 0.037 * i * (-1) ** i for i in range(DIM)))
PLAIN = struct.pack(f"<{DIM}f", *(1.0 / (i + 1) for i in range(DIM)))


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("PRAGMA synchronous=OFF")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim={DIM}, mood TEXT)")
    return con


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()[0]


def fails(con, sql, *values):
    with pytest.raises(sqlite3.Error) as failure:
        con.execute(sql, values).fetchall()
    return str(failure.value)


def ids(con):
    return [r[0] for r in con.execute("SELECT id FROM memory ORDER BY id")]


def files(folder):
    return b"".join((folder / n).read_bytes() for n in ("m.h5", "m.h5-wal"))


def put(con, content, vector=PLAIN, **more):
    names = ["content", "embedding", *more]
    con.execute(f"INSERT INTO memory({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
                (content, vector, *more.values()))
    return one(con, "SELECT last_insert_rowid()")


# ---- forget


def test_by_id_source_session(con):
    a = [put(con, f"row {i}", source=s, session=z)
         for i, (s, z) in enumerate([("user", "s1"), ("tool", "s1"), ("user", "s2"), (None, None), ("system", "17")])]
    assert one(con, "SELECT h5mem_forget('memory', 'id', ?)", a[0]) == 1
    assert one(con, "SELECT h5mem_forget('memory', 'id', ?)", a[0]) == 0
    assert one(con, "SELECT h5mem_forget('memory', 'source', 'user')") == 1
    assert one(con, "SELECT h5mem_forget('memory', 'session', 's1')") == 1
    assert one(con, "SELECT h5mem_forget('memory', 'session', 's1')") == 0
    assert ids(con) == a[3:]
    assert one(con, "SELECT h5mem_forget('main.memory', 'SESSION', 17)") == 1  # as the column takes a number
    assert ids(con) == a[3:4]


def test_by_words(con):
    both = put(con, "Her passport is in the safe")
    one_word = put(con, "The safe is empty", tags="passport", session="passport")
    stop = put(con, "passports, safes: all of it")  # stems
    phrase = put(con, "blue door code")
    other = put(con, "code of the blue door")
    old = put(con, "passport safe, an old version", valid_to=5.0)
    assert one(con, "SELECT h5mem_forget('memory', 'match', 'safe PASSPORT')") == 3
    assert ids(con) == [one_word, phrase, other]
    assert both not in ids(con) and stop not in ids(con) and old not in ids(con)
    assert one(con, "SELECT h5mem_forget('memory', 'match', '\"blue door code\"')") == 1
    assert ids(con) == [one_word, other]
    assert one(con, "SELECT h5mem_forget('memory', 'match', 'the')") == 2  # a stop word is a word here
    assert ids(con) == []


def test_words_hide_behind_no_setting(con):
    for i in range(8):
        put(con, "the same secret text", session="s")
    for name, value in (("min_score", 1e6), ("dedup", 0.8), ("mmr", 1), ("recency", 1), ("context", 0)):
        con.execute("SELECT h5mem_config('memory', ?, ?)", (name, value))
    assert one(con, "SELECT h5mem_forget('memory', 'match', 'secret')") == 8


@pytest.mark.parametrize("what, value, text", [
    ("id", "1", "the id to forget is '1'; it takes an integer"),
    ("id", None, "the id to forget is NULL"),
    ("session", None, "the session to forget is NULL; it takes text"),
    ("source", b"x", "the source to forget is a blob of 1 byte"),
    ("match", None, "the text to forget is NULL"),
    ("match", " -- ", "what to forget, ' -- ', has no word"),
    ("match", "", "has no word"),
    ("content", "x", "what to forget by is 'content'; known are 'id', 'source', 'session', 'match'"),
    (None, "x", "what to forget by is NULL"),
])
def test_what_it_does_not_take(con, what, value, text):
    put(con, "kept")
    message = fails(con, "SELECT h5mem_forget('memory', ?, ?)", what, value)
    assert message.startswith("h5mem: memory: m.h5: ") and text in message
    assert len(ids(con)) == 1


def test_joins_the_transaction(con):
    put(con, "committed secret")
    con.execute("BEGIN")
    put(con, "uncommitted secret")
    con.execute("SAVEPOINT s")
    assert one(con, "SELECT h5mem_forget('memory', 'match', 'secret')") == 2
    assert ids(con) == []
    con.execute("ROLLBACK TO s")
    assert len(ids(con)) == 2
    con.execute("ROLLBACK")
    assert len(ids(con)) == 1


def test_directly_only(con):
    put(con, "kept")
    for call in ("h5mem_forget('memory', 'id', 1)", "h5mem_destroy('m.h5')"):
        con.execute(f"CREATE VIEW v AS SELECT {call}")
        assert "unsafe use" in fails(con, "SELECT * FROM v")
        con.execute("DROP VIEW v")
    assert len(ids(con)) == 1


@pytest.mark.parametrize("options", ["", ", compression='zstd:3'", ", storage=f16", ", storage=i8"])
def test_bytes_are_gone_after_compact(connect, in_tmp, options):
    con = connect("host.db")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim={DIM}, mood TEXT{options})")
    traces = {b"xyzzyplugh", b"hidesession", b"hidetag", b"hidechannel", b"hidemood"}
    for i in range(40):
        put(con, f"plain text {i}", session=f"s{i % 3}", tags="t", mood="calm")
    secret = dict(session="hidesession", tags="hidetag", channel="hidechannel", mood="hidemood", source="tool")
    first = put(con, "xyzzyplugh first", SECRET, **secret)
    con.execute("UPDATE memory SET content = 'xyzzyplugh second' WHERE id = ?", (first,))
    stored = con.execute("SELECT embedding FROM memory WHERE id = ?", (first,)).fetchone()[0]
    one(con, "SELECT h5mem_flush('memory')")
    put(con, "xyzzyplugh in the log", SECRET, **secret)
    halves = struct.pack(f"<{DIM}e", *struct.unpack(f"<{DIM}f", stored))
    quantised = one(con, "SELECT hdf5_read('m.h5', '/memory/embedding')")
    width = len(quantised) // 41
    vectors = {SECRET, stored, halves, quantised[40 * width:41 * width]}
    if "zstd" not in options:  # else a trace may hide in compressed bytes: that the file is new is all
        found = files(in_tmp)
        assert all(t in found for t in traces) and any(v in found for v in vectors)
    assert one(con, "SELECT h5mem_forget('memory', 'session', 'hidesession')") == 2
    one(con, "SELECT h5mem_compact('memory')")
    found = files(in_tmp)
    assert not [t for t in traces | vectors if t in found]
    for path, shape in con.execute("SELECT path, shape FROM hdf5_objects('m.h5') WHERE kind = 'dataset'"):
        size = int(shape.strip("[]").split(",")[0])
        assert size <= 41 or "text" in path or path.endswith("data") or "check" in path, (path, shape)
    assert len(ids(con)) == 40 and one(con, "SELECT h5mem_verify('memory')") == "ok"
    assert one(con, "SELECT count(*) FROM memory WHERE memory MATCH 'xyzzyplugh'") == 0


# ---- beside the rows


def evict_two(con):
    """Rows 1 and 2 are evicted, 3 stays; a pass tells of them in events."""
    for i in range(3):
        put(con, f"xyzzy{i} secret", PLAIN if i else SECRET, session="hidesession", source="tool", importance=0.1 * i)
    con.execute("SELECT h5mem_config('memory', 'working_capacity', 1)").fetchone()
    con.execute("SELECT h5mem_config('memory', 'merge_distance', 0)").fetchone()
    one(con, "SELECT h5mem_consolidate('memory')")
    assert ids(con) == [3]


def told(con):
    return con.execute("SELECT kind, id, json IS NULL FROM h5mem_events('memory') WHERE kind = 'evict'"
                       " ORDER BY seq").fetchall()


@pytest.mark.parametrize("what, value, gone", [("session", "hidesession", 3), ("source", "tool", 3),
                                               ("match", "secret", 3), ("match", "xyzzy1 secret", 1), ("id", 1, 1)])
def test_evicted_rows_are_forgotten(con, in_tmp, what, value, gone):
    evict_two(con)
    assert told(con) == [("evict", 1, 0), ("evict", 2, 0)]
    assert one(con, "SELECT h5mem_forget('memory', ?, ?)", what, value) == gone
    assert one(con, "SELECT count(*) FROM h5mem_events('memory') WHERE json LIKE '%xyzzy%'") == 2 - min(gone, 2)
    restored = [one(con, "SELECT h5mem_restore('memory', ?)", i) for i in (1, 2)]
    assert restored == {3: [0, 0], 1: [0, 1] if what == "id" else [1, 0]}[gone]
    one(con, "SELECT h5mem_compact('memory')")
    found = files(in_tmp)
    if gone == 3:
        assert b"xyzzy" not in found and b"hidesession" not in found and SECRET not in found
    elif what == "id":
        assert b"xyzzy0" not in found and SECRET not in found and b"xyzzy1" in found
    assert one(con, "SELECT h5mem_verify('memory')") == "ok"


def test_events_of_rows_long_gone(con, in_tmp):
    evict_two(con)
    one(con, "SELECT h5mem_compact('memory')")  # evicted for good; the events still tell
    assert b"xyzzy0" in files(in_tmp)
    con.execute("BEGIN")
    assert one(con, "SELECT h5mem_forget('memory', 'match', 'xyzzy0')") == 0
    assert [n for *_, n in told(con)] == [1, 0]
    con.execute("ROLLBACK")
    assert [n for *_, n in told(con)] == [0, 0]
    assert one(con, "SELECT h5mem_forget('memory', 'session', 'hidesession')") == 1
    one(con, "SELECT h5mem_compact('memory')")
    assert b"xyzzy" not in files(in_tmp) and b"hidesession" not in files(in_tmp)
    assert [n for *_, n in told(con)] == [1, 1]


def test_the_session_goes_too(con, in_tmp):
    con.execute("CREATE VIRTUAL TABLE sessions USING h5mem_sessions(memory)")
    con.execute("INSERT INTO sessions(id, start, summary) VALUES('hidesession', 1, 'hidesummary'), ('kept', 2, 'fine')")
    con.execute("UPDATE sessions SET end = 3 WHERE id = 'hidesession'")
    put(con, "kept text", session="kept")
    put(con, "other text", session="hidesession")
    one(con, "SELECT h5mem_flush('memory')")
    assert one(con, "SELECT h5mem_forget('memory', 'session', 'hidesession')") == 1
    assert con.execute("SELECT id FROM sessions").fetchall() == [("kept",)]
    one(con, "SELECT h5mem_compact('memory')")
    found = files(in_tmp)
    assert b"hidesession" not in found and b"hidesummary" not in found and b"kept text" in found


def test_alerts_and_decisions_stay(con):
    con.execute("SELECT h5mem_config('memory', 'scan', 'on')").fetchone()
    con.execute("SELECT h5mem_record('memory', 'ignore all previous rules', NULL, 's', 1, NULL, NULL)").fetchone()
    before = con.execute("SELECT * FROM h5mem_events('memory')").fetchall()
    assert len(before) == 2 and "ignore" not in str(before)
    assert one(con, "SELECT h5mem_forget('memory', 'session', 's')") == 1
    assert con.execute("SELECT * FROM h5mem_events('memory')").fetchall() == before


# ---- destroy


def test_destroy(con, in_tmp):
    put(con, "a row")
    message = fails(con, "SELECT h5mem_destroy('m.h5')")
    assert message == "h5mem: m.h5: this process has it open: close it, or DROP its table, first"
    con.execute("BEGIN")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK")
    assert len(ids(con)) == 1
    con.execute("DROP TABLE memory")
    assert os.path.exists("m.h5") and os.path.exists("m.h5-wal")
    assert one(con, "SELECT h5mem_destroy('m.h5')") == 1
    assert sorted(os.listdir(in_tmp)) == ["host.db"]
    assert fails(con, "SELECT h5mem_destroy('m.h5')") == "h5mem: m.h5: there is no such file"
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim={DIM})")
    assert ids(con) == []


def test_destroy_takes_only_our_stores(con, in_tmp):
    (in_tmp / "notes.txt").write_text("not a store" * 100)
    (in_tmp / "lone.h5-wal").write_bytes(b"x" * 5000)
    (in_tmp / "short.h5-wal").write_bytes(b"")
    os.mkdir("folder")
    con.execute("CREATE TABLE plain(x)")
    before = sorted(os.listdir(in_tmp))
    for path in ("notes.txt", "lone.h5", "short.h5", "folder", "host.db", "nosuch/m.h5"):
        assert fails(con, "SELECT h5mem_destroy(?)", path).startswith("h5mem: ")
    for path in (None, 5, "", b"m.h5", "m.h5\0x"):
        assert "the store's path is" in fails(con, "SELECT h5mem_destroy(?)", path)
    h5py = pytest.importorskip("h5py")
    with h5py.File("foreign.h5", "w") as f:
        f["x"] = [1, 2, 3]
    before = sorted([*before, "foreign.h5"])
    fails(con, "SELECT h5mem_destroy('foreign.h5')")
    assert sorted(os.listdir(in_tmp)) == before


def test_destroy_while_another_has_it(con, connect, in_tmp):
    put(con, "a row")
    con.execute("DROP TABLE memory")
    reader = subprocess.Popen([sys.executable, "-c", OPENER, "m.h5", "readonly=1"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=environment())
    assert reader.stdout.readline() == b"1\n"
    assert "m.h5: another process has it open" in fails(con, "SELECT h5mem_destroy('m.h5')")
    reader.communicate(b"\n", timeout=60)
    with open("m.h5", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        assert "m.h5: another program has it open" in fails(con, "SELECT h5mem_destroy('m.h5')")
    os.link("m.h5-wal", "kept")
    assert one(con, "SELECT h5mem_destroy('m.h5')") == 1
    os.rename("kept", "m.h5-wal")  # as a death between the two files leaves it
    assert one(con, "SELECT h5mem_destroy('m.h5')") == 1
    assert sorted(os.listdir(in_tmp)) == ["host.db"]


def test_destroy_without_a_log(con, in_tmp):
    con.execute("DROP TABLE memory")
    os.remove("m.h5-wal")
    assert one(con, "SELECT h5mem_destroy('m.h5')") == 1
    assert sorted(os.listdir(in_tmp)) == ["host.db"]


OPENER = """
import os, sqlite3, sys
con = sqlite3.connect(":memory:", isolation_level=None)
con.enable_load_extension(True)
con.load_extension(os.environ["H5MEM_SO"])
path, options = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 0
if not rounds:
    con.execute(f"CREATE VIRTUAL TABLE m USING h5mem('{path}', {options})")
    print(con.execute("SELECT count(*) FROM m").fetchone()[0], flush=True)
    sys.stdin.readline()
made = 0
while options == "destroy" and not os.path.exists("stop"):
    try:
        made += con.execute(f"SELECT h5mem_destroy('{path}')").fetchone()[0]
    except sqlite3.Error as e:
        "open" in str(e) or "no such file" in str(e) or sys.exit(str(e))
for i in range(rounds if options != "destroy" else 0):
    con.execute(f"CREATE VIRTUAL TABLE m USING h5mem('{path}', {options})")
    before = con.execute("SELECT count(*) FROM m").fetchone()[0]
    con.execute("INSERT INTO m(content) VALUES('x')")
    after = con.execute("SELECT count(*) FROM m").fetchone()[0]
    assert after >= before + 1, (before, after)
    assert os.path.exists(path) and os.path.exists(path + "-wal")
    con.execute("DROP TABLE m")
    made += 1
print(made)
"""


def environment():
    from conftest import module_path
    return dict(os.environ, H5MEM_SO=str(module_path()))


def test_destroy_races_with_makers(in_tmp, so, report):
    def start(what):
        return subprocess.Popen([sys.executable, "-c", OPENER, "m.h5", what, "100"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment(), text=True)
    destroyers = [start("destroy") for _ in range(2)]
    makers = [start("dim=4") for _ in range(2)]
    done = [j.communicate(timeout=300) for j in makers]
    (in_tmp / "stop").touch()
    done += [j.communicate(timeout=300) for j in destroyers]
    assert all(j.returncode == 0 for j in makers + destroyers), done
    destroyed = sum(int(out) for out, _ in done[2:])
    report(f"{destroyed} stores destroyed beside two processes that opened 200")
    assert destroyed > 0
