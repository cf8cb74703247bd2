"""Makes the seeds of the corpus of fuzz_h5_open: small files of hdf5core and of libhdf5.

    /usr/bin/python3 tests/fuzz/make_corpus.py .build/gcc/tests/interop/h5core_tool

Seeds are named seed_*; what a fuzzer found and a fault that was mended stay beside them.

SPDX-License-Identifier: MIT
"""
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "fuzz_h5_open"

OURS = """
attr i version 3
attr s name sample
dataset embedding f4 10,4 4,4 16 - - {f}
dataset id i8 20 4 24 shuffle+deflate:6! - {i}
dataset zip i8 20 10 20 zstd:3 - {i}
dataset flags u1 20 8 32 - 07 -
dataset plain >i8 20 - 0 - - {i}
group memory 5
attr f weight 0.5
group root 1
"""


def foreign(path, fill):
    with h5py.File(path, "w", libver="latest") as f:
        fill(f)


def attributes(f):
    f.attrs["i"], f.attrs["f"] = np.int16(-5), np.float32(0.5)
    f.attrs["text"], f.attrs["vlen"] = np.bytes_(b"hello"), "variable"
    f["scalar"] = 5.5
    f["soft"] = h5py.SoftLink("/scalar")
    f["external"] = h5py.ExternalLink("x.h5", "/x")
    f["compound"] = np.zeros(2, [("a", "<i4"), ("b", "<f8")])


def continued(f):
    group = f.create_group("a/b", track_order=True)
    for i in range(6):
        group.attrs[f"later{i}"] = np.bytes_(b"x" * 60)


def indexes(f):
    f.create_dataset("fixed", data=np.arange(30, dtype="<i4"), chunks=(4,), compression=4, shuffle=True)
    f.create_dataset("single", data=np.arange(30, dtype=">i2"), chunks=(30,), compression=4)
    f.create_dataset("growing", data=np.arange(6), chunks=(2,), maxshape=(None,))
    f.create_dataset("both", data=np.ones((2, 2)), chunks=(2, 2), maxshape=(None, None))


def dense(f):
    for i in range(9):
        f.create_group(f"g{i}")


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for old in CORPUS.glob("seed_*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        np.arange(40, dtype="<f4").tofile(tmp / "f")
        np.arange(20, dtype="<i8").tofile(tmp / "i")
        subprocess.run([sys.argv[1], "make", CORPUS / "seed_ours.h5"], check=True, text=True,
                       input=OURS.format(f=tmp / "f", i=tmp / "i"))
    for fill in (attributes, continued, indexes, dense):
        foreign(CORPUS / f"seed_{fill.__name__}.h5", fill)


if __name__ == "__main__":
    main()
