#!/usr/bin/env bash
# Runs infergate against a server that nobody here wrote: llama-cpp-python's, built from PyPI, with the SmolLM2 GGUF, on loopback.
# `bash scripts/llama_cpp_server.sh [STEP...]`; the steps are
#   load       users on the server, and every answer's tokens by our tokenizer beside the server's own count
#   gate       two commits whose servers have the same setting through the paired gate with four users, then two of different settings
# and all of them where none is named. Everything else lies in target/llama-cpp, and every process ends with the script.
# Needs python3 with pip and venv, a C++ compiler and cargo. COMMAND and WORKER name programs that were built already: the command
# (`cargo xtask` if none is given) and the bench binary `inference`. PROMPTS (48), TOKENS (48) and USERS (1,4) set the size of load,
# BUDGET (25m) the time of each gate.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
read -ra command <<< "${COMMAND:-cargo xtask}"
# It is run in another folder, too.
if [ -f "${command[0]}" ]; then command[0]=$(realpath "${command[0]}"); fi
steps=("$@")
if [ $# -eq 0 ]; then steps=(load gate); fi

results=$root/target/llama-cpp
python=$results/venv/bin/python
mkdir -p "$results"
# The server has no prebuilt package; its library takes some minutes. Without LLAVA_BUILD its image models are left out.
if ! "$python" -c 'import llama_cpp.server.app' 2> "$results/import.txt"; then
    python3 -m venv "$results/venv"
    CMAKE_ARGS=-DLLAVA_BUILD=OFF "$python" -m pip install --quiet 'llama-cpp-python[server]==0.3.36'
fi
model=$(bash .ci/fetch-model)

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
    "$python" scripts/llama_cpp_check.py prompts "${PROMPTS:-48}" "${TOKENS:-48}" > "$results/prompts.jsonl"
    load --target "$url" --model smollm2 --api completions --dataset "$results/prompts.jsonl" --input-tokens 32 --output-tokens 48 \
        --users "${USERS:-1,4}" --requests "${PROMPTS:-48}" --tokenizer "$model" "${worker[@]}" --out "$results/load.json"
    "$python" scripts/llama_cpp_check.py compare "$results/load.json" "$results/prompts.jsonl" "$url"
}

# A repository in which serve.sh starts the server, with the settings $1, as its newest commit.
commit() {
    cat > "$repository/serve.sh" <<SH
exec "$python" -m llama_cpp.server --model "$(realpath "$model")" --model_alias smollm2 --host 127.0.0.1 --port "\$1" --interrupt_requests false \
    --logits_all false --verbose false --n_ctx 2048 --n_threads 1 --n_threads_batch 1 $1
SH
    git -C "$repository" add --all
    git -C "$repository" -c user.name=somebody -c user.email=somebody@localhost commit --quiet --allow-empty --message "with '$1'"
}

# The gate of the newest commit against the one before, under load, which is to end with the exit code $1; further words are its flags.
gate() {
    local code=0 expected=$1
    shift
    (cd "$repository" && "${command[@]}" gate --against HEAD~1 --server --users 4 --memory-runs 0 --budget "${BUDGET:-25m}" "$@") || code=$?
    if [ $code -ne "$expected" ]; then
        echo "error: exit $code, where $expected was expected; a busy machine can leave a gate inconclusive (3)" >&2
        wrong=1
    fi
}
step_gate() {
    repository=$results/repository
    rm -rf "$repository"
    git init --quiet "$repository"
    cat > "$repository/infergate.toml" <<'TOML'
[server]
command = ["bash", "serve.sh", "{port}"]
ready = "/v1/models"
model = "smollm2"
api = "completions"
ignore_eos = true

[[scenario]]
name = "chat"
input_tokens = 16
output_tokens = 8
TOML
    commit "--n_batch 512"
    commit "--n_batch 512"
    echo "the same setting twice:"
    gate 0
    commit "--n_batch 1"
    # The last bits of its numbers are others then, and so are some answers.
    echo "n_batch 512 (its default) against 1, each token of a prompt by itself:"
    gate 1 --allow-output-change
}

for step in "${steps[@]}"; do
    case $step in
    load | gate) "step_$step" ;;
    *) echo "error: there is no step $step, only load and gate" >&2; exit 2 ;;
    esac
done
exit $wrong
