#!/bin/sh
# Says hello, and then does what the model names.
read -r _
echo '{"ok":{"protocol":2,"capabilities":["ttft","prepare","sample","turn","memory","inference","count","locate"],"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}'
eval "$INFERGATE_MODEL"
