"""h5mem_export and h5mem_import as JSON lines: the same store comes back, in every column and to the last bit.

SPDX-License-Identifier: MIT
"""
import base64
import json
import math
import os
import random
import sqlite3
import struct
import threading

import pytest

from harness.doors import COLUMNS, TABLE, fails, fill, one, rows_of


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.text_factory = bytes
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', {TABLE})")
    return con


def other(con, name="copy"):
    con.execute(f"CREATE VIRTUAL TABLE {name} USING h5mem('{name}.h5', {TABLE})")
    return name


def write(text, name="in.jsonl"):
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return name


@pytest.mark.parametrize("seed", range(4))
def test_round_trip(con, seed):
    fill(con, "memory", random.Random(seed), 120)
    before = rows_of(con, "memory")
    assert one(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')") == (len(before),)
    copy = other(con)
    assert one(con, f"SELECT h5mem_import('{copy}', 'a.jsonl', 'jsonl')") == (len(before),)
    assert rows_of(con, copy) == before
    one(con, f"SELECT h5mem_export('{copy}', 'b.jsonl', 'jsonl')")
    assert open("a.jsonl", "rb").read() == open("b.jsonl", "rb").read()
    # again: nothing doubles, nothing changes
    assert one(con, f"SELECT h5mem_import('{copy}', 'a.jsonl', 'jsonl')") == (len(before),)
    assert rows_of(con, copy) == before
    assert one(con, f"SELECT h5mem_verify('{copy}')") == (b"ok",)


def test_every_line_is_json_that_others_read(con):
    fill(con, "memory", random.Random(9), 60)
    one(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')")
    lines = open("a.jsonl", "rb").read().decode().split("\n")[:-1]
    ids = [i for i, in con.execute("SELECT id FROM memory ORDER BY id")]
    assert [json.loads(line)["id"] for line in lines] == ids
    names = COLUMNS.replace(" ", "").split(",")
    for line, row in zip(lines, rows_of(con, "memory")):
        got = json.loads(line)
        assert list(got) == names
        for name, want in zip(names, row):
            value = got[name]
            if name == "embedding" and want is not None:
                value = struct.pack("<4f", *value)
            elif isinstance(value, dict):
                value = base64.b64decode(value["base64"])
            elif isinstance(value, str):
                value = value.encode()
            elif isinstance(want, bytes) and len(want) == 8 and name in ("importance", "weight", "timestamp"):
                value = struct.pack("<d", value)
            assert value == want or (isinstance(want, float) and struct.pack("d", value) == struct.pack("d", want))


def test_a_line_changes_what_it_names(con):
    con.execute("INSERT INTO memory(id, content, embedding, tags, priority) VALUES (5, 'old', '[1,0,0,0]', 'a', 3)")
    write('\ufeff{"id": 5, "content": "new"}\r\n\n  \n{"content":"fresh","timestamp":"2026-11-01T00:00:00Z"}\n'
          '{"id":9, "tags":null, "priority": 2.0}')
    assert one(con, "SELECT h5mem_import('memory', 'in.jsonl', 'jsonl')") == (3,)
    assert con.execute("SELECT id, content, h5mem_vector_json(embedding), tags, priority FROM memory ORDER BY id"
                       ).fetchall() == [(5, b"new", b"[1,0,0,0]", b"a", 3), (6, b"fresh", None, None, None),
                                        (9, None, None, None, 2)]
    assert one(con, "SELECT timestamp FROM memory WHERE id = 6") == (1793491200.0,)
    assert one(con, "SELECT id FROM memory('new')") == (5,)
    assert con.execute("SELECT id FROM memory('old')").fetchall() == []


def test_vectors_as_others_write_them(con):
    raw = base64.b64encode(struct.pack("<4f", 1, 2, 3, 4)).decode()
    write(f'{{"embedding":{{"base64":"{raw}"}}}}\n{{"embedding":[1,2,3,4.0]}}\n{{"embedding":"[1,2,3,4]"}}\n'
          f'{{"embedding":{{"base64":"{raw.rstrip("=")}"}}}}\n')
    assert one(con, "SELECT h5mem_import('memory', 'in.jsonl', 'jsonl')") == (4,)
    assert con.execute("SELECT DISTINCT h5mem_vector_json(embedding) FROM memory").fetchall() == [(b"[1,2,3,4]",)]


BAD = [
    ('{"content":"x"', "line 2: neither a comma nor the end of the object at byte 15"),
    ('[1]', "line 2: what is no JSON object at byte 1"),
    ('{"content":"x"} {"content":"y"}', "line 2: more than one JSON object"),
    ('{"content":"x",}', "line 2: no name of a member"),
    ('{"content" "x"}', "line 2: no colon"),
    ('{"content":}', "line 2: what is no JSON value at byte 12"),
    ('{"content":"x}', "line 2: a string without its end"),
    ('{"content":"a\tb"}', "line 2: a control character"),
    ('{"content":"\\x"}', "line 2: an unknown escape"),
    ('{"content":"\\u12G4"}', "line 2: \\u without four hexadecimal digits"),
    ('{"content":"\\ud800"}', "line 2: half of a surrogate pair"),
    ('{"content":["a"]}', "line 2: an array of other things than numbers"),
    ('{"content":[1]}', "line 2: content is an array"),
    ('{"content":{"x":1}}', "line 2: an object other than"),
    ('{"raw":{"base64":"A"}}', "line 2: base64 that is cut off"),
    ('{"raw":{"base64":"A*=="}}', "line 2: what is no base64"),
    ('{"nosuch":1}', 'line 2: the table has no column "nosuch"'),
    ('{"content":"a","content":"b"}', "line 2: content is given twice"),
    ('{"id":1.5}', "line 2: id is no whole number"),
    ('{"id":"7"}', "line 2: id is no whole number"),
    ('{"embedding":[1,2]}', "line 2: dim is 4, got an embedding of 2"),
    ('{"embedding":[1,2,3,1e99]}', "more than a 32-bit float can hold"),
    ('{"timestamp":"last week"}', "line 2: timestamp is 'last week'"),
    ('{"timestamp":9e999}', "line 2: timestamp is"),
    ('{"source":"nobody"}', "line 2: source"),
    ('{"priority":1.5}', "line 2: priority is 1.5; it takes a whole number"),
    ('{"priority":9223372036854775808}', "line 2: priority"),
    ('{"content":01}', "line 2: what is no JSON value"),
    ('{"content":' * 100000, "line 2: an object other than"),
    ('[' * 100000, "line 2: what is no JSON object"),
]


@pytest.mark.parametrize("line, message", BAD, ids=range(len(BAD)))
def test_a_bad_line_leaves_nothing(con, line, message):
    con.execute("INSERT INTO memory(id, content) VALUES (1, 'mine')")
    write('{"id":1,"content":"changed"}\n' + line + '\n{"content":"behind"}\n')
    text = fails(con, "SELECT h5mem_import('memory', 'in.jsonl', 'jsonl')")
    assert text.startswith("h5mem: memory: in.jsonl: line 2: ") and message in text
    assert con.execute("SELECT id, content FROM memory").fetchall() == [(1, b"mine")] and not con.in_transaction


def test_it_is_the_callers_transaction(con):
    write('{"content":"a"}\n')
    con.execute("BEGIN")
    assert one(con, "SELECT h5mem_import('memory', 'in.jsonl', 'jsonl')") == (1,)
    text = fails(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')")
    assert "uncommitted rows" in text and not os.path.exists("a.jsonl")
    con.execute("ROLLBACK")
    assert one(con, "SELECT count(*) FROM memory") == (0,)
    assert one(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')") == (0,) and open("a.jsonl").read() == ""


def test_what_an_export_replaces(con):
    con.execute("INSERT INTO memory(id, content) VALUES (1, 'mine')")
    write("older text\n", "a.jsonl")
    os.symlink("a.jsonl", "link")
    assert one(con, "SELECT h5mem_export('memory', 'link', 'jsonl')") == (1,)
    assert os.path.islink("link") and b'"mine"' in open("a.jsonl", "rb").read()
    os.mkdir("folder")
    os.mkfifo("pipe")
    os.symlink("nowhere", "dangling")
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    for name in ("m.h5", "host.db", "folder", "pipe", "dangling", "/dev/null", "nosuch/a.jsonl"):
        before = open(name, "rb").read() if name in ("m.h5", "host.db") else None
        text = fails(con, "SELECT h5mem_export('memory', ?, 'jsonl')", name)
        assert text.startswith(f"h5mem: memory: {os.path.basename(name)}: "), text
        if before:
            assert open(name, "rb").read() == before
    assert sorted(n for n in os.listdir(".") if "new" in n) == []


@pytest.mark.parametrize("call, message", [
    ("h5mem_export('memory', 'a', 'nosuch')", "the format is 'nosuch'; known are "),
    ("h5mem_export('memory', 'a', NULL)", "the format is NULL"),
    ("h5mem_export('memory', NULL, 'jsonl')", "the path is NULL"),
    ("h5mem_export('memory', '', 'jsonl')", "the path is ''"),
    ("h5mem_export('memory', 'a' || char(0) || 'b', 'jsonl')", "the path is 'a"),
    ("h5mem_import('memory', 'nosuch.jsonl', 'jsonl')", "nosuch.jsonl: No such file"),
    ("h5mem_import('memory', '.', 'jsonl')", "not a regular file"),
])
def test_refusals(con, call, message):
    text = fails(con, f"SELECT {call}")
    assert text.startswith("h5mem: memory: ") and message in text


def test_numbers_to_the_bit(con):
    rng = random.Random(5)
    values = [math.ldexp(rng.random() - 0.5, rng.randrange(-1070, 1020)) for _ in range(500)] + [5e-324, 1.7e308, -0.0]
    con.executemany("INSERT INTO memory(weight) VALUES (?)", [(v,) for v in values])
    one(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')")
    one(con, f"SELECT h5mem_import('{other(con)}', 'a.jsonl', 'jsonl')")
    there, got = ([struct.pack("d", v) for v, in con.execute(f"SELECT weight FROM {t} ORDER BY id")]
                  for t in ("memory", "copy"))
    assert got == there and there[:-1] == [struct.pack("d", v) for v in values[:-1]]


def test_an_export_can_be_interrupted(con):
    con.execute("INSERT INTO memory(content) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < "
                "50000) SELECT 'words' FROM c")
    text = ""
    for _ in range(20):  # one may come too early or too late
        timer = threading.Timer(0.02, con.interrupt)
        timer.start()
        try:
            one(con, "SELECT h5mem_export('memory', 'a.jsonl', 'jsonl')")
            os.remove("a.jsonl")
        except sqlite3.Error as e:
            text = str(e)
        timer.join()
        if text:
            break
    assert "interrupt" in text and not os.path.exists("a.jsonl") and [n for n in os.listdir(".") if "-new-" in n] == []


def test_not_from_a_view(con):
    con.execute("CREATE VIEW v AS SELECT h5mem_export('memory', 'a', 'jsonl')")
    with pytest.raises(sqlite3.Error, match="unsafe use of h5mem_export"):
        con.execute("SELECT * FROM v").fetchall()
