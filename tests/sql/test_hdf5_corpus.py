"""Files that many programs wrote, through SQL: every row of hdf5_objects and hdf5_attributes, values, and hdf5_read.

The files and what libhdf5 found in them lie in the data folder (h5corpus/README.md). tests/interop/test_h5show.py holds
hdf5core against the same reference; this asks whether the SQL layer says what hdf5core knows, in the words that
ext/sql/README.md gives, for every object of every file. Files that differ are named with the reason in
hdf5core/README.md; there may be no others.

SPDX-License-Identifier: MIT
"""
import codecs
import collections
import hashlib
import json
import math
import re
import sqlite3
import struct

import pytest

from test_hdf5 import rows

# Kinds of files that need not be right: the multi driver, and filters that are not asked for.
REFUSED = re.compile(r"driver multi|filter (307|32002|32013)\b|external or user-defined link")
NAMES = {307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32015: "zstd",
         1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32026: "blosc2"}
CUT = 200  # the reference shows so much of a string
MANY = 20000  # elements of a dataset whose values are all compared


@pytest.fixture(scope="module")
def corpus(data):
    root = data("h5corpus") / "dev"
    return root, [json.loads(line) for line in (root / "expected.jsonl").open()]


codecs.register_error("latin-1", lambda e: (e.object[e.start:e.end].decode("latin-1"), e.end))

# ------------------------------------------------------------------------------------------------ the reference's words


def text(name):
    """A name of the reference, as SQL gives it: text, or bytes where it is no UTF-8."""
    raw = bytes.fromhex(name["hex"]) if isinstance(name, dict) else name.encode()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def number(t):
    letter = {"float": "f", "bitfield": "b", "time": "t"}.get(t["class"], "u" if t.get("sign") == "unsigned" else "i")
    out = (">" if t.get("order") == "BE" and t["size"] > 1 else "") + f"{letter}{t['size']}"
    if t["class"] == "float":
        _, _, exponent, _, mantissa = t["fields"]
        usual = (t["size"], exponent, mantissa) in ((2, 5, 10), (4, 8, 23), (8, 11, 52)) and t["order"] != "VAX"
        return out + ("" if usual else f":e{exponent}m{mantissa}")
    return out + (f":{t['precision']}" if t["precision"] != 8 * t["size"] else "")


def whole(t):
    """Whether the reference gives all of a type; it leaves details out where it had them from memory."""
    if t["class"] in ("integer", "float") and "precision" not in t:
        return False
    inner = [m["type"] for m in t.get("members", []) if isinstance(m, dict)]
    return all(whole(x) for x in inner + ([t["base"]] if "base" in t else []))


def dtype(t):
    c = t["class"]
    if c == "string":
        return "string" if t["vlen"] else f"S{t['size']}"
    if c == "opaque":
        return f"opaque({t['size']})"
    if c == "reference":
        return None if t["ref"] not in ("object", "region") else f"ref({t['ref']})"
    if c == "array":
        return inside(t["base"]) + str(t["dims"]).replace(" ", "")
    if c in ("enum", "vlen", "complex"):
        return f"{c}({inside(t['base'])})"
    if c == "compound":
        return {m["name"] if isinstance(m["name"], str) else bytes.fromhex(m["name"]["hex"]).decode("latin-1"):
                dtype(m["type"]) for m in t["members"]}
    return number(t)


def inside(t):
    """A type as part of another's text."""
    inner = dtype(t)
    return json.dumps(inner, separators=(",", ":"), ensure_ascii=False) if isinstance(inner, dict) else str(inner)


def same_type(have, t):
    if not whole(t):
        return True
    want = dtype(t)
    if isinstance(want, dict) and have is not None:
        have = json.loads(have)
    return "null" in json.dumps(want) or "None" in json.dumps(want) or have == want


def leaf(t):
    """The type whose values stand in a list of the reference."""
    while t["class"] in ("array", "complex"):
        t = t["base"]
    return t


def flat(value):
    if isinstance(value, list):
        for v in value:
            yield from flat(v)
    else:
        yield value


