#!/usr/bin/env bash
# Measures documents of the gallery and reports them below target/gallery. `bash scripts/gallery_measure.sh [NAME...]`; the names are
#   users      GPT-2 under load: percentiles by the number of users, 1 to 50
#   smollm2    one request of a real model taken apart, cold and warm
#   latency    three lengths of prompt and answer, with one thread and then with two
#   scenarios  four scenarios, 1 to 32 users
#   endpoints  two servers, one of them with its model in two precisions, side by side, by scripts/llama_cpp_server.sh
# and all of them where none is named. They take hours, want a quiet machine, and need python3 with pip for the model (98 MB).
# COMMAND names a command that was built already (`cargo xtask` if none is given), WORKER a bench binary, SERVE the example
# serve, SPEC another model for scenarios, GALLERY another folder. SHORT=1 tries each of them on little, below
# target/gallery-short: what it measures says nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${COMMAND:-cargo xtask}"
names=("$@")
if [ $# -eq 0 ]; then names=(users smollm2 latency scenarios endpoints); fi
worker=()
if [ -n "${WORKER:-}" ]; then worker=(--worker "$WORKER"); fi
short=${SHORT:-}
if [ -n "$short" ]; then export GALLERY=target/gallery-short; fi
# What reads models from files.
export INFERGATE_BENCH_FEATURES=infergate-candle/models
folder=${GALLERY:-target/gallery}
mkdir -p "$folder"

# An invalid run (exit 3) is kept too: its report says so first.
load() { "${command[@]}" load "${worker[@]}" "$@" || [ $? -eq 3 ]; }
bench() { "${command[@]}" bench "${worker[@]}" "$@"; }
# The real model, or what stands for it.
model() { if [ -n "$short" ]; then echo synthetic:tiny; else bash .ci/fetch-model; fi; }

users() {
    local size=(--users 1,10,20,30,40,50 --requests 300 --input-tokens 64 --output-tokens 16) spec=synthetic:gpt2
    if [ -n "$short" ]; then size=(--users 1,2 --requests 20 --input-tokens 16 --output-tokens 4) spec=synthetic:tiny; fi
    load --target "local:$spec" "${size[@]}" --out "$folder/users.json"
}

smollm2() {
    local size=(--runs 10 --cases prefill/p128,decode/p128,generate/p128-o64)
    if [ -n "$short" ]; then size=(--runs 3 --seconds-per-case 0 --cases prefill/p16,decode/p16,generate/p16-o8); fi
    bench --model "$(model)" --keep-text "${size[@]}" --out "$folder/smollm2.json"
}

# Enough samples for a P99 of the longest case: 368 of three processes. The run before takes less.
latency() {
    local cases=prefill/p128,prefill/p512,prefill/p1024,decode/p128,decode/p512,decode/p1024
    local before=30 after=1300
    cases+=,generate/p128-o64,generate/p512-o128,generate/p1024-o256
    if [ -n "$short" ]; then
        cases=prefill/p16,prefill/p64,decode/p16,decode/p64,generate/p16-o8,generate/p64-o16 before=0 after=0
    fi
    local run=(--model "$(model)" --dtype f32 --runs 3 --cases "$cases")
    bench "${run[@]}" --threads 1 --seconds-per-case $before --out "$folder/latency-before.json"
    bench "${run[@]}" --threads 2 --seconds-per-case $after --out "$folder/latency.json"
}

# The scenarios that `load` has, at their lengths where the model's context has room for them.
scenarios() {
    local size=(--users 1,2,4,8,16,32 --requests 40)
    if [ -n "$short" ]; then size=(--context 64 --users 1,2,4 --requests 12); fi
    load --target "local:${SPEC:-$(model)}" --dtype f32 "${size[@]}" --out "$folder/scenarios.json"
}

endpoints() {
    local size=()
    if [ -n "$short" ]; then size=(PROMPTS=5 TOKENS=8 REQUESTS=30); fi
    env "${size[@]}" bash scripts/llama_cpp_server.sh endpoints
}

for name in "${names[@]}"; do
    case $name in
    users | smollm2 | latency | scenarios | endpoints) "$name" ;;
    *) echo "error: there is no document $name, only users, smollm2, latency, scenarios and endpoints" >&2; exit 2 ;;
    esac
    bash scripts/gallery.sh "$name"
done
