#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (60s), two at a time. FUZZ is a regular expression over "PACKAGE TARGET".
set -uo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-60s}
out=$(mktemp -d "${TMPDIR:-/tmp}/kcoord-fuzz-XXXXXX")
trap 'rm -rf "$out"' EXIT

# The names are in the sources; building every test binary to ask for them takes longer than fuzzing.
grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's#^\./(.*)/[^/]*:[0-9]+:func (Fuzz.*)#./\1 \2#' |
  grep -E "${FUZZ:-.}" | sort >"$out/targets"
echo "fuzz: $(wc -l <"$out/targets") targets, $time each"

one() {
  log=$3/$(echo "$1.$2" | tr '/' '_').log
  if go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$4" -fuzzminimizetime 1s -parallel 1 >"$log" 2>&1; then
    echo "ok    $1 $2 ($(grep -oE 'execs: [0-9]+' "$log" | tail -1))"
  else
    echo "FAIL  $1 $2"
    tail -40 "$log"
    touch "$3/failed"
  fi
}
export -f one
set -m # a process group of its own, so that none of them outlives this script
xargs -a "$out/targets" -n 2 -P 2 bash -c 'one "$0" "$1" '"'$out' '$time'" &
trap 'kill -- -$!; exit 130' INT TERM
wait $!
[ ! -e "$out/failed" ]
