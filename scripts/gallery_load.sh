#!/usr/bin/env bash
# Measures the load runs of docs/gallery/ anew: users.json (percentiles by the number of users) and scenarios.json (four scenarios to
# 32 users). `bash scripts/gallery_load.sh [COMMAND]`, where the command is `cargo xtask` if none is given. It takes long, and wants a
# quiet machine. SPEC names another model, WORKER a bench binary that was built already. endpoints.json, two servers side by side, is
# from `bash scripts/llama_cpp_server.sh endpoints`.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${1:-cargo xtask}"
spec=${SPEC:-synthetic:gpt2}
local=(--target "local:$spec")
if [ -n "${WORKER:-}" ]; then local+=(--worker "$WORKER"); fi
folder=docs/gallery
# An invalid run (exit 3) is kept too: its report says so first.
load() { "${command[@]}" load "$@" || [ $? -eq 3 ]; }

load "${local[@]}" --users 1,10,20,30,40,50 --requests 300 --input-tokens 64 --output-tokens 16 --out $folder/users.json

# The four default scenarios, made to fit this context: the whole of them takes hours on two cores.
load "${local[@]}" --context 192 --users 1,8,32 --requests 80 --out $folder/scenarios.json
