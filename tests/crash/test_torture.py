"""Runs the program torture (tests/crash/torture/): deaths, power cuts and failures at every system call.

Here in the short form; `make torture` runs the long one.

SPDX-License-Identifier: MIT
"""
import os
import subprocess

import pytest

from harness.cprog import environment, program

SEED = os.environ.get("T_SEED", "")


def torture(report, tmp_path, *arguments):
    env = environment(TMPDIR="/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path))
    seed = [f"seed={SEED}"] if SEED else []
    done = subprocess.run([program("crash/torture_tool"), *arguments, *seed], env=env, text=True, capture_output=True,
                          timeout=600)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
    for line in done.stdout.splitlines():
        if line.startswith("report: "):
            report(f"{' '.join(arguments)}: {line[8:]}")


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist", "memory"])
def test_deaths_of_one_alone(report, tmp_path, mode):
    torture(report, tmp_path, "kill", "lives=200", f"only={mode}", "alone=1", "drop=1")


@pytest.mark.parametrize("mode", ["wal", "delete", "persist", "memory"])
def test_deaths_beside_the_living(report, tmp_path, mode):
    torture(report, tmp_path, "kill", "lives=100", f"only={mode}")


def test_power_cuts(report, tmp_path):
    torture(report, tmp_path, "power", "lives=150", "drop=1")


def test_failures(report, tmp_path):
    torture(report, tmp_path, "fault", "lives=8")
