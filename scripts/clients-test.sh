#!/usr/bin/env bash
# Client libraries in front of a real Apache Kafka 4.4.0 behind kcoord, as a sidecar: franz-go, sarama,
# confluent-kafka-python, aiokafka and kafkajs, each in a group job of its own (internal/groupjob, scripts/clients).
# Installs the libraries into a temporary folder. Needs Java 17, Maven and ../shared/kafka (SHARED says where ../shared
# is); without them it says so and passes, and the same for Python's or Node's clients alone.
set -euo pipefail
cd "$(dirname "$0")/.."
shared=${SHARED:-../shared}
for what in java mvn; do
  command -v "$what" >/dev/null || { echo "clients-test: skipped: $what is not there"; exit 0; }
done
[ -x "$shared/kafka/kafka.sh" ] || { echo "clients-test: skipped: $shared/kafka is not there"; exit 0; }
kafka=$(realpath "$shared/kafka/kafka.sh")
libs=$("$kafka" fetch)

tmp=$(mktemp -d "${TMPDIR:-/tmp}/kcoord-clients-XXXXXX")
cleanup() {
  [ ! -f "$tmp/node.pid" ] || kill -9 "$(cat "$tmp/node.pid")" 2>/dev/null || true
  if [ -f "$tmp/kcoord.pid" ]; then
    kill "$(cat "$tmp/kcoord.pid")" 2>/dev/null || true
    wait "$(cat "$tmp/kcoord.pid")" || true
  fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

. scripts/free-port.sh

ln -s "$libs" "$tmp/$(basename "$libs")"
export KAFKA_HOME=$tmp
broker=$(free_port) controller=$(free_port) sidecar=$(free_port)
cat >"$tmp/node.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$sidecar,CONTROLLER://127.0.0.1:$controller
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=data
offsets.topic.replication.factor=1
transaction.partition.verification.enable=false
END

# The libraries are fetched while Kafka starts.
python='' node=''
if command -v python3 >/dev/null && python3 -m venv "$tmp/python" >/dev/null 2>&1; then
  "$tmp/python/bin/pip" -q --disable-pip-version-check install confluent-kafka==2.16.1 aiokafka==0.14.0 >"$tmp/pip.log" 2>&1 &
  python=$!
else
  echo 'clients-test: skipped confluent-kafka and aiokafka: python3 with venv is not there'
fi
if command -v node >/dev/null && command -v npm >/dev/null; then
  mkdir "$tmp/js"
  cp scripts/clients/kafkajs_job.js "$tmp/js/"
  (cd "$tmp/js" && npm install --silent --no-audit --no-fund kafkajs@2.2.4 >"$tmp/npm.log" 2>&1) &
  node=$!
else
  echo 'clients-test: skipped kafkajs: node with npm is not there'
fi
"$kafka" start "$tmp/node.properties" >/dev/null
go build -o "$tmp/kcoord-bin" ./cmd/kcoord
go build -o "$tmp/groupjob" ./internal/groupjob
"$tmp/kcoord-bin" serve --listen "127.0.0.1:$sidecar" --upstream "127.0.0.1:$broker" --data "$tmp/kcoord" --log-format json \
  >"$tmp/kcoord.log" 2>&1 </dev/null &
echo $! >"$tmp/kcoord.pid"
for _ in $(seq 100); do
  (exec 3<>"/dev/tcp/127.0.0.1/$sidecar") 2>/dev/null && break
  sleep 0.1
done
[ -z "$python" ] || wait "$python" || { cat "$tmp/pip.log"; echo 'clients-test: pip failed'; exit 1; }
[ -z "$node" ] || wait "$node" || { cat "$tmp/npm.log"; echo 'clients-test: npm failed'; exit 1; }

jobs=()
job() {
  local name=$1
  shift
  "$@" "127.0.0.1:$sidecar" "job-$name" >"$tmp/$name.out" 2>&1 &
  jobs+=("$name:$!")
}
job franz "$tmp/groupjob" franz
job sarama "$tmp/groupjob" sarama
[ -z "$python" ] || job confluent "$tmp/python/bin/python" scripts/clients/confluent_job.py
[ -z "$python" ] || job aiokafka "$tmp/python/bin/python" scripts/clients/aiokafka_job.py
[ -z "$node" ] || job kafkajs node "$tmp/js/kafkajs_job.js"
failed=0
for j in "${jobs[@]}"; do
  wait "${j#*:}" || failed=$((failed + 1))
  tail -n 20 "$tmp/${j%:*}.out"
done
if [ "$failed" -gt 0 ]; then
  echo "kcoord's log:"
  tail -n 20 "$tmp/kcoord.log"
fi
echo "clients-test: $((${#jobs[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
