#!/usr/bin/env bash
# Measures the five documents of docs/gallery anew and writes their pages. `bash scripts/gallery_measure.sh [NAME...]`:
#   request    one request of a real model, taken apart
#   latency    GPT-2 at three lengths of prompt and answer, and an earlier run at other lengths beside it
#   users      GPT-2 for 1 to 50 users
#   scenarios  GPT-2 in four scenarios, for 1 to 8 users
#   providers  three servers: one provider with a model in 4 bits and in 32, another one with that in 4 bits; prices are made up
# All take 40 minutes of a quiet machine with two cores, and python3 with pip for the model (98 MB). The receipts stay small: few requests,
# short answers. COMMAND, WORKER and SERVE name programs that are built already: the command, the bench `inference`, the example `serve`.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${COMMAND:-cargo xtask}"
names=("$@")
if [ $# -eq 0 ]; then names=(request latency users scenarios providers); fi
worker=()
if [ -n "${WORKER:-}" ]; then worker=(--worker "$WORKER"); fi
# What reads models from files.
export INFERGATE_BENCH_FEATURES=infergate-candle/models
export NO_PROXY="${NO_PROXY:+$NO_PROXY,}127.0.0.1"
folder=docs/gallery
started=()
finish() { if [ ${#started[@]} -gt 0 ]; then kill "${started[@]}" 2> /dev/null || true; fi; }
trap finish EXIT

# An invalid run (exit 3) and missed targets (exit 1) are kept, too: the page says so first.
load() { "${command[@]}" load "${worker[@]}" "$@" --out "$folder/$name.json" || [ $? -lt 4 ]; }
bench() { "${command[@]}" bench "${worker[@]}" "$@"; }

request() {
    bench --model "$(bash .ci/fetch-model)" --keep-text --runs 10 --seconds-per-case 2 \
        --cases prefill/p128,decode/p128,generate/p128-o64 --out "$folder/request.json"
}

latency() {
    local cases=prefill/p128,decode/p128,generate/p128-o64,prefill/p512,decode/p512,generate/p512-o128
    cases+=,prefill/p768,decode/p768,generate/p768-o256
    bench --model synthetic:gpt2 --runs 4 --seconds-per-case 3 --cases prefill/p30,decode/p30,generate/p30-o50 \
        --out "$folder/latency-before.json"
    bench --model synthetic:gpt2 --runs 5 --seconds-per-case 6 --cases "$cases" --out "$folder/latency.json"
}

users() { load --target local:synthetic:gpt2 --users 1,10,20,30,40,50 --requests 30 --input-tokens 64 --output-tokens 8; }

scenarios() { load --target local:synthetic:gpt2 --context 240 --users 1,2,4,8 --requests 6; }

# Starts the example server with "$@" and puts its address and its model's name into $url and $served.
serve() {
    local log
    log=$(mktemp "$PWD/target/serve-XXXXXX")
    "${SERVE:-target/release/examples/serve}" --port 0 --model "$model" "$@" > "$log" &
    started+=($!)
    until url=$(grep -m1 '^http' "$log"); do sleep 0.2; done
    served=$(python3 -c 'import json, sys, urllib.request as u; print(json.load(u.urlopen(sys.argv[1] + "/v1/models"))["data"][0]["id"])' "$url")
    rm "$log"
}

providers() {
    local model url served targets=()
    model=$(bash .ci/fetch-model)
    if [ -z "${SERVE:-}" ]; then cargo build --quiet --release --package infergate-candle --example serve; fi
    serve --slots 4
    targets+=(--target "north/four-bit=$url" --model "north/four-bit=$served" --price north/four-bit=0.05,0.20)
    serve --slots 4 --dtype f32
    targets+=(--target "north/full=$url" --model "north/full=$served" --price north/full=0.10,0.40)
    serve --slots 1 --queue 0
    targets+=(--target "south/four-bit=$url" --model "south/four-bit=$served" --price south/four-bit=0.04,0.15)
    python3 scripts/llama_cpp_check.py prompts 25 48 > target/providers.jsonl
    load "${targets[@]}" --api completions --dataset target/providers.jsonl --input-tokens 32 --output-tokens 48 --users 1,4 \
        --requests 90 --tokenizer "$model"
}

for name in "${names[@]}"; do
    case $name in
    request | latency | users | scenarios | providers) "$name" ;;
    *) echo "error: there is no document $name, only request, latency, users, scenarios and providers" >&2; exit 2 ;;
    esac
done
bash scripts/gallery.sh "${names[@]}"
