"""The arrows between the layers: who may include whom, and who may know SQLite.

SPDX-License-Identifier: MIT
"""
import re

from sources import LAYERS, MAY_INCLUDE_SQLITE, ROOT, c_files, where


def layer_of(root, path):
    folder = str(path.parent.relative_to(root))
    return next((name for name in LAYERS if folder == name or folder.startswith(name + "/")), None)


def layer_faults(root):
    """Includes that break an arrow; files of ext/ that belong to no known layer."""
    faults = []
    for path in c_files(root, "hdf5core", "vec", "ext"):
        layer = layer_of(root, path)
        if layer is None:
            faults.append(f"{where(root, path)}: no layer; add its folder to LAYERS with its arrows")
            continue
        own = {p.name for p in c_files(root, layer)}
        allowed = own | {LAYERS[other][0] for other in LAYERS[layer][1]}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not found:
                if re.match(r"\s*#\s*include", line):
                    faults.append(f"{where(root, path, number)}: an include that cannot be checked")
                continue
            quote, name = found[1], found[2]
            if "sqlite3" in name:
                if layer not in MAY_INCLUDE_SQLITE:
                    faults.append(f"{where(root, path, number)}: {layer} does not know SQLite ({name})")
                elif name != "sqlite3ext.h":
                    faults.append(f"{where(root, path, number)}: include sqlite3ext.h, not {name}")
            elif quote == '"' and name not in allowed:
                faults.append(f"{where(root, path, number)}: {layer} may not include {name}")
            elif quote == "<" and (root / layer / name).exists():
                faults.append(f"{where(root, path, number)}: own header {name} in angle brackets")
    return faults


def test_the_arrows_hold():
    faults = layer_faults(ROOT)
    assert not faults, "\n" + "\n".join(faults)


def test_a_broken_arrow_is_seen(tmp_path):
    def put(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    put("hdf5core/h5core.h", "")
    put("hdf5core/h5_io.h", "")
    put("hdf5core/a.c", '#include "h5core.h"\n#include "h5_io.h"\n#include <stdio.h>\n')
    put("vec/vec.h", "")
    put("ext/store/store.h", '#include "h5core.h"\n#include "vec.h"\n')
    put("ext/sql/b.c", '#include "store.h"\n#include "sqlite3ext.h"\n')
    assert layer_faults(tmp_path) == []
    put("hdf5core/a.c", '#include "vec.h"\n')
    put("vec/c.c", '#include "../hdf5core/h5core.h"\n#include <sqlite3.h>\n#include HIDDEN\n')
    put("ext/store/d.c", '#include "h5_io.h"\n  # include "sqlite3ext.h"\n')
    put("ext/sql/b.c", "#include <sqlite3.h>\n")
    put("ext/new/e.c", "")
    faults = layer_faults(tmp_path)
    assert [f.split(": ")[0] for f in faults] == [
        "ext/new/e.c", "ext/sql/b.c:1", "ext/store/d.c:1", "ext/store/d.c:2", "hdf5core/a.c:1", "vec/c.c:1",
        "vec/c.c:2", "vec/c.c:3"]
