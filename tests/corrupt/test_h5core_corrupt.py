"""hdf5core on a file cut off and changed at every byte.

SPDX-License-Identifier: MIT
"""
from harness.cprog import run_tap


def test_every_prefix_and_every_byte():
    run_tap("corrupt/h5core_tool", at_least=5)
