"""How files look: header comment, licence line, width, length, banned calls, layout.

SPDX-License-Identifier: MIT
"""
import re
import shutil
import subprocess

import pytest

from sources import LAYERS, ROOT, c_files, where, without_comments

WIDTH_C = 100
WIDTH_SCRIPT = 120
FILE_LINES = 900
FUNCTION_LINES = 70
MAKEFILE_LINES = 250
CLANG_FORMAT = 14
LIBRARIES = tuple(LAYERS)
C_FOLDERS = ("hdf5core", "vec", "ext", "tests", "bench")

MEMORY = "malloc calloc realloc free strdup strndup aligned_alloc posix_memalign alloca".split()
BANNED = """sprintf vsprintf strcpy strcat strtok gets strtod strtof atoi atol atof printf fprintf
            vprintf puts putchar perror abort exit system""".split()


def scripts(root):
    """Text that people edit and that is not C: Python, shell, make."""
    folders, endings = ("tests", "bench", "sql"), ("*.py", "*.sh")
    out = [p for folder in folders for ending in endings for p in (root / folder).rglob(ending)]
    out += [p for p in (root / "Makefile", root / "tests/run") if p.exists()]
    return sorted(out + [p for p in (root / ".ci").glob("*") if p.is_file()])


def header_faults(root):
    """Files that do not open with a comment that names the file and says what it is, and a licence line."""
    faults = []
    for path in c_files(root, *C_FOLDERS):
        text = path.read_text()
        comment = re.match(r"/\*\n \* (\S+) - .+?\*/", text, re.S)
        if not comment or comment[1] != path.name:
            faults.append(f"{where(root, path)}: does not open with a comment '/*\\n * {path.name} - ...'")
    for path in c_files(root, *C_FOLDERS) + scripts(root):
        if path.read_text()[:4000].count("SPDX-License-Identifier: " + "MIT") != 1:
            faults.append(f"{where(root, path)}: not exactly one licence line near the top")
    return faults


def width_faults(root):
    limits = [(path, WIDTH_C) for path in c_files(root, *C_FOLDERS)]
    limits += [(path, WIDTH_SCRIPT) for path in scripts(root)]
    return [f"{where(root, path, number)}: {len(line)} columns of {limit}" for path, limit in limits
            for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > limit]


def length_faults(root):
    """Files and functions too long to be read as one thing. A function runs from `{` to `}` in column 1."""
    faults = []
    for path in c_files(root, *C_FOLDERS):
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES:
            faults.append(f"{where(root, path)}: {len(lines)} lines")
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                if number - start + 1 > FUNCTION_LINES + 2:
                    faults.append(f"{where(root, path, start)}: a function of {number - start - 1} lines")
                start = None
    makefile = root / "Makefile"
    if makefile.exists() and len(makefile.read_text().splitlines()) > MAKEFILE_LINES:
        faults.append(f"Makefile: more than {MAKEFILE_LINES} lines")
    return faults


def call_faults(root):
    """Calls that a library must not make: memory behind the hook's back, unbounded text, output, locale, the end."""
    faults = []
    for path in c_files(root, *LIBRARIES):
        names = BANNED if path.name.endswith("_base.c") else MEMORY + BANNED
        pattern = re.compile(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(")
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            faults += [f"{where(root, path, number)}: {m[1]}()" for m in pattern.finditer(line)]
    return faults


def left_open_faults(root):
    """Words that stand for work not done."""
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|XXX|HA" r"CK)\b")
    return [f"{where(root, path, number)}: {m[1]}"
            for path in c_files(root, *C_FOLDERS) for number, line in enumerate(path.read_text().splitlines(), 1)
            for m in words.finditer(line)]


CHECKS = [header_faults, width_faults, length_faults, call_faults, left_open_faults]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_the_project(check):
    faults = check(ROOT)
    assert not faults, "\n" + "\n".join(faults)


GOOD = "/*\n * a.c - a sample.\n *\n * SPDX-License-Identifier: " + "MIT\n */\nint f(void)\n{\n    return 0;\n}\n"
BAD = {
    header_faults: [GOOD.replace("a.c - a", "b.c - a"), GOOD.replace("SPDX", "spdx"), "int x;\n"],
    width_faults: [GOOD + "//" + "x" * 99 + "\n"],
    length_faults: [GOOD + "int g(void)\n{\n" + "    f();\n" * 71 + "}\n", GOOD + "\n" * 900],
    call_faults: [GOOD + call for call in ("free (p);\n", "x = sprintf(b);\n", "exit(1);\n", "if (strtod(p)) {\n")],
    left_open_faults: [GOOD + "// TO" + "DO later\n"],
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_a_bad_sample_is_seen(check, tmp_path):
    path = tmp_path / "vec" / "a.c"
    path.parent.mkdir()
    harmless = ("// free(p) and printf(x) in a comment\n/* exit(1) */\nchar *s = \"malloc(1)\";\n"
                "a->free(p); h5_free(p);\n")
    path.write_text(GOOD + harmless)
    assert check(tmp_path) == []
    for text in BAD[check]:
        path.write_text(text)
        assert len(check(tmp_path)) >= 1, text


def test_a_long_makefile_is_seen(tmp_path):
    (tmp_path / "Makefile").write_text("# line\n" * 251)
    assert length_faults(tmp_path) == [f"Makefile: more than {MAKEFILE_LINES} lines"]


def format_faults(root, exe):
    """Files that clang-format would change, by the .clang-format of the project."""
    files = [str(p) for p in c_files(root, *C_FOLDERS)]
    done = subprocess.run([exe, f"--style=file:{ROOT / '.clang-format'}", "--dry-run", *files], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "clang-format-violations" in line]


@pytest.fixture
def clang_format():
    exe = shutil.which("clang-format")
    if exe is None:
        pytest.skip("no clang-format on PATH")
    version = subprocess.run([exe, "--version"], text=True, capture_output=True).stdout
    if f"version {CLANG_FORMAT}." not in version:
        pytest.skip(f"layout is that of clang-format {CLANG_FORMAT}, here is {version.strip()}")
    return exe


def test_layout(clang_format):
    faults = format_faults(ROOT, clang_format)
    assert not faults, "\n" + "\n".join(faults)


def test_bad_layout_is_seen(clang_format, tmp_path):
    (tmp_path / "vec").mkdir()
    (tmp_path / "vec" / "a.c").write_text(GOOD)
    assert format_faults(tmp_path, clang_format) == []
    (tmp_path / "vec" / "a.c").write_text(GOOD.replace("    return", "  return"))
    assert len(format_faults(tmp_path, clang_format)) == 1
