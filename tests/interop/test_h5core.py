"""Files of hdf5core read by libhdf5 (h5py, h5dump, h5stat), and files of libhdf5 read by hdf5core: the same values.

The C program h5core_tool makes a file from a script and prints what it reads; see its header.

SPDX-License-Identifier: MIT
"""
import shutil
import subprocess

import pytest

from harness.cprog import environment, program, unharmed

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">i2", ">i4", ">i8", ">u2", ">u4", ">u8",
         ">f4", ">f8"]


def tool(*args, **kwargs):
    return unharmed(subprocess.run([program("interop/h5core_tool"), *map(str, args)], capture_output=True,
                                   env=environment(), **kwargs))


def values(path, name, like):
    """All values of a dataset as hdf5core reads them, in the shape and native type of `like`."""
    done = tool("values", path, name)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, native(like.dtype)).reshape(like.shape)


def native(dtype):
    return dtype if dtype.kind == "S" else dtype.newbyteorder("=")


def info(path, name="/"):
    done = tool("info", path, name)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def numbers(kind, *shape, seed=1):
    """Random values over the whole range of a type."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 1e3).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype.newbyteorder("="),
                        endpoint=True).astype(dtype)


class Script:
    """Collects the commands of a file, then makes it."""

    def __init__(self, folder):
        self.folder, self.lines, self.count = folder, [], 0
        self.path = folder / "made.h5"

    def attr(self, kind, name, value):
        self.lines.append(f"attr {kind} {name} {value}")

    def dataset(self, name, kind, data, chunk=None, rows=None, filters="-", fill="-", shape=None):
        """data None: no chunk is written, and shape says what it is."""
        source = "-"
        shape = data.shape if data is not None else shape
        if data is not None:
            self.count += 1
            source = self.folder / f"data{self.count}"
            source.write_bytes(data.astype(native(data.dtype)).tobytes())
        chunk = chunk or ()
        if chunk and rows is None:
            rows = max(1, -(-shape[0] // chunk[0])) * chunk[0]
        self.lines.append(" ".join([
            "dataset", name, kind, ",".join(map(str, shape)) or "scalar", ",".join(map(str, chunk)) or "-",
            str(rows or 0), filters, fill, str(source)]))
        self.last = name

    def group(self, name, members):
        self.lines.append(f"group {name} {members}")

    def make(self):
        done = tool("make", self.path, input="\n".join(self.lines).encode())
        assert done.returncode == 0, done.stderr.decode()
        return self.path


@pytest.fixture
def script(tmp_path):
    return Script(tmp_path)


def clean(command):
    """Runs a tool of HDF5; it must succeed and have nothing to complain of."""
    exe = shutil.which(command[0])
    if exe is None:
        pytest.skip(f"no {command[0]} on PATH")
    done = subprocess.run([exe, *map(str, command[1:])], text=True, capture_output=True, env=environment())
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


# ------------------------------------------------------------------------------- ours, read by libhdf5


def test_every_type(script):
    expected = {}
    for kind in TYPES:
        name = kind.replace(">", "be_")
        expected[name] = numbers(kind, 100)
        script.dataset(name, kind, expected[name], (16,))
        expected[name + "_whole"] = numbers(kind, 33, seed=2)
        script.dataset(name + "_whole", kind, expected[name + "_whole"])
    text = np.array([b"abc", b"", b"gr\xc3\xbcn", b"12345678"], "S8")
    expected["text"] = text
    script.dataset("text", "s8", text, (3,))
    script.group("root", len(expected))
    with h5py.File(script.make(), "r") as f:
        assert set(f) == set(expected)
        for name, want in expected.items():
            assert f[name].dtype == want.dtype
            assert np.array_equal(f[name][...], want), name
        assert f["text"].id.get_type().get_cset() == h5py.h5t.CSET_UTF8
    for name, want in expected.items():
        assert np.array_equal(values(script.path, name, want), want), name


@pytest.mark.parametrize("shape, chunk, rows", [
    ((1,), (1,), None), ((100,), (100,), None), ((100,), (7,), 700), ((50, 6), (8, 6), None), ((50, 6), (8, 4), 80),
    ((9, 5, 4), (2, 3, 4), 12), ((3, 4, 5, 6), (3, 1, 5, 2), None), ((0,), (10,), 10), ((0, 3), (4, 3), 8)])
def test_shapes(script, shape, chunk, rows):
    data = numbers("i4", *shape)
    script.dataset("d", "i4", data if data.size else None, chunk, rows, shape=shape)
    script.group("root", 1)
    with h5py.File(script.make(), "r") as f:
        assert f["d"].shape == shape and f["d"].chunks == chunk
        assert f["d"].maxshape[0] == (rows or max(1, -(-shape[0] // chunk[0])) * chunk[0])
        assert f["d"].maxshape[1:] == shape[1:]
        assert np.array_equal(f["d"][...], data)
    clean(["h5dump", script.path])


@pytest.mark.parametrize("chunks", [1023, 1024, 1025, 2048, 5000])
@pytest.mark.parametrize("filters", ["-", "deflate:1"])
def test_many_chunks(script, chunks, filters):
    data = numbers("i8", chunks * 3 - 1)
    script.dataset("d", "i8", data, (3,), chunks * 3, filters)
    script.group("root", 1)
    with h5py.File(script.make(), "r") as f:
        assert np.array_equal(f["d"][...], data)
        assert np.array_equal(f["d"][-5:], data[-5:])


def plugin_for(filters):
    if "zstd" in filters:
        pytest.importorskip("hdf5plugin", reason="no hdf5plugin: h5py cannot read zstd without it")


@pytest.mark.parametrize("filters", ["deflate:0", "deflate:6", "deflate:9", "shuffle", "shuffle+deflate:6", "zstd:3",
                                     "shuffle+zstd:19", "shuffle+deflate:6!", "zstd:3!"])
@pytest.mark.parametrize("kind", ["u1", "f4", ">i8"])
def test_filters(script, filters, kind):
    plugin_for(filters)
    smooth = np.arange(1000).astype(kind)
    noise = numbers(kind, 1000)
    table = np.arange(600).reshape(100, 6).astype(kind)
    script.dataset("smooth", kind, smooth, (64,), 1280, filters)
    script.dataset("noise", kind, noise, (64,), None, filters)
    script.dataset("table", kind, table, (16, 6), None, filters)
    script.group("root", 3)
    with h5py.File(script.make(), "r") as f:
        for name, want in [("smooth", smooth), ("noise", noise), ("table", table)]:
            assert np.array_equal(f[name][...], want), name
            assert np.array_equal(values(script.path, name, want), want), name
        if "zstd" not in filters:
            assert bool(f["smooth"].compression == "gzip") == ("deflate" in filters)
            assert f["smooth"].shuffle == ("shuffle" in filters)
    if "zstd" not in filters:
        clean(["h5dump", script.path])


def test_fill_values_and_missing_chunks(script):
    script.dataset("zeros", "f8", None, (10,), 100, shape=(77,))
    script.dataset("halves", "f4", None, (10,), 100, fill="0000003f", shape=(77,))
    script.dataset("big", ">i4", None, (10, 2), 100, fill="01020304", shape=(77, 2))
    script.dataset("packed", "i2", None, (10,), 100, filters="shuffle+deflate:6", fill="ff7f", shape=(5,))
    script.group("root", 4)
    with h5py.File(script.make(), "r") as f:
        assert (f["zeros"][...] == 0).all() and f["zeros"].fillvalue == 0
        assert (f["halves"][...] == 0.5).all()
        assert (f["big"][...] == 0x04030201).all()
        assert (f["packed"][...] == 32767).all()
        for name in f:
            assert np.array_equal(values(script.path, name, f[name][...]), f[name][...]), name
    clean(["h5dump", script.path])


def test_groups_and_attributes(script):
    for i in range(2000):
        script.group(f"g{i}", 0)
    script.group("wide", 2000)
    for i in range(500):
        script.attr("i", f"a{i}", i - 250)
    script.attr("f", "pi", "3.141592653589793")
    script.attr("s", "text", "Grüße, 世界 and spaces")
    script.attr("s", "long", "x" * 60000)
    script.attr("i", "lowest", -2**63)
    script.group("many", 0)
    script.group("\u00fcml\u00e4ut", 0)
    script.group("n" * 300, 0)
    script.group("root", 4)
    with h5py.File(script.make(), "r") as f:
        assert set(f) == {"wide", "many", "ümläut", "n" * 300}
        assert sorted(f["wide"]) == sorted(f"g{i}" for i in range(2000))
        attrs = f["many"].attrs
        assert len(attrs) == 504
        assert [attrs[f"a{i}"] for i in range(500)] == list(range(-250, 250))
        assert attrs["pi"] == 3.141592653589793 and attrs["lowest"] == -2**63
        assert attrs["text"].decode() == "Grüße, 世界 and spaces"
        assert len(attrs["long"]) == 60000
    clean(["h5dump", "-A", script.path])


def store_like(script):
    """A file of the shape of a store; gives the datasets by path."""
    expected = {}
    for name, kind, shape, chunk in [("id", "i8", (1100,), (1,)), ("embedding", "f4", (70, 32), (16, 32)),
                                     ("timestamp", "f8", (700,), (128,)), ("tier", "u1", (700,), (1024,))]:
        expected["memory/" + name] = numbers(kind, *shape)
        script.dataset(name, kind, expected["memory/" + name], chunk)
    script.group("memory", 4)
    script.attr("i", "generation", 7)
    script.attr("s", "metric", "cosine")
    script.group("meta", 0)
    script.group("index", 0)
    script.attr("s", "format", "sample")
    script.group("root", 3)
    script.make()
    return expected


def test_tools_find_no_fault(script, tmp_path):
    expected = store_like(script)
    for path, want in expected.items():
        raw = tmp_path / "raw"
        clean(["h5dump", "-d", "/" + path, "-b", "LE", "-o", raw, script.path])
        assert raw.read_bytes() == want.tobytes(), path
    clean(["h5dump", script.path])
    clean(["h5stat", script.path])
    assert clean(["h5ls", "-r", script.path]).count("Dataset") == len(expected)
    copy = tmp_path / "copy.h5"
    clean(["h5repack", script.path, copy])
    clean(["h5diff", script.path, copy])


def test_libhdf5_can_extend_it(script):
    """h5py opens the file for writing, adds to it, and everything is still right for both."""
    expected = store_like(script)
    with h5py.File(script.path, "r+", libver="latest") as f:
        f["memory"].attrs["note"] = np.int64(5)
        f.create_dataset("extra", data=np.arange(10, dtype="<i4"))
        f["memory/timestamp"][3] = 42.0
        expected["memory/timestamp"][3] = 42.0
    expected["extra"] = np.arange(10, dtype="<i4")
    for path, want in expected.items():
        assert np.array_equal(values(script.path, "/" + path, want), want), path
    assert "attr note i8 5" in info(script.path, "/memory")


# ------------------------------------------------------------------------------- libhdf5's, read by us


@pytest.fixture
def foreign(tmp_path):
    """foreign() -> an h5py file of the newest format, opened for writing."""
    def go(**kwargs):
        return h5py.File(tmp_path / "foreign.h5", "w", libver="latest", **kwargs)
    return go


def same(path, expected):
    for name, want in expected.items():
        assert np.array_equal(values(path, "/" + name, want), want), name


@pytest.mark.parametrize("versions", [("v108", "v108"), ("v110", "v110"), ("earliest", "latest"), ("latest", "latest")])
def test_versions_of_libhdf5(tmp_path, versions):
    """The same values whatever version bounds the file was written under."""
    path = tmp_path / "v.h5"
    expected = {"c": numbers("i4", 10), "k": numbers("f8", 20, 3), "s": numbers("u2", 7)}
    with h5py.File(path, "w", libver=versions) as f:
        f.create_dataset("c", data=expected["c"])
        f.create_dataset("k", data=expected["k"], chunks=(5, 3))
        f.create_dataset("s", data=expected["s"], chunks=(7,), compression=4)
    same(path, expected)


def test_foreign_types(foreign):
    expected = {}
    with foreign() as f:
        for i, kind in enumerate(TYPES):
            for form, chunks in [("whole", None), ("chunked", (9,)), ("one", (40,))]:
                name = f"top{i // 6}/{kind.replace('>', 'be_')}/{form}"  # few members a group: links stay in headers
                expected[name] = numbers(kind, 40)
                f.create_dataset(name, data=expected[name], chunks=chunks)
        path = f.filename
    same(path, expected)


def test_foreign_dense_groups(foreign):
    with foreign() as f:
        for i in range(9):
            f.create_group(f"links/{i}")
            f.require_group("attributes").attrs[f"a{i}"] = i
        path = f.filename
    assert sorted(line for line in info(path, "/links") if line.startswith("link ")) == [
        f"link {i} hard" for i in range(9)]
    assert sorted(line for line in info(path, "/attributes") if line.startswith("attr ")) == [
        f"attr a{i} i8 {i}" for i in range(9)]


@pytest.mark.parametrize("count", [1, 2, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("options", [{}, {"compression": 6}, {"shuffle": True, "compression": 1}])
def test_foreign_fixed_arrays(foreign, count, options):
    data = numbers("i4", count * 4 - 1)
    with foreign() as f:
        f.create_dataset("d", data=data, chunks=(4,), maxshape=(count * 4 + 3,), **options)
        path = f.filename
    same(path, {"d": data})
    start, n = len(data) // 3, len(data) // 3
    done = tool("slab", path, "/d", start, n)
    assert done.stdout == data[start:start + n].tobytes()


def test_foreign_hyperslabs(foreign):
    data = numbers("f4", 13, 11, 7)
    rng = np.random.default_rng(5)
    with foreign() as f:
        f.create_dataset("plain", data=data)
        f.create_dataset("chunked", data=data, chunks=(4, 3, 5))
        f.create_dataset("packed", data=data, chunks=(4, 3, 5), compression=5, shuffle=True)
        f.create_dataset("whole", data=data, chunks=(13, 11, 7), compression=5)
        path = f.filename
    for name in ("plain", "chunked", "packed", "whole"):
        for _ in range(8):
            start = [int(rng.integers(0, d)) for d in data.shape]
            count = [int(rng.integers(1, d - s + 1)) for s, d in zip(start, data.shape)]
            want = data[tuple(slice(s, s + c) for s, c in zip(start, count))]
            done = tool("slab", path, name, ",".join(map(str, start)), ",".join(map(str, count)))
            assert done.stdout == want.tobytes(), (name, start, count)


def low_level(f, name, data, layout, chunk=None, early=False, raw_edges=False, fill=None):
    """A dataset with creation properties that h5py's own interface does not reach."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(layout)
    if chunk:
        plist.set_chunk(chunk)
    if early:
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    if fill is not None:
        plist.set_fill_value(np.array(fill, data.dtype))
    space = h5py.h5s.create_simple(data.shape)
    d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(data.dtype), space, plist)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data))


