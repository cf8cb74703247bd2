"""Virtual datasets and external links made by libhdf5: hdf5core reads what h5py reads.

SPDX-License-Identifier: MIT
"""
import random
import subprocess

import pytest

from harness.cprog import environment, program, unharmed
from harness.h5show import show

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")
h5s = h5py.h5s
UNLIMITED = h5s.UNLIMITED


def tool(*args):
    return unharmed(subprocess.run([program("interop/h5core_tool"), *map(str, args)], capture_output=True,
                                   env=environment()))


def values(path, name, like):
    done = tool("values", path, name)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, like.dtype.newbyteorder("=")).reshape(like.shape)


def agrees(path, *names):
    """Values and shape of the datasets as h5py has them, which are returned."""
    with h5py.File(path, "r") as f:
        for name in names:
            want = f[name][...]
            have = values(path, name, want)
            assert np.array_equal(have, want, equal_nan=want.dtype.kind == "f"), (name, have, want)
    return want


def readable(path, name):
    """libhdf5 1.10 sometimes cuts the two sides of a mapping off at different lengths, and says so."""
    with h5py.File(path, "r") as f:
        try:
            return f[name][...] is not None
        except OSError:
            return False


def slab(dims, start, count, stride=None, block=None, maxdims=None):
    space = h5s.create_simple(dims, maxdims or dims)
    space.select_hyperslab(start, count, stride, block)
    return space


def source(path, name, data, **more):
    with h5py.File(path, "a") as f:
        f.create_dataset(name, data=data, **more)


def virtual(path, name, dims, mappings, kind="<i4", fill=-9, maxdims=None):
    """mappings: (selection in the dataset, file, path, selection in the source), all low-level."""
    with h5py.File(path, "a", libver="latest") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_fill_value(np.array(fill, kind))
        for to, file, there, taken in mappings:
            plist.set_virtual(to, file.encode(), there.encode(), taken)
        t = h5py.h5t.py_create(np.dtype(kind), logical=True)
        h5py.h5d.create(f.id, name.encode(), t, h5s.create_simple(dims, maxdims or dims), plist)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_stacked(tmp_path, libver):
    path = tmp_path / "v.h5"
    layout = h5py.VirtualLayout((6, 40, 30), "f4")
    for i in range(6):
        if i != 4:  # a source that is not there
            source(tmp_path / f"s{i}.h5", "d", np.random.default_rng(i).standard_normal((40, 30)).astype("f4"),
                   chunks=(16, 16), compression="gzip")
        layout[i] = h5py.VirtualSource(f"s{i}.h5", "d", (40, 30))
    with h5py.File(path, "w", libver=libver) as f:
        f.create_virtual_dataset("v", layout, fillvalue=7)
        f.create_virtual_dataset("unset", layout)
    assert (agrees(path, "unset", "v")[4] == 7).all()


