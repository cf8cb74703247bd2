"""The C programs that pytest files run: where they are, and running those that speak TAP.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def program(name):
    """Path of a built program, named by its source under tests/ without the ending: 'fault/h5core_tool'."""
    path = pathlib.Path(os.environ.get("H5MEM_BUILD", ROOT / ".build/gcc")) / "tests" / name
    assert path.is_file(), f"{path} is missing: run make units"
    return path


def environment(**more):
    """The environment for a C program: sanitizers look for leaks, which they cannot under Python."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", **more)
    env.pop("LD_PRELOAD", None)
    if os.environ.get("H5MEM_SAN"):
        env["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=1:allocator_may_return_null=1"
    return env


def run_tap(name, at_least):
    """Runs a cmocka program; all its tests must pass, and there must be that many."""
    done = subprocess.run([program(name)], env=environment(), text=True, capture_output=True)
    output = done.stdout + done.stderr
    assert done.returncode == 0 and "not ok" not in output, output
    assert sum(line.startswith("ok ") for line in output.splitlines()) >= at_least, output


def unharmed(done):
    """The result of a run that no sanitizer complained of."""
    said = done.stderr if isinstance(done.stderr, str) else done.stderr.decode("utf-8", "replace")
    assert done.returncode >= 0 and "Sanitizer" not in said and "runtime error" not in said, said
    return done
