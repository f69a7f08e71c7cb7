# Shared by the suites that drive the broker from the shell: options, a broker of their own, checks that count.
#
#   options "$@"        reads --binary PATH and --address HOST:PORT
#   start_broker [key=value]...   starts the binary unless an address was given; sets $address, and $data when it is ours
#   check NAME COMMAND...         runs it, shows its output when it fails, counts
#   finish              prints "N passed, N failed" and exits accordingly
set -uo pipefail
suite=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$suite/../.." && pwd)
kafka=$root/compat-tests/oracle/kafka
binary="" address="" data="" broker="" passed=0 failed=0 skipped=0
work=$(mktemp -d)

clean_up() {
    stop_cluster
    [ -z "$broker" ] || { kill -KILL "$broker"; wait "$broker"; } 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

options() {
    while [ $# -gt 0 ]; do case $1 in
        --binary) binary=$2; shift 2 ;; --address) address=$2; shift 2 ;;
        *) echo "usage: $(basename "$suite")/run [--binary PATH] [--address HOST:PORT]" >&2; exit 2 ;;
    esac; done
    [ -n "$binary" ] || binary=${CARGO_TARGET_DIR:-$root/target}/release/barnabas
}

free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_broker() {
    local port setting arguments=()
    [ -z "$address" ] || return 0
    [ -x "$binary" ] || { echo "no binary at $binary; cargo build --release makes it" >&2; exit 1; }
    port=$(free_port)
    address=127.0.0.1:$port data=$work/data
    for setting in "listeners=PLAINTEXT://$address" "log.dirs=$data" "http.listener=127.0.0.1:$(free_port)" num.partitions=4 \
        group.initial.rebalance.delay.ms=0 "$@"; do arguments+=(--set "$setting"); done
    "$binary" serve "${arguments[@]}" > "$work/broker.log" 2>&1 < /dev/null &
    broker=$!
    for _ in $(seq 300); do
        if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
        kill -0 "$broker" 2>/dev/null || break
        sleep 0.1
    done
    echo "the broker does not listen on $address:" >&2
    tail -20 "$work/broker.log" >&2
    exit 1
}

check() {
    local name=$1 started=$SECONDS
    shift
    if "$@" > "$work/check.log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok      %-48s %3d s\n' "$name" $((SECONDS - started))
    else
        failed=$((failed + 1))
        printf 'FAILED  %-48s %3d s\n' "$name" $((SECONDS - started))
        tail -n 40 "$work/check.log" | sed 's/^/    /'
    fi
}

skip() { skipped=$((skipped + 1)); echo "SKIPPED $*"; }

finish() {
    if [ -n "$broker" ] && ! kill -0 "$broker" 2>/dev/null; then
        echo "the broker ended by itself:"; tail -20 "$work/broker.log"; failed=$((failed + 1))
    fi
    [ "$failed" -eq 0 ] || [ -z "$broker" ] || { echo "end of the broker's log:"; tail -15 "$work/broker.log"; }
    echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
    [ "$failed" -eq 0 ]
    exit
}

# --- three nodes ---
#
#   start_cluster [key=value]...   three nodes of the binary, or with cluster_of=kafka of Apache Kafka; sets $address (all) and address_of, $work/N.properties
#   stop_node N [KILL]             SIGTERM, or SIGKILL, and waits
#   start_node N                   again, and waits until it serves
declare -A address_of=() controller_of=() page_of=() node_process=()
cluster_of=${cluster_of:-barnabas}
cluster_settings=() kafka_port=""

start_cluster() {
    local node voters=""
    cluster_settings=("$@")
    [ "$cluster_of" = barnabas ] || { start_kafka_nodes; return; }
    [ -x "$binary" ] || { echo "no binary at $binary; cargo build --release makes it" >&2; exit 1; }
    mapfile -t ports < <(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(9)]
print(*(s.getsockname()[1] for s in held), sep="\n")')
    for node in 1 2 3; do
        address_of[$node]=127.0.0.1:${ports[node - 1]} controller_of[$node]=127.0.0.1:${ports[node + 2]} page_of[$node]=127.0.0.1:${ports[node + 5]}
        voters+="${voters:+,}$node@${controller_of[$node]}"
    done
    address=${address_of[1]},${address_of[2]},${address_of[3]}
    for node in 1 2 3; do
        printf '%s\n' "node.id=$node" "broker.rack=${KAFKA_RACK:-rack}$node" process.roles=broker,controller "log.dirs=$work/data$node" \
            "listeners=PLAINTEXT://${address_of[$node]},CONTROLLER://${controller_of[$node]}" controller.listener.names=CONTROLLER \
            "advertised.listeners=PLAINTEXT://${address_of[$node]}" "controller.quorum.voters=$voters" > "$work/$node.properties"
        spawn_node $node
    done
    for node in 1 2 3; do await_node $node; done
}

spawn_node() {
    local setting arguments=(--set "http.listener=${page_of[$1]}")
    while read -r setting; do arguments+=(--set "$setting"); done < <(grep -v '^$' "$work/$1.properties"; printf '%s\n' "${cluster_settings[@]}")
    "$binary" serve "${arguments[@]}" >> "$work/$1.log" 2>&1 < /dev/null &
    node_process[$1]=$!
}

await_node() {
    for _ in $(seq 300); do
        if curl -sf -m 1 -o /dev/null "http://${page_of[$1]}/readyz"; then return 0; fi
        kill -0 "${node_process[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "node $1 does not serve:" >&2
    tail -20 "$work/$1.log" >&2
    return 1
}

start_kafka_nodes() {
    local node
    kafka_port=$(cd "$root/compat-tests/oracle" && python3 -c 'import nodes; print(nodes.free_base(3))')
    "$kafka" start --nodes 3 --port "$kafka_port" --dir "$work/kafka" "${cluster_settings[@]}" > /dev/null || exit 1
    for node in 1 2 3; do
        address_of[$node]=127.0.0.1:$((kafka_port + 10 * (node - 1))) controller_of[$node]=127.0.0.1:$((kafka_port + 10 * (node - 1) + 1))
        cp "$work/kafka/$node.properties" "$work/$node.properties"
    done
    address=${address_of[1]},${address_of[2]},${address_of[3]}
}

start_node() {
    if [ "$cluster_of" = kafka ]; then
        "$kafka" start --nodes 3 --node "$1" --port "$kafka_port" --dir "$work/kafka" "${cluster_settings[@]}"
    else
        spawn_node "$1" && await_node "$1"
    fi
}

stop_node() {
    if [ "$cluster_of" = kafka ]; then
        "$kafka" stop --node "$1" --port "$kafka_port" --dir "$work/kafka" ${2:+--kill}
    elif [ -n "${node_process[$1]:-}" ]; then
        kill "-${2:-TERM}" "${node_process[$1]}" && wait "${node_process[$1]}" 2>/dev/null
        unset "node_process[$1]"
    fi
}

stop_cluster() {
    local node
    [ -z "$kafka_port" ] || "$kafka" stop --port "$kafka_port" --dir "$work/kafka" --kill
    for node in "${!node_process[@]}"; do kill -KILL "${node_process[$node]}"; wait "${node_process[$node]}"; done 2>/dev/null
}
