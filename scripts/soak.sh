#!/usr/bin/env bash
# 10,000 connections, 1,000 groups and 100,000 offsets for DURATION (10m), every third part of it with clients that
# misbehave in each known way: nothing of them may stay, nor may the others notice (internal/soak). Takes some minutes
# more than DURATION, and two cores that nobody else uses: p99 is compared.
#
#   scripts/soak.sh [DURATION [FLAGS OF soak]]
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-10m}
[ $# -eq 0 ] || shift
files=$(ulimit -Hn)
[ "$files" = unlimited ] || [ "$files" -ge 13000 ] || { echo "soak: 13000 open files are needed, $files are allowed"; exit 1; }
ulimit -n "$files"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/kcoord-soak-bin-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/kcoord" ./cmd/kcoord
go build -o "$tmp/soak" ./internal/soak
"$tmp/soak" -kcoord "$tmp/kcoord" -duration "$duration" "$@"
