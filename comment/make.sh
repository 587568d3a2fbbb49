#!/usr/bin/env bash
# Makes OUTGOING/comment.md of what fetch.sh brought into INCOMING: the command GATE_COMMAND judges it by the infergate.toml of this
# folder, if it is of HEAD_SHA and base.txt, both as committed. Where that is no verdict, the comment says so: what was said of an earlier
# commit must not stand as if it were said of this one. Needs what no-verdict.sh needs.
set -euo pipefail
incoming=$1
outgoing=$2

rm -rf "$outgoing"
mkdir -p "$outgoing"
if [ -f "$incoming/no-verdict.txt" ]; then
    bash "$(dirname "$0")/no-verdict.sh" "$(cat "$incoming/no-verdict.txt")" > "$outgoing/comment.md"
# The job's own limit would end it without another word, and the old comment would stay. The comment leads to the gate's run.
elif ! GITHUB_RUN_ID=${RUN_URL##*/} timeout --kill-after=10 300 \
    "$GATE_COMMAND" infergate report "$incoming/paired.json" --pull-request --base "$(cat "$incoming/base.txt")" --head "$HEAD_SHA" \
    --format comment --out "$outgoing"; then
    # Why stands in this workflow's log. That line may hold words of the file, and none of those is said here.
    bash "$(dirname "$0")/no-verdict.sh" "what the gate's run wrote cannot be read as a verdict on it" > "$outgoing/comment.md"
fi
