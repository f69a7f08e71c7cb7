# `just verify` is what must hold before a change lands; it never writes to the tree. `just fix` does what can be done for it.

# List the recipes.
default:
    @just --list

# Start a broker on this machine: localhost:9092, metrics on localhost:9644.
run *arguments:
    cargo run --release -- {{arguments}}

# Everything that is quick: format, lints, tests of the broker, alert rules.
verify: format-check lint test rules

format-check:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

test:
    cargo test --locked

# The broker's floors, names and page; seconds, not minutes.
architecture:
    cargo test --locked --test architecture --test metrics_dashboard

# Tests of the real binary with librdkafka, too. Needs a C++ compiler and some minutes for the first build.
test-all:
    cargo test --workspace --locked

# Faults on three real processes under load, the long form of every scenario. Networks and disks of their own need root.
faults cycles="1":
    BARNABAS_FAULTS={{cycles}} cargo test -p compat-tests --locked --test faults -- --nocapture

# Three simulated nodes through everything that can go wrong, for so many seeds (docs/simulation.md).
sim seeds='2000':
    BARNABAS_SEEDS={{seeds}} cargo test --release --lib sim:: -- --nocapture

# Alert rules by Prometheus' own tool (Debian: apt-get install prometheus).
rules:
    promtool check rules grafana/alerts.yml
    promtool test rules grafana/tests.yml

# Licences, sources, advisories (cargo install cargo-deny).
dependencies:
    cargo deny check

# What CI runs, all of it.
ci:
    bash .ci/run

# Formats, and applies what clippy can apply by itself.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
