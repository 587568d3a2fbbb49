#!/usr/bin/env bash
# Writes docs/gallery/ anew from the receipts in it and from a committed baseline. `bash scripts/gallery.sh [COMMAND]`, where the
# command is `cargo xtask` if none is given.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${1:-cargo xtask}"

folder=docs/gallery
baseline=baselines/linux-x86_64-authenticamd-amd-epyc-f26m2-2c/candle-synthetic-gpt2.json
# report NAME FILE FORMATS [FLAGS]: no picture of an earlier report stays.
report() {
    rm -rf "${folder:?}/$1"
    "${command[@]}" report "$2" --out "$folder/$1" --format "$3" "${@:4}"
}

report latency "$baseline" md --targets 'prefill/p128 ttft_ms < 2500' --targets 'prefill/p512 ttft_ms < 5000' \
    --targets 'decode/* tokens_per_s > 20'
report smollm2 $folder/smollm2.json md --targets 'decode/* tokens_per_s > 20'
report busy $folder/gpt2-busy.json md
report memory $folder/memory.json md
# Gates between two commits, each of which changed the engine in one way.
for name in pass slower changed leak; do
    report $name $folder/$name.json comment,md
done
# Load runs, as scripts/gallery_load.sh and scripts/llama_cpp_server.sh measured them; one of them as a page, too.
report users $folder/users.json md
report scenarios $folder/scenarios.json md,html
report endpoints $folder/endpoints.json md
