#!/bin/sh
# Knows its resident set, but not each time.
asked=0
while read -r request; do
    case $request in
    *'"op":"hello"'*) echo '{"ok":{"protocol":2,"capabilities":["ttft","prepare","sample","turn","memory","inference","count","locate"],"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}' ;;
    *'"op":"load"'*) echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9},"load_ns":1}}' ;;
    *'"op":"prepare"'*) echo '{"ok":{"output":{"sha256":"1cfabff28e4788390030eddd710ec196f96ce7f238232080522f0d1e6a70024e","ids":[7,8]}}}' ;;
    *'"op":"inference"'*) echo '{"ok":{}}' ;;
    *'"op":"memory"'*)
        asked=$((asked + 1))
        # Two times around loading, five to warm up, and then runs.
        if [ "$asked" -gt 17 ] && [ $((asked % 2)) -eq 0 ]; then rss=null; else rss=4096000; fi
        echo "{\"ok\":{\"sample\":{\"rss_bytes\":$rss},\"missing\":[]}}"
        ;;
    esac
done
