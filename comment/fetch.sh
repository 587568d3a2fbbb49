#!/usr/bin/env bash
# Fetches paired.json of a gate's run on GitHub into the folder given. It was made by a pull request's own code, so it is data and
# nothing else: its size is checked before and after unpacking, no other file is unpacked, and nothing is executed. The run's
# own verdict stays where it is: whoever reads the receipt checks its schema and judges it again.
# Beside it lies base.txt: the commit where the pull request left its target, or AGAINST where that names a revision of this
# repository.
# Where the run kept nothing that can be read, the folder holds no-verdict.txt instead, which says why in words of this script.
# Needs unzip, and what pull.sh needs; AGAINST, RUN_ID, RUN_STARTED_AT and CONCLUSION.
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
[ -n "$id" ] || no_verdict "the gate's run ended with \`$CONCLUSION\` and kept no files; if only failed jobs ran again, run all of them"
[ "$bytes" -le "$most_zip_bytes" ] || no_verdict "the gate's run kept $bytes bytes, and at most $most_zip_bytes are read"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
gh api "repos/$REPOSITORY/actions/artifacts/$id/zip" > "$scratch/gate.zip"
# To a file of our own naming, and no longer than it may be: a path or a bomb in the archive has no effect.
unzip -p "$scratch/gate.zip" paired.json 2> "$scratch/said" | head -c "$((most_bytes + 1))" > "$scratch/paired.json" || true
size=$(stat --format %s "$scratch/paired.json")
[ "$size" -le "$most_bytes" ] || no_verdict "the gate's paired.json is longer than $most_bytes bytes, and no more are read"
[ "$size" -gt 0 ] || no_verdict "the gate's run ended with \`$CONCLUSION\` and wrote no verdict"

# As git names a branch of GitHub's in a checkout.
target=${AGAINST#origin/}
[ -n "$target" ] || target=$(bash "$(dirname "$0")/pull.sh" | jq -r 'if length == 1 then .[0].base.sha else "" end')
[ -n "$target" ] || no_verdict "no open pull request has this commit as its head, or more than one has"
compared=$(jq -rn --arg target "$target" --arg head "$HEAD_SHA" '"\($target)...\($head)" | @uri')
gh api "repos/$REPOSITORY/compare/$compared" | jq -er .merge_base_commit.sha > "$folder/base.txt"
mv "$scratch/paired.json" "$folder/paired.json"
