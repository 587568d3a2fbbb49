#!/usr/bin/env bash
# Writes reports of docs/gallery/ anew from the receipts in it and from a committed baseline. `bash scripts/gallery.sh [NAME...]`, all
# of them where none is named. COMMAND names a command that was built already (`cargo xtask` if none is given), GALLERY another
# folder.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${COMMAND:-cargo xtask}"
names=("$@")
if [ $# -eq 0 ]; then
    names=(users smollm2 latency scenarios endpoints busy memory pass slower changed leak)
fi
folder=${GALLERY:-docs/gallery}
baseline=baselines/linux-x86_64-authenticamd-amd-epyc-f26m2-2c/candle-synthetic-gpt2.json
# No picture of an earlier report stays.
report() {
    rm -rf "${folder:?}/$name"
    "${command[@]}" report "$@" --out "$folder/$name"
}

latency() {
    local targets=(--targets 'decode/* tokens_per_s > 20' --targets '* cv_percent < 20')
    if [ -z "${SHORT:-}" ]; then
        targets+=(--targets 'prefill/p128 ttft_ms < 2500' --targets 'prefill/p512 ttft_ms < 5000')
    fi
    # Until scripts/gallery_measure.sh has measured it, from the newest session of a baseline.
    local files=("$baseline")
    if [ -f "$folder/latency.json" ]; then files=("$folder/latency-before.json" "$folder/latency.json"); fi
    report "${files[@]}" --format md "${targets[@]}"
}

for name in "${names[@]}"; do
    case $name in
    latency) latency ;;
    smollm2) report "$folder/smollm2.json" --format md --targets 'decode/* tokens_per_s > 20' ;;
    # Load runs.
    users | endpoints) report "$folder/$name.json" --format md ;;
    # One of them as a page, too.
    scenarios) report "$folder/$name.json" --format md,html ;;
    busy) report "$folder/gpt2-busy.json" --format md ;;
    memory) report "$folder/memory.json" --format md ;;
    # Gates between two commits, each of which changed the engine in one way.
    pass | slower | changed | leak) report "$folder/$name.json" --format comment,md ;;
    *) echo "error: there is no report $name in the gallery" >&2; exit 2 ;;
    esac
done
