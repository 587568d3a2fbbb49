#!/usr/bin/env python3
"""GPT-2 124M f32 with random weights: this repository's engine against PyTorch, turn by turn in one run.

Run from the repository's root:

    pip install torch transformers
    cargo bench --no-run
    python scripts/compare_pytorch.py [--rounds 7] [--threads 2]

The engine is the bench binary as a worker (the line protocol of src/worker.rs). PyTorch is transformers'
GPT2LMHeadModel with sdpa attention and its KV cache; both read token ids and give greedy ids. Prints the median time of
each and the median of the ratios of neighbours, worker / PyTorch.
"""

import argparse
import json
import os
import statistics
import subprocess
import time


class Worker:
    def __init__(self, threads):
        build = ["cargo", "bench", "--no-run", "--bench", "inference", "--message-format=json", "--quiet"]
        messages = subprocess.run(build, check=True, stdout=subprocess.PIPE, text=True).stdout
        artifacts = [json.loads(line) for line in messages.splitlines() if line.startswith("{")]
        program = next(a["executable"] for a in artifacts if a.get("executable"))
        environment = dict(os.environ, INFERGATE_MODEL="synthetic:gpt2", INFERGATE_THREADS=str(threads))
        self.process = subprocess.Popen([program, "--infergate-worker"], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask(op="load", request={"model": "synthetic:gpt2", "dtype": None, "threads": threads, "seed": 1})

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert "ok" in reply, reply
        return reply["ok"]

    def prepare(self, case):
        self.ask(op="prepare", case=case)

    def time_s(self, case):
        return self.ask(op="sample", case=case, count=1)["samples_ns"][0][-1] / 1e9


class PyTorch:
    def __init__(self, threads):
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        self.torch = torch
        torch.set_num_threads(threads)
        self.model = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa")).eval()

    def start(self, tokens):
        ids = self.torch.arange(tokens).reshape(1, -1) * 7 % 50257
        out = self.model(ids, use_cache=True, logits_to_keep=1)
        return out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)

    def step(self, cache, token):
        out = self.model(token, past_key_values=cache, use_cache=True)
        return out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)

    def time_s(self, case):
        phase, size = case.split("/p")
        prompt, _, output = size.partition("-o")
        with self.torch.inference_mode():
            if phase == "decode":
                state = self.start(int(prompt))
                begin = time.perf_counter()
                self.step(*state)
                return time.perf_counter() - begin
            begin = time.perf_counter()
            state = self.start(int(prompt))
            for _ in range(int(output or 1) - 1):
                state = self.step(*state)
            return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=["prefill/p128", "prefill/p512", "prefill/p1000", "decode/p128",
                                                       "generate/p128-o64"])
    options = parser.parse_args()
    worker, pytorch = Worker(options.threads), PyTorch(options.threads)
    print(f"| case | infergate on candle (ms) | PyTorch {pytorch.torch.__version__} (ms) | ratio |\n|---|---|---|---|")
    for case in options.cases:
        worker.prepare(case)
        pytorch.time_s(case)
        rounds = options.rounds * (4 if case.startswith("decode") else 1)
        pairs = [(worker.time_s(case), pytorch.time_s(case)) for _ in range(rounds)]
        ours, theirs = (statistics.median(side) * 1e3 for side in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {case} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} |", flush=True)


main()
