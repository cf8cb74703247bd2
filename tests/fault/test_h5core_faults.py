"""hdf5core while memory, reads and writes fail one by one.

SPDX-License-Identifier: MIT
"""
from harness.cprog import run_tap


def test_every_failure_is_reported_and_leaves_nothing():
    run_tap("fault/h5core_tool", at_least=4)
