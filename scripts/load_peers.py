#!/usr/bin/env python3
"""Drives load clients in turn against infergate's scripted server; scripts/load_peers.sh calls it.

    load_peers.py COMMAND FOLDER USERS REQUESTS ROUNDS PEER...

In each round each client runs twice, with REQUESTS and with three times as many. What both runs have in common, such as the start
of Python, falls out of the difference: tokens that the server's own log says it sent, divided by the processor time of the client and of all
processes it started. Server and client have a core each.
"""
import glob
import json
import os
import statistics
import subprocess
import sys

TTFT_NS, ITL_NS, TOKENS = 200_000_000, 20_000_000, 50
LOAD_SGLANG = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_bench", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.run_argv(["sglang-bench", *sys.argv[2:]])
"""


def write_tokenizer(folder):
    """A tokenizer of common short words, for clients that make their prompts with one. None can be fetched here."""
    os.makedirs(folder, exist_ok=True)
    vocab = {f"w{number}": number for number in range(1000)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w0"},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "w0", "bos_token": "w1", "eos_token": "w2"}
    for name, content in [("tokenizer.json", tokenizer), ("tokenizer_config.json", settings)]:
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)


def arguments(peer, program, folder, url, users, requests):
    tokenizer = os.path.join(folder, "tokenizer")
    if peer == "infergate":
        load = ["infergate", "load", "--target", url, "--model", "m", "--api", "completions"]
        size = ["--input-tokens", "64", "--output-tokens", str(TOKENS), "--users", str(users), "--requests", str(requests)]
        return [program, *load, *size, "--out", os.path.join(folder, "infergate.json")]
    if peer == "sglang":
        library = glob.glob(os.path.join(folder, "sglang/srt/rust_extensions/_bench*.so"))[0]
        load = ["--backend", "vllm", "--base-url", url, "--model", "m", "--tokenizer", tokenizer, "--dataset-name", "random-ids"]
        size = ["--random-input-len", "64", "--random-output-len", str(TOKENS), "--random-range-ratio", "1"]
        more = ["--num-prompts", str(requests), "--max-concurrency", str(users), "--worker-threads", "1"]
        quick = ["--disable-retokenize", "--disable-tqdm", "--warmup-requests", "0", "--ready-check-timeout-sec", "0"]
        place = ["--output-file", os.path.join(folder, "sglang.jsonl")]
        return [sys.executable, "-c", LOAD_SGLANG, library, *load, *size, *more, *quick, *place]
    load = ["profile", "--url", url, "--model", "m", "--endpoint-type", "completions", "--streaming", "--tokenizer", tokenizer]
    size = ["--synthetic-input-tokens-mean", "64", "--output-tokens-mean", str(TOKENS), "--concurrency", str(users)]
    more = ["--request-count", str(requests), "--ui", "none", "--use-server-token-count"]
    place = ["--artifact-dir", os.path.join(folder, "aiperf-results")]
    return [os.path.join(folder, "aiperf/bin/aiperf"), *load, *size, *more, *place]


def on_core(core):
    return lambda: os.sched_setaffinity(0, {core})


def run(peer, program, folder, users, requests):
    """Tokens that the server sent, processor seconds of the client, and how many requests were in flight in the middle of the run."""
    script = [program, "load-script-server", str(TTFT_NS), str(ITL_NS), str(TOKENS)]
    pipe = subprocess.PIPE
    server = subprocess.Popen(script, stdin=pipe, stdout=pipe, text=True, preexec_fn=on_core(1))
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    with open(os.path.join(folder, f"{peer}.log"), "w") as log:
        command = arguments(peer, program, folder, url, users, requests)
        client = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=on_core(0))
        _, status, used = os.wait4(client.pid, 0)
    sent, _ = server.communicate()
    times = list(json.loads(sent).values())
    # infergate ends with 3 where it judges its own run not to be good enough; its tokens were taken all the same.
    code = os.waitstatus_to_exitcode(status)
    if code not in ((0, 3) if peer == "infergate" else (0,)) or len(times) < requests:
        sys.exit(f"error: {peer} ended with {code} and {len(times)} of {requests} requests; see {folder}/{peer}.log")
    return sum(map(len, times)), used.ru_utime + used.ru_stime, in_flight(times)


def in_flight(times):
    """Requests in flight, in the mean of the middle half of the run."""
    spans = [(request[0] - TTFT_NS, request[-1]) for request in times]
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    begin, end = begin + (end - begin) // 4, end - (end - begin) // 4
    return sum(max(0, min(span[1], end) - max(span[0], begin)) for span in spans) / (end - begin)


def main(program, folder, users, requests, rounds, peers):
    program = os.path.abspath(program)
    write_tokenizer(os.path.join(folder, "tokenizer"))
    print(f"{users} users, {requests} and {3 * requests} requests of {TOKENS} tokens, {TTFT_NS // 10**6} ms and {ITL_NS // 10**6} ms apart")
    print(f"tokens per CPU-second in each of {rounds} rounds")
    found = {peer: [] for peer in peers}
    flying = {}
    for _ in range(rounds):
        for peer in peers:
            few_tokens, few_s, _ = run(peer, program, folder, users, requests)
            tokens, seconds, flying[peer] = run(peer, program, folder, users, 3 * requests)
            found[peer].append((tokens - few_tokens) / (seconds - few_s))
    print(f"{'client':<10} {'median':>9}  {'in flight':>9}  rounds")
    for peer, rates in found.items():
        each = " ".join(f"{rate:,.0f}" for rate in rates)
        print(f"{peer:<10} {statistics.median(rates):>9,.0f}  {flying[peer]:>9.0f}  {each}")


if __name__ == "__main__":
    if len(sys.argv) < 7:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6:])
