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