def same_value(have, want, t):
    """One value of SQL, or of its JSON, against one of the reference."""
    t = leaf(t)
    if isinstance(want, dict):  # bytes that are no UTF-8: a BLOB, inside JSON the bad ones as Latin-1
        raw = bytes.fromhex(want["hex"])
        return have in (raw, raw.decode(errors="latin-1"))
    if t["class"] == "string":
        if want is None or "\0" in want:  # the null pointer is empty; a NUL makes a BLOB
            return have in ("", want) or have == (want or "").encode()
        return have == want or len(want) == CUT and have.startswith(want)
    if t["class"] == "enum":
        names = [text(n) for n, v in t["members"] if v == want]
        return have in names if names else have == want
    if isinstance(want, str):  # nan, inf, -inf
        want = float(want)
    if isinstance(want, float) and math.isnan(want):
        return have is None
    if t["class"] == "float" and t["size"] == 4 and have is not None:  # JSON has the shortest digits
        return struct.pack("f", have) == struct.pack("f", want)
    return have == (str(want) if isinstance(have, str) else want)  # above 2^63 - 1: TEXT


def faults_of_values(have, want, t, what):
    have, want = list(flat(have)), list(flat(want))
    if len(have) != len(want):
        yield f"{what}: {len(have)} for {len(want)}"
    for h, w in zip(have, want):
        if not same_value(h, w, t):
            yield f"{what}: {h!r} for {w!r}"
            return


def listed(t):
    """Whether the values of a type stand in the reference as SQL gives them: not those inside of others."""
    return leaf(t)["class"] in ("integer", "float", "enum", "string", "bitfield") and whole(t)


# ------------------------------------------------------------------------------------------------- SQL against it


def faults_of_row(row, want):
    path, kind, have_type, shape, maxshape, layout, chunks, filters, _, attrs, target = row
    if want["kind"] == "error":
        return
    if kind != want["kind"]:
        if kind != "error" or "error" not in want:
            yield f"kind {kind} for {want['kind']}: {target}"
        return
    if kind == "hard-link":
        if target != want["same_as"]:
            yield f"target {target}"
        return
    if kind in ("soft-link", "external-link") and target != ":".join(filter(None, (want.get("file"), want["target"]))):
        yield f"target {target} for {want}"
    if "dtype" in want and not same_type(have_type, want["dtype"]):
        yield f"dtype {have_type} for {dtype(want['dtype'])}"
    if want.get("attrs") is not None and attrs != len(want["attrs"]):
        yield f"{attrs} attributes for {len(want['attrs'])}"
    if kind != "dataset":
        return
    null = want["space"] == "null"
    for name, have in (("shape", shape), ("maxshape", maxshape), ("chunk", chunks)):
        if name in want and not (null and name != "chunk") and json.loads(have or "null") != want[name]:
            yield f"{name} {have} for {want[name]}"
    if layout != want["layout"]:
        yield f"layout {layout} for {want['layout']}"
    wanted = [NAMES.get(f["id"], f"filter {f['id']}") for f in want.get("filters", [])]
    if json.loads(filters or "[]") != wanted:
        yield f"filters {filters} for {wanted}"


def faults_of_attributes(con, path, name, want):
    have = {n: rest for n, *rest in rows(con, "SELECT * FROM hdf5_attributes(?, ?)", path, name)}
    for a in want:
        key = text(a["name"])
        if key not in have:
            yield f"attribute {key}: missing"
            continue
        have_type, shape, value = have.pop(key)
        if "dtype" not in a or "error" in a:
            continue
        if not same_type(have_type, a["dtype"]):
            yield f"attribute {key}: {have_type} for {dtype(a['dtype'])}"
        if a["space"] != "null" and json.loads(shape) != a["shape"]:
            yield f"attribute {key}: shape {shape} for {a['shape']}"
        if "value" in a and listed(a["dtype"]):
            nested = a["shape"] or a["dtype"]["class"] in ("array", "complex")
            yield from faults_of_values(json.loads(value) if nested else value, a["value"], a["dtype"],
                                        f"attribute {key}")
    if have:
        yield f"attributes {sorted(map(str, have))} too many"


