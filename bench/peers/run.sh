#!/bin/sh
# bench/peers/run.sh BUILD MODULE FILTER - every row that has a peer, ours and it in alternation.
#
# A peer that cannot be had is named and its rows are left out: extensions by the runner, the others here. What is
# fetched (npm, PyPI) goes under .build/peers. BENCH_OUT names a file for the figures as JSON lines; what was in it
# goes. The exit code is 1 when a row of any part failed.
#
# SPDX-License-Identifier: MIT
set -u
build=$1 module=$2 filter=${3:-}
python=${PYTHON:-/usr/bin/python3} peers=$PWD/.build/peers
rc=0
[ -z "${BENCH_OUT:-}" ] || rm -f "$BENCH_OUT"

# wanted WORD: a part whose rows are not chosen one by one
wanted() {
    case $1 in *"$filter"*) return 0 ;; *) return 1 ;; esac
}

extensions=
for peer in vec0 vector; do
    path=$(sh bench/peers/fetch.sh "$peers" $peer) && extensions="$extensions --extension $peer=$path"
done
BENCH_REAL=$("$python" bench/peers/real.py .build/peers/real) && export BENCH_REAL || unset BENCH_REAL
# shellcheck disable=SC2086 # words without spaces
"$build/bench/bench" --module "$module" --about "make bench-peers" ${filter:+--filter "$filter"} $extensions \
    bench/peers/*.sql || rc=1
"$build/bench/commit/commit" --module "$module" ${filter:+--filter "$filter"} || rc=1
if sh bench/peers/find_hdf5.sh --cflags >/dev/null; then
    make --no-print-directory bench-hdf5 FILTER="$filter" || rc=1
else
    echo "SKIP libhdf5: not on this machine (Debian: libhdf5-dev)"
fi
if wanted redis; then
    "$python" bench/peers/keys.py || rc=1
fi
if wanted lists; then
    lite=$(sh bench/peers/fetch.sh "$peers" vectorlite) || lite=
    if [ ! -d "$peers/faiss" ] && ! "$python" -m pip install --quiet --target "$peers/faiss" faiss-cpu; then
        rm -rf "$peers/faiss"
    fi
    if PYTHONPATH=$peers/faiss "$python" -c 'import numpy' 2>/dev/null; then
        PYTHONPATH=$peers/faiss "$python" bench/peers/lists.py ${lite:+--vectorlite "$lite"} || rc=1
    else
        echo "SKIP bench/peers/lists.py: needs numpy"
    fi
fi
if wanted clawhdf5; then
    "$python" bench/peers/clawhdf5.py || rc=1
fi
exit $rc
