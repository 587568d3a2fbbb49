"""Where does the noise between two processes of one binary come from? One interleaved run per question.

    cargo bench --no-run                                   # names the worker
    python scripts/noise.py WORKER turns --rounds 12       # how long a turn of a generation may be
    python scripts/noise.py WORKER luck --rounds 12        # what a process keeps from visit to visit of a case
    python scripts/noise.py WORKER pages --rounds 8        # does every process get huge pages

A round is one fresh pair of processes for each setting, so that all settings see the same hours. Printed is the standard
deviation over rounds of d = the median over a block's pairs of ln(second / first). Standard library only; Linux.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess

MODEL = "synthetic:gpt2"


class Worker:
    """One fresh process, loaded."""

    def __init__(self, program, cases):
        env = dict(os.environ, INFERGATE_MODEL=MODEL, INFERGATE_THREADS="2", INFERGATE_SEED="1")
        self.process = subprocess.Popen(
            [program, "--infergate-worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True, bufsize=1,
        )
        self.ask(op="hello")
        self.ask(op="load", request=dict(model=MODEL, dtype=None, threads=2, seed=1), prompt_text=None)
        for case in cases:
            self.ask(op="prepare", case=case)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "ok" not in reply:
            raise SystemExit(f"error: the worker says {reply}")
        return reply["ok"]

    def sample(self, case):
        return self.ask(op="sample", case=case, count=1)["samples_ns"][0][-1]

    def turn(self, case, tokens):
        return sum(self.ask(op="turn", case=case, tokens=tokens)["step_ns"])

    def end(self):
        self.process.kill()
        self.process.wait()


def pairs(first, second, count, iteration):
    """ln(second / first) of `count` iterations each, who runs first in turn."""
    ratios = []
    for pair in range(count):
        order = (first, second) if pair % 2 == 0 else (second, first)
        times = {id(worker): iteration(worker) for worker in order}
        ratios.append(math.log(times[id(second)] / times[id(first)]))
    return ratios


def report(name, differences):
    std = statistics.stdev(differences) * 100 if len(differences) > 1 else float("nan")
    slot = statistics.mean(differences) * 100
    print(f"{name:34} rounds {len(differences):3}   std {std:5.2f} %   second against first {slot:+5.2f} %", flush=True)


def turns(program, rounds):
    """Two generations of 64 tokens a side, in turns of 1, 4, 16 or 64 tokens."""
    case, sizes, seen = "generate/p128-o64", (1, 4, 16, 64), {}
    for _ in range(rounds):
        first, second = Worker(program, [case]), Worker(program, [case])
        for size in random.sample(sizes, len(sizes)):
            ratios = []
            for _generation in range(2):
                sums = {id(first): 0, id(second): 0}
                for turn in range(64 // size):
                    for worker in (first, second) if turn % 2 == 0 else (second, first):
                        sums[id(worker)] += worker.turn(case, size)
                ratios.append(math.log(sums[id(second)] / sums[id(first)]))
            seen.setdefault(size, []).append(statistics.median(ratios))
        first.end()
        second.end()
    for size in sizes:
        report(f"turns of {size} tokens", seen[size])


def luck(program, rounds):
    """Four visits of each of three cases by one pair of processes: what stays from visit to visit was there at the start."""
    cases, kept, lost = ("decode/p128", "decode/p512", "decode/p768"), [], []
    for _ in range(rounds):
        first, second = Worker(program, cases), Worker(program, cases)
        visits = {case: [] for case in cases}
        for _visit in range(4):
            for case in random.sample(cases, len(cases)):
                ratios = pairs(first, second, 30, lambda worker, case=case: worker.sample(case))
                visits[case].append(statistics.median(ratios))
        kept += [statistics.mean(seen) for seen in visits.values()]
        lost += [one - statistics.mean(seen) for seen in visits.values() for one in seen]
        first.end()
        second.end()
    report("a case in a pair of processes", kept)
    report("one visit against all four", lost)


def pages(program, rounds):
    """Huge pages of fresh processes, each loaded and ended before the next starts."""
    for _ in range(rounds):
        worker = Worker(program, [])
        with open(f"/proc/{worker.process.pid}/smaps_rollup") as file:
            kib = next(int(line.split()[1]) for line in file if line.startswith("AnonHugePages:"))
        print(f"{kib // 1024} MiB in huge pages")
        worker.end()


def main():
    experiments = {"turns": turns, "luck": luck, "pages": pages}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worker", help="the bench binary")
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    experiments[arguments.experiment](arguments.worker, arguments.rounds)


if __name__ == "__main__":
    main()
