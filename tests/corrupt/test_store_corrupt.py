"""A store whose files are changed at every byte, cut off, or written by an enemy.

SPDX-License-Identifier: MIT
"""
from harness.cprog import run_tap


def test_damaged_stores():
    run_tap("corrupt/store_tool", at_least=6)
