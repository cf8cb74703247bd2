#!/bin/sh
# bench/peers/run.sh BUILD MODULE FILTER - every row that has a peer, ours and it in alternation.
#
# A peer that cannot be had is named and its rows are left out: extensions by the runner, libhdf5 here. The exit
# code is 1 when a row of any part failed.
#
# SPDX-License-Identifier: MIT
set -u
build=$1 module=$2 filter=${3:-}
rc=0
extensions=
for peer in vec0 vector; do
    path=$(sh bench/peers/fetch.sh "$PWD/.build/peers" $peer) && extensions="$extensions --extension $peer=$path"
done
BENCH_REAL=$("${PYTHON:-python3}" bench/peers/real.py .build/peers/real) && export BENCH_REAL || unset BENCH_REAL
# shellcheck disable=SC2086 # words without spaces
"$build/bench/bench" --module "$module" ${filter:+--filter "$filter"} $extensions bench/peers/*.sql || rc=1
"$build/bench/commit/commit" --module "$module" ${filter:+--filter "$filter"} || rc=1
if sh bench/peers/find_hdf5.sh --cflags >/dev/null; then
    make --no-print-directory bench-hdf5 FILTER="$filter" || rc=1
else
    echo "SKIP bench/peers/h5bench.c: needs libhdf5"
fi
case lists in *"$filter"*)
    if "${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null; then
        "${PYTHON:-/usr/bin/python3}" bench/peers/lists.py --skip-hnsw || rc=1
    else
        echo "SKIP bench/peers/lists.py: needs numpy"
    fi ;;
esac
exit $rc
