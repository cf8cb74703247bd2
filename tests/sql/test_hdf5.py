"""HDF5 files as SQL: hdf5_objects, hdf5_attributes, hdf5_values, the hdf5 table, hdf5_read.

Files are made with h5py here and every value is compared with what h5py reads; test_hdf5_corpus.py asks the same of the
files of other programs.

SPDX-License-Identifier: MIT
"""
import json
import math
import re
import sqlite3

import pytest

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i2", ">i4", ">u8", ">f4", ">f8"]


@pytest.fixture(params=["earliest", "latest"])
def h5(request, in_tmp):
    """A new file t.h5 in the working folder, in the old and in the new format."""
    with h5py.File("t.h5", "w", libver=request.param) as f:
        yield f


def rows(con, sql, *args):
    return con.execute(sql, args).fetchall()


def one(con, sql, *args):
    (row,) = rows(con, sql, *args)
    return row[0] if len(row) == 1 else row


def values(con, object, *args):
    """Of hdf5_values, the values in order."""
    marks = "".join(", ?" for _ in args)
    return [v for (v,) in rows(con, f"SELECT value FROM hdf5_values('t.h5', ?{marks})", object, *args)]


def fails(con, sql, *words, args=()):
    with pytest.raises(sqlite3.Error) as e:
        con.execute(sql, args).fetchall()
    for word in words:
        assert word in str(e.value), str(e.value)


# ------------------------------------------------------------------------------------------------ objects


def test_objects(h5, connect):
    h5.create_dataset("a/x", data=np.arange(12, dtype="f4").reshape(3, 4))
    h5.create_dataset("a/grows", shape=(10, 2), maxshape=(None, 2), chunks=(5, 2), dtype=">i2", shuffle=True,
                      compression="gzip")
    h5["scalar"] = 7
    h5["nothing"] = h5py.Empty("f8")
    h5["type"] = np.dtype([("x", "i4"), ("name", "S5")])
    h5["soft"] = h5py.SoftLink("/a/x")
    h5["other"] = h5py.ExternalLink("b.h5", "/z")
    h5["same"] = h5["a/x"]
    h5["a"].attrs["one"] = 1
    h5["a"].attrs["two"] = "zwei"
    h5.close()
    con = connect()
    got = {r[0]: r[1:] for r in rows(con, "SELECT * FROM hdf5_objects('t.h5')")}
    assert list(got) == sorted(got)
    assert got == {
        "/": ("group", None, None, None, None, None, None, None, 0, None),
        "/a": ("group", None, None, None, None, None, None, None, 2, None),
        "/a/grows": ("dataset", ">i2", "[10,2]", "[null,2]", "chunked", "[5,2]", '["shuffle","deflate"]', 40, 0, None),
        "/a/x": ("dataset", "f4", "[3,4]", "[3,4]", "contiguous", None, None, 48, 0, None),
        "/nothing": ("dataset", "f8", None, None, "contiguous", None, None, 0, 0, None),
        "/other": ("external-link", None, None, None, None, None, None, None, None, "b.h5:/z"),
        "/same": ("hard-link", None, None, None, None, None, None, None, None, "/a/x"),
        "/scalar": ("dataset", "i8", "[]", "[]", "contiguous", None, None, 8, 0, None),
        "/soft": ("soft-link", None, None, None, None, None, None, None, None, "/a/x"),
        "/type": ("named-type", '{"x":"i4","name":"S5"}', None, None, None, None, None, None, 0, None),
    }


def test_types_by_name(h5, connect):
    h5["s"] = np.array(["a"], dtype=h5py.string_dtype())
    h5.create_dataset("v", (1,), dtype=h5py.vlen_dtype("i4"))
    h5["e"] = np.zeros(1, dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, basetype="i1"))
    h5.create_dataset("arr", (1,), dtype=[("m", "f8", (2, 3)), ("v", h5py.vlen_dtype("u2"))])
    h5["ref"] = np.array([h5["s"].ref], dtype=h5py.ref_dtype)
    h5["raw"] = np.array([b"abc"], dtype="V3")
    h5.close()
    got = dict(rows(connect(), "SELECT path, dtype FROM hdf5_objects('t.h5') WHERE kind = 'dataset'"))
    assert got == {"/s": "string", "/v": "vlen(i4)", "/e": "enum(i1)", "/arr": '{"m":"f8[2,3]","v":"vlen(u2)"}',
                   "/ref": "ref(object)", "/raw": "opaque(3)"}