def random_slab(rng, dims):
    """A regular hyperslab inside dims: start, count, stride, block."""
    out = []
    for n in dims:
        block = int(rng.integers(1, max(2, n // 3 + 1)))
        stride = block + int(rng.integers(0, 3))
        most = (n - block) // stride + 1
        count = int(rng.integers(1, most + 1))
        start = int(rng.integers(0, n - ((count - 1) * stride + block) + 1))
        out.append((start, count, stride, block))
    return [tuple(x) for x in zip(*out)]


def test_random_hyperslabs(tmp_path):
    """Regular selections of every kind on both sides, of equal numbers of elements and unlike shapes."""
    rng = np.random.default_rng(5)
    path = tmp_path / "v.h5"
    names = []
    for i in range(120):
        rank = int(rng.integers(1, 4))
        dims = tuple(int(x) for x in rng.integers(3, 14, rank))
        start, count, stride, block = random_slab(rng, dims)
        n = int(np.prod(count)) * int(np.prod(block))
        kind = rng.choice(["line", "same", "all", "gaps"])
        if kind == "line":
            data, taken = np.arange(n + 5), slab((n + 5,), (3,), (n,))
        elif kind == "same":
            data, taken = rng.integers(0, 999, dims), slab(dims, start, count, stride, block)
        elif kind == "all":
            data = rng.integers(0, 999, tuple(c * b for c, b in zip(count, block)))
            taken = h5s.create_simple(data.shape)
            taken.select_all()
        else:
            data, taken = np.arange(3 * n + 2), slab((3 * n + 2,), (1,), (n,), (3,))
        source(tmp_path / "s.h5", f"d{i}", data.astype("i4"))
        virtual(path, f"v{i}", dims, [(slab(dims, start, count, stride, block), "s.h5", f"d{i}", taken)])
        names.append(f"v{i}")
    agrees(path, *names)
    with h5py.File(path, "r") as f:
        for name in names:  # parts of them
            d = f[name]
            lo = [int(rng.integers(0, n)) for n in d.shape]
            hi = [int(rng.integers(a + 1, n + 1)) for a, n in zip(lo, d.shape)]
            want = d[tuple(slice(a, b) for a, b in zip(lo, hi))]
            done = tool("slab", path, name, ",".join(map(str, lo)), ",".join(str(b - a) for a, b in zip(lo, hi)))
            assert done.returncode == 0, done.stderr
            assert np.array_equal(np.frombuffer(done.stdout, "i4").reshape(want.shape), want), (name, lo, hi)


def test_irregular_selections(tmp_path):
    path = tmp_path / "v.h5"
    to = slab((9, 10), (0, 0), (3, 4))
    to.select_hyperslab((2, 3), (4, 5), op=h5s.SELECT_OR)
    to.select_hyperslab((8, 9), (1, 1), op=h5s.SELECT_OR)
    n = to.get_select_npoints()
    source(tmp_path / "s.h5", "line", np.arange(n, dtype="i4"))
    taken = slab((20, 20), (1, 1), (2, n // 4))
    taken.select_hyperslab((5, 0), (1, n - 2 * (n // 4)), op=h5s.SELECT_OR)
    source(tmp_path / "s.h5", "square", np.arange(400, dtype="i4").reshape(20, 20))
    virtual(path, "v", (9, 10), [(to, "s.h5", "line", slab((n,), (0,), (n,)))])
    virtual(path, "w", (9, 10), [(to, "s.h5", "square", taken)])
    virtual(path, "x", (n,), [(slab((n,), (0,), (n,)), "s.h5", "square", taken)])
    agrees(path, "v", "w", "x")


@pytest.mark.parametrize("rows", [0, 1, 4, 7, 30])
def test_unlimited(tmp_path, rows):
    """The dataset is as large as its sources make it."""
    path = tmp_path / "v.h5"
    rng = np.random.default_rng(rows)
    source(tmp_path / "s.h5", "d", rng.integers(0, 99, (rows, 5)).astype("i4"), maxshape=(None, 5), chunks=(4, 5))
    source(tmp_path / "t.h5", "d", rng.integers(0, 99, (5, rows)).astype("i4"), maxshape=(5, None), chunks=(5, 4))
    cases = {
        # every row, every third row in pairs, columns of the source, a source that starts late
        "a": [((0, 0), (UNLIMITED, 1), None, (1, 5), "s.h5", (0, 0), (UNLIMITED, 1), None, (1, 5))],
        "b": [((1, 0), (UNLIMITED, 1), (3, 1), (2, 5), "s.h5", (0, 0), (UNLIMITED, 1), (1, 1), (1, 5))],
        "c": [((0, 0), (UNLIMITED, 1), (2, 1), (1, 5), "s.h5", (2, 0), (UNLIMITED, 1), (4, 1), (3, 5)),
              ((1, 0), (UNLIMITED, 1), (2, 1), (1, 5), "s.h5", (0, 0), (UNLIMITED, 1), (3, 1), (1, 5))],
        "d": [((0, 0), (UNLIMITED, 1), (1, 1), (1, 5), "gone.h5", (0, 0), (UNLIMITED, 1), (1, 1), (1, 5)),
              ((0, 0), (2, 5), None, None, "s.h5", (0, 0), (2, 5), None, None)],
    }
    for name, mappings in cases.items():
        if name == "d" and rows < 2:
            continue
        virtual(path, name, (2, 5), [(slab((2, 5), a, b, c, d, (UNLIMITED, 5)), file, "d",
                                      slab((rows, 5), e, g, h, i, (UNLIMITED, 5)))
                                     for a, b, c, d, file, e, g, h, i in mappings], maxdims=(UNLIMITED, 5))
        if name != "c" or readable(path, name):
            agrees(path, name)
    virtual(path, "wide", (5, 1), [(slab((5, 1), (0, 0), (1, UNLIMITED), (1, 2), (5, 1), (5, UNLIMITED)), "t.h5", "d",
                                    slab((5, rows), (0, 0), (1, UNLIMITED), (1, 1), (5, 1), (5, UNLIMITED)))],
            maxdims=(5, UNLIMITED))
    agrees(path, "wide")


@pytest.mark.parametrize("made", [[], [0], [0, 1, 2], [0, 1, 3], [1, 2]])
def test_numbered_sources(tmp_path, made):
    """%b in the name of a file or of a dataset; the first that is missing ends the dataset."""
    path = tmp_path / "v.h5"
    for i in made:
        source(tmp_path / f"part-{i}%.h5", "d", np.full((2, 3), i + 10, "i4"))
        source(tmp_path / "v.h5", f"g/d{i}", np.full((2, 3), i + 20, "i4"))
    whole = slab((2, 3), (0, 0), (2, 3))
    for name, file, there in (("by_file", "part-%b%%.h5", "d"), ("by_path", ".", "/g/d%b")):
        virtual(path, name, (2, 3), [(slab((2, 3), (0, 0), (UNLIMITED, 1), (3, 1), (2, 3), (UNLIMITED, 3)), file,
                                      there, whole)], maxdims=(UNLIMITED, 3))
        agrees(path, name)


@pytest.mark.parametrize("there", ["<i1", "<u1", "<i2", ">i4", "<i8", "<u8", "<f2", "<f4", ">f8"])
def test_other_types(tmp_path, there):
    path = tmp_path / "v.h5"
    rng = np.random.default_rng(3)
    data = (rng.standard_normal(200) * 300).round(2)
    data[:8] = [0, -0.0, 1e9, -1e9, 60000, -60000, 127, -129]
    with np.errstate(all="ignore"):
        data = data.astype(there) if np.dtype(there).kind == "f" else data.astype("i8").astype(there)
    source(tmp_path / "s.h5", "d", data)
    line = slab((200,), (0,), (200,))
    names = []
    for kind in ["<i1", "<u2", "<i4", "<u8", "<f4", ">f4", "<f8"]:
        virtual(path, kind, (200,), [(line, "s.h5", "d", line)], kind, fill=1)
        names.append(kind)
    agrees(path, *names)
    # libhdf5 does not round to even, and loses a bit of small numbers; numpy does it right.
    virtual(path, "half", (200,), [(line, "s.h5", "d", line)], "<f2", fill=1)
    with np.errstate(over="ignore"):
        want = data.astype("f8").astype("f2")
    assert np.array_equal(values(path, "half", want), want)


def test_virtual_of_virtual(tmp_path):
    path = tmp_path / "v.h5"
    (tmp_path / "sub").mkdir()
    source(tmp_path / "sub/s.h5", "d", np.arange(12, dtype="i4"))
    line = slab((12,), (0,), (12,))
    virtual(tmp_path / "sub/w.h5", "w", (12,), [(line, "s.h5", "d", line)])
    virtual(path, "v", (12,), [(line, "sub/w.h5", "w", line)])
    assert list(agrees(path, "v")) == list(range(12))


def test_circles_end(tmp_path):
    """A dataset that is its own source, and two that are each other's."""
    path = tmp_path / "v.h5"
    line = slab((12,), (0,), (12,))
    virtual(path, "self", (12,), [(line, ".", "self", line)] * 3)
    virtual(path, "a", (12,), [(line, "v.h5", "b", line)] * 3)
    virtual(path, "b", (12,), [(line, "v.h5", "a", line)] * 3)
    for name in ("self", "a", "b"):
        done = tool("values", path, name)
        assert done.returncode != 0 and b"H5_FILE_DEPTH_MAX" in done.stderr, done.stderr


def test_names_stay_in_the_folder(tmp_path):
    """The last part of an absolute name is looked for in the folder; what lies elsewhere is not shown."""
    inner = tmp_path / "inner"
    inner.mkdir()
    source(inner / "s.h5", "d", np.arange(4, dtype="i4"))
    source(tmp_path / "up.h5", "d", np.arange(4, dtype="i4"))
    line = slab((4,), (0,), (4,))
    (inner / "broken.h5").write_bytes(b"no HDF5 file" * 100)
    names = {"moved": "/nowhere/to/be/found/s.h5", "above": "../up.h5", "outside": str(tmp_path / "up.h5"),
             "gone": "../gone.h5", "broken": "broken.h5"}
    for name, file in names.items():
        virtual(inner / "v.h5", name, (4,), [(line, file, "d", line)])
    assert list(agrees(inner / "v.h5", "moved")) == [0, 1, 2, 3]
    assert list(agrees(inner / "v.h5", "gone")) == [-9] * 4
    for name in ("above", "outside"):
        done = tool("values", inner / "v.h5", name)
        assert done.returncode != 0 and b"leads out of the folder" in done.stderr, done.stderr
    done = tool("values", inner / "v.h5", "broken")  # libhdf5 gives the fill value
    assert done.returncode != 0 and b"source file broken.h5: superblock" in done.stderr, done.stderr


def test_strings(tmp_path):
    """Fixed strings of another length; text of variable length from the same file, which another would refuse."""
    path = tmp_path / "v.h5"
    source(path, "d", np.array([b"one", b"three", b"eleven", b""], "S6"))
    source(path, "t", np.array(["eins", "zwei", "", "d"], object), dtype=h5py.string_dtype())
    line = slab((4,), (0,), (4,))
    virtual(path, "short", (4,), [(line, ".", "d", line)], "S3", b"?")
    virtual(path, "long", (4,), [(line, ".", "d", line)], "S9", b"?")
    agrees(path, "short", "long")


def test_compounds(tmp_path):
    """Fields by their names, in other places and of other types; enums by their names; what is missing is 0."""
    path = tmp_path / "v.h5"
    had = np.dtype([("a", "<i2"), ("b", "S4"), ("c", ">f4", (2, 2)), ("gone", "u1"),
                    ("e", h5py.enum_dtype({"RED": 1, "BLUE": 2}, "u1"))])
    data = np.zeros(5, had)
    data["a"], data["b"], data["e"] = [1, -2, 300, -400, 5], [b"w", b"xyz", b"long", b"", b"v"], [1, 2, 1, 2, 2]
    data["c"] = np.arange(20).reshape(5, 2, 2) - 7.75
    kind = np.dtype({"names": ["c", "a", "b", "e", "new"], "itemsize": 64, "offsets": [8, 0, 41, 40, 48],
                     "formats": [("<f8", (2, 2)), ">i8", "S2", h5py.enum_dtype({"BLUE": 7, "RED": 9}, "i1"), "<u2"]})
    line = slab((5,), (0,), (5,))
    source(path, "d", data)
    virtual(path, "v", (5,), [(line, ".", "d", line)], kind, np.zeros((), kind))
    leaves = {leaf["name"][0]: leaf["raw"] for leaf in show(path)[0]["/v"]["data"]}
    with h5py.File(path, "r") as f:
        want = f["v"][...]
    assert list(want["a"]) == list(data["a"])
    for name in "ca":
        assert leaves[name] == want[name].astype(want[name].dtype.newbyteorder("<")).tobytes(), name
    assert leaves["b"] == b"w\0xy\0lo\0\0v" and leaves["new"] == bytes(10)
    assert leaves["e"] == bytes([9, 7, 9, 7, 7])  # as h5dump has it; h5py reads enums by a way of its own


def joined(values):
    """Leaves of variable length as h5show_tool gives them."""
    if isinstance(values[0], (str, bytes)):
        return b"\0".join(v if isinstance(v, bytes) else v.encode() for v in values)
    return b"".join(len(v).to_bytes(8, "little") + np.ascontiguousarray(v).tobytes() for v in values)


def text_of(i):
    return "" if i % 7 == 3 else f"text {i} " * (1 + i % 40)


def sequence_of(i):
    return np.arange(i, i + i % 5, dtype="<i4")


def test_variable_length_from_other_files(tmp_path):
    """Text, sequences and compounds of them from several files, one of which is missing; also one step further."""
    sequences, text = h5py.vlen_dtype("<i4"), h5py.string_dtype()
    both = np.dtype([("n", "<i4"), ("t", text), ("s", sequences)])
    for i in (0, 1, 3):
        rows = range(100 * i, 100 * i + 100)
        with h5py.File(tmp_path / f"s{i}.h5", "w") as f:
            f.create_dataset("t", data=np.array([text_of(k) for k in rows], object), dtype=text, chunks=(9,))
            f.create_dataset("s", (100,), sequences)
            f.create_dataset("c", (100,), both)
            for k in rows:
                f["s"][k % 100] = sequence_of(k)
                f["c"][k % 100] = (k, text_of(k), sequence_of(k))
    for name, kind in (("t", text), ("s", sequences), ("c", both)):
        for file, sources in (("v.h5", [f"s{i}.h5" for i in range(4)]), ("w.h5", ["v.h5"])):
            layout = h5py.VirtualLayout((400,), kind)
            n = 400 // len(sources)
            for i, there in enumerate(sources):
                layout[n * i:n * i + n] = h5py.VirtualSource(there, name, (n,), kind)
            with h5py.File(tmp_path / file, "a") as f:
                f.create_virtual_dataset(name, layout)
        layout = h5py.VirtualLayout((300,), kind)
        for i, there in enumerate(("s0.h5", "s1.h5", "s3.h5")):  # rows of the three in turn
            layout[i::3] = h5py.VirtualSource(there, name, (100,), kind)
        with h5py.File(tmp_path / "v.h5", "a") as f:
            f.create_virtual_dataset("turn_" + name, layout)
    there = [*range(200), *[None] * 100, *range(300, 400)]
    turn = [k + 100 * i for k in range(100) for i in (0, 1, 3)]
    for file, prefix, rows in (("v.h5", "", there), ("w.h5", "", there), ("v.h5", "turn_", turn)):
        have = show(tmp_path / file)[0]
        texts = joined(["" if k is None else text_of(k) for k in rows])
        parts = joined([sequence_of(0) if k is None else sequence_of(k) for k in rows])
        assert have[f"/{prefix}t"]["data"][0]["raw"] == texts
        assert have[f"/{prefix}s"]["data"][0]["raw"] == parts
        assert [leaf["raw"] for leaf in have[f"/{prefix}c"]["data"]] == \
            [np.array([k or 0 for k in rows], "<i4").tobytes(), texts, parts]
        with h5py.File(tmp_path / file, "r") as f:  # libhdf5 says the same
            assert joined(list(f[prefix + "t"][...])) == texts and joined(list(f[prefix + "s"][...])) == parts


def stored(path, name):
    """The elements of a contiguous dataset as they lie in the file."""
    with h5py.File(path, "r") as f:
        at, n = f[name].id.get_offset(), f[name].id.get_storage_size()
    return path.read_bytes()[at:at + n]


def test_sequences_of_sequences_from_another_file(tmp_path):
    """h5py does not write them: the elements of one dataset become the values of the next, and those a chunk."""
    path = tmp_path / "s.h5"
    source(path, "inner", None, shape=(6,), dtype=h5py.vlen_dtype("<i2"))
    with h5py.File(path, "a") as f:
        for i in range(6):
            f["inner"][i] = np.arange(i, dtype="<i2")
    inner = np.frombuffer(stored(path, "inner"), "V16")
    source(path, "outer", None, shape=(3,), dtype=h5py.vlen_dtype("V16"))
    with h5py.File(path, "a") as f:
        for i in range(3):
            f["outer"][i] = inner[3 * i // 2:3 * i // 2 + i + 1]
    outer = stored(path, "outer")
    kind = h5py.h5t.vlen_create(h5py.h5t.vlen_create(h5py.h5t.STD_I16LE))
    line = slab((3,), (0,), (3,))
    with h5py.File(path, "a") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((3,))
        h5py.h5d.create(f.id, b"d", kind, h5s.create_simple((3,)), plist).write_direct_chunk((0,), outer)
    with h5py.File(tmp_path / "v.h5", "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(line, b"s.h5", b"d", line)
        h5py.h5d.create(f.id, b"v", kind, h5s.create_simple((3,)), plist)
    want = show(path)[0]["/d"]["data"][0]["raw"]
    assert want.startswith(b"\1" + bytes(7)) and np.arange(5, dtype="<i2").tobytes() in want
    assert show(tmp_path / "v.h5")[0]["/v"]["data"][0]["raw"] == want


def test_damaged_sources_of_variable_length(tmp_path):
    """Bits flipped in the source and in the dataset's own file: an error or values, and no harm."""
    rng = random.Random(8)
    text = h5py.string_dtype()
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f.create_dataset("t", data=np.array([text_of(k) for k in range(30)], object), dtype=text)
    layout = h5py.VirtualLayout((30,), text)
    layout[:] = h5py.VirtualSource("s.h5", "t", (30,), text)
    with h5py.File(tmp_path / "v.h5", "w") as f:
        f.create_virtual_dataset("t", layout)
    for name in ("s.h5", "v.h5"):
        good = (tmp_path / name).read_bytes()
        for _ in range(150):
            bad = bytearray(good)
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            (tmp_path / name).write_bytes(bad)
            show(tmp_path / "v.h5", timeout=10)
        (tmp_path / name).write_bytes(good)


def test_external_links(tmp_path):
    (tmp_path / "sub").mkdir()
    source(tmp_path / "sub/b.h5", "g/d", np.arange(5, dtype="i4"))
    source(tmp_path / "a.h5", "own", np.arange(3, dtype="i4"))
    with h5py.File(tmp_path / "a.h5", "a") as f:
        f["data"] = h5py.ExternalLink("sub/b.h5", "/g/d")
        f["group"] = h5py.ExternalLink("sub/b.h5", "g")
        f["far"] = h5py.ExternalLink("sub/b.h5", "/back/own")
        f["soft"] = h5py.SoftLink("/group/d")
        f["gone"] = h5py.ExternalLink("c.h5", "/x")
        f["circle"] = h5py.ExternalLink("a.h5", "/circle")
    with h5py.File(tmp_path / "sub/b.h5", "a") as f:
        f["near"] = h5py.ExternalLink("b.h5", "/g")
        f["back"] = h5py.ExternalLink("../a.h5", "/")
    for name in ("data", "group/d", "soft", "/group/./d"):
        assert list(agrees(tmp_path / "a.h5", name)) == [0, 1, 2, 3, 4]
    assert list(agrees(tmp_path / "sub/b.h5", "near/d")) == [0, 1, 2, 3, 4]
    for name, text in (("gone", b"no such file"), ("circle", b"H5_FILE_DEPTH_MAX"), ("far", b"leads out of"),
                       ("group/x", b"no such member")):
        done = tool("values", tmp_path / "a.h5", name)
        assert done.returncode != 0 and text in done.stderr, (name, done.stderr)
