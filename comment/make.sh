#!/usr/bin/env bash
# Makes OUTGOING/comment.md of what fetch.sh brought into INCOMING: the command GATE_COMMAND judges it by the infergate.toml of this
# folder. Where that is no verdict, the comment says so: what was said of an earlier commit must not stand as if it were said of
# this one. Needs what no-verdict.sh needs.
set -euo pipefail
incoming=$1
outgoing=$2

rm -rf "$outgoing"
mkdir -p "$outgoing"
if [ -f "$incoming/no-verdict.txt" ]; then
    bash "$(dirname "$0")/no-verdict.sh" "$(cat "$incoming/no-verdict.txt")" > "$outgoing/comment.md"
elif ! "$GATE_COMMAND" infergate report "$incoming/paired.json" --pull-request --format comment --out "$outgoing"; then
    # Why stands in this workflow's log. That line may hold words of the file, and none of those is said here.
    bash "$(dirname "$0")/no-verdict.sh" "what the gate's run wrote cannot be read as a verdict" > "$outgoing/comment.md"
fi