# --------------------------------------------------------------------------------------------- attributes


def test_attributes(h5, connect):
    h5["x"] = 1
    a = h5["x"].attrs
    a["int"] = np.int16(-5)
    a["real"] = 0.1
    a["text"] = "grün"
    a["bytes"] = np.bytes_(b"fixed")
    a["list"] = np.array([[1, 2], [3, 4]], "i4")
    a["none"] = h5py.Empty("f4")
    a["words"] = ["a", 'quote"d']
    h5.close()
    got = {r[0]: r[1:] for r in rows(connect(), "SELECT * FROM hdf5_attributes('t.h5', '/x')")}
    assert got == {"int": ("i2", "[]", -5), "real": ("f8", "[]", 0.1), "text": ("string", "[]", "grün"),
                   "bytes": ("S5", "[]", "fixed"), "list": ("i4", "[2,2]", "[[1,2],[3,4]]"), "none": ("f4", None, None),
                   "words": ("string", "[2]", '["a","quote\\"d"]')}


def test_attributes_of_the_root(h5, connect):
    h5.attrs["title"] = "t"
    h5.close()
    assert one(connect(), "SELECT name, value FROM hdf5_attributes('t.h5')") == ("title", "t")


# ------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("chunks", [None, (7, 3)], ids=["contiguous", "chunked"])
def test_numbers(h5, connect, dtype, chunks):
    kind = np.dtype(dtype)
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 256, (20, 10, kind.itemsize), dtype="u1").view(kind).reshape(20, 10)
    if kind.kind == "u" and kind.itemsize == 8:
        raw = raw >> kind.type(1)
    h5.create_dataset("x", data=raw, chunks=chunks)
    h5.close()
    got = rows(connect(), "SELECT i0, i1, value FROM hdf5_values('t.h5', '/x')")
    assert [(i, k) for i, k, _ in got] == [(i, k) for i in range(20) for k in range(10)]
    for (i, k, v) in got:
        want = raw[i, k].item()
        assert v is None if math.isnan(want) else v == want


def test_values_out_of_sqls_reach(h5, connect):
    h5["u"] = np.array([2**63 - 1, 2**63, 2**64 - 1], "u8")
    h5["f"] = np.array([np.nan, np.inf, -np.inf], "f4")
    h5.close()
    con = connect()
    assert values(con, "/u") == [2**63 - 1, str(2**63), str(2**64 - 1)]
    assert values(con, "/f") == [None, math.inf, -math.inf]


def test_strings(h5, connect):
    h5["fixed"] = np.array([b"ab", b"", b"abcde", "ä".encode()], "S5")
    h5["variable"] = np.array(["one", "", "größer", "x" * 10000], dtype=h5py.string_dtype())
    h5["latin"] = np.array([b"gr\xfcn"], "S4")
    h5.close()
    con = connect()
    assert values(con, "/fixed") == ["ab", "", "abcde", "ä"]
    assert values(con, "/variable") == ["one", "", "größer", "x" * 10000]
    assert values(con, "/latin") == [b"gr\xfcn"]


