#!/bin/sh
# gate.sh BASE HEAD [FLAG]: gates two scripted engines; prints what it says of requests together, and the verdict.
cp "$FAKE_ENGINE" "$1"
cp "$FAKE_ENGINE" "$2" 2> /dev/null
printf '%s -> %s: ' "$1" "$2"
cargo infergate gate --model fake --threads 1 --cases prefill/p8,decode/p8 --memory-runs 0 --base-bin "$1" --head-bin "$2" --time-same-code $3 > report.txt 2> errors.txt
echo "exit code $?"
grep -e 'requests at once' -e 'tokens were not compared' -e '^- prefill/p2:' report.txt
true
