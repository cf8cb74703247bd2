"""sql/hdf5.sql prints what sql/hdf5.out holds, sql/life.sql what sql/life.out holds, and sql/station.h5 is what
sql/hdf5_build.py makes.

SPDX-License-Identifier: MIT
"""
import difflib
import importlib.util

import pytest

from test_golden import run_script


@pytest.mark.parametrize("name", ["hdf5", "life"])
def test_recipes(root, so, tmp_path, name):
    sql = (root / f"sql/{name}.sql").read_text()
    assert "\n.load ./h5mem\n" in sql  # which run_script has done
    script = tmp_path / f"{name}.sql"
    script.write_text(sql.replace("\n.load ./h5mem\n", "\n"))
    (tmp_path / "sql").symlink_to(root / "sql")
    expected, got = (root / f"sql/{name}.out").read_text(), run_script(script, so, tmp_path)
    if got != expected:
        diff = difflib.unified_diff(expected.splitlines(True), got.splitlines(True), "expected", "got")
        pytest.fail("".join(diff), pytrace=False)


def listing(con, path):
    """Everything that SQL shows of a file."""
    objects = con.execute("SELECT * FROM hdf5_objects(?)", (path,)).fetchall()
    out = [objects]
    for name, kind, *_ in objects:
        if kind in ("group", "dataset"):
            out.append(con.execute("SELECT * FROM hdf5_attributes(?, ?)", (path, name)).fetchall())
        if kind == "dataset":
            out.append(con.execute("SELECT * FROM hdf5_values(?, ?)", (path, name)).fetchall())
    return out


def test_the_shipped_file(root, connect, tmp_path):
    pytest.importorskip("h5py")
    spec = importlib.util.spec_from_file_location("hdf5_build", root / "sql/hdf5_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build(tmp_path / "station.h5")
    con = connect()
    assert listing(con, str(root / "sql/station.h5")) == listing(con, str(tmp_path / "station.h5"))