def test_enums_and_nested_types(h5, connect):
    h5["e"] = np.array([0, 1, 5], dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, basetype="i1"))
    v = h5.create_dataset("v", (3,), dtype=h5py.vlen_dtype("i4"))
    v[0], v[1] = [1, 2, 3], [-4]
    h5["c"] = np.array([(1, [[0.5, np.nan]], b"x", 1 + 2j)],
                       dtype=[("n", "u8"), ("m", "f4", (1, 2)), ("s", "S3"), ("z", "c16")])
    h5["raw"] = np.array([b"\0\xff\x10"], dtype="V3")
    h5["ref"] = np.array([h5["e"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
    h5.close()
    con = connect()
    assert values(con, "/e") == ["OFF", "ON", 5]
    assert values(con, "/v") == ["[1,2,3]", "[-4]", "[]"]
    assert json.loads(values(con, "/c")[0]) == {"n": 1, "m": [[0.5, None]], "s": "x", "z": {"r": 1.0, "i": 2.0}}
    assert values(con, "/raw") == [b"\0\xff\x10"]
    assert values(con, "/ref") == ["/e", None]


def test_reals_in_json_are_exact(h5, connect):
    rng = np.random.default_rng(6)
    reals = rng.integers(0, 2**64, 500, dtype="u8").view("f8")
    reals = np.concatenate([reals[np.isfinite(reals)], [0.1, 1 / 3, 1e22, 5e-324, 123456.789, -0.0, 1e15, 2**53 + 2]])
    h5.attrs["f8"] = reals
    h5.attrs["f4"] = np.array([0.1, 1 / 3, 3.4e38, 1e-45], "f4")
    h5.close()
    got = dict(rows(connect(), "SELECT name, value FROM hdf5_attributes('t.h5')"))
    assert json.loads(got["f8"]) == reals.tolist()
    assert np.array(json.loads(got["f4"]), "f4").tolist() == np.array([0.1, 1 / 3, 3.4e38, 1e-45], "f4").tolist()


def test_scalar_null_and_empty(h5, connect):
    h5["scalar"] = 2.5
    h5["null"] = h5py.Empty("i4")
    h5["empty"] = np.zeros((0, 3))
    h5.create_dataset("unwritten", (3,), dtype="i4", fillvalue=9)
    h5.close()
    con = connect()
    assert rows(con, "SELECT i0, value FROM hdf5_values('t.h5', '/scalar')") == [(None, 2.5)]
    assert values(con, "/null") == values(con, "/empty") == []
    assert values(con, "/unwritten") == [9, 9, 9]


@pytest.mark.parametrize("chunks", [None, (4, 3, 2)], ids=["contiguous", "chunked"])
def test_selections(h5, connect, chunks):
    x = np.arange(9 * 8 * 7).reshape(9, 8, 7)
    h5.create_dataset("x", data=x, chunks=chunks)
    h5["y"] = np.arange(100)
    h5.close()
    con = connect()
    assert values(con, "/x", "[1,2,3]", "[4,2,1]") == x[1:5, 2:4, 3:4].ravel().tolist()
    assert values(con, "/x", "[1, 0, null]", None, "[3,2,5]") == x[1::3, ::2, ::5].ravel().tolist()
    assert values(con, "/x", None, "[2,null,0]") == []
    assert values(con, "/y", 90) == list(range(90, 100))
    assert values(con, "/y", 10, 3, 40) == [10, 50, 90]
    assert rows(con, "SELECT i0, i1, i2, i3 FROM hdf5_values('t.h5', '/x', '[8,7,6]')") == [(8, 7, 6, None)]


WHERE = ["i0 = 3", "i0 BETWEEN 2 AND 4 AND i1 > 5", "i1 <= 0", "i0 > 2.5 AND i0 < 4.5", "i0 = 2.5",
         "i0 >= -3 AND i1 < 1", "i0 > 100", "i0 < 0", "i2 = 0", "i2 IS NULL AND i0 = 1", "i0 = '3'", "i0 > NULL",
         "i0 IN (1, 5)",
         "i0 = 9223372036854775807", "i0 > 9223372036854775807", "i1 < -9223372036854775808", "i0 < 1e300",
         "i0 > 3 AND i0 > 5 AND i0 >= 4", "i0 = 1 AND i0 = 2", "value > 40 AND i0 < 6"]


@pytest.mark.parametrize("where", WHERE)
def test_pushed_down_ranges(h5, connect, where):
    h5.create_dataset("x", data=np.arange(80).reshape(8, 10), chunks=(3, 4))
    h5.close()
    con = connect()
    con.execute("CREATE TABLE plain(i0 INTEGER, i1 INTEGER, i2 INTEGER, value)")
    con.execute("INSERT INTO plain SELECT i0, i1, i2, value FROM hdf5_values('t.h5', '/x')")
    assert one(con, "SELECT count(*) FROM plain") == 80
    sql = "SELECT i0, i1, value FROM {} WHERE {} ORDER BY i0, i1"
    assert rows(con, sql.format("hdf5_values('t.h5', '/x')", where)) == rows(con, sql.format("plain", where))


def test_ranges_with_strides(h5, connect):
    h5["x"] = np.arange(50)
    h5.close()
    con = connect()
    for lo in range(-1, 12):
        for hi in range(lo - 1, 20):
            got = rows(con, "SELECT i0 FROM hdf5_values('t.h5', '/x', 2, NULL, 5) WHERE i0 BETWEEN ? AND ?", lo, hi)
            assert [i for (i,) in got] == [i for i in range(2, 50, 5) if lo <= i <= hi]


def test_order(h5, connect):
    h5["x"] = np.arange(12).reshape(3, 4)
    h5.close()
    con = connect()
    plan = "EXPLAIN QUERY PLAN SELECT value FROM hdf5_values('t.h5', '/x') ORDER BY "
    assert "ORDER BY" not in str(rows(con, plan + "i0, i1"))
    assert "ORDER BY" in str(rows(con, plan + "i1"))
    sql = "SELECT value FROM hdf5_values('t.h5', '/x') ORDER BY i1 DESC, i0"
    assert [v for (v,) in rows(con, sql)] == [3, 7, 11, 2, 6, 10, 1, 5, 9, 0, 4, 8]


def test_more_than_a_block(h5, connect):
    """Larger than what is read at once, in one, two and three dimensions, with strides."""
    x = np.arange(300 * 700, dtype="u4").reshape(300, 700)
    h5.create_dataset("flat", data=x.ravel())
    h5.create_dataset("plain", data=x)
    h5.create_dataset("chunked", data=x, chunks=(32, 100), compression="gzip")
    h5.create_dataset("deep", data=x.reshape(3, 100, 700), chunks=(1, 9, 700))
    h5.close()
    con = connect()
    for name in ("flat", "plain", "chunked", "deep"):
        assert values(con, name) == x.ravel().tolist()
    assert values(con, "chunked", "[5,1]", None, "[7,3]") == x[5::7, 1::3].ravel().tolist()
    assert values(con, "flat", 3, None, 20000) == x.ravel()[3::20000].tolist()


def test_joins(h5, connect):
    for i in range(5):
        h5[f"x{i}"] = np.arange(i)
    h5.close()
    got = rows(connect(), "SELECT o.path, count(v.value) FROM hdf5_objects('t.h5') o LEFT JOIN "
               "hdf5_values('t.h5', o.path) v WHERE o.kind = 'dataset' GROUP BY 1")
    assert got == [(f"/x{i}", i) for i in range(5)]


# -------------------------------------------------------------------------------------------------- table


def table(con, object, name="t"):
    con.execute(f"CREATE VIRTUAL TABLE {name} USING hdf5('t.h5', '{object}')")
    return [(n, t) for _, n, t, *_ in con.execute(f"PRAGMA table_info({name})")]


def test_compound_table(h5, connect):
    h5["s"] = np.array([(1, 0.5, b"ab", [1, 2]), (2, np.nan, b"", [3, 4])],
                       dtype=[("id", "i4"), ("Real part", ">f8"), ("s", "S2"), ("m", "u1", (2,))])
    h5.close()
    con = connect()
    assert table(con, "/s") == [("id", "INTEGER"), ("Real part", "REAL"), ("s", "TEXT"), ("m", "")]
    assert rows(con, "SELECT rowid, * FROM t") == [(0, 1, 0.5, "ab", "[1,2]"), (1, 2, None, "", "[3,4]")]
    assert rows(con, "SELECT id FROM t WHERE rowid = 1") == [(2,)]
    assert rows(con, "SELECT id FROM t WHERE s = 'ab'") == [(1,)]


def test_names_that_sql_takes_for_one(h5, connect):
    h5["s"] = np.zeros(1, dtype=[("a", "i4"), ("A", "i4"), ('q"q', "i4")])
    h5.close()
    assert [n for n, _ in table(connect(), "/s")] == ["a", "field 1", 'q"q']


def test_two_dimensions(h5, connect):
    x = np.arange(40).reshape(10, 4)
    h5.create_dataset("x", data=x, chunks=(3, 3))
    h5.close()
    con = connect()
    assert [n for n, _ in table(con, "/x")] == ["c0", "c1", "c2", "c3"]
    assert rows(con, "SELECT * FROM t") == [tuple(r) for r in x.tolist()]
    assert rows(con, "SELECT rowid, c3 FROM t WHERE rowid BETWEEN 4 AND 5") == [(4, 19), (5, 23)]
    assert rows(con, "SELECT rowid FROM t ORDER BY rowid DESC LIMIT 1") == [(9,)]


def test_other_shapes(h5, connect):
    h5["one"] = np.array([1.5, 2.5])
    h5["three"] = np.arange(12).reshape(2, 3, 2)
    h5["scalar"] = 5
    h5["null"] = h5py.Empty("i4")
    h5.close()
    con = connect()
    assert table(con, "/one", "a") == [("value", "REAL")]
    assert rows(con, "SELECT * FROM a") == [(1.5,), (2.5,)]
    table(con, "/three", "b")
    assert rows(con, "SELECT * FROM b") == [("[[0,1],[2,3],[4,5]]",), ("[[6,7],[8,9],[10,11]]",)]
    table(con, "/scalar", "c")
    assert rows(con, "SELECT rowid, * FROM c WHERE rowid = 0") == [(0, 5)]
    table(con, "/null", "d")
    assert rows(con, "SELECT * FROM d") == []


def test_table_life(h5, connect, in_tmp):
    """The table opens and drops without its file, is found beside its database, renames, and notices other columns."""
    h5["x"] = np.arange(3)
    h5.close()
    con = connect(in_tmp / "host.db")
    table(con, "/x")
    con.execute("ALTER TABLE t RENAME TO u")
    con.close()
    con = connect(in_tmp / "host.db")
    assert rows(con, "SELECT value FROM u") == [(0,), (1,), (2,)]
    fails(con, "INSERT INTO u VALUES (1)", "may not be modified")
    with h5py.File("t.h5", "w") as f:
        f["x"] = np.zeros((3, 2))
    fails(con, "SELECT * FROM u", "u: t.h5: /x: its columns are not those")
    (in_tmp / "t.h5").unlink()
    fails(con, "SELECT * FROM u", "u: t.h5: ")
    con.execute("DROP TABLE u")
    assert rows(con, "SELECT name FROM sqlite_schema") == []
    assert not (in_tmp / "t.h5").exists()


# --------------------------------------------------------------------------------------------------- read


@pytest.mark.parametrize("dtype", NUMBERS)
def test_read(h5, connect, dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype)
    h5.create_dataset("x", data=x, chunks=(3, 4))
    h5.close()
    con = connect()
    little = np.dtype(dtype).newbyteorder("<")
    assert one(con, "SELECT hdf5_read('t.h5', '/x')") == x.astype(little).tobytes()
    assert one(con, "SELECT hdf5_read('t.h5', '/x', '[1,2]')") == x[1:, 2:].astype(little).tobytes()
    assert one(con, "SELECT hdf5_read('t.h5', '/x', '[1,2]', '[2,1]')") == x[1:3, 2:3].astype(little).tobytes()


def test_read_other_numbers(h5, connect):
    """Integers of 12 bits in 2 bytes, of 60 in 16, and bfloat16, made with the low-level calls."""
    twelve = h5py.h5t.STD_I16LE.copy()
    twelve.set_precision(12)
    wide = h5py.h5t.STD_I64LE.copy()
    wide.set_size(16)
    wide.set_precision(60)
    brain = h5py.h5t.IEEE_F32BE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_precision(16)
    brain.set_size(2)
    space = h5py.h5s.create_simple((3,))
    i, f, w = (h5py.h5d.create(h5.id, *k, space) for k in ((b"i", twelve), (b"f", brain), (b"w", wide)))
    i.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([-2000, 5, 2047], "i2"))
    f.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0.5, -3, 256], "f4"))
    w.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([-7, 5, 1 << 40], "i8"))
    h5.close()
    con = connect()
    assert dict(rows(con, "SELECT path, dtype FROM hdf5_objects('t.h5') WHERE kind = 'dataset'")) == {
        "/i": "i2:12", "/f": ">f2:e8m7", "/w": "i16:60"}
    assert one(con, "SELECT hdf5_read('t.h5', '/w')") == b"".join(v.to_bytes(16, "little", signed=True)
                                                                  for v in (-7, 5, 1 << 40))
    assert values(con, "/i") == [-2000, 5, 2047] and values(con, "/f") == [0.5, -3, 256]
    assert one(con, "SELECT hdf5_read('t.h5', '/i')") == np.array([-2000, 5, 2047], "<i2").tobytes()
    assert one(con, "SELECT hdf5_read('t.h5', '/f')") == np.array([0.5, -3, 256], "<f8").tobytes()


