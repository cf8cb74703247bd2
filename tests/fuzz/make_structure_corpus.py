"""Makes the seeds of fuzz_h5_superblock, _header, _type, _index and _heap: structures cut out of files of libhdf5.

    /usr/bin/python3 tests/fuzz/make_structure_corpus.py

Seeds are named seed_*; what a fuzzer found stays beside them.

SPDX-License-Identifier: MIT
"""
import pathlib
import struct
import tempfile

import h5py
import numpy as np

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
INDEXES = {"FAHD": 2, "EAHD": 3, "BTHD": 4, "TREE": 5}


def put(target, name, data):
    folder = CORPUS / f"fuzz_h5_{target}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed_{name}").write_bytes(data)


def made(fill, libver="latest", sizes=(8, 8), user=0):
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "f.h5"
        plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        plist.set_sizes(*sizes)
        plist.set_userblock(user)
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        low = h5py.h5f.LIBVER_LATEST if libver == "latest" else h5py.h5f.LIBVER_EARLIEST
        access.set_libver_bounds(low, h5py.h5f.LIBVER_LATEST)
        with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist, access)) as f:
            fill(f)
        return path.read_bytes()


def superblocks():
    for libver in ("latest", "earliest"):
        for sizes in ((8, 8), (4, 4)):
            put("superblock", f"{libver}_{sizes[0]}", made(lambda f: None, libver, sizes)[:1000])
    put("superblock", "user_block", made(lambda f: None, user=512)[:1300])


TYPES = {
    "int": "<i4", "float": ">f8", "half": "<f2", "text": "S5", "compound": [("a", "<i4"), ("b", "<f8", (2, 3))],
    "enum": h5py.enum_dtype({"red": 1, "blue": 2}, "i1"), "vlen": h5py.vlen_dtype("i2"), "complex": "<c8",
    "string": h5py.string_dtype(), "ref": h5py.ref_dtype, "region": h5py.regionref_dtype, "opaque": "V7", "bool": "?",
    "nested": [("x", [("y", h5py.string_dtype()), ("z", "S3", (4,))])],
}


def messages(header):
    """(id, body) of a version 2 header in one block."""
    flags = header[5]
    at = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(header[at:at + width], "little")
    at += width
    end = at + size
    step = 6 if flags & 4 else 4
    while at + step <= end:
        kind, n = header[at], int.from_bytes(header[at + 1:at + 3], "little")
        yield kind, header[at + step:at + step + n]
        at += step + n


def types():
    for name, kind in TYPES.items():
        data = made(lambda f: f.create_dataset("d", (1,), dtype=kind))
        for at in range(len(data)):
            if data[at:at + 4] == b"OHDR":
                for number, body in messages(data[at:]):
                    if number == 3 and len(body) < 256:
                        put("type", name, bytes([len(body)]) + body + bytes(range(1, 40)))
                        put("header", "of_" + name, data[at:at + 400])


def headers():
    def attributes(f):
        for i in range(3):
            f.attrs[f"a{i}"] = np.arange(i + 1)
        f["x"], f["y"] = h5py.SoftLink("/a"), h5py.ExternalLink("b", "/c")
        f.create_group("g")

    def layouts(f):
        f.create_dataset("d", (9, 9), "i4", chunks=(2, 2), maxshape=(None, 9), compression=1, shuffle=True, fillvalue=3)
        f.create_dataset("e", (4,), "i4", external=[("x", 0, 16)])

    for fill in (attributes, layouts):
        for libver in ("latest", "earliest"):
            data = made(fill, libver)
            starts = [i for i in range(len(data)) if data[i:i + 4] == b"OHDR"]
            if libver == "earliest":
                starts = [i for i in range(96, len(data), 8) if data[i:i + 2] == b"\1\0" and data[i + 4:i + 8] ==
                          b"\1\0\0\0" and 0 < data[i + 2] < 20]
            for k, at in enumerate(starts[:3]):
                put("header", f"{fill.__name__}_{libver}_{k}", data[at:at + 500])


def indexes():
    shapes = {"one": ((40,), (4,), (40,)), "open": ((40,), (4,), (None,)), "two": ((9, 12), (2, 5), (None, None)),
              "fixed": ((9, 12), (2, 5), (9, 14))}
    for name, (shape, chunk, most) in shapes.items():
        for libver in ("latest", "earliest"):
            for filtered in (0, 1):
                data = made(lambda f: f.create_dataset("d", data=np.ones(shape, "<i4"), chunks=chunk, maxshape=most,
                                                       compression=1 if filtered else None), libver)
                for sign, kind in INDEXES.items():
                    at = data.find(sign.encode())
                    while sign == "TREE" and at >= 0 and data[at + 4] != 1:
                        at = data.find(b"TREE", at + 1)
                    if at < 0:
                        continue
                    head = struct.pack("<4BI", kind, len(shape) - 1, filtered,
                                       sum(1 << i for i, m in enumerate(most) if m is None), at)
                    for n, c, m in zip(shape, chunk, most):
                        head += struct.pack("<HBB", n, c - 1, 0 if m is None else m - n)
                    put("index", f"{name}_{sign}_{filtered}", head.ljust(16, b"\0") + data)


def heaps():
    def texts(f):
        f["d"] = ["one", "three", "x" * 100]

    def dense(f):
        for i in range(12):
            f.create_group(f"group{i}")

    for name, fill, libver, sign, kind, key in (
            ("local", dense, "earliest", b"HEAP", 0, struct.pack("<I", 8)),
            ("global", texts, "latest", b"GCOL", 1, struct.pack("<H", 2)),
            ("fractal", dense, "latest", b"FRHP", 2, None)):
        for width, sizes in enumerate(((8, 8), (4, 4))):
            data = made(fill, libver, sizes)
            at = data.find(sign)
            if key is None or kind == 2:  # the id of the first record of the index by name
                leaf = data.find(b"BTLF")
                key = data[leaf + 10:leaf + 17]
            put("heap", f"{name}_{sizes[0]}", (struct.pack("<BBI", kind, width, at) + key).ljust(16, b"\0") + data)


def main():
    for target in ("superblock", "header", "type", "index", "heap"):
        for old in (CORPUS / f"fuzz_h5_{target}").glob("seed_*"):
            old.unlink()
    superblocks()
    types()
    headers()
    indexes()
    heaps()


if __name__ == "__main__":
    main()