def test_foreign_layouts(foreign):
    expected = {"compact": numbers("i2", 30, 2), "implicit": numbers("i8", 25, 3), "scalar": np.array(5.5),
                "text": np.array([b"ab", b"cdef"], "S4"), "nothing": np.full((20,), 7, "<i4")}
    with foreign() as f:
        low_level(f, "compact", expected["compact"], h5py.h5d.COMPACT)
        low_level(f, "implicit", expected["implicit"], h5py.h5d.CHUNKED, (4, 2), early=True)
        f["scalar"] = 5.5
        f["text"] = expected["text"]
        f.create_dataset("nothing", (20,), "<i4", chunks=(6,), fillvalue=7)
        path = f.filename
    same(path, expected)
    assert "layout 0" in info(path, "/compact")


def test_foreign_attributes(foreign):
    with foreign() as f:
        f.attrs["i"] = np.int16(-5)
        f.attrs["u"] = np.uint64(2**63 - 1)
        f.attrs["f"] = np.float32(0.5)
        f.attrs["be"] = np.array(258, ">u4")
        f.attrs["fixed"] = np.bytes_(b"hello")
        f.attrs["several"] = np.arange(3)
        f.attrs["vlen"] = "a variable string"
        f.create_dataset("d", data=[1, 2, 3], track_times=True).attrs["unit"] = np.bytes_(b"s")
        path = f.filename
    lines = info(path)
    assert "attr i i2 -5" in lines and "attr u u8 9223372036854775807" in lines and "attr f f4 0.5" in lines
    assert "attr be >u4 258" in lines and "attr fixed s5 hello" in lines and "attr several i8 bytes 24" in lines
    assert "attr vlen class 9 bytes 16" in lines
    assert "attr unit s1 s" in info(path, "/d")


