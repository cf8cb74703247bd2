#!/bin/sh
# peers/fetch.sh FOLDER - brings sqlite-vec 0.1.9 from the npm registry into FOLDER, once, and prints the path of its
# module without the suffix. Exit code 1, with the reason, where it cannot be had.
#
# SPDX-License-Identifier: MIT
set -u
version=0.1.9
folder=${1:?folder}
case $(uname -s)-$(uname -m) in
Linux-x86_64) name=linux-x64 file=vec0.so ;;
Linux-aarch64) name=linux-arm64 file=vec0.so ;;
Darwin-arm64) name=darwin-arm64 file=vec0.dylib ;;
Darwin-x86_64) name=darwin-x64 file=vec0.dylib ;;
*) echo "no sqlite-vec is built for this system" >&2; exit 1 ;;
esac
mkdir -p "$folder" && cd "$folder" || exit 1
if [ ! -f package/$file ]; then
    npm pack --silent "sqlite-vec-$name@$version" >/dev/null || { echo "npm has no sqlite-vec for us" >&2; exit 1; }
    tar xzf "sqlite-vec-$name-$version.tgz" || exit 1
fi
echo "$folder/package/$file"