def test_read_other_types(h5, connect):
    kind = np.dtype([("a", ">i4"), ("b", ">f8", (2,)), ("s", "S3")])
    x = np.array([(1, (2, 3), b"x"), (-1, (0.5, 7), b"yz")], dtype=kind)
    h5["c"] = x
    h5["v"] = np.array(["text"], dtype=h5py.string_dtype())
    h5["null"] = h5py.Empty("i4")
    h5.close()
    con = connect()
    little = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("s", "S3")])
    assert one(con, "SELECT hdf5_read('t.h5', '/c')") == x.astype(little).tobytes()
    assert one(con, "SELECT hdf5_read('t.h5', '/null')") == b""
    fails(con, "SELECT hdf5_read('t.h5', '/v')", "hdf5_read: t.h5: /v: ", "use hdf5_values")


def test_read_feeds_the_vector_functions(h5, connect):
    h5["v"] = np.array([[3, 4], [1, 0]], "f4")
    h5.close()
    assert one(connect(), "SELECT h5mem_vector_json(hdf5_read('t.h5', '/v', '[0,0]', '[1,2]'))") == "[3,4]"


def test_other_files_behind_links(h5, connect):
    """Text, references and attributes of an object behind an external link come from the file that it lies in."""
    with h5py.File("b.h5", "w") as b:
        b["texts"] = ["eins", "zwei"]
        b["own"] = "b"
        b["refs"] = np.array([b["own"].ref], h5py.ref_dtype)
        b["texts"].attrs["of"] = "b.h5"
    h5["own"] = "a"
    h5["texts"] = ["one", "two"]
    h5["far"] = h5py.ExternalLink("b.h5", "/texts")
    h5["refs"] = h5py.ExternalLink("b.h5", "/refs")
    h5["group"] = h5py.ExternalLink("b.h5", "/")
    h5.close()
    con = connect()
    for _ in range(2):
        assert values(con, "/far") == ["eins", "zwei"]
        assert values(con, "/texts") == ["one", "two"]
        assert values(con, "/group/own") == ["b"]
        assert values(con, "/own") == ["a"]
    assert values(con, "/refs") == ["/own"]
    assert one(con, "SELECT value FROM hdf5_attributes('t.h5', '/far') WHERE name = 'of'") == "b.h5"


