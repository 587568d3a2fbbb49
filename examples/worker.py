#!/usr/bin/env python3
"""An engine in Python, gated: `cargo infergate gate --base-bin OLD/worker.py --head-bin NEW/worker.py`. Put yours in place of Engine."""
import hashlib
import json
import re
import struct
import sys
import time


class Engine:
    INFO = {"name": "toy", "version": "1", "model": "bytes", "dtype": "u8", "context_tokens": 2048, "vocab_tokens": 256}

    def start(self, prompt):
        self.context = list(prompt)
        return self.next()

    def next(self):
        self.context.append(sum(place * token for place, token in enumerate(self.context, 1)) % 256)
        return self.context[-1]


def run(engine, case):
    """One iteration: the ids, and for each token of the timed part the time since it began, nanoseconds."""
    phase, prompt, output = re.fullmatch(r"(prefill|decode|generate)/p(\d+)(?:-o(\d+))?", case).groups()
    tokens = {"prefill": 1, "decode": 2, "generate": int(output or 0)}[phase]
    ids, times, begin = [], [], time.perf_counter_ns()
    for index in range(tokens):
        if phase == "decode":
            times, begin = [], time.perf_counter_ns()
        ids.append(engine.next() if index else engine.start(place * 7 % 256 for place in range(int(prompt))))
        times.append(time.perf_counter_ns() - begin)
    return ids, times


class NotTheSame(Exception):
    pass


def times_of_the_same(engine, case, known):
    """The times of one more iteration, which must say what is known of the case."""
    ids, times = run(engine, case)
    if ids != known:
        raise NotTheSame(f"{case}: its tokens are not the same in every run; make the engine deterministic")
    return times


def answer(engine, known, ask):
    if ask["op"] == "hello":
        machine = {"class": "python", "os": sys.platform, "arch": "", "cpu_vendor": "", "cpu_model": "", "logical_cores": 1, "memory_bytes": 1}
        build = {"rustc": "", "flags": "", "opt_level": "", "target": ""}
        return {"protocol": 2, "capabilities": ["prepare", "sample", "request_id"], "tool": "0", "machine": machine, "build": build}
    if ask["op"] == "load":
        return {"engine": Engine.INFO, "load_ns": 1}
    case = ask["case"]
    if ask["op"] == "prepare":
        ids = known[case] = ask.get("known") or run(engine, case)[0]
        times_of_the_same(engine, case, ids)
        return {"output": {"ids": ids, "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()}}
    return {"samples_ns": [times_of_the_same(engine, case, known[case]) for _ in range(ask["count"])]}


if __name__ == "__main__":
    engine, known = Engine(), {}
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            said = {"ok": answer(engine, known, ask)}
        except NotTheSame as why:
            said = {"invalid": str(why)}
        print(json.dumps({"id": ask.get("id"), **said}), flush=True)
