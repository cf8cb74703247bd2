#!/bin/sh
# newest.sh FOLDER - builds libsqlite3 from the newest amalgamation that a package registry carries, into FOLDER
#
# The crate libsqlite3-sys (through cargo) and the npm package better-sqlite3 ship sqlite3.c; the first client found is
# used. Prints the folder, to be put into LD_LIBRARY_PATH; ends with 1 when neither can be had.
#
# SPDX-License-Identifier: MIT
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ -f "$out/libsqlite3.so.0" ] && { echo "$out"; exit 0; }
work=$out/fetch
rm -rf "$work"
mkdir -p "$work/src"
cd "$work"
if command -v cargo >/dev/null; then
    printf '[package]\nname = "fetch"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
    printf '[dependencies]\nlibsqlite3-sys = "*"\n' >>Cargo.toml
    echo 'fn main() {}' >src/main.rs
    cargo vendor -q vendor >/dev/null 2>&1 || true
fi
source=$(find . -path '*libsqlite3-sys/sqlite3/sqlite3.c' | head -1)
if [ -z "$source" ] && command -v npm >/dev/null; then
    npm pack --silent better-sqlite3 >/dev/null 2>&1 && tar xzf better-sqlite3-*.tgz || true
    source=$(find . -name sqlite3.c | head -1)
fi
[ -n "$source" ] || { echo "newest.sh: no amalgamation can be had" >&2; exit 1; }
${CC:-gcc} -shared -fPIC -O2 -w -o "$out/libsqlite3.so.$$" -Wl,-soname,libsqlite3.so.0 -DSQLITE_THREADSAFE=1 \
    -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_COLUMN_METADATA \
    -DSQLITE_ENABLE_UNLOCK_NOTIFY -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_PREUPDATE_HOOK \
    -DSQLITE_ENABLE_SESSION -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_LOAD_EXTENSION \
    -DHAVE_USLEEP=1 -DHAVE_FDATASYNC=1 "$source" -lm -lpthread -ldl
mv "$out/libsqlite3.so.$$" "$out/libsqlite3.so.0"
rm -rf "$work"
echo "$out"
