#!/bin/sh
# bench/run.sh BUILD MODULE FORM FILTER - our own rows, in their fixed order
#
# FORM is short, normal or long; list prints the names. BENCH_OUT names a file for the figures as JSON lines; what was
# in it goes.
#
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 module=$2 form=$3 filter=${4:-}
files=
for part in vec near hybrid text time write store footprint hdf5; do
    files="$files bench/$part.sql"
done
for file in bench/*.sql; do
    case " $files " in *" $file "*) ;; *) files="$files $file" ;; esac
done
# shellcheck disable=SC2086 # names without spaces
case $form in
list) exec "$build/bench/bench" --list all $files ;;
normal) about="make bench" ;;
*) about="make bench $(echo "$form" | tr a-z A-Z)=1" ;;
esac
[ -z "${BENCH_OUT:-}" ] || rm -f "$BENCH_OUT"
# shellcheck disable=SC2086
exec "$build/bench/bench" --module "$module" --form "$form" --about "$about" ${filter:+--filter "$filter"} $files
