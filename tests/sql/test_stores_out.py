"""h5mem_export to stores: the own format, and clawhdf5's layout as h5py sees it, and back.

SPDX-License-Identifier: MIT
"""
import os
import random
import shutil
import struct

import pytest

from harness.doors import COLUMNS, TABLE, fails, fill, one, rows_of

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.text_factory = bytes
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', {TABLE})")
    return con


def other(con, name="copy"):
    con.execute(f"CREATE VIRTUAL TABLE {name} USING h5mem('{name}.h5', {TABLE})")
    return name


# ---- the own format

@pytest.mark.parametrize("seed", range(2))
def test_h5mem_there_and_back(con, seed):
    fill(con, "memory", random.Random(seed), 100)
    con.execute("UPDATE memory SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM memory)")
    before = rows_of(con, "memory")
    assert one(con, "SELECT h5mem_export('memory', 'out.h5', 'h5mem')") == (100,)
    os.remove("out.h5-wal")  # all is in the file
    assert one(con, f"SELECT h5mem_import('{other(con)}', 'out.h5', 'h5mem')") == (100,)
    assert rows_of(con, "copy") == before
    assert "is there already" in fails(con, "SELECT h5mem_export('memory', 'out.h5', 'h5mem')")
    assert "is there already" in fails(con, "SELECT h5mem_export('memory', 'm.h5', 'h5mem')")
    con.execute("BEGIN")
    con.execute("DELETE FROM memory")
    assert "uncommitted rows" in fails(con, "SELECT h5mem_export('memory', 'more.h5', 'h5mem')")
    con.execute("ROLLBACK")
    assert not os.path.exists("more.h5")


# ---- clawhdf5

def as_held(row):
    """A row as clawhdf5's layout holds it, with the columns that h5mem adds; user columns are lost."""
    row = list(row[:17])
    for i in (1, 4, 5, 6):
        row[i] = row[i].rstrip(b"\0") if row[i] is not None else None
        row[i] = row[i] or (b"" if i == 1 else None)
    if row[2] is not None and not any(struct.unpack("4f", row[2])):
        row[2] = None
    return tuple(row)


@pytest.mark.parametrize("seed, n", [(0, 0), (1, 1), (2, 2), (3, 90), (4, 400)])
def test_clawhdf5_there_and_back(con, seed, n):
    fill(con, "memory", random.Random(seed), n)
    con.execute("UPDATE memory SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM memory)")
    before = [as_held(row) for row in rows_of(con, "memory")]
    assert one(con, "SELECT h5mem_export('memory', 'out.h5', 'clawhdf5')") == (n,)
    assert one(con, f"SELECT h5mem_import('{other(con)}', 'out.h5', 'clawhdf5')") == (n,)
    assert [row[:17] for row in rows_of(con, "copy")] == before
    assert one(con, "SELECT h5mem_verify('copy')") == (b"ok",)
    # once more adds nothing; where ids are another's rows get fresh ones, and links follow
    assert one(con, "SELECT h5mem_import('copy', 'out.h5', 'clawhdf5')") == (0,)
    assert [row[:17] for row in rows_of(con, "copy")] == before
    con.execute("UPDATE copy SET content = coalesce(content, '') || '!'")
    assert one(con, "SELECT h5mem_import('copy', 'out.h5', 'clawhdf5')") == (n,)
    con.executemany("UPDATE copy SET content = CAST(? AS TEXT) WHERE id = ?", [row[1::-1] for row in before])
    assert one(con, "SELECT count(*), count(DISTINCT id) FROM copy") == (2 * n, 2 * n)
    links = "SELECT count(*) FROM copy a JOIN copy b ON b.id = a.superseded_by"
    assert one(con, links) == (2 * sum(row[15] is not None for row in before),)
    assert sorted((r[1:15] for r in before * 2), key=repr) == sorted((r[1:15] for r in rows_of(con, "copy")), key=repr)


