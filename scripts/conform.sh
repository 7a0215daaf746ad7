#!/usr/bin/env bash
# Plays ../shared/conform against kcoord and compares with what Apache Kafka 4.4.0 answered.
#
#   scripts/conform.sh             against `kcoord dev`, and against `kcoord serve` where Java and Maven are
#   scripts/conform.sh dev|serve   against one of them
#
# VERSION is a metadata.version that is finalized first: 0.8.0 is the lowest, 3.3 the lowest that Kafka 4.4 itself starts
# with. What has to be answered otherwise then is in conform-older.txt.
# SHARED says where ../shared is; RUN is a regular expression over scenarios, instead of those that have to pass.
# The last line tells how many passed and failed, over all.
set -euo pipefail
cd "$(dirname "$0")/.."
shared=${SHARED:-../shared}
if [ ! -d "$shared/conform" ]; then
  echo "conform: skipped: $shared/conform is not there"
  exit 0
fi
shared=$(cd "$shared" && pwd)

# What needs no consumer groups of KIP-848, which are still to come.
ordinary='^(group|offsets|txn)/|^(bugs|better)/[^/]*$'
without='^offsets/fetch-as-member-of-consumer-group$|^bugs/crash/deleted-stays-deleted$|^crash/consumer-group-goes-on$'
crashing='^crash/|^(bugs|better)/crash/'