def faults_of_data(con, path, name, want, count):
    """hdf5_read against the digest, hdf5_values against all values or the first ones."""
    if "digest" not in want or want["digest"] is None or "error" in want:
        return
    t = want["dtype"]
    if t["class"] in ("integer", "float", "bitfield") and whole(t) and want["space"] != "null":
        ((blob,),) = rows(con, "SELECT hdf5_read(?, ?)", path, name)
        code = want["digest_type"]
        if code[1:] == f"{number(t).lstrip('>').split(':')[0].replace('b', 'u')}" and \
                hashlib.sha256(blob).hexdigest() != want["digest"]:
            yield "hdf5_read: another digest"
        count["read"] += 1
    if not listed(t) or "n" not in want:
        return
    per = want["n"] // max(1, math.prod(want["shape"]))
    if "value" in want and want["n"] <= MANY:
        have, expect = rows(con, "SELECT value FROM hdf5_values(?, ?)", path, name), want["value"]
    elif want.get("first") and per == 1:
        have, expect = rows(con, "SELECT value FROM hdf5_values(?, ?) LIMIT ?", path, name, len(want["first"])), \
            want["first"]
    else:
        return
    nested = t["class"] in ("array", "complex")
    yield from faults_of_values([json.loads(v) if nested and v is not None else v for (v,) in have], expect, t,
                                "hdf5_values")
    count["values"] += 1


def faults_of(con, root, file, count):
    path = str(root / file["path"])
    got = rows(con, "SELECT * FROM hdf5_objects(?)", path)
    want = {text({"hex": o["path_hex"]} if "path_hex" in o else o["path"]): o for o in file["objects"]}
    for row in got:
        name, kind = row[0], row[1]
        expect = want.pop(name, None)
        if expect is None:
            yield f"{name}: not in the reference"
            continue
        count["objects"] += 1
        for fault in faults_of_row(row, expect):
            yield f"{name}: {fault}"
        if kind not in ("group", "dataset", "named-type"):
            continue
        try:
            for fault in faults_of_attributes(con, path, name, expect.get("attrs") or []):
                yield f"{name}: {fault}"
            if kind == "dataset":
                for fault in faults_of_data(con, path, name, expect, count):
                    yield f"{name}: {fault}"
        except sqlite3.Error as e:
            assert str(e).startswith("h5mem: hdf5_") and f": {path.rsplit('/')[-1]}: " in str(e), e
            if not REFUSED.search(str(e)):
                yield f"{name}: {e}"
    for name in want:
        yield f"{name}: missing"


def test_every_row(connect, corpus, report, root):
    data_root, files = corpus
    con, wrong, count = connect(), {}, collections.Counter()
    for file in files:
        try:
            faults = list(faults_of(con, data_root, file, count))
        except sqlite3.Error as e:
            assert str(e).startswith("h5mem: hdf5_objects: "), e
            faults = [] if REFUSED.search(str(e)) else [str(e)]
        if faults:
            wrong[file["path"]] = faults
    report(f"through SQL: {len(files) - len(wrong)} of {len(files)} files right; {count['objects']} objects, "
           f"{count['values']} datasets by hdf5_values, {count['read']} by hdf5_read")
    known = (root / "hdf5core/README.md").read_text()
    unknown = {p: f for p, f in wrong.items() if p.rsplit("/")[-1] not in known}
    assert not unknown, "\n".join(f"{p}: {x}" for p, f in sorted(unknown.items()) for x in f[:3])
    assert len(wrong) <= len(files) // 100
    assert count["objects"] > 20000 and count["values"] > 9000 and count["read"] > 8000


def test_every_file_in_the_shell(shell, corpus):
    """SELECT * FROM hdf5_objects(f) from the sqlite3 shell: each file gives its rows or one message that names it."""
    data_root, files = corpus
    quoted = [str(data_root / f["path"]).replace("'", "''") for f in files]
    script = "\n".join(f"SELECT '{i} done', count(*) FROM (SELECT * FROM hdf5_objects('{p}'));"
                       for i, p in enumerate(quoted))
    done = shell(script, check=False)
    assert done.returncode in (0, 1)
    listed_files = {int(line.split()[0]) for line in done.stdout.splitlines() if " done|" in line}
    refused = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(listed_files) + len(refused) == len(files)
    for i in set(range(len(files))) - listed_files:
        assert any(f"h5mem: hdf5_objects: {quoted[i].rsplit('/')[-1]}: " in line for line in refused)
    assert len(refused) <= len(files) // 100
