"""The commands that faults are tried on. Their engines keep a clock of their own, so a busy machine changes nothing.

All they are asked to write goes into the folder `out` of the repository.
"""
import pathlib
import shutil

from faults.place import Usual, verdict

TESTS = pathlib.Path(__file__).resolve().parents[2] / "crates/cargo-infergate/tests"
MANIFEST = ('[package]\nname = "engine"\nversion = "0.1.0"\nedition = "2021"\n\n[lib]\npath = "engine.rs"\nbench = false\n\n'
            '[[bench]]\nname = "inference"\npath = "bench.rs"\nharness = false\n')
# A program that leaves others behind, in its group and in a session of their own. Once a file says so it gives itself a signal.
PROGRAM = ("#!/bin/sh\nif [ -e '{flag}' ]; then signal=$(cat '{flag}'); rm '{flag}'; kill -\"$signal\" $$; fi\n"
           "setsid sleep 1000 &\nsleep 1000 &\nsleep 0.02\necho one\n")
SERVER = "#!/bin/sh\nsetsid sleep 1000 &\nsleep 1000 &\n'{serve}' --port \"$1\" --timed 2,1\n"
SCENARIO = "[[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n"
# Real programs and servers take real times, which are not judged here.
UNJUDGED = ["--threshold=9000%", "--mean-threshold=9000%"]
JUDGED = ["--out=out/paired.json", "--json=out/verdict.json", "--report=out/report"]


def repository(place, steps):
    """An engine whose time for a step is what its commit says, one commit a number."""
    place.write("Cargo.toml", MANIFEST)
    place.write(".gitignore", "/target\nCargo.lock\n*.json\n/out\n")
    place.write("bench.rs", (TESTS / "programs/worker_without_dependencies.rs").read_text())
    for step_ns in steps:
        place.commit("engine.rs", f"pub const STEP_NS: u64 = {step_ns};\n")


def gate(place):
    repository(place, [1_000_000])
    place.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n")
    return ["gate", "--against=HEAD", "--model=m", "--threads=1", "--cases=decode/p8", "--base-folder=../base", *JUDGED]


def bisect(place):
    repository(place, [1_000_000, 1_001_000, 1_060_000, 1_061_000])
    return ["bisect", "--good=HEAD~3", "--bad=HEAD", "--case=decode/p8", "--model=m", "--threads=1", "--base-folder=../base"]


def program(place):
    place.write("infergate.toml", "[worker]\ncommand = ['./it.sh']\nbuild = ['sh', '-c', 'sleep 1000 & sleep 0.2']\n")
    place.write(".gitignore", "/target\n/out\n")
    place.commit("it.sh", PROGRAM.format(flag=flag(place)))
    return ["gate", "--against=HEAD", "--base-folder=../base", *UNJUDGED, *JUDGED]


def flag(place):
    """Where the name of a signal makes the program give itself that one."""
    return place.folder / "signal"


def server(place):
    place.write("infergate.toml", "[server]\ncommand = ['sh', 'start.sh', '{port}']\nmodel = 'timed'\n" + SCENARIO)
    place.write(".gitignore", "/target\n/out\n")
    place.commit("start.sh", SERVER.format(serve=place.example("serve")))
    return ["gate", "--against=HEAD", "--server", "--base-folder=../base", "--memory-runs=0", *UNJUDGED, *JUDGED]


def pair(place, head=None):
    """Two programs that are built already."""
    base = place.example("fake_engine")
    return ["gate", f"--base-bin={base}", f"--head-bin={head or base}", "--time-same-code", "--model=fake", "--threads=1",
            "--cases=decode/p8", *JUDGED]


def fake(place, command, worker, *more):
    return [command, f"--worker={worker or place.example('fake_engine')}", "--model=fake", "--seconds-per-case=0", "--threads=1",
            "--cases=prefill/p8,decode/p8", *more]


def bench(place, worker=None, runs=2):
    return fake(place, "bench", worker, f"--runs={runs}", "--out=out/receipt.json")


def bless(place):
    measured = place.run(fake(place, "bench", None, "--runs=2", "--out=receipt.json"))
    assert measured.code == 0, measured.said
    return ["bless", "--receipt=receipt.json", "--baselines=out/baselines"]


def report(place):
    bless(place)
    return ["report", "receipt.json", "--out=out/report"]


def memory(place, worker=None):
    worker = worker or place.example("leaky_engine")
    return ["memory", f"--worker={worker}", "--model=control:steady", "--cases=prefill/p8", "--runs=200", "--out=out/memory.json",
            "--json=out/verdict.json"]


def load(place, worker=None):
    worker = worker or place.example("fake_load")
    return ["load", "--target=local:fake", f"--worker={worker}", "--input-tokens=8", "--output-tokens=4", "--users=1,2", "--requests=20",
            "--out=out/load.json"]


SUBJECTS = {subject.__name__: subject for subject in (gate, program, server, pair, bench, bless, report, load, memory, bisect)}
# Those that neither build nor check out anything.
QUICK = {name: SUBJECTS[name] for name in ("pair", "bench", "bless", "report", "load", "memory")}


def forget(place, name):
    """Removes what would make the command refuse to do it again: a session is blessed once."""
    if name == "bless":
        shutil.rmtree(place.repository / "out/baselines", ignore_errors=True)


def usual(place, name, words):
    """What it gives without a fault, once nothing has to be built for the first time."""
    for _ in range(3):
        place.run(words)
        forget(place, name)
        ended = place.run(words)
        forget(place, name)
        if ended.code in (0, 1):
            break
    else:
        raise RuntimeError(f"{name} fails without a fault: {ended.said}")
    return Usual(ended.code, verdict(ended.said), ended.took_s)


def same(name, usual, code, said):
    """Whether it ended as it does without a fault. A session that was written just before one is in the baseline already."""
    return code == usual.code or name == "bless" and code == 2 and "is in it already" in said
