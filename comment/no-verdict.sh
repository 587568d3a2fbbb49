#!/usr/bin/env bash
# Prints the comment for a commit that got no verdict. The reason given is a text of these scripts, never of a file.
# Needs HEAD_SHA and RUN_URL, which GitHub's event says.
set -euo pipefail
reason=$1
[[ $HEAD_SHA =~ ^[0-9a-f]{40,64}$ ]] || { echo "error: HEAD_SHA is no commit" >&2; exit 1; }
[[ $RUN_URL =~ ^https://[A-Za-z0-9./_-]+$ ]] || { echo "error: RUN_URL is no address" >&2; exit 1; }
cat <<END
<!-- infergate comment -->
### ⚠️ infergate: no verdict for ${HEAD_SHA:0:10}

There is no verdict for this commit: $reason. [The log of that run]($RUN_URL) says more.
What was said here of an earlier commit does not hold for this one.
END