def test_virtual_datasets(h5, connect):
    layout = h5py.VirtualLayout((3, 4), "f8")
    for i in (0, 2):
        with h5py.File(f"s{i}.h5", "w") as s:
            s["d"] = np.arange(4) + 10 * i
        layout[i] = h5py.VirtualSource(f"s{i}.h5", "d", (4,))
    h5.create_virtual_dataset("v", layout, fillvalue=-1)
    text = h5py.string_dtype()
    names = h5py.VirtualLayout((3, 2), text)
    for i in (0, 2):
        with h5py.File(f"s{i}.h5", "a") as s:
            s.create_dataset("t", data=[f"name {i}", ""], dtype=text)
        names[i] = h5py.VirtualSource(f"s{i}.h5", "t", (2,), text)
    h5.create_virtual_dataset("names", names)
    h5.close()
    con = connect()
    assert values(con, "/v") == [0, 1, 2, 3, -1, -1, -1, -1, 20, 21, 22, 23]
    assert values(con, "/names") == ["name 0", "", "", "", "name 2", ""]
    assert rows(con, "SELECT layout, shape FROM hdf5_objects('t.h5') WHERE path = '/v'") == [("virtual", "[3,4]")]


def test_too_much_at_once(h5, connect):
    h5.create_dataset("x", (1 << 20, 1 << 20), dtype="f8", chunks=(1024, 1024))
    h5.close()
    con = connect()
    fails(con, "SELECT hdf5_read('t.h5', '/x')", "t.h5: /x: 8796093022208 bytes")
    assert rows(con, "SELECT value FROM hdf5_values('t.h5', '/x') LIMIT 2") == [(0.0,), (0.0,)]
    assert values(con, "/x", "[1048575,1048575]") == [0.0]
    fails(con, "CREATE VIRTUAL TABLE t USING hdf5('t.h5', '/x')", "1048576 columns")


