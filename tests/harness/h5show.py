"""What h5show_tool says of a file, as Python objects.

SPDX-License-Identifier: MIT
"""
import json
import subprocess

from harness.cprog import environment, program, unharmed


def records(output):
    """The lines of h5show_tool, each with the bytes of its data."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        record = json.loads(output[at:end].decode("utf-8", "surrogateescape"))
        at = end + 1 + record["bytes"]
        yield record, output[end + 1:at]


def cut(records_of):
    """Gives each leaf its bytes: attributes stand before nothing, values of the object first."""
    for record, data in records_of:
        at = 0
        for holder in [record] + record.get("attrs", []):
            for leaf in holder.get("data", []):
                leaf["raw"] = data[at:at + leaf["bytes"]]
                at += leaf["bytes"]
        yield record


def show(path, *more, **kwargs):
    """Runs the tool: its records by path, and how it ended."""
    done = unharmed(subprocess.run([program("interop/h5show_tool"), path, *more], capture_output=True,
                                   env=environment(), **kwargs))
    return {r["path"]: r for r in cut(records(done.stdout))}, done
