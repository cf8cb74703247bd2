"""Files that libhdf5 makes when it is asked for unusual things; each showed a difference once.

What h5py does not offer is asked of the libhdf5 that it has loaded.

SPDX-License-Identifier: MIT
"""
import base64
import ctypes
import zlib

import pytest

from harness.h5show import show

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")
h5d, h5p, h5s, h5t = h5py.h5d, h5py.h5p, h5py.h5s, h5py.h5t

# HDF5 2.0, lengths of 4 bytes, data layout version 5: four datasets of six i2 in chunks, deflated.
VERSION_5 = (
    "c-rgqaB<`1lHy|KU}1oP|4_gn0pS}!#m_GGZuIwX31U(>>d%*rj4POgkTt>p7ZU>`0|T1?1CU}(%dALEISe(5O%x=?m0D4fnpd2el#{B-"
    "1eM?iNwAa@rKYZjx`<5>B*a#nnU|iEdY2Vy0yCKOe)9V<*h!2GjEp=C3`~rSjBFr1AQe0ei~<}$F|bMj23DYJn7O%uqCiy)APBO6186!>"
    "hKZ4hiJ9v>Bh>Vb3_}kjy{TE_=IG%9^febKbe=;!V}8Aw)6LPviGdOBJq`%P1Lg9d@g>ms&+kuMjV+WxaZF?=i^4;hMS+DyfXkE_YWCV8"
    "7Rr`d3Kg!9P*z|OVBtcS2l)%+<5Z{z^^zt}c6IawhCa;8Drli=fX25$<HNHf8h@mLYrVR8@Kh)QOmR$*RLF=FCPb!2ad2v61`0B<f-*yj"
    "#%@@-vUo_OLX)V*9;XmsD&z(^Ux5MS1)z7KDG-#<jAjN{QCKocfI<lv%4|%a;0A*nXxe00HI(w~&m$*<8Abs%P!X4$kdOjS7fe8QQbHP#"
    "EyTbEWG5!10@-p5T+~&Q0F+CBhy}rt>?jxoqhJ(_f>AIE=n0%ceB2ngJ<z%w=pY15o)Jwx0ZpC>P5zG6=F_8LJqkv_C>RB!U=$1%003tc"
    "iOB"
)


@pytest.fixture(scope="module")
def lib():
    """The libhdf5 of this process."""
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line}
    assert len(names) == 1, names
    return ctypes.CDLL(names.pop())


def ask(lib, name, plist, *args):
    assert getattr(lib, name)(ctypes.c_int64(plist.id), *args) >= 0, name


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("phases", [None, (0, 0), (2, 1)])
def test_all_messages_shared(tmp_path, lib, libver, phases):
    """Old fill values too, whose kind of message the table of shared messages does not name."""
    plist = h5p.create(h5p.FILE_CREATE)
    ask(lib, "H5Pset_shared_mesg_nindexes", plist, 1)
    ask(lib, "H5Pset_shared_mesg_index", plist, 0, sum(1 << kind for kind in (1, 3, 5, 11, 12)), 1)
    if phases:
        ask(lib, "H5Pset_shared_mesg_phase_change", plist, *phases)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(getattr(h5py.h5f, "LIBVER_" + libver.upper()), h5py.h5f.LIBVER_LATEST)
    path = tmp_path / "t.h5"
    with h5py.File(h5py.h5f.create(bytes(path), fcpl=plist, fapl=access)) as f:
        for i in range(8):
            d = f.create_dataset(f"d{i}", (5,), "f4", fillvalue=3.25, chunks=(2,), compression="gzip")
            d.attrs["units"] = "meters per second"
            d[1] = i
    have = show(path)[0]
    for i in range(8):
        assert np.frombuffer(have[f"/d{i}"]["data"][0]["raw"], "<f4").tolist() == [3.25, i, 3.25, 3.25, 3.25]
        assert have[f"/d{i}"]["attrs"][0]["data"][0]["raw"] == b"meters per second"


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_no_fill_value(tmp_path, lib, libver):
    """What was never written has no value: libhdf5 refuses to read it, unless it never fills at all."""
    path = tmp_path / "t.h5"
    written = h5s.create_simple((12,))
    written.select_hyperslab((3,), (4,))
    with h5py.File(path, "w", libver=libver) as f:
        for chunk in (None, 5):
            for time in (h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET):
                for write in (False, True):
                    plist = h5p.create(h5p.DATASET_CREATE)
                    plist.set_fill_time(time)
                    ask(lib, "H5Pset_fill_value", plist, ctypes.c_int64(h5t.STD_I32LE.id), None)
                    if chunk:
                        plist.set_chunk((chunk,))
                    d = h5d.create(f.id, f"{chunk}_{time}_{write}".encode(), h5t.STD_I32LE, h5s.create_simple((12,)),
                                   plist)
                    if write:
                        d.write(h5s.create_simple((4,)), written, np.arange(4, dtype="i4") + 1)
    have = show(path)[0]
    with h5py.File(path, "r") as f:
        for name in f:
            try:
                f[name][...]
                want = True
            except OSError:
                want = False
            mine = have["/" + name]
            assert ("error" not in mine) == want and mine["fill"] == "undefined", name
            if name.endswith("True"):
                assert np.frombuffer(mine["data"][0]["raw"], "<i4")[3:7].tolist() == [1, 2, 3, 4]
            elif not want:
                assert "never written" in mine["error"]


def test_sizes_of_chunks_are_lengths(tmp_path):
    """In data layout version 5 the indexes hold stored sizes in as many bytes as the file has for lengths."""
    path = tmp_path / "t.h5"
    path.write_bytes(zlib.decompress(base64.b85decode(VERSION_5)))
    have = show(path)[0]
    kinds = {"/fixed": "fixed array", "/extensible": "extensible array", "/tree": "version 2 B-tree",
             "/single": "single chunk"}
    for name, kind in kinds.items():
        assert have[name]["index"] == kind
        assert have[name]["data"][0]["raw"] == np.arange(6, dtype="<i2").tobytes(), name


def test_unknown_filter_in_a_large_chunk(tmp_path):
    """The error names the filter, not the memory that a chunk of that size would take."""
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (400 << 20,), "u1", chunks=(400 << 20,), compression="gzip")
        d.id.write_direct_chunk((0,), b"any bytes " * 9)
    raw = path.read_bytes()
    at = raw.index(b"deflate") - 8
    assert raw[at:at + 2] == b"\1\0"
    path.write_bytes(raw[:at] + (32026).to_bytes(2, "little") + raw[at + 2:])
    assert "filter 32026" in show(path, str(1 << 30))[0]["/d"]["error"]