# ------------------------------------------------------------------------------------------------- errors


def test_errors_name_file_and_object(h5, connect, in_tmp):
    h5["x"] = np.arange(3)
    h5.create_group("g")
    h5.close()
    (in_tmp / "text.h5").write_text("this is no HDF5 file" * 100)
    con = connect()
    fails(con, "SELECT * FROM hdf5_objects('text.h5')", "hdf5_objects: text.h5: ")
    fails(con, "SELECT * FROM hdf5_objects('gone.h5')", "hdf5_objects: gone.h5: ")
    fails(con, "SELECT * FROM hdf5_objects('.')", "hdf5_objects: ")
    fails(con, "SELECT * FROM hdf5_objects(NULL)", "the file is NULL")
    fails(con, "SELECT * FROM hdf5_objects", "it takes the path")
    fails(con, "SELECT * FROM hdf5_values('t.h5')", "it takes the path of a dataset")
    fails(con, "SELECT * FROM hdf5_values('t.h5', '/nosuch')", "hdf5_values: t.h5: /nosuch: ")
    fails(con, "SELECT * FROM hdf5_values('t.h5', '/g')", "t.h5: /g: it is no dataset")
    fails(con, "SELECT * FROM hdf5_values('t.h5', '/x', 4)", "start is 4", "size 3")
    fails(con, "SELECT * FROM hdf5_values('t.h5', '/x', 1, 3)", "count is 3", "2 are left")
    fails(con, "SELECT * FROM hdf5_values('t.h5', '/x', 0, 1, 0)", "stride is 0")
    for bad in ("[1,2]", "[]", "[1", "x", "[-1]", "[1.5]", "[1] 2", "[99999999999999999999]", 1.5, -1):
        fails(con, "SELECT * FROM hdf5_values('t.h5', '/x', ?)", "/x: start is", "JSON array of 1", args=(bad,))
    fails(con, "SELECT * FROM hdf5_attributes('t.h5', '/nosuch')", "hdf5_attributes: t.h5: /nosuch: ")
    fails(con, "SELECT hdf5_read('t.h5', '/g')", "hdf5_read: t.h5: /g: it is no dataset")
    fails(con, "SELECT hdf5_read('gone.h5', '/g')", "hdf5_read: gone.h5: ")
    fails(con, "CREATE VIRTUAL TABLE t USING hdf5('t.h5')", "takes a file and a dataset")
    fails(con, "CREATE VIRTUAL TABLE t USING hdf5(t.h5, '/x')", "takes a file and a dataset")
    fails(con, "CREATE VIRTUAL TABLE t USING hdf5('t.h5', '/g')", "t: t.h5: /g: it is no dataset")
    fails(con, "CREATE VIRTUAL TABLE t USING hdf5('gone.h5', '/x')", "t: gone.h5: ")
    assert rows(con, "SELECT name FROM sqlite_schema") == []
    assert not (in_tmp / "gone.h5").exists()