@pytest.mark.parametrize("n", [0, 1, 300])
def test_clawhdf5_as_others_read_it(con, n):
    rng = random.Random(n)
    rows = [(i + 1, f"text {i} \u00e9" * rng.randrange(1, 9), struct.pack("4f", *(rng.random() for _ in range(4))),
             1e9 + i / 7, rng.choice(["s1", None]), "chan", "a,b", rng.random(), rng.choice([None, None, 5.0]))
            for i in range(n)]
    con.executemany("INSERT INTO memory(id, content, embedding, timestamp, session, channel, tags, activation,"
                    " valid_to) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    con.execute("SELECT h5mem_config('memory', 'agent', 'me'), h5mem_config('memory', 'embedder', 'minilm')").fetchall()
    one(con, "SELECT h5mem_export('memory', 'out.h5', 'clawhdf5')")
    with h5py.File("out.h5") as f:
        assert list(f) == ["h5mem", "knowledge_graph", "memory", "meta", "sessions"]
        meta = f["meta"].attrs
        assert [meta[k] for k in ("schema_version", "agent_id", "embedder")] == [b"1.0", b"me", b"minilm"]
        assert [meta[k] for k in ("embedding_dim", "chunk_size", "overlap")] == [4, 512, 50]
        assert len(meta["created_at"]) == 20 and f["meta/_marker"][:].tolist() == [1]
        m = f["memory"]
        assert set(m) == {"chunks", "embeddings", "source_channel", "timestamps", "session_ids", "tags", "tombstones",
                          "norms", "activation_weights"}

        def texts(name):
            assert m[name].dtype.kind == "S" and h5py.check_string_dtype(m[name].dtype).encoding == "utf-8"
            return [v.decode() for v in m[name][:]]
        assert texts("chunks") == [r[1] for r in rows]
        assert texts("session_ids") == [r[4] or "" for r in rows]
        assert (texts("source_channel"), texts("tags")) == (["chan"] * n, ["a,b"] * n)
        assert m["embeddings"].shape == (n, 4) and m["embeddings"].dtype == "<f4"
        assert m["embeddings"][:].tobytes() == b"".join(r[2] for r in rows)
        assert m["timestamps"][:].tolist() == [r[3] for r in rows]
        assert m["tombstones"].dtype == "u1" and m["tombstones"][:].tolist() == [int(r[8] is not None) for r in rows]
        assert np.allclose(m["norms"][:], np.linalg.norm(m["embeddings"][:], axis=1), rtol=1e-6)
        assert np.allclose(m["activation_weights"][:], [r[7] for r in rows])
        if n == 300:
            assert m["chunks"].compression == "gzip" and m["chunks"].shuffle
            assert m["chunks"].chunks == (min(300, 65536 // m["chunks"].dtype.itemsize),)
        assert {k: v.shape for k, v in f["sessions"].items()} == dict.fromkeys(
            ("ids", "start_idxs", "end_idxs", "channels", "timestamps", "summaries"), (0,))
        assert len(f["knowledge_graph"]) == 9 and f["knowledge_graph/relation_weights"].dtype == "<f4"


def claw(name, rows, dim=4, **change):
    """A file as its own program writes one. rows: text, vector, channel, time, session, tags, tombstone."""
    def strings(values):
        data = [v.encode() if isinstance(v, str) else v for v in values]
        width = max([1] + [len(v) for v in data])
        return np.array(data, dtype=h5py.string_dtype("utf-8", width)) if data else np.zeros(
            0, h5py.string_dtype("utf-8", 1))

    with h5py.File(name, "w", libver="latest") as f:
        meta = f.create_group("meta")
        for key, value in {"schema_version": "1.0", "created_at": "2026-01-01T00:00:00Z", "agent_id": "a",
                           "embedder": "e"}.items():
            value = change.get(key, value).encode()
            meta.attrs.create(key, np.array(value, h5py.string_dtype("utf-8", len(value))))
        for key, value in {"embedding_dim": dim, "chunk_size": 512, "overlap": 50}.items():
            meta.attrs.create(key, value, dtype="<i8")
        m = f.create_group("memory")
        n = len(rows)
        for i, key in enumerate(("chunks", None, "source_channel", None, "session_ids", "tags")):
            if key:
                m.create_dataset(key, data=strings([r[i] for r in rows]))
        m.create_dataset("embeddings", data=np.array([r[1] for r in rows], "<f4").reshape(n, dim),
                         chunks=(min(n, 3), dim) if n else None)
        m.create_dataset("timestamps", data=np.array([r[3] for r in rows], "<f8"))
        m.create_dataset("tombstones", data=np.array([r[6] for r in rows], "u1"))
        m.create_dataset("norms", data=np.zeros(n, "<f4"))
        m.create_dataset("activation_weights", data=np.arange(n, dtype="<f4"))
        for extra in ("sessions", "knowledge_graph"):
            f.create_group(extra)


ROWS = [("first \u00e9", [1, 0, 0, 0], "cli", 10.5, "s1", "a,b", 0), ("gone", [1, 1, 1, 1], "cli", 11, "s1", "", 1),
        ("", [0, 0, 0, 0], "", 12, "", "", 0), ("third" * 300, [0, 0, 0.5, -1], "web", 13, "s2", "", 0)]


def test_a_file_of_its_own_program(con):
    claw("c.h5", ROWS)
    assert one(con, "SELECT h5mem_import('memory', 'c.h5', 'clawhdf5')") == (3,)
    got = con.execute("SELECT content, h5mem_vector_json(embedding), channel, timestamp, session, tags, activation,"
                      " tier FROM memory ORDER BY id").fetchall()
    assert got == [("first \u00e9".encode(), b"[1,0,0,0]", b"cli", 10.5, b"s1", b"a,b", 0, b"working"),
                   (b"", None, None, 12, None, None, 2, b"working"),
                   (b"third" * 300, b"[0,0,0.5,-1]", b"web", 13, b"s2", None, 3, b"working")]
    claw("empty.h5", [])
    assert one(con, "SELECT h5mem_import('memory', 'empty.h5', 'clawhdf5')") == (0,)


def test_files_that_it_does_not_take(con):
    con.execute("INSERT INTO memory(content) VALUES ('mine')")

    def refused(name, *words):
        text = fails(con, "SELECT h5mem_import('memory', ?, 'clawhdf5')", name)
        assert text.startswith(f"h5mem: memory: {name}: ") and all(w in text for w in words), text
        assert con.execute("SELECT content FROM memory").fetchall() == [(b"mine",)]

    claw("c.h5", ROWS, schema_version="1.1")
    refused("c.h5", "schema_version is '1.1'")
    claw("c.h5", [(*r[:1], [1, 2, 3], *r[2:]) for r in ROWS], dim=3)
    refused("c.h5", "embedding_dim is 3", "4")
    claw("c.h5", ROWS)
    for change, words in ((lambda m: m.__delitem__("tags"), ["tags"]),
                          (lambda m: m["timestamps"].__setitem__(2, float("inf")), ["row 3", "timestamp"]),
                          (lambda m: m["embeddings"].__setitem__((3, 1), float("nan")), ["row 4", "embedding"]),
                          (lambda m: [m.__delitem__("timestamps"), m.create_dataset("timestamps", data=[1.0])],
                           ["timestamps has 1 rows, chunks has 4"]),
                          (lambda m: [m.__delitem__("timestamps"), m.create_dataset("timestamps", data=[[1.0]] * 4)],
                           ["timestamps is no dataset of 1 dimension"]),
                          (lambda m: [m.__delitem__("tags"), m.create_dataset("tags", data=[1] * 4)],
                           ["tags has elements of another type"]),
                          (lambda m: [m.__delitem__("chunks"), m.create_dataset("chunks", (4,), "S20000000")],
                           ["chunks has elements of 20000000 bytes"])):
        shutil.copy("c.h5", "d.h5")
        with h5py.File("d.h5", "r+") as f:
            change(f["memory"])
        refused("d.h5", *words)
    with open("c.h5.wal", "wb") as f:
        f.write(b"EHWL\x02\1\0\0\0" + b"record")
    refused("c.h5", "c.h5.wal holds rows")
    with open("c.h5.wal", "wb") as f:
        f.write(b"EHWL\x02\0\0\0\0")
    assert one(con, "SELECT h5mem_import('memory', 'c.h5', 'clawhdf5')") == (3,)
    con.execute("DELETE FROM memory WHERE content <> 'mine'")
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    refused("m.h5", "schema_version")
    refused("host.db")
    refused("nosuch.h5", "No such file")
    with open("cut.h5", "wb") as f:
        f.write(open("c.h5", "rb").read()[:-100])
    refused("cut.h5")


def test_a_store_of_its_program_is_no_table(con):
    claw("c.h5", ROWS)
    before = open("c.h5", "rb").read()
    text = fails(con, "CREATE VIRTUAL TABLE x USING h5mem('c.h5', dim=4)")
    assert "c.h5" in text and "clawhdf5" in text and "h5mem_import" in text
    assert open("c.h5", "rb").read() == before


def test_a_damaged_file_is_an_error_or_the_right_rows(con):
    claw("c.h5", ROWS)
    whole = open("c.h5", "rb").read()
    rng = random.Random(3)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with open("d.h5", "wb") as f:
            f.write(data)
        con.execute("BEGIN")
        try:
            one(con, "SELECT h5mem_import('memory', 'd.h5', 'clawhdf5')")
        except Exception as e:
            assert str(e).startswith("h5mem: memory: d.h5: "), e
            assert one(con, "SELECT count(*) FROM memory") == (0,)
        con.execute("ROLLBACK")


def test_texts_that_are_too_long(con):
    con.execute("INSERT INTO memory(content) VALUES (printf('%.*c', 17000000, 'x'))")
    text = fails(con, "SELECT h5mem_export('memory', 'out.h5', 'clawhdf5')")
    assert "content of 17000000 bytes" in text and [n for n in os.listdir(".") if n.startswith("out.h5")] == []


def test_columns_are_as_the_helper_says(con):
    assert [r[1].decode() for r in con.execute("PRAGMA table_info(memory)")] == COLUMNS.replace(" ", "").split(",")
