#!/bin/sh
# Installs the command below the folder given, and prints where it lies. It is the command of the revision that this script is of:
# from the release of exactly this revision where there is one for this machine, checked by the SHA-256 sum that the release
# lists; else built of the sources around this script, with the versions that their Cargo.lock has.
#
#   GATE_REVISION     what these sources are pinned by: a commit, in full, or a version's tag; without it they are built
#   GATE_REPOSITORY   the URL that they come from
#
# Needs cargo; for a release also git, curl, tar, and sha256sum or shasum.
set -euf

folder=$1
revision=${GATE_REVISION:-}
repository=${GATE_REPOSITORY:-https://github.com/infergate/infergate}
sources=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
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

# The tag of the release that these sources are of, or nothing.
tag() {
    if is_version "$revision"; then
        echo "$revision"
    elif is_commit "$revision"; then
        # A tag with a text of its own is an object of its own, and its commit is listed as TAG^{}.
        GIT_TERMINAL_PROMPT=0 git ls-remote --tags -- "$repository" 'refs/tags/v*' < /dev/null 2> /dev/null |
            sed -n "s|^${revision}[[:space:]]*refs/tags/\(v[0-9.]*\)\(\^{}\)*\$|\1|p" | head -n 1
    fi
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

sha256() {
    if command -v sha256sum > /dev/null; then sha256sum < "$1"; else shasum -a 256 < "$1"; fi | cut -c 1-64
}

# Fails where there is no release for this machine. A sum that is another one ends the script: then somebody changed a file.
from_release() {
    tag=$(tag) && [ -n "$tag" ] || return 1
    name=cargo-infergate-$(target)
    archive=$name.tar.gz
    release=$repository/releases/download/$tag
    fetch "$release/SHA256SUMS" "$scratch/sums" || return 1
    sum=$(sed -n "s|^\([0-9a-f]\{64\}\) [ *]$archive\$|\1|p" "$scratch/sums" | head -n 1)
    [ -n "$sum" ] || return 1
    fetch "$release/$archive" "$scratch/$archive" || return 1
    [ "$(sha256 "$scratch/$archive")" = "$sum" ] ||
        fail "$archive of $tag has another SHA-256 sum than its release lists; nothing was installed"
    tar -xzf "$scratch/$archive" -C "$scratch" "$name/cargo-infergate" || return 1
    # It does not start on a system that is older than those it was built for.
    "$scratch/$name/cargo-infergate" --version > "$scratch/version" || return 1
    say "the release $tag: $(head -n 1 "$scratch/version")"
    mv "$scratch/$name/cargo-infergate" "$folder/bin/cargo-infergate"
}

# Where the sources lie, and not where the caller is: the caller's toolchain and flags are for what is measured.
from_sources() {
    say "there is no release of these sources for this machine; they are built"
    if is_commit "$revision"; then export INFERGATE_COMMIT="$revision"; fi
    (
        unset RUSTUP_TOOLCHAIN CARGO_BUILD_TARGET
        export CARGO_ENCODED_RUSTFLAGS='' CARGO_TARGET_DIR="$scratch/target"
        cd "$sources" && cargo install --locked --path crates/cargo-infergate --root "$folder" >&2
    )
}

mkdir -p "$folder/bin"
folder=$(CDPATH='' cd -- "$folder" && pwd)
from_release || from_sources || fail "the command was not built; what cargo said stands above"
echo "$folder/bin/cargo-infergate"
