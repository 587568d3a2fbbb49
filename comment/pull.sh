#!/usr/bin/env bash
# Prints a JSON list of the open pull requests whose head is the commit of GitHub's event, as GitHub has them. The event finds them, and
# no file. Two of one branch have the same head: where the event (PULL_REQUESTS, their numbers) names one of them alone, the list has
# that one only.
# Needs gh and jq; GH_TOKEN, REPOSITORY, HEAD_OWNER, HEAD_BRANCH, HEAD_SHA and PULL_REQUESTS.
set -euo pipefail

gh api --method GET "repos/$REPOSITORY/pulls" -f state=open -f head="$HEAD_OWNER:$HEAD_BRANCH" |
    jq --arg sha "$HEAD_SHA" --arg named "$PULL_REQUESTS" 'map(select(.head.sha == $sha)) |
        map(select("\(.number)" == $named)) as $alone | if $alone == [] then . else $alone end'
