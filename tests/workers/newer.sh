#!/bin/sh
# A worker of a later version: it says what it can, with words and fields that nobody knows yet, and cannot advance in turns.
while read -r request; do
    case $request in
    *'"op":"hello"'*) echo '{"ok":{"protocol":2,"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""},"capabilities":["sample","prepare","telepathy"],"mood":"good"},"later":1}' ;;
    *'"op":"load"'*) echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9},"load_ns":1,"colour":"red"}}' ;;
    *'"op":"prepare"'*) echo '{"ok":{"output":{"sha256":"28625f27a2f3d7f965ec406e885f2f1050684660b9941c56e95d96c46bcb42f9","ids":[7,7]},"dreams":[]}}' ;;
    *'"op":"sample"'*) echo '{"ok":{"samples_ns":[[100]]}}' ;;
    esac
done
