#!/usr/bin/env bash
# Writes the pages of docs/gallery from the receipts there: `bash scripts/gallery.sh [NAME...]`, all where none is named. COMMAND names a
# command that is built already (`cargo xtask` if none is given).
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra command <<< "${COMMAND:-cargo xtask}"
names=("$@")
if [ $# -eq 0 ]; then names=(request latency users scenarios providers pass slower changed leak); fi
# No picture of an earlier page stays.
report() {
    rm -rf "docs/gallery/${name:?}"
    "${command[@]}" report "$@" --out "docs/gallery/$name"
}

for name in "${names[@]}"; do
    receipt=docs/gallery/$name.json
    case $name in
    request) report "$receipt" --format md,html --show-prompt --targets 'decode/* tokens_per_s > 20' ;;
    latency)
        report docs/gallery/latency-before.json "$receipt" --format md,html --targets 'decode/* tokens_per_s > 20' \
            --targets 'prefill/p128 ttft_ms < 2500' --targets 'prefill/p512 ttft_ms < 5000' --targets 'prefill/p768 ttft_ms < 8000' \
            --targets '* cv_percent < 20'
        ;;
    users | scenarios | providers) report "$receipt" --format md,html ;;
    # Gates between two commits, each of which changed the engine in one way.
    pass | slower | changed | leak) report "$receipt" --format comment,md,html ;;
    *) echo "error: there is no page $name in the gallery" >&2; exit 2 ;;
    esac
done