@pytest.mark.parametrize("options", [{"track_order": True}, {"track_order": False}])
def test_foreign_groups(foreign, options):
    """Creation order, continuation blocks (attributes added later), soft and external links."""
    with foreign(**options) as f:
        inner = f.create_group("a").create_group("b")
        inner["d"] = numbers("i4", 12)
        for i in range(7):
            f["a"].attrs[f"later{i}"] = np.bytes_(b"x" * 100)
        f["soft"] = h5py.SoftLink("/a/b/d")
        f["external"] = h5py.ExternalLink("other.h5", "/x")
        path = f.filename
    lines = info(path)
    assert "link a hard" in lines and "link soft other" in lines and "link external other" in lines
    assert sum("later" in line for line in info(path, "/a")) == 7
    same(path, {"a/b/d": numbers("i4", 12)})
    same(path, {"soft": numbers("i4", 12)})
    assert tool("info", path, "/external").stderr.startswith(b"not found: other.h5")


def test_growing_and_filtered(foreign):
    """Chunk indexes that grow, and a filter of h5py's own."""
    expected = {"fine": numbers("i4", 5), "growing": numbers("i8", 10), "both": numbers("f8", 4, 4),
                "half": numbers("f4", 3).astype("<f2"), "lzf": np.arange(100)}
    with foreign() as f:
        f["fine"] = expected["fine"]
        f.create_dataset("growing", data=expected["growing"], chunks=(2,), maxshape=(None,))
        f.create_dataset("both", data=expected["both"], chunks=(2, 2), maxshape=(None, None))
        f["compound"] = np.zeros(3, [("a", "<i4"), ("b", "<f8")])
        f["strings"] = ["a", "bc"]
        f["half"] = expected["half"]
        f.create_dataset("lzf", data=expected["lzf"], chunks=(10,), compression="lzf")
        path = f.filename
    assert sum(line.startswith("link ") for line in info(path)) == 7
    same(path, expected)
    for name in ("compound", "strings"):
        assert "kind dataset" in info(path, name)


