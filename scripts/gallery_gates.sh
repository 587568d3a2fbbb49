#!/usr/bin/env bash
# Gates four commits of GPT-2 for docs/gallery and writes their comments: `bash scripts/gallery_gates.sh [NAME...]`, all where none is named.
#   slower    each decoded token computes the product for query, key and value twice
#   changed   the attention scale is 2 % larger
#   leak      each prompt that was read is kept
#   pass      a comment
# The commits lie in a clone outside the repository, whose .cargo/config.toml would hold there and in no checkout. The first gate takes a
# quarter of an hour on two cores, each further one two to nine minutes.
# COMMAND names a command that is built already (`cargo xtask` if none is given).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
command=${COMMAND:-cargo run --quiet --package xtask --}
names=("$@")
if [ $# -eq 0 ]; then names=(slower changed leak pass); fi
clone=${TMPDIR:-/tmp}/infergate-gallery-gates
rm -rf "$clone"
git clone --quiet . "$clone"
git -C "$clone" branch base
engine=crates/infergate-candle/src

# Replaces the one line $2 of file $1 by $3.
edit() {
    python3 -c 'import sys
path, old, new = sys.argv[1:]
text = open(path).read()
assert text.count(old) == 1, f"{path}: no such line, or several: {old}"
open(path, "w").write(text.replace(old, new))' "$engine/$1" "$2" "$3"
}

for name in "${names[@]}"; do
    cd "$clone"
    git checkout --quiet -B "$name" base
    case $name in
    slower) edit gpt2/step.rs '        block.qkv.apply(&lane.normed, &mut lane.qkv)?;
' '        block.qkv.apply(&lane.normed, &mut lane.qkv)?;
        block.qkv.apply(&lane.normed, &mut lane.qkv)?;
' ;;
    changed) edit gpt2/shard.rs '1.0 / (dim as f64).sqrt()' '1.02 / (dim as f64).sqrt()' ;;
    leak)
        edit engine.rs '        let step = self.step(prompt)?;
' '        remember(prompt);
        let step = self.step(prompt)?;
'
        cat >> "$engine/engine.rs" << 'RUST'

/// Prompts that were read.
static SEEN: std::sync::Mutex<Vec<Vec<TokenId>>> = std::sync::Mutex::new(Vec::new());

fn remember(prompt: &[TokenId]) {
    SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(prompt.to_vec());
}
RUST
        ;;
    pass) edit gpt2/step.rs '/// `out = x W + bias`' '/// Computes `out = x W + bias`' ;;
    *) echo "error: there is no gate $name, only slower, changed, leak and pass" >&2; exit 2 ;;
    esac
    git -c user.name=gallery -c user.email=gallery@localhost commit --quiet --all --message "$name"
    # 1 is what most of them have to end with.
    $command gate --against base --out "$root/docs/gallery/$name.json" || [ $? -eq 1 ]
    cd "$root"
    bash scripts/gallery.sh "$name"
done
