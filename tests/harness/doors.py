"""Rows of all kinds, for tests that carry them out of a table and into another.

SPDX-License-Identifier: MIT
"""
import sqlite3
import struct

import pytest

TABLE = "dim=4, priority INTEGER, label TEXT, weight REAL, raw BLOB, odd TEXT"
COLUMNS = ("id, content, embedding, timestamp, session, channel, tags, source, tier, importance, activation, "
           "access_count, last_access, valid_from, valid_to, superseded_by, pinned, priority, label, weight, raw, odd")
TEXTS = [b"", b"plain words", "caf\u00e9 \u4e16\u754c \U0001f600".encode(), b"a \"quoted\" \\ back",
         b"line\r\nline\ttab\n",
         b"nul \0 inside", b"\0", b"bad \xff\xfe utf8 \xc3", b"\xed\xa0\x80", b"\x01\x1f\x7f", "\u2028\ufeff".encode(),
         b"# heading\n\n```\n# code\n```\n", b"x" * 5000, b"</script>", b"null", b"12"]


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()


def fails(con, sql, *values):
    with pytest.raises(sqlite3.Error) as failure:
        con.execute(sql, values).fetchall()
    return str(failure.value)


def text(rng):
    return rng.choice([None, rng.choice(TEXTS), rng.choice(TEXTS) + b" " + rng.choice(TEXTS)])


def vector(rng):
    kinds = [lambda: rng.gauss(0, 1), lambda: rng.choice([0.0, -0.0, 1e-45, 3.4e38, 1.17549435e-38, 16777217.0]),
             lambda: struct.unpack("<f", struct.pack("<I", rng.getrandbits(31) & 0x7F7FFFFF))[0]]
    return struct.pack("<4f", *(rng.choice(kinds)() for _ in range(4)))


def some(rng, make, share=0.5):
    return make() if rng.random() < share else None


def row(rng, ids):
    return {
        "content": text(rng), "embedding": some(rng, lambda: vector(rng), 0.8),
        "timestamp": rng.choice([0.0, -1e9, 1764547200.123456, rng.uniform(1e9, 2e9)]),
        "session": text(rng), "channel": text(rng), "tags": text(rng),
        "source": rng.choice([None, "user", "assistant", "system", "tool", "retrieval", "correction"]),
        "tier": rng.choice(["working", "episodic", "semantic"]), "importance": rng.random(),
        "activation": rng.uniform(0, 3), "access_count": rng.randrange(5),
        "last_access": some(rng, lambda: rng.uniform(1e9, 2e9)), "valid_from": some(rng, lambda: rng.uniform(0, 2e9)),
        "valid_to": some(rng, lambda: rng.uniform(0, 2e9), 0.2),
        "superseded_by": some(rng, lambda: rng.choice(ids), 0.2),
        "pinned": rng.randrange(2), "priority": rng.choice([None, 0, -1, 2**63 - 1, 1 - 2**63, 7]), "label": text(rng),
        "weight": rng.choice([None, 0.0, 1e300, 0.1, 5e-324, float("inf"), float("-inf"), rng.random()]),
        "raw": some(rng, lambda: bytes(rng.randrange(256) for _ in range(rng.randrange(9)))), "odd": text(rng)}


def fill(con, table, rng, n):
    """n rows; a text is cast from bytes, so that it may be no UTF-8."""
    ids = sorted(rng.sample(range(1, 10 * n), n))
    cast = ("content", "session", "channel", "tags", "label", "odd")
    names = ["id"] + list(row(rng, ids))
    marks = ", ".join("CAST(? AS TEXT)" if name in cast else "?" for name in names)
    con.execute("BEGIN")
    for i in ids:
        con.execute(f"INSERT INTO {table}({', '.join(names)}) VALUES ({marks})", [i, *row(rng, ids).values()])
    con.execute("COMMIT")
    if rng.random() < 0.5:
        con.execute(f"SELECT h5mem_flush('{table}')").fetchall()


def rows_of(con, table):
    return con.execute(f"SELECT {COLUMNS} FROM {table} ORDER BY id").fetchall()
