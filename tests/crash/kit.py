"""The fixture `server`, to import: it forks processes, with the library that kills preloaded.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from harness.forks import Server

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def server(so, tmp_path_factory):
    if sys.platform != "linux":
        pytest.skip("needs Linux: a library is preloaded")
    cc = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if cc is None:
        pytest.skip("no C compiler for the library that kills")
    lib = tmp_path_factory.mktemp("killer") / "killer.so"
    subprocess.run([*cc.split(), "-shared", "-fPIC", "-O1", "-o", str(lib), str(HERE / "killer.c"), "-ldl"], check=True)
    server = Server(["harness.jobs", "crash.operations", "crash.pairs"],
                    LD_PRELOAD=" ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(lib)])))
    yield server
    server.close()
