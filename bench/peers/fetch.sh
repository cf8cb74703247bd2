#!/bin/sh
# peers/fetch.sh FOLDER PEER - brings a peer from the npm registry into FOLDER, once, and prints the path of its module:
# vec0 (sqlite-vec 0.1.9), vector (sqlite-vector 1.1.2) or vectorlite (0.2.0). Exit code 1, with the reason, where it
# cannot be had.
#
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder}/${2:?vec0, vector or vectorlite}
system=$(uname -s)-$(uname -m)
case $2-$system in
vec0-Linux-x86_64) name=sqlite-vec-linux-x64 ;;
vec0-Linux-aarch64) name=sqlite-vec-linux-arm64 ;;
vec0-Darwin-arm64) name=sqlite-vec-darwin-arm64 ;;
vec0-Darwin-x86_64) name=sqlite-vec-darwin-x64 ;;
vector-Linux-x86_64) name=@sqliteai/sqlite-vector-linux-x86_64 ;;
vector-Linux-aarch64) name=@sqliteai/sqlite-vector-linux-arm64 ;;
vectorlite-Linux-x86_64) name=@1yefuwang1/vectorlite-linux-x64 ;;
*) echo "no $2 is built for this system" >&2; exit 1 ;;
esac
case $2 in vec0) version=0.1.9 ;; vector) version=1.1.2 ;; *) version=0.2.0 ;; esac
case $system in Darwin*) file=$2.dylib ;; *) file=$2.so ;; esac
mkdir -p "$folder" && cd "$folder" || exit 1
if [ -z "$(find package -name $file 2>/dev/null)" ]; then
    archive=$(npm pack --silent "$name@$version") || { echo "npm has no $name" >&2; exit 1; }
    tar xzf "$archive" || exit 1
fi
found=$(find package -name $file)
[ -n "$found" ] || { echo "$name holds no $file" >&2; exit 1; }
echo "$folder/$found"
