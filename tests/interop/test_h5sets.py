"""Files that are more than one, or not quite what stands in them: families and splits in old and new format, and the
metadata cache image.

SPDX-License-Identifier: MIT
"""
import subprocess

import pytest

from harness.cprog import environment, program, unharmed

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")


def values(path, name, like):
    done = unharmed(subprocess.run([program("interop/h5core_tool"), "values", path, name], capture_output=True,
                                   env=environment()))
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, like.dtype).reshape(like.shape)


def fill(f):
    f["a/b"] = np.arange(5000)
    f.create_dataset("c", data=np.arange(600.).reshape(30, 20), chunks=(7, 6), compression="gzip")
    for i in range(20):
        f[f"many/d{i}"] = i
    return {"a/b": f["a/b"][...], "c": f["c"][...], "many/d7": f["many/d7"][...]}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("member", [1000, 4096, 1 << 20])
def test_families(tmp_path, libver, member):
    with h5py.File(tmp_path / "f%03d.h5", "w", driver="family", memb_size=member, libver=libver) as f:
        want = fill(f)
    assert (tmp_path / "f001.h5").exists() == (member < 1 << 20)
    for name, data in want.items():
        assert np.array_equal(values(tmp_path / "f000.h5", name, data), data), name


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_splits(tmp_path, libver):
    with h5py.File(tmp_path / "s", "w", driver="split", meta_ext=b"-m.h5", raw_ext=b"-r.h5", libver=libver) as f:
        want = fill(f)
    for name, data in want.items():
        assert np.array_equal(values(tmp_path / "s-m.h5", name, data), data), name
