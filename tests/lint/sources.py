"""What the lint tests share: which files there are, and C text without comments and strings.

SPDX-License-Identifier: MIT
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Each layer of C: its folder, its public header, and the folders whose public header it may
# include.
LAYERS = {
    "hdf5core": ("h5core.h", ()),
    "vec": ("vec.h", ()),
    "ext/store": ("store.h", ("hdf5core", "vec")),
    "ext/mind": ("mind.h", ("ext/store", "vec")),
    "ext/sql": (None, ("ext/mind", "ext/store", "hdf5core", "vec")),
}
MAY_INCLUDE_SQLITE = ("ext/sql",)


def c_files(root, *folders):
    """The .c and .h files under these folders of root, sorted."""
    return sorted(p for f in folders for p in (root / f).rglob("*.[ch]"))


def without_comments(text):
    """C text whose comments and contents of literals are blank; line numbers stay as they are."""
    def blank(m):
        kept = re.sub(r"[^\n]", " ", m[0])
        return kept if m[0][0] == "/" else m[0][0] + kept[1:-1] + m[0][-1]

    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def where(root, path, line=None):
    name = str(path.relative_to(root))
    return name if line is None else f"{name}:{line}"
