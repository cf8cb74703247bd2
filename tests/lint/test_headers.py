"""Each public header compiles alone, as C11 and as C++17, with the include paths of its users only.

SPDX-License-Identifier: MIT
"""
import os
import shutil
import subprocess

import pytest

from sources import LAYERS, ROOT

PUBLIC = {layer: header for layer, (header, _) in LAYERS.items() if header}


def compilers():
    yield "c", os.environ.get("CC", "gcc").split()[0], ["-std=c11", "-x", "c"]
    plus = next((c for c in ("g++", "clang++", "c++") if shutil.which(c)), "c++")
    yield "c++", plus, ["-std=c++17", "-x", "c++"]


def header_fault(root, layer, compiler, flags):
    """The compiler's complaint about a file that includes this header twice and nothing else, or ''."""
    paths = [f"-I{root / folder}" for folder in (layer, *LAYERS[layer][1])]
    done = subprocess.run([compiler, *flags, "-fsyntax-only", "-Wall", "-Wextra", "-Wundef", "-Werror", *paths, "-"],
                          input=f'#include "{PUBLIC[layer]}"\n' * 2, text=True, capture_output=True)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("language,compiler,flags", list(compilers()), ids=["c", "c++"])
@pytest.mark.parametrize("layer", PUBLIC)
def test_header_alone(layer, language, compiler, flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {language} compiler")
    assert header_fault(ROOT, layer, compiler, flags) == ""


def test_a_header_that_needs_another_is_seen(tmp_path):
    (tmp_path / "vec").mkdir()
    (tmp_path / "vec/vec.h").write_text("#ifndef VEC_H\n#define VEC_H\nsize_t vec_size(void);\n#endif\n")
    language, compiler, flags = next(iter(compilers()))
    if shutil.which(compiler) is None:
        pytest.skip(f"no {language} compiler")
    assert "size_t" in header_fault(tmp_path, "vec", compiler, flags)
