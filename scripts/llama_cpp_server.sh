#!/usr/bin/env bash
# Runs infergate against a server that nobody here wrote: llama-cpp-python's, built from PyPI, with the SmolLM2 GGUF, on loopback.
# `bash scripts/llama_cpp_server.sh [STEP...]`; the steps are
#   load       users on the server, and every answer's tokens by our tokenizer beside the server's own count
#   gate       two servers of the same setting through the paired gate, then two of different settings
#   endpoints  this server and serve_candle side by side; writes docs/gallery/endpoints.json, which scripts/gallery.sh reports
# and all of them where none is named. Everything else lies in target/llama-cpp, and every process ends with the script.
# Needs python3 with pip and venv, a C++ compiler and cargo. COMMAND, WORKER and SERVE name programs that were built already:
# the command (`cargo xtask` if none is given), the bench binary `inference` and the example `serve_candle`. PROMPTS (48) and USERS (1,4)
# set the size of load, BUDGET (5m) the time of each gate.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
read -ra command <<< "${COMMAND:-cargo xtask}"
# It is run in another folder, too.
if [ -f "${command[0]}" ]; then command[0]=$(realpath "${command[0]}"); fi
steps=("$@")
if [ $# -eq 0 ]; then steps=(load gate endpoints); fi

results=$root/target/llama-cpp
python=$results/venv/bin/python
mkdir -p "$results"
# The server has no prebuilt package; its library takes some minutes. Without LLAVA_BUILD its image models are left out.
if ! "$python" -c 'import llama_cpp.server.app' 2> "$results/import.txt"; then
    python3 -m venv "$results/venv"
    CMAKE_ARGS=-DLLAVA_BUILD=OFF "$python" -m pip install --quiet 'llama-cpp-python[server]==0.3.36'
fi
model=$(bash .ci/fetch-model)
serve=${SERVE:-}
if [ -z "$serve" ] && [[ " ${steps[*]} " == *" endpoints "* ]]; then
    cargo build --quiet --profile bench --workspace --example serve_candle
    serve=target/release/examples/serve_candle
fi

started=()
wrong=0
finish() {
    if [ ${#started[@]} -gt 0 ]; then kill "${started[@]}" 2> "$results/kill.txt" || true; fi
    wait 2> "$results/wait.txt" || true
}
trap finish EXIT

# Waits until GET of $1 is answered with 2xx; $2 is the server's log.
ready() {
    for _ in $(seq 300); do
        if "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' "$1" 2> "$results/ready.txt"; then return; fi
        sleep 0.2
    done
    echo "error: $1 is not answered; see $2" >&2
    exit 1
}

# Starts a server with the settings in "$@" and puts its URL into $url. Without interrupt_requests=false a second request ends the
# first; with logits_all, its default, it keeps the logits of the whole prompt.
llama() {
    local port
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$python" -m llama_cpp.server --model "$model" --model_alias smollm2 --host 127.0.0.1 --port "$port" \
        --interrupt_requests false --logits_all false --verbose false --n_ctx 2048 "$@" > "$results/server-$port.log" 2>&1 &
    started+=($!)
    url=http://127.0.0.1:$port
    ready "$url/v1/models" "$results/server-$port.log"
}

# An invalid run (exit 3) is kept: its table says so.
load() { "${command[@]}" load "$@" || [ $? -eq 3 ]; }
worker=()
if [ -n "${WORKER:-}" ]; then worker=(--worker "$WORKER"); fi

step_load() {
    llama --n_threads 2 --n_threads_batch 2
    "$python" scripts/llama_cpp_check.py prompts "${PROMPTS:-48}" > "$results/prompts.jsonl"
    load --target "$url" --model smollm2 --api completions --dataset "$results/prompts.jsonl" --input-tokens 32 --output-tokens 48 \
        --users "${USERS:-1,4}" --requests "${PROMPTS:-48}" --tokenizer "$model" "${worker[@]}" --out "$results/load.json"
    "$python" scripts/llama_cpp_check.py compare "$results/load.json" "$results/prompts.jsonl" "$url"
}

# The gate on the servers $base and $1, which is to end with the exit code $2.
gate() {
    local code=0
    (cd "$results" && "${command[@]}" gate --base-url "$base" --head-url "$1" --budget "${BUDGET:-5m}") || code=$?
    if [ $code -ne "$2" ]; then
        echo "error: exit $code, where $2 was expected; a busy machine can leave a gate undecided (3)" >&2
        wrong=1
    fi
}
step_gate() {
    cat > "$results/infergate.toml" <<'TOML'
[server]
model = "smollm2"
api = "completions"
min_tokens = true

[[scenario]]
name = "chat"
input_tokens = 32
output_tokens = 16
TOML
    llama --n_threads 1 --n_threads_batch 1
    base=$url
    llama --n_threads 1 --n_threads_batch 1
    echo "the same setting twice:"
    gate "$url" 0
    llama --n_threads 1 --n_threads_batch 1 --n_batch 8
    echo "n_batch 512 (its default) against 8:"
    gate "$url" 1
}

step_endpoints() {
    llama --n_threads 1 --n_threads_batch 1
    # Its first line, alone on stdout, is its address.
    "$serve" --model "$model" --dtype f32 --threads 1 --slots 4 --port 0 > "$results/serve.txt" 2> "$results/serve.log" &
    started+=($!)
    for _ in $(seq 300); do
        if [ -s "$results/serve.txt" ]; then break; fi
        sleep 0.2
    done
    ours=$(head -n 1 "$results/serve.txt")
    ready "$ours/v1/models" "$results/serve.log"
    name=$("$python" -c 'import json, sys, urllib.request; print(json.load(urllib.request.urlopen(sys.argv[1]))["data"][0]["id"])' "$ours/v1/models")
    load --target "llama-cpp-python=$url" --model llama-cpp-python=smollm2 --target "infergate-serve=$ours" --model "infergate-serve=$name" \
        --api completions --min-tokens --users 1,2,4 --requests 80 --input-tokens 64 --output-tokens 32 \
        --tokenizer "$model" "${worker[@]}" --out docs/gallery/endpoints.json
    "${command[@]}" report docs/gallery/endpoints.json --out docs/gallery/endpoints --format md
}

for step in "${steps[@]}"; do
    case $step in
    load | gate | endpoints) "step_$step" ;;
    *) echo "error: there is no step $step, only load, gate and endpoints" >&2; exit 2 ;;
    esac
done
exit $wrong
