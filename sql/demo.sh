#!/bin/sh
# demo.sh - runs the parts of demo.sql in a fresh folder, kills the writer in the middle of a
# transaction and checks what is left
#
# Needs the sqlite3 shell and the module at the project's root, nothing else; `make demo` calls it.
# Ends with 1 when a part fails or when, after the kill, the store does not hold exactly the
# committed rows.
#
# SPDX-License-Identifier: MIT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
module=$(dirname "$here")/h5mem

fail() {
    echo "demo: $*" >&2
    exit 1
}

[ -f "$module.so" ] || [ -f "$module.dylib" ] || fail "no h5mem.so at the root: run make first"
command -v sqlite3 >/dev/null || fail "the sqlite3 shell is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cp "$here/demo.h5" "$work/"
cd "$work"

# part NAME: the lines of demo.sql between "-- part: NAME" and the next part, through a shell of its
# own on demo.db; leaves NAME.out, NAME.err and the shell's exit code in status.
part() {
    awk -v name="$1" '/^-- part: /{on = ($3 == name); next} on' "$here/demo.sql" >"$1.sql"
    status=0
    sqlite3 -batch -cmd ".load '$module'" demo.db <"$1.sql" >"$1.out" 2>"$1.err" || status=$?
}

# show FILE...: output without the dot commands that `.echo on` repeats
show() {
    sed '/^\.[a-z]/d' "$@"
}

# sound NAME: ends the demo with the part's messages unless it ended well
sound() {
    [ "$status" -ne 0 ] || [ -s "$1.err" ] || return 0
    cat "$1.err" >&2
    fail "part $1 of demo.sql ended with $status"
}

part tour
show tour.out
sound tour

echo "-- == The files =================================================================="
echo
ls -l agent.h5 agent.h5-wal demo.db
printf 'agent.h5 begins as an HDF5 file does:'
od -A n -t c -N 8 agent.h5

part writer
show writer.txt more.txt
if [ "$status" -ne 137 ]; then
    cat writer.err >&2
    fail "the writer ended with $status, not by SIGKILL"
fi
echo "-- kill -9"

part after
show after.out
sound after
[ -s committed.txt ] || fail "the writer has noted no rows"
cmp committed.txt found.txt || fail "the rows differ from the committed ones"
echo "All $(wc -l <found.txt | tr -d ' ') committed rows are there, byte for byte, and no other."
