#!/usr/bin/env bash
# How many streamed tokens a core of each load client takes: infergate's beside those of others, as far as PyPI has them at a
# reasonable size, against the same server with scripted token times, in turn, in one run.
# `bash scripts/load_peers.sh [PEER...]`, of infergate, sglang and aiperf; all of them where none is named. USERS (500) and REQUESTS
# (1500) set the load, ROUNDS (5) how often. The packages go to target/load-peers. Needs Linux, two cores, python3 with pip and venv, and cargo.
#   sglang  its Rust client, taken out of the wheel (39 MB): the Python one needs torch, as guidellm and vLLM do (gigabytes)
#   aiperf  with all it depends on (about 600 MB)
set -euo pipefail
cd "$(dirname "$0")/.."
peers=("$@")
if [ $# -eq 0 ]; then peers=(infergate sglang aiperf); fi
folder=$PWD/target/load-peers
mkdir -p "$folder"
cargo build --quiet --release --workspace --bin cargo-infergate

for peer in "${peers[@]}"; do
    case $peer in
    infergate) ;;
    sglang)
        if ! compgen -G "$folder/sglang/srt/rust_extensions/_bench*.so" > "$folder/found.txt"; then
            python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$folder" sglang==0.5.23
            python3 -m zipfile -e "$folder"/sglang-0.5.23-*.whl "$folder"
        fi
        ;;
    aiperf)
        if [ ! -x "$folder/aiperf/bin/aiperf" ]; then
            python3 -m venv "$folder/aiperf"
            "$folder/aiperf/bin/python" -m pip install --quiet aiperf==0.13.0
        fi
        ;;
    *) echo "error: there is no peer $peer, only infergate, sglang and aiperf" >&2; exit 2 ;;
    esac
done
python3 scripts/load_peers.py target/release/cargo-infergate "$folder" "${USERS:-500}" "${REQUESTS:-1500}" "${ROUNDS:-5}" "${peers[@]}"
