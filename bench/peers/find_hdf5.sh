#!/bin/sh
# peers/find_hdf5.sh --cflags|--libs - what a compiler needs for libhdf5. Exit code 1 where it is not there.
#
# SPDX-License-Identifier: MIT
set -u
for name in hdf5 hdf5-serial; do
    pkg-config "$1" "$name" 2>/dev/null && exit 0
done
for prefix in /usr /usr/local /opt/homebrew; do
    if [ -f "$prefix/include/hdf5.h" ]; then
        [ "$1" = --cflags ] && echo "-I$prefix/include" || echo "-L$prefix/lib -lhdf5"
        exit 0
    fi
    if [ -f "$prefix/include/hdf5/serial/hdf5.h" ]; then # Debian, where pkg-config is a package of its own
        [ "$1" = --cflags ] && echo "-I$prefix/include/hdf5/serial" || echo "-lhdf5_serial"
        exit 0
    fi
done
echo "no libhdf5 headers" >&2
exit 1
