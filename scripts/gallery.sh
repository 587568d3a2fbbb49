#!/usr/bin/env bash
# Writes reports of the gallery below target/gallery. `bash scripts/gallery.sh [NAME...]`, all that can be made where none is named. Each is
# made of NAME.json there, which scripts/gallery_measure.sh measured, or else of the committed one in docs/gallery. COMMAND names a command
# that was built already (`cargo xtask` if none is given), GALLERY another folder: `GALLERY=docs/gallery bash scripts/gallery.sh slower`
# writes the committed report anew.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${COMMAND:-cargo xtask}"
names=("$@")
folder=${GALLERY:-target/gallery}
# The receipt of a report.
receipt() { if [ -f "$folder/$1.json" ]; then echo "$folder/$1.json"; else echo "docs/gallery/$1.json"; fi; }
if [ $# -eq 0 ]; then
    names=(smollm2 latency endpoints busy memory pass slower changed leak)
    for name in users scenarios; do
        if [ -f "$(receipt $name)" ]; then names+=("$name"); fi
    done
fi
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
    # Until it was measured, from the newest session of a baseline.
    local files=("$baseline")
    if [ -f "$folder/latency.json" ]; then files=("$folder/latency-before.json" "$folder/latency.json"); fi
    report "${files[@]}" --format md,html "${targets[@]}"
}

for name in "${names[@]}"; do
    case $name in
    latency) latency ;;
    smollm2) report "$(receipt smollm2)" --format md,html --targets 'decode/* tokens_per_s > 20' ;;
    users | scenarios | endpoints | busy | memory) report "$(receipt "$name")" --format md,html ;;
    # Gates between two commits, each of which changed the engine in one way.
    pass | slower | changed | leak) report "$(receipt "$name")" --format comment,md,html ;;
    *) echo "error: there is no report $name in the gallery" >&2; exit 2 ;;
    esac
done
