#!/usr/bin/env python3
"""GPT-2 124M f32, greedy: this repository's candle model against PyTorch, taking turns in one run.

    cargo build --profile bench --example gpt2_speed
    python scripts/compare_pytorch.py [--threads 2] [--rounds 7]

Needs torch and transformers. Both have random weights and a KV cache; PyTorch runs transformers' GPT2LMHeadModel with
sdpa attention, computing the last position's logits only, under inference_mode. Prints the median of each, and the
median over rounds of candle's time by PyTorch's.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--only", default="", help="only cases whose name contains this")
parser.add_argument("--no-torch", action="store_true", help="time candle alone")
args = parser.parse_args()

CASES = ["prefill 128", "prefill 512", "prefill 1000", "decode 128", "generate 128 64"]
cases = [case for case in CASES if args.only in case]
root = pathlib.Path(__file__).resolve().parent.parent
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
process = subprocess.Popen([target / "release/examples/gpt2_speed", str(args.threads)], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True, bufsize=1)
process.stdout.readline()


def candle(case):
    process.stdin.write(case + "\n")
    return int(process.stdout.readline())


if not args.no_torch:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="sdpa").eval()


def pytorch(case):
    name, prompt, *new = case.split()
    ids = torch.randint(0, 50257, (1, int(prompt)))

    def step(ids, cache=None):
        out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(-1, keepdim=True), out.past_key_values

    with torch.inference_mode():
        if name == "decode":
            token, cache = step(ids)
            steps = []
            for _ in range(8):
                start = time.perf_counter_ns()
                token, cache = step(token, cache)
                token.item()
                steps.append(time.perf_counter_ns() - start)
                cache.crop(-1)
            return sorted(steps)[4]
        start = time.perf_counter_ns()
        token, cache = step(ids)
        token.item()
        for _ in range(int(new[0]) - 1 if new else 0):
            token, cache = step(token, cache)
            token.item()
        return time.perf_counter_ns() - start


sides = [candle] if args.no_torch else [candle, pytorch]
print(f"| case | {' | '.join(side.__name__ + ' (ms)' for side in sides)} | ratio |\n|---|{'---|' * len(sides)}---|")
for case in cases:
    for side in sides:
        side(case)
    rounds = []
    for turn in range(args.rounds):
        # Who goes first changes, so that neither always runs on the other's caches.
        order = sides if turn % 2 else sides[::-1]
        times = {side.__name__: side(case) for side in order}
        rounds.append([times[side.__name__] for side in sides])
    medians = [f"{statistics.median(times) / 1e6:.1f}" for times in zip(*rounds)]
    ratio = "-" if args.no_torch else f"{statistics.median(own / other for own, other in rounds):.2f}"
    print(f"| {case} | {' | '.join(medians)} | {ratio} |", flush=True)
process.stdin.close()
process.wait()