def test_a_file_that_is_none(tmp_path):
    old = b"\x89HDF\r\n\x1a\n" + bytes(90)
    for content, code in [(b"", "file format"), (b"x" * 100, "file format"), (old, "unsupported")]:
        path = tmp_path / "x"
        path.write_bytes(content)
        done = tool("info", path, "/")
        assert done.returncode == 1 and done.stderr.decode().startswith(code), done.stderr
    done = tool("info", tmp_path, "/")
    assert done.returncode == 1 and b"not a regular file" in done.stderr


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("dims, most", [((400_000,), (None,)), ((300_000, 2), (None, 2)), ((600, 700), (None, None))])
def test_few_of_many_chunks(tmp_path, libver, dims, most):
    """Chunks that were never written read as the fill value; so many more that no file bears them out are refused."""
    path = tmp_path / "sparse.h5"
    want = np.full(dims, -3, "i1")
    with h5py.File(path, "w", libver=libver) as f:
        for name, times in (("d", 1), ("many", 100)):
            d = f.create_dataset(name, (times * dims[0], *dims[1:]), "i1", chunks=(1,) * len(dims), maxshape=most,
                                 fillvalue=-3)
            for row, v in ((5, 7), (dims[0] - 2, 9)):
                d[(row,) + (1,) * (len(dims) - 1)] = want[(row,) + (1,) * (len(dims) - 1)] = v
    assert path.stat().st_size < 100_000
    assert np.array_equal(values(path, "d", want), want)
    done = tool("values", path, "many")
    assert done.returncode != 0 and b"H5_UNSTORED_CHUNKS_MAX" in done.stderr, done.stderr


