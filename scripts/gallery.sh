#!/usr/bin/env bash
# Writes docs/gallery/ anew from the receipts in it and from a committed baseline. `bash scripts/gallery.sh [COMMAND]`, where the
# command is `cargo xtask` if none is given.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${1:-cargo xtask}"

folder=docs/gallery
baseline=baselines/linux-x86_64-authenticamd-amd-epyc-f26m2-2c/candle-synthetic-gpt2.json
report() { "${command[@]}" report "$@"; }

report "$baseline" --out $folder/latency --format md,html \
    --targets 'prefill/p128 ttft_ms < 2500' --targets 'prefill/p512 ttft_ms < 5000' --targets 'decode/* tokens_per_s > 20'
report $folder/smollm2.json --out $folder/smollm2 --format md,html --targets 'decode/* tokens_per_s > 20'
report $folder/gpt2-busy.json --out $folder/busy --format md
report $folder/memory.json --out $folder/memory --format md
# Gates between two commits, each of which changed the engine in one way.
for name in pass slower changed leak; do
    report $folder/$name.json --out $folder/$name --format comment,md
done
# Load runs, as scripts/gallery_load.sh and scripts/llama_cpp_server.sh measured them.
for name in users scenarios endpoints; do
    if [ -f $folder/$name.json ]; then report $folder/$name.json --out $folder/$name --format md,html; fi
done
