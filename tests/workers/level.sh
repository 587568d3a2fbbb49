#!/bin/sh
# Answers a level of load, and how many tokens texts have, with what stands in the file that the model names.
while read -r request; do
    case $request in
    *'"op":"hello"'*) echo '{"ok":{"protocol":2,"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""},"capabilities":["load_level","count_tokens"]}}' ;;
    *'"op":"load"'*) echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":1024,"vocab_tokens":9},"load_ns":1}}' ;;
    *'"op":"load_level"'* | *'"op":"count_tokens"'*) cat "$INFERGATE_MODEL" ;;
    esac
done
