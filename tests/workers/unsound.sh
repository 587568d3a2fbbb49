#!/bin/sh
# Gives too many samples, too many tokens, an output without its hash, and times that nobody waited for.
while read -r request; do
    case $request in
    *'"op":"hello"'*) echo '{"ok":{"protocol":2,"capabilities":["ttft","prepare","sample","turn","memory","inference","count","locate"],"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}' ;;
    *'"op":"load"'*) echo '{"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9},"load_ns":1}}' ;;
    *'"op":"prepare"'*'p1"'*) echo '{"ok":{"output":{"sha256":"28625f27a2f3d7f965ec406e885f2f1050684660b9941c56e95d96c46bcb42f9","ids":[7,7,7]}}}' ;;
    *'"op":"prepare"'*) echo '{"ok":{"output":{"sha256":"28625f27a2f3d7f965ec406e885f2f1050684660b9941c56e95d96c46bcb42f9","ids":[7,8]}}}' ;;
    *'"count":1'[,}]*) echo '{"ok":{"samples_ns":[[900000000000]]}}' ;;
    *'"count":2'[,}]*) echo '{"ok":{"samples_ns":[[18446744073709551615],[18446744073709551615]]}}' ;;
    *'"count":3'[,}]*) echo '{"ok":{"samples_ns":[[1],[1],[1],[1]]}}' ;;
    *'"count":4'[,}]*) echo '{"ok":{"samples_ns":[[1],[],[1],[1]]}}' ;;
    *'"op":"turn"'*) echo '{"ok":{"step_ns":[]}}' ;;
    *'"op":"ttft"'*) echo '{"ok":{"prompt_tokens":1,"load_ns":1,"tokenize_ns":18446744073709551615,"prefill_ns":1,"first_sample_ns":1}}' ;;
    *'"op":"memory"'*) echo '{"ok":null,"error":null,"invalid":null}' ;;
    esac
done
