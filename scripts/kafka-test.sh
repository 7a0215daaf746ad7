#!/usr/bin/env bash
# The tests that need a real Apache Kafka (build tag "kafka"): fetches 4.4.0 through ../shared/kafka/kafka.sh, which wants
# Java 17 and Maven, and runs them. Where something is missing, it says so and passes.
#
#   scripts/kafka-test.sh [ARGS OF go test]
#
# SHARED says where ../shared is.
set -euo pipefail
cd "$(dirname "$0")/.."
shared=${SHARED:-../shared}
skip() { echo "kafka: skipped: $1"; exit 0; }
[ -x "$shared/kafka/kafka.sh" ] || skip "$shared/kafka/kafka.sh is not there"
for tool in java mvn; do command -v "$tool" >/dev/null || skip "$tool is not there"; done
KAFKA_SH=$(cd "$shared" && pwd)/kafka/kafka.sh
export KAFKA_SH
export KAFKA_HOME=${KAFKA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/kcoord-kafka}
"$KAFKA_SH" fetch >/dev/null || skip "Kafka could not be fetched"
for clients in 3.9.1 2.8.2; do # of those that transactions are tried with, too
  KAFKA_VERSION=$clients "$KAFKA_SH" fetch >/dev/null || echo "kafka: kafka-clients $clients could not be fetched"
done
exec go test -tags kafka -count=1 "$@" ./internal/kafkatest/
