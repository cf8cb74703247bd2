"""Files whose addresses and lengths are not 8 bytes wide: hdf5core finds in them what it finds in ordinary ones.

Each structure of the format is put into files of all widths that libhdf5 makes; what h5show_tool says of them must be
the same but for places in the file, and the values those that went in.

SPDX-License-Identifier: MIT
"""
import json
import subprocess

import pytest

from harness.cprog import environment, program, unharmed

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")


def fill(f):
    """Every structure that holds an address or a length."""
    f["contiguous"] = np.arange(100, dtype=">i4").reshape(4, 25)
    for name, more in {"btree": {}, "filtered": {"compression": "gzip", "shuffle": True, "fletcher32": True}}.items():
        f.create_dataset(name, data=np.arange(600).reshape(30, 20), chunks=(7, 6), **more)
        f.create_dataset(name + "_grows", data=np.arange(900.), chunks=(10,), maxshape=(None,), **more)
        f.create_dataset(name + "_grows2", data=np.arange(600).reshape(30, 20), chunks=(7, 6), maxshape=(None, None),
                         **more)
        f.create_dataset(name + "_paged", data=np.arange(2500, dtype="i2"), chunks=(1,), maxshape=(5000,), **more)
        f.create_dataset(name + "_single", data=np.arange(9), chunks=(9,), maxshape=(9,), **more)
    for i in range(40):
        f[f"many/old/d{i:03}"] = i
        f["many"].attrs[f"a{i}"] = np.arange(i)
    for i in range(3):
        f[f"nested/{i}/deep/er"] = np.float32(i)
    f["strings"] = ["eins", "zwei", "", "d" * 300]
    f["fixed"] = np.array([b"a", b"bc"])
    f["ragged"] = np.array([np.arange(2), np.arange(5)], h5py.vlen_dtype("i2"))
    f["refs"] = np.array([f["many"].ref, f["fixed"].ref], h5py.ref_dtype)
    f["regions"] = np.array([f["contiguous"].regionref[1:3, ::2]], h5py.regionref_dtype)
    f["soft"] = h5py.SoftLink("/many/old/d003")
    f["out"] = h5py.ExternalLink("x.h5", "/y")
    f["type"] = np.dtype([("x", "i4"), ("s", h5py.string_dtype())])
    f.create_dataset("typed", (3,), dtype=f["type"])
    f.create_dataset("raw", (10,), "i4", external=[("raw.bin", 3, 40)])


def make(path, offsets, lengths, libver):
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(offsets, lengths)
    path.with_name("raw.bin").write_bytes(bytes(range(50)))
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(libver, h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist, access)) as f:
        fill(f)


def shown(path):
    done = unharmed(subprocess.run([program("interop/h5show_tool"), path], capture_output=True, env=environment()))
    assert done.returncode == 0, done.stderr
    at, out = 0, {}
    while at < len(done.stdout):
        end = done.stdout.index(b"\n", at)
        record = json.loads(done.stdout[at:end])
        at = end + 1
        assert "error" not in record, record
        for holder in [record] + record.get("attrs", []):
            for leaf in holder.get("data", []):
                leaf["values"] = done.stdout[at:at + leaf["bytes"]].hex()
                at += leaf["bytes"]
        out[record["path"]] = record
    return out


def without_places(record):
    """A record without addresses, the sizes of types that hold some, and the order of attributes."""
    record["attrs"] = sorted(record.get("attrs", []), key=lambda a: a["name"])
    del record["addr"]
    if record["path"] in ("/refs", "/regions"):
        del record["data"][0]["values"]

    def plain(v):
        if isinstance(v, dict):
            loose = "vlen" in json.dumps(v) or v.get("class") in ("reference", "vlen")
            return {k: plain(w) for k, w in v.items() if not (loose and k in ("size", "offset"))}
        return [plain(w) for w in v] if isinstance(v, list) else v
    return plain(record)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ordinary")
    out = {}
    for libver in (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST):
        make(folder / f"{libver}.h5", 8, 8, libver)
        out[libver] = {k: without_places(v) for k, v in shown(folder / f"{libver}.h5").items()}
    return out


@pytest.mark.parametrize("libver", [h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST])
@pytest.mark.parametrize("offsets,lengths", [(4, 4), (8, 4), (4, 8), (8, 8)])
def test_widths(tmp_path, ordinary, offsets, lengths, libver):
    path = tmp_path / "w.h5"
    make(path, offsets, lengths, libver)
    have, want = shown(path), ordinary[libver]
    assert list(have) == list(want) and len(have) > 60
    for name, record in have.items():
        assert without_places(record) == want[name], name
    if (offsets, lengths) != (8, 8):
        return  # libhdf5 1.10 itself does not open all of them again
    with h5py.File(path) as f:  # the ordinary file says what went in
        for name in ("btree_grows2", "filtered_paged", "filtered_grows"):
            assert have["/" + name]["data"][0]["values"] == f[name][...].tobytes().hex()


def test_narrowest(tmp_path):
    """Two bytes suffice for a file under 64 KiB."""
    path = tmp_path / "n.h5"
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(2, 2)
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist)) as f:
        f["a/b"] = np.arange(20, dtype="f4")
        f.create_dataset("c", data=np.arange(50), chunks=(8,), compression="gzip")
    have = shown(path)
    assert have["/a/b"]["data"][0]["values"] == np.arange(20, dtype="f4").tobytes().hex()
    assert have["/c"]["data"][0]["values"] == np.arange(50).tobytes().hex()
