#!/usr/bin/env bash
# Posts the Markdown file given as a comment on the pull request whose head is the commit of GitHub's event, or replaces the one posted
# before. Where pull.sh finds more than one, none gets the comment. Without the file, or with one that cannot be posted, it says that
# there is no verdict.
# Needs gh and jq; GH_TOKEN, REPOSITORY, HEAD_OWNER, HEAD_BRANCH, HEAD_SHA, PULL_REQUESTS and RUN_URL.
set -euo pipefail

comment=$1
marker='<!-- infergate comment -->'
most_bytes=65536
is_sound() {
    [ -f "$1" ] && [ "$(stat --format %s "$1")" -le "$most_bytes" ] && [ "$(head -n 1 "$1")" = "$marker" ]
}
if ! is_sound "$comment"; then
    scratch=$(mktemp)
    trap 'rm -f "$scratch"' EXIT
    bash "$(dirname "$0")/no-verdict.sh" "the workflow that makes this comment failed" > "$scratch"
    comment=$scratch
fi

pull=$(bash "$(dirname "$0")/pull.sh" | jq -r 'map(.number) | join(" ")')
if [ -z "$pull" ]; then
    echo "no open pull request has this head any more; nothing is posted"
    exit 0
fi
if [[ $pull == *' '* ]]; then
    echo "::warning::pull requests $pull have this head, and which was gated is not known; nothing is posted; close all but one"
    exit 0
fi
old=$(gh api --paginate "repos/$REPOSITORY/issues/$pull/comments?per_page=100" |
    jq -rs --arg marker "$marker" \
        '[add[] | select(.user.login == "github-actions[bot]" and (.body | startswith($marker)))][0].id // empty')
if [ -n "$old" ]; then
    jq -Rs '{body: .}' "$comment" | gh api --method PATCH "repos/$REPOSITORY/issues/comments/$old" --input - --jq .html_url
else
    jq -Rs '{body: .}' "$comment" | gh api --method POST "repos/$REPOSITORY/issues/$pull/comments" --input - --jq .html_url
fi
