"""Vectors kept as half floats and as bytes: what comes back, and that distances are those of it.

SPDX-License-Identifier: MIT
"""
import json
import math
import random
import sqlite3
import struct

import pytest

DIM = 24
TOO_FAR = 70000.0


class Host:
    """A connection that gives rows, or says what an error says."""

    def __init__(self, con):
        self.con = con

    def __call__(self, sql, *values):
        return self.con.execute(sql, values).fetchall()

    def fails(self, sql, *values):
        with pytest.raises(sqlite3.Error) as error:
            self(sql, *values)
        return str(error.value)


def pack(vector):
    return struct.pack(f"<{len(vector)}f", *vector)


def kept_as_f16(vector):
    return list(struct.unpack(f"<{len(vector)}e", struct.pack(f"<{len(vector)}e", *vector)))


def distance(metric, a, b):
    dot = sum(x * y for x, y in zip(a, b))
    if metric == "ip":
        return -dot
    if metric == "l2":
        return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return 1 - dot / lengths if lengths else 1.0


def vectors(count, seed):
    rng = random.Random(seed)
    made = [[rng.gauss(0, 1) for _ in range(DIM)] for _ in range(count)]
    made[3] = [0.0] * DIM
    made[5] = made[4]
    made[6] = [x * 1e-6 for x in made[6]]
    return made


def check(con, metric, given, storage):
    stored = {row[0]: struct.unpack(f"<{DIM}f", row[1])
              for row in con("SELECT id, embedding FROM m WHERE embedding IS NOT NULL")}
    assert len(stored) == len(given)
    for id_, vector in given.items():
        most = max(map(abs, vector))
        if storage == "f16":
            assert list(stored[id_]) == kept_as_f16(struct.unpack(f"<{DIM}f", pack(vector)))
        else:
            assert all(abs(x - y) <= most * 0.5001 / 127 for x, y in zip(stored[id_], vector))
    for seed in range(4):
        query = [random.Random(100 + seed).gauss(0, 1) for _ in range(DIM)]
        want = sorted((distance(metric, query, v), id_) for id_, v in stored.items())
        got = con("SELECT distance, id FROM m WHERE embedding MATCH ? AND k = 9", pack(query))
        assert [round(d, 4) for d, _ in got] == [round(d, 4) for d, _ in want[:9]]
        far = con("SELECT distance, id FROM m WHERE embedding MATCH ? ORDER BY distance DESC LIMIT 5",
                  pack(query))
        assert [round(d, 4) for d, _ in far] == [round(d, 4) for d, _ in want[::-1][:5]]
        # the same bits as the function gives of what is stored, scanned or found
        for d, id_ in got + far:
            assert d == con("SELECT h5mem_distance(embedding, ?, ?) FROM m WHERE id = ?", pack(query),
                            metric, id_)[0][0]


@pytest.mark.parametrize("compression", ["none", "deflate:3"])
@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("storage", ["f16", "i8"])
def test_life(connect, tmp_path, storage, metric, compression):
    """Insert, flush, update, delete, compact, back up and reopen: the same values all along."""
    con = Host(connect(tmp_path / "host.db"))
    con(f"CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim={DIM}, storage={storage}, metric={metric},"
        f" compression={compression})")
    given = dict(enumerate(vectors(300, 7), 1))
    con("BEGIN")
    for id_, vector in given.items():
        con("INSERT INTO m(id, embedding, content) VALUES (?, ?, 'x')", id_,
            pack(vector) if id_ % 2 else json.dumps(vector))
    con("INSERT INTO m(id, content) VALUES (999, 'no vector')")
    con("COMMIT")
    check(con, metric, given, storage)
    con("SELECT h5mem_flush('m')")
    check(con, metric, given, storage)
    for id_, vector in zip(range(10, 40), vectors(30, 8)):
        con("UPDATE m SET embedding = ? WHERE id = ?", pack(vector), id_)
        given[id_] = vector
    for id_ in range(200, 230):
        con("DELETE FROM m WHERE id = ?", id_)
        del given[id_]
    check(con, metric, given, storage)
    con("SELECT h5mem_compact('m')")
    check(con, metric, given, storage)
    assert con("SELECT h5mem_verify('m')") == [("ok",)]
    assert con("SELECT h5mem_config('m', 'storage')") == [(storage,)]
    con("SELECT h5mem_backup('m', ?)", str(tmp_path / "copy.h5"))
    other = Host(connect(tmp_path / "other.db"))
    other("CREATE VIRTUAL TABLE m USING h5mem('copy.h5')")
    check(other, metric, given, storage)
    assert other("SELECT h5mem_verify('m')") == [("ok",)]
    size = (tmp_path / "m.h5").stat().st_size
    assert size < 300 * (DIM * 4 + 400) + 300_000


def test_limits_and_words(connect, tmp_path):
    con = Host(connect(tmp_path / "host.db"))
    con(f"CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim={DIM}, storage=f16)")
    said = con.fails("INSERT INTO m(embedding) VALUES (?)", pack([TOO_FAR] + [0.0] * (DIM - 1)))
    assert "f16" in said and "65504" in said
    assert con("SELECT count(*) FROM m") == [(0,)]
    said = con.fails("CREATE VIRTUAL TABLE n USING h5mem('n.h5', dim=3, storage=f8)")
    assert "f8" in said and "f32, f16, i8" in said
    said = con.fails("CREATE VIRTUAL TABLE n USING h5mem('m.h5', storage=i8)")
    assert "f16" in said and "i8" in said


def test_others_read_it(connect, tmp_path):
    """In the file they are what HDF5 calls half floats; bytes have their scale behind them."""
    h5py = pytest.importorskip("h5py")
    numpy = pytest.importorskip("numpy")
    given = vectors(50, 9)
    for storage in ("f16", "i8"):
        con = Host(connect(tmp_path / f"{storage}.db"))
        con(f"CREATE VIRTUAL TABLE m USING h5mem('{storage}.h5', dim={DIM}, storage={storage})")
        for vector in given:
            con("INSERT INTO m(embedding) VALUES (?)", pack(vector))
        con("SELECT h5mem_flush('m')")
        shown = [struct.unpack(f"<{DIM}f", row[0]) for row in con("SELECT embedding FROM m")]
        with h5py.File(tmp_path / f"{storage}.h5", "r") as file:
            raw = file["memory/embedding"][()]
        if storage == "f16":
            assert raw.dtype == numpy.float16
            read = raw.astype("f4")
        else:
            assert raw.dtype == numpy.int8
            scale = numpy.ascontiguousarray(raw[:, DIM:]).view("<f4")
            read = raw[:, :DIM].astype("f4") * scale
        assert numpy.array_equal(read, numpy.array(shown, "f4"))