tmp=$(mktemp -d "${TMPDIR:-/tmp}/kcoord-conform-XXXXXX")
broker=''
cleanup() {
  [ ! -f "$tmp/pid" ] || kill -9 "$(cat "$tmp/pid")" 2>/dev/null || true
  if [ -n "$broker" ]; then
    "$shared/kafka/kafka.sh" stop "$broker" KILL 2>/dev/null || true
    rm -f "${KAFKA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/kcoord-kafka}/$(basename "$broker" .properties)".* # log and pid
  fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

. scripts/free-port.sh

go build -o "$tmp/kcoord" ./cmd/kcoord
cp -R "$shared/conform" "$tmp/conform" # ../shared may be read-only
chmod -R u+w "$tmp/conform"
(cd "$tmp/conform" && go build -o "$tmp/play" .)

passed=0 failed=0 otherwise=0 admin=$(free_port)

# older: the lines of conform-older.txt that hold at VERSION; of a scenario the lowest.
older() {
  grep -v '^#' scripts/conform-older.txt | sort -V | while read -r before scenario answer; do
    [ -n "$scenario" ] || continue
    [ "$before" != "$VERSION" ] && [ "$(printf '%s\n%s\n' "$VERSION" "$before" | sort -V | head -1)" = "$VERSION" ] || continue
    printf '%s\t%s\n' "$scenario" "$answer"
  done | awk -F '\t' '!seen[$1]++'
}
[ -z "${VERSION:-}" ] || older >"$tmp/older"

# as_expected OUT: of the scenarios that failed, how many did so as they have to, and how many did not.
as_expected() {
  awk -v list="$tmp/older" '
    BEGIN { while ((getline line < list) > 0) { split(line, f, "\t"); want[f[1]] = f[2] } }
    $1 == "ok" || $1 == "FAIL" { name = $2; state[name] = $1 }
    $1 == "got" && !(name in got) { got[name] = $0 }
    END {
      for (n in state) {
        if (state[n] == "FAIL" && n in want && got[n] ~ want[n]) { same++ }
        else if (state[n] == "FAIL") { bad++; print "conform: " n " differs in a way that conform-older.txt does not explain" > "/dev/stderr" }
        else if (n in want) { bad++; print "conform: " n " passes, which conform-older.txt does not expect" > "/dev/stderr" }
      }
      print same + 0, bad + 0
    }' "$1"
}

# server MODE: writes a script that kills kcoord with -9, if it runs, and starts it.
server() {
  local more=''
  [ "$1" = dev ] || more="--upstream 127.0.0.1:$broker_port"
  cat >"$tmp/restart" <<EOF
[ ! -f "$tmp/pid" ] || { kill -9 "\$(cat "$tmp/pid")" 2>/dev/null; while kill -0 "\$(cat "$tmp/pid")" 2>/dev/null; do sleep 0.02; done; }
"$tmp/kcoord" $1 --listen 127.0.0.1:$port --data "$tmp/data-$1" --properties "$shared/conform/server.properties" \
  --admin 127.0.0.1:$admin --log-format json $more >>"$tmp/log" 2>&1 </dev/null &
echo \$! >"$tmp/pid"
for _ in \$(seq 300); do
  (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && exit 0
  kill -0 "\$(cat "$tmp/pid")" 2>/dev/null || break
  sleep 0.1
done
tail -5 "$tmp/log" >&2
exit 1
EOF
  bash "$tmp/restart"
  [ -z "${VERSION:-}" ] || "$tmp/kcoord" downgrade --to "$VERSION" --admin "127.0.0.1:$admin" | tail -1
}

# show: at an older version it is not yet said that what differs has failed.
show() {
  if [ -n "${VERSION:-}" ]; then sed 's/^FAIL /differs /'; else cat; fi
}

# scenarios PATTERN [ARGS…]: plays those that match, adds up.
scenarios() {
  local picked rc=0
  picked=$(cd "$tmp/conform" && "$tmp/play" -list -restart x -run "$1" | grep -vE "$without" | paste -sd '|' -)
  if [ -z "$picked" ]; then return; fi
  (cd "$tmp/conform" && "$tmp/play" -target "127.0.0.1:$port" -run "^($picked)\$" "${@:2}") | tee "$tmp/out" | show || rc=$?
  local p f
  p=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$tmp/out")
  f=$(sed -n 's/.* passed, \([0-9]*\) failed.*/\1/p' "$tmp/out")
  if [ -n "${VERSION:-}" ] && [ -n "$f" ]; then
    local same
    read -r same f < <(as_expected "$tmp/out")
    otherwise=$((otherwise + same))
  fi
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
}

play() {
  echo "conform: against kcoord $1"
  port=$(free_port)
  server "$1"
  if [ -n "${RUN:-}" ]; then
    scenarios "$RUN" -restart "bash $tmp/restart"
  else
    scenarios "$ordinary"
    scenarios "$crashing" -restart "bash $tmp/restart" -timeout 120s
  fi
  kill "$(cat "$tmp/pid")" && while kill -0 "$(cat "$tmp/pid")" 2>/dev/null; do sleep 0.05; done
  rm -f "$tmp/pid"
}

# A real Kafka that advertises kcoord's address, in front of which kcoord stands.
start_broker() {
  "$shared/kafka/kafka.sh" fetch >/dev/null || { echo 'conform: Maven cannot fetch Kafka'; return 1; }
  broker_port=$(free_port) controller_port=$(free_port) port=$(free_port)
  broker=$tmp/kcoord-conform-$$.properties
  sed -e "s/19292/$broker_port/g; s/19293/$controller_port/g" \
    -e "s#^advertised.listeners=.*#advertised.listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port#" \
    -e "s#^log.dirs=.*#log.dirs=$tmp/kafka-data#" "$shared/conform/kafka.properties" >"$broker"
  echo 'transaction.partition.verification.enable=false' >>"$broker"
  "$shared/kafka/kafka.sh" start "$broker" >/dev/null
}

mode=${1:-all}
case $mode in all | dev) play dev ;; esac
case $mode in
all | serve)
  if command -v java >/dev/null && command -v mvn >/dev/null; then
    start_broker
    free_port() { echo "$port"; } # the one that the broker advertises
    play serve
  else
    echo "conform: kcoord serve in front of a real Kafka is skipped: java and mvn are not there"
  fi
  ;;
esac
[ -z "${VERSION:-}" ] || echo "conform: $otherwise at $VERSION otherwise, as they have to be"
echo "conform: $passed passed, $failed failed"
[ "$failed" = 0 ]
