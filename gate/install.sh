#!/bin/sh
# Installs the command below the folder given, and prints where it lies. It is the command of the revision that this script is of:
# from the release of exactly this revision where there is one for this machine, if GitHub attests that release.yml made it of this
# revision's commit; else built of the sources around this script, with the versions that their Cargo.lock has.
#
#   GATE_REVISION     what these sources are pinned by: a commit, in full, or a version's tag; without it they are built
#   GATE_REPOSITORY   the URL that they come from
#
# Needs cargo; for a release also git, curl, tar, and gh 2.68 or newer with GH_TOKEN.
set -euf

folder=$1
revision=${GATE_REVISION:-}
repository=${GATE_REPOSITORY:-https://github.com/infergate/infergate}
sources=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# Below /tmp others could take its place.
TMPDIR=${XDG_CACHE_HOME:-$HOME/.cache}/infergate/tmp; mkdir -p "$TMPDIR"; export TMPDIR
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf 'infergate: %s\n' "$1" >&2; }
fail() {
    printf 'error: %s\n' "$1" >&2
    exit 2
}

is_commit() {
    case $1 in *[!0-9a-f]*) return 1 ;; esac
    [ ${#1} -eq 40 ] || [ ${#1} -eq 64 ]
}
is_version() {
    case $1 in
    *[!v0-9.]*) return 1 ;;
    v[0-9]*.[0-9]*.[0-9]*) return 0 ;;
    *) return 1 ;;
    esac
}

# The commit and the tag of the release that these sources are of, or nothing.
release() {
    is_version "$revision" || is_commit "$revision" || return 0
    # A tag with a text of its own is an object of its own, and its commit is listed behind it as TAG^{}.
    GIT_TERMINAL_PROMPT=0 git ls-remote --tags -- "$repository" 'refs/tags/v*' < /dev/null 2> /dev/null |
        awk -F '[\t^]' -v revision="$revision" '
            $2 ~ "^refs/tags/v[0-9.]+$" { commits[substr($2, 11)] = $1 }
            END { for (tag in commits) if (revision "" == tag || revision "" == commits[tag] "") print commits[tag], tag }' | head -n 1
}

# The kind of machine, as the names of archives have it, or nothing.
target() {
    case "$(uname -s) $(uname -m)" in
    'Linux x86_64')
        if getconf GNU_LIBC_VERSION > /dev/null 2>&1; then libc=gnu; else libc=musl; fi
        echo "x86_64-unknown-linux-$libc"
        ;;
    'Linux aarch64') echo aarch64-unknown-linux-gnu ;;
    'Darwin x86_64') echo x86_64-apple-darwin ;;
    'Darwin arm64') echo aarch64-apple-darwin ;;
    esac
}

fetch() {
    curl --fail --silent --location --proto =https --proto-redir =https --retry 3 --max-time 600 --output "$2" --url "$1"
}

# Fails where there is no release for this machine that GitHub attests.
from_release() {
    command -v gh > /dev/null && release=$(release) && [ -n "$release" ] || return 1
    commit=${release% *} tag=${release#* } owned=${repository#*://*/}
    name=cargo-infergate-$(target)
    archive=$scratch/$name.tar.gz
    fetch "$repository/releases/download/$tag/$name.tar.gz" "$archive" || return 1
    gh attestation verify "$archive" --repo "$owned" --signer-workflow "$owned/.github/workflows/release.yml" \
        --source-digest "$commit" --deny-self-hosted-runners >&2 || return 1
    tar -xzf "$archive" -C "$scratch" "$name/cargo-infergate" || return 1
    # It does not start on a system that is older than those it was built for.
    "$scratch/$name/cargo-infergate" --version > "$scratch/version" || return 1
    say "the release $tag: $(head -n 1 "$scratch/version")"
    mv "$scratch/$name/cargo-infergate" "$folder/bin/cargo-infergate"
}

# Where the sources lie, and not where the caller is: the caller's toolchain and flags are for what is measured.
from_sources() {
    say "there is no attested release of these sources for this machine; they are built"
    if is_commit "$revision"; then export INFERGATE_COMMIT="$revision"; fi
    (
        unset RUSTUP_TOOLCHAIN CARGO_BUILD_TARGET GH_TOKEN
        export CARGO_ENCODED_RUSTFLAGS='' CARGO_TARGET_DIR="$scratch/target"
        cd "$sources" && cargo install --locked --path crates/cargo-infergate --root "$folder" >&2
    )
}

mkdir -p "$folder/bin"
folder=$(CDPATH='' cd -- "$folder" && pwd)
from_release || from_sources || fail "the command was not built; what cargo said stands above"
echo "$folder/bin/cargo-infergate"
