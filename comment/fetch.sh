#!/usr/bin/env bash
# Fetches paired.json of a gate's run on GitHub into the folder given. It was made by a pull request's own code, so it is data and
# nothing else: its size is checked before and after unpacking, no other file is unpacked, and nothing is executed. The run's
# own verdict stays where it is: whoever reads the receipt checks its schema and judges it again.
# Where the run kept nothing that can be read, the folder holds no-verdict.txt instead, which says why in words of this script.
# Needs gh, jq and unzip; GH_TOKEN, REPOSITORY, RUN_ID, RUN_STARTED_AT and CONCLUSION.
set -euo pipefail

folder=$1
most_bytes=$((4 << 20)) # as the command says
most_zip_bytes=$((64 << 20)) # with all pages of the report
[[ $RUN_ID =~ ^[0-9]+$ ]] || { echo "error: RUN_ID is no number" >&2; exit 1; }
[[ $RUN_STARTED_AT =~ ^[0-9]{4}-[0-9:T-]+Z$ ]] || { echo "error: RUN_STARTED_AT is no time" >&2; exit 1; }
[[ $CONCLUSION =~ ^[a-z_]{1,30}$ ]] || { echo "error: CONCLUSION is no word" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder"
no_verdict() {
    rm -f "$folder"/*.json
    tee "$folder/no-verdict.txt" <<< "$1"
    exit 0
}

# Of this attempt: what an earlier one of the same run kept is listed, too.
list=$(gh api "repos/$REPOSITORY/actions/runs/$RUN_ID/artifacts?name=gate&per_page=100")
artifact=$(jq --arg since "$RUN_STARTED_AT" '[.artifacts[] | select(.created_at >= $since)] | max_by(.created_at)' <<< "$list")
id=$(jq -r '.id // empty' <<< "$artifact")
bytes=$(jq -r '.size_in_bytes // 0' <<< "$artifact")
[ -n "$id" ] || no_verdict "the gate's run ended with \`$CONCLUSION\` and kept no files"
[ "$bytes" -le "$most_zip_bytes" ] || no_verdict "the gate's run kept $bytes bytes, and at most $most_zip_bytes are read"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gh api "repos/$REPOSITORY/actions/artifacts/$id/zip" > "$scratch/gate.zip"
# To a file of our own naming, and no longer than it may be: a path or a bomb in the archive has no effect.
unzip -p "$scratch/gate.zip" paired.json 2> "$scratch/said" | head -c "$((most_bytes + 1))" > "$scratch/paired.json" || true
size=$(stat --format %s "$scratch/paired.json")
[ "$size" -le "$most_bytes" ] || no_verdict "the gate's paired.json is longer than $most_bytes bytes, and no more are read"
[ "$size" -gt 0 ] || no_verdict "the gate's run ended with \`$CONCLUSION\` and wrote no verdict"
mv "$scratch/paired.json" "$folder/paired.json"
