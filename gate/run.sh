#!/bin/sh
# Compares the package in this folder with the commit where its branch left its target, and ends with the gate's exit code. The
# words behind it are arguments of `cargo infergate gate`. What it writes lies in target/gate: paired.json, verdict.json, report/.
#
#   GATE_ARGUMENTS   more arguments, one a line
#   GATE_BENCHES, GATE_BUDGET, GATE_INCONCLUSIVE   values of --bench-target, --budget, --inconclusive
#   GATE_COMMAND     the command, where it is installed already; else it is installed for this run by install.sh
#
# Also what base.sh and install.sh say.
set -euf

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=target/gate
# Below /tmp others could take its place.
TMPDIR=${XDG_CACHE_HOME:-$HOME/.cache}/infergate/tmp; mkdir -p "$TMPDIR"; export TMPDIR

if [ -z "${GATE_COMMAND:-}" ]; then
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    GATE_COMMAND=$(sh "$here/install.sh" "$tools")
fi
base=$(sh "$here/base.sh")
base=$(printf '%s\n' "$base" | sed -n 's/^commit=//p')

option() { [ -z "$2" ] || printf '%s\n%s\n' "$1" "$2"; }
options() {
    option --bench-target "${GATE_BENCHES:-}"
    option --budget "${GATE_BUDGET:-}"
    option --inconclusive "${GATE_INCONCLUSIVE:-}"
}
# At the ends of lines and nowhere else; nothing in a line is read, for -f is set.
IFS='
'
# shellcheck disable=SC2046,SC2086
set -- $(options) "$@" ${GATE_ARGUMENTS:-}
unset IFS

# What makes this machine noisy, for whoever reads the log.
"$GATE_COMMAND" infergate doctor || true

# A verdict of before is none on this run.
rm -rf "$folder"
code=0
"$GATE_COMMAND" infergate gate --against "$base" \
    --out "$folder/paired.json" --json "$folder/verdict.json" --report "$folder/report" "$@" || code=$?
# What cannot be shown changes no verdict.
show() {
    if [ -f "$folder/report/comment.md" ]; then cat "$folder/report/comment.md" >> "$GITHUB_STEP_SUMMARY"; fi
    if [ -f "$folder/report/annotations.txt" ]; then cat "$folder/report/annotations.txt"; fi
}
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then show || true; fi
exit "$code"
