"""Makes the seeds of fuzz_h5_filter: one small chunk of each filter and option, as h5py and hdf5plugin store it.

    PYTHONPATH=tests /usr/bin/python3 tests/fuzz/make_filter_corpus.py

The layout of a seed is in fuzz_h5_filter.c. test_h5filter.py checks that each decodes to its checksum.

SPDX-License-Identifier: MIT
"""
import pathlib
import struct
import sys
import tempfile
import zlib

import h5py
import hdf5plugin
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
from test_h5filter import chunks_of, client_data, elements, nbit_types  # noqa: E402

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "fuzz_h5_filter"


def options():
    yield "fletcher32", {"fletcher32": True}, "<i2", 61
    yield "lzf", {"compression": "lzf", "shuffle": True}, "<i4", 200
    yield "deflate", {"compression": 6, "fletcher32": True}, "<i4", 200
    for scheme in ("nn", "ec"):
        for block in (8, 32):
            for kind in ("u1", ">i2", "<f4", "<f8"):
                name = f"szip_{scheme}{block}_{kind.strip('<>')}"
                yield name, {"compression": "szip", "compression_opts": (scheme, block)}, kind, 333
    for fill in (None, 3):
        for kind in ("i1", ">i2", "<i8"):
            yield f"scaleoffset_{kind.strip('<>')}_{fill}", {"scaleoffset": 0, "fillvalue": fill}, kind, 150
        for kind in ("<f4", ">f8"):
            yield f"scaleoffset_{kind.strip('<>')}_{fill}", {"scaleoffset": 2, "fillvalue": fill}, kind, 150
    yield "lz4", hdf5plugin.LZ4(nbytes=256), "<i4", 200
    yield "zstd", hdf5plugin.Zstd(), "<i4", 200
    for codec in ("none", "lz4", "zstd"):
        yield f"bitshuffle_{codec}", hdf5plugin.Bitshuffle(nelems=64, cname=codec), "<i2", 203
    for codec in ("blosclz", "lz4", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            yield f"blosc_{codec}{shuffle}", hdf5plugin.Blosc(cname=codec, shuffle=shuffle), "<i4", 301


def seed(name, dataset, filters=None):
    (_, chunk), = chunks_of(dataset, filters)
    plain = elements(dataset).tobytes()
    assert len(plain) == chunk.size
    head = struct.pack("<IIBB", chunk.size, zlib.crc32(plain), chunk.mask, len(chunk.filters))
    for number, values in chunk.filters:
        head += struct.pack(f"<HH{len(values)}I", number, len(values), *values)
    (CORPUS / f"seed_{name}").write_bytes(head + chunk.stored)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for old in CORPUS.glob("seed_*"):
        old.unlink()
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "t.h5"
        with h5py.File(path, "w") as f:
            for name, option, kind, n in options():
                data = np.cumsum(rng.integers(-2, 3, n)) + 20
                f.create_dataset(name, data=data.astype(kind), chunks=(n,), **option)
            for i, kind in enumerate(nbit_types()):
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_chunk((8,))
                plist.set_filter(5, h5py.h5z.FLAG_OPTIONAL, ())
                data = np.frombuffer(rng.bytes(8 * kind.get_size()), f"V{kind.get_size()}")
                dataset = h5py.h5d.create(f.id, f"nbit_{i}".encode(), kind, h5py.h5s.create_simple((8,)), plist)
                dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=kind)
        with h5py.File(path, "r") as f:
            for name in f:
                described = client_data(f[name].id.get_type()) if name.startswith("nbit") else None
                seed(name, f[name], described and [(5, [len(described) + 3, 0, 8, *described])])


if __name__ == "__main__":
    main()
