#!/bin/sh
# A worker as it was before workers said what they can: no capabilities, no request numbers, an answer to each request.
while read -r request; do
    case $request in
    *'"id"'* | *'"iterations"'*) echo '{"error":"a request of protocol 2 has no such field"}' ;;
    *'"op":"hello"'*) echo '{"ok":{"protocol":2,"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}' ;;
    *'"op":"load"'*) echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9},"load_ns":1}}' ;;
    *'"op":"prepare"'*) echo '{"ok":{"output":{"sha256":"28625f27a2f3d7f965ec406e885f2f1050684660b9941c56e95d96c46bcb42f9","ids":[7,7],"top2_margins":[]},"work":null}}' ;;
    *'"op":"turn"'*) echo '{"ok":{"step_ns":[9,8]}}' ;;
    *'"op":"sample"'*) echo '{"ok":{"samples_ns":[[100]]}}' ;;
    *) echo '{"error":"worker: not a request of this protocol"}' ;;
    esac
done