def sparse(rng):
    """Shape, chunks, maxima and the libver whose chunk index is one of the four that grow or have pages."""
    n, chunk, wide = int(rng.choice([3_000, 50_000, 300_000])), int(rng.integers(1, 4)), int(rng.integers(2, 700))
    return [((n,), (chunk,), (n + 7,), "latest"),  # fixed array
            ((n,), (chunk,), (None,), "latest"),  # extensible array
            ((wide % 8 + 1, n // 9), (1, chunk), (9, None), "latest"),  # whose order is not that of the grid
            ((n // wide, wide), (1, chunk), (None, None), "latest"),  # B-trees
            ((n // wide, wide), (1, chunk), (None, None), "earliest")][rng.integers(0, 5)]


@pytest.mark.parametrize("seed", range(25))
def test_sparse_indexes(tmp_path, seed):
    """Indexes over many chunks of which few are written, here and there or close together, filtered or not."""
    rng = np.random.default_rng(seed)
    shape, chunks, most, libver = sparse(rng)
    filters = [{}, {"fletcher32": True}, {"compression": "gzip"}][rng.integers(0, 3)]
    path, want = tmp_path / "x.h5", np.full(shape, -3, "i2")
    with h5py.File(path, "w", libver=libver) as f:
        d = f.create_dataset("d", shape, "i2", chunks=chunks, maxshape=most, fillvalue=-3, **filters)
        near = [rng.integers(1, n + 1) for n in shape]
        for v in range(int(rng.choice([5, 400]))):
            place = tuple(int(n - 1 - rng.integers(0, k)) for n, k in zip(shape, near))
            d[place] = want[place] = v
    assert np.array_equal(values(path, "d", want), want)
