#!/bin/sh
# Answers two requests and ends.
read -r _
echo '{"ok":{"protocol":2,"capabilities":["ttft","prepare","sample","turn","memory","inference","count","locate"],"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}'
read -r _
echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9},"load_ns":1}}'
exec 1>&2