def test_a_strangers_schema_opens_nothing(h5, connect):
    h5["x"] = np.arange(3)
    h5.close()
    con = connect()
    for sql in ("SELECT * FROM hdf5_objects('t.h5')", "SELECT * FROM hdf5_attributes('t.h5')",
                "SELECT * FROM hdf5_values('t.h5', '/x')", "SELECT hdf5_read('t.h5', '/x')"):
        con.execute(sql).fetchall()
        con.execute(f"CREATE VIEW v AS {sql}")
        fails(con, "SELECT * FROM v", "unsafe use of")
        con.execute("DROP VIEW v")


def test_cut_files(h5, connect, in_tmp):
    """Of every prefix of a file: what there is, or an error."""
    h5.create_dataset("x", data=np.arange(100), chunks=(10,), compression="gzip")
    h5["s"] = np.array(["a", "b"], dtype=h5py.string_dtype())
    h5.attrs["a"] = [1, 2]
    h5.close()
    whole = (in_tmp / "t.h5").read_bytes()
    con = connect()
    errors = 0
    for n in range(0, len(whole), 37):
        (in_tmp / "cut.h5").write_bytes(whole[:n])
        for sql in ("SELECT * FROM hdf5_objects('cut.h5')", "SELECT * FROM hdf5_attributes('cut.h5')",
                    "SELECT * FROM hdf5_values('cut.h5', '/x')", "SELECT * FROM hdf5_values('cut.h5', '/s')"):
            try:
                con.execute(sql).fetchall()
            except sqlite3.Error as e:
                assert "cut.h5: " in str(e)
                errors += 1
    assert errors > 0


