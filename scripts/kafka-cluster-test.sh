#!/usr/bin/env bash
# kcoord as the gateway of a real Apache Kafka 4.4.0 of three brokers: Kafka's own tools, Java and Go groups, brokers
# killed with -9 and started again. Needs Java 17, Maven and ../shared/kafka (SHARED says where ../shared is); without
# them it says so and passes. RUN is a regular expression over the tests, instead of all.
set -euo pipefail
cd "$(dirname "$0")/.."
shared=${SHARED:-../shared}
for what in java mvn; do
  command -v "$what" >/dev/null || { echo "kafka-cluster-test: skipped: $what is not there"; exit 0; }
done
[ -x "$shared/kafka/kafka.sh" ] || { echo "kafka-cluster-test: skipped: $shared/kafka is not there"; exit 0; }
KAFKA_SH=$(realpath "$shared/kafka/kafka.sh")
export KAFKA_SH
libs=$("$KAFKA_SH" fetch)

home=$(mktemp -d "${TMPDIR:-/tmp}/kcoord-cluster-XXXXXX")
cleanup() {
  local f
  for f in "$home"/*.pid; do # what the tests have left, should they have been interrupted
    [ ! -f "$f" ] || kill -9 "$(cat "$f")" 2>/dev/null || true
  done
  rm -rf "$home"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
ln -s "$libs" "$home/$(basename "$libs")"
go build -o "$home/kcoord-bin" ./cmd/kcoord
export KAFKA_HOME=$home KCOORD=$home/kcoord-bin
go test -tags kafka -count 1 -timeout 8m ${RUN:+-run "$RUN"} ./internal/gatewaytest
