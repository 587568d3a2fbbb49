#!/bin/sh
# Prints the commit that the gate compares with, and a name for its build in a cache: `commit=...` and `key=...`.
#
#   GATE_AGAINST   the commit is where HEAD left this revision; without it the target of the pull request that GitHub or GitLab
#                  says this is, else HEAD~1
#   GATE_SAVES     true: this commit is what pull requests will start from. It is compared with itself, so that its build can be
#                  kept for them
#
# Needs git, rustc, and sha256sum or shasum.
set -euf

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 2
}
sha256() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -c 1-64; }

if [ -n "${GATE_AGAINST:-}" ]; then
    against=$GATE_AGAINST
elif [ "${GATE_SAVES:-}" = true ]; then
    against=HEAD
elif [ -n "${GITHUB_BASE_REF:-}" ]; then
    against=origin/$GITHUB_BASE_REF
else
    # GitLab says the first one where it gates the merge, and the second one elsewhere.
    against=${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-${CI_MERGE_REQUEST_DIFF_BASE_SHA:-HEAD~1}}
fi
# In a container a checkout is often another user's, which git does not read; it says what to do.
root=$(git rev-parse --show-toplevel 2> /dev/null) ||
    fail "git does not read this checkout: $(git rev-parse --show-toplevel 2>&1 | tr '\n\t' '  ')"
named=$(git rev-parse --verify --quiet --end-of-options "$against^{commit}") ||
    fail "the revision '$against' is not known here; check out the whole history (fetch-depth: 0, GIT_DEPTH: \"0\")"
commit=$(git merge-base "$named" HEAD) ||
    fail "HEAD and '$against' have no commit in common; check out the whole history (fetch-depth: 0, GIT_DEPTH: \"0\")"

# Whatever of these differs, cargo would build anew: the compiler, the versions of packages, which package it is. And what it would
# not: the processor, of which code for `native` is, as rustc knows it.
rustc=$(rustc -vV) || fail "rustc does not say its version; install Rust (https://rustup.rs)"
processor=$(rustc --print target-cpus && rustc --print cfg -C target-cpu=native) ||
    fail "rustc does not say which processor this is; install Rust (https://rustup.rs)"
build=$(
    {
        echo "$rustc"
        echo "$processor"
        git rev-parse --show-prefix
        for lock in "$root/Cargo.lock" Cargo.lock; do
            if [ -f "$lock" ]; then cat "$lock"; fi
        done
    } | sha256
)
echo "commit=$commit"
echo "key=infergate-base-$(uname -s)-$(uname -m)-$commit-$build"