# ------------------------------------------------------------------------------------------------- reading


def bytes_read():
    """By this process, through read and pread, so far."""
    try:
        text = open("/proc/self/io").read()
    except OSError:
        pytest.skip("no /proc/self/io here")
    return int(re.search(r"rchar: (\d+)", text)[1])


@pytest.mark.parametrize("chunks", [None, (1000,)], ids=["contiguous", "chunked"])
def test_a_range_reads_its_part_of_a_large_file(h5, connect, chunks):
    """Indices and rowids are compared before anything is read: 16 MB of numbers, of which a few are asked for."""
    n = 2_000_000
    h5.create_dataset("x", data=np.arange(n, dtype="f8"), chunks=chunks)
    h5.close()
    con = connect()
    table(con, "/x")
    for sql, want in (("SELECT value FROM hdf5_values('t.h5', '/x') WHERE i0 = 1500000", [1500000]),
                      ("SELECT value FROM hdf5_values('t.h5', '/x') WHERE i0 BETWEEN 700000 AND 700002",
                       [700000, 700001, 700002]),
                      ("SELECT value FROM hdf5_values('t.h5', '/x', 1999998)", [1999998, 1999999]),
                      ("SELECT value FROM hdf5_values('t.h5', '/x') LIMIT 2", [0, 1]),
                      ("SELECT value FROM t WHERE rowid >= 1234567 AND rowid < 1234569", [1234567, 1234568])):
        before = bytes_read()
        assert [v for (v,) in rows(con, sql)] == want, sql
        assert bytes_read() - before < 300_000, sql
    before = bytes_read()
    assert one(con, "SELECT sum(value) FROM t") == n * (n - 1) / 2
    assert 8 * n <= bytes_read() - before < 9 * n
