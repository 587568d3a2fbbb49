#!/usr/bin/env python3
"""Kills and interrupts commands of infergate at random moments, and looks at what is lost. Linux only.

    cargo build --locked --package cargo-infergate --package infergate --package infergate-serve --bins --examples
    python3 scripts/faults.py                  # 200 kills and 40 signals of each kind, over all commands
    python3 scripts/faults.py --kills 8 --signals 8     # the short form
    python3 scripts/faults.py --seed 7 --only gate,bless

After each fault: no process is left within 5 s, every JSON file is whole, every worktree of git is there or forgotten by
`git worktree prune`, and the same command once more gives what it gave before. A signal that can be handled ends the command
within 5 s, with exit code 2 and a sentence, or 3; one that has not begun yet, or measures nothing, is ended by the system. Exit code 1 when anything was lost. Engines keep a clock of their own, so a
busy machine changes nothing but the moments.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "crates/cargo-infergate/tests/cli"
MARK = "FAULTS_OF"
SOON_S = 5.0
START_S = 0.3
MANIFEST = ('[package]\nname = "engine"\nversion = "0.1.0"\nedition = "2021"\n\n[lib]\npath = "engine.rs"\nbench = false\n\n'
            '[[bench]]\nname = "inference"\npath = "bench.rs"\nharness = false\n')
# A program that leaves others behind, in its group and in a session of their own.
PROGRAM = "#!/bin/sh\nsetsid sleep 1000 &\nsleep 1000 &\nsleep 0.02\necho one\n"
SERVER = "#!/bin/sh\nsetsid sleep 1000 &\nsleep 1000 &\n'{serve}' --port \"$1\" --option ttft_ms=2 --option itl_ms=1\n"
SCENARIO = "[[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n"


class Place:
    """A folder with a repository in it, in which one command runs again and again."""

    def __init__(self, folder, build):
        self.folder, self.build, self.token = folder, build, str(uuid.uuid4())
        own = {key: value for key, value in os.environ.items() if not key.startswith(("INFERGATE_", "GIT_", "CARGO_TARGET"))}
        who = {f"GIT_{role}_{what}": "toy@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environment = own | who | {MARK: self.token, "GIT_CONFIG_GLOBAL": os.devnull, "INFERGATE_VIRTUAL_CLOCK": "1",
                                        "INFERGATE_LOCK": str(folder / "lock"), "NO_COLOR": "1"}
        folder.mkdir()
        self.repository = folder / "repository"
        self.repository.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def write(self, name, text):
        path = self.repository / name
        path.write_text(text)
        path.chmod(0o755)

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.repository, env=self.environment, check=True, capture_output=True, text=True).stdout

    def commit(self, name, text):
        self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", name)

    def start(self, words):
        command = [str(self.build / "cargo-infergate"), "infergate", *words]
        return subprocess.Popen(command, cwd=self.repository, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def processes(self):
        """Those that were started here, whoever their parent is by now."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.token}".encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                pass
        return found

    def broken_files(self):
        broken = []
        for path in self.folder.rglob("*.json"):
            if not {"target", ".git"} & set(path.relative_to(self.folder).parts[:-1]) or "infergate" in path.parts:
                try:
                    json.loads(path.read_bytes())
                except ValueError:
                    broken.append(path)
        return broken

    def broken_worktrees(self):
        self.git("worktree", "prune")
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [line for line in lines if line.startswith("worktree ") and not pathlib.Path(line[9:]).is_dir()]


def repository(place, steps):
    """An engine whose time for a step is what its commit says, one commit a number."""
    place.write("Cargo.toml", MANIFEST)
    place.write(".gitignore", "/target\nCargo.lock\n*.json\n/report\n/baselines\n")
    place.write("bench.rs", (TESTS / "worker_without_dependencies.rs").read_text())
    for step_ns in steps:
        place.commit("engine.rs", f"pub const STEP_NS: u64 = {step_ns};\n")


def gate(place):
    repository(place, [1_000_000])
    place.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n")
    return ["gate", "--against=HEAD", "--model=m", "--threads=1", "--cases=decode/p8", "--base-folder=../base", "--json=verdict.json",
            "--report=report"]


def bisect(place):
    repository(place, [1_000_000, 1_001_000, 1_060_000, 1_061_000])
    return ["bisect", "--good=HEAD~3", "--bad=HEAD", "--case=decode/p8", "--model=m", "--threads=1", "--base-folder=../base"]


def program(place):
    place.write("infergate.toml", "[worker]\ncommand = ['./it.sh']\nbuild = ['sh', '-c', 'sleep 1000 & sleep 0.2']\n")
    place.commit("it.sh", PROGRAM)
    return ["gate", "--against=HEAD", "--base-folder=../base", "--json=verdict.json", "--threshold=100", "--mean-threshold=100"]


def server(place):
    place.write("infergate.toml", "[server]\ncommand = ['sh', 'start.sh', '{port}']\nmodel = 'timed'\n" + SCENARIO)
    place.commit("start.sh", SERVER.format(serve=place.build / "examples/serve"))
    return ["gate", "--against=HEAD", "--server", "--base-folder=../base", "--json=verdict.json", "--threshold=100",
            "--mean-threshold=100", "--memory-runs=0"]


def fake(place, command, *more):
    worker = place.build / "examples/fake_engine"
    return [command, f"--worker={worker}", "--model=fake", "--runs=2", "--seconds-per-case=0", "--threads=1", "--cases=prefill/p8,decode/p8",
            *more]


def bench(place):
    return fake(place, "bench", "--json=copy.json")


def bless(place):
    subprocess.run([place.build / "cargo-infergate", "infergate", *fake(place, "bench", "--out=receipt.json")], cwd=place.repository,
                   env=place.environment, check=True, capture_output=True)
    return ["bless", "--receipt=receipt.json", "--json=baseline.json"]


def report(place):
    bless(place)
    return ["report", "receipt.json", "--out=report", "--json=report.json"]


def memory(place):
    worker = place.build / "examples/leaky_engine"
    return ["memory", f"--worker={worker}", "--model=control:steady", "--cases=prefill/p8", "--runs=200", "--json=verdict.json"]


def load(place):
    worker = place.build / "examples/fake_load"
    return ["load", "--target=local:fake", f"--worker={worker}", "--input-tokens=8", "--output-tokens=4", "--users=1,2", "--requests=20"]


SUBJECTS = {subject.__name__: subject for subject in (gate, program, server, bench, bless, report, load, memory, bisect)}


def until_gone(place):
    """The processes that are left after SOON_S, which are ended then."""
    end = time.monotonic() + SOON_S
    while (left := place.processes()) and time.monotonic() < end:
        time.sleep(0.02)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left


def run(place, words):
    process = place.start(words)
    said, _ = process.communicate(timeout=900)
    return process.returncode, said


def same(name, expected, code, said):
    """A session that was written just before the fault is in the baseline already."""
    return code == expected or name == "bless" and code == 2 and "is in it already" in said


def fault(place, name, words, usual, number, moment):
    """What is lost by one fault, in words."""
    expected, _ = usual
    process = place.start(words)
    time.sleep(moment)
    process.send_signal(number)
    sent, lost, said = time.monotonic(), [], ""
    try:
        said, _ = process.communicate(timeout=SOON_S)
    except subprocess.TimeoutExpired:
        # Whoever holds its output is found below.
        if process.poll() is None:
            lost.append("hangs")
            process.kill()
    took = time.monotonic() - sent
    if number != signal.SIGKILL and not lost:
        code = process.returncode
        # Before it has begun, and where there is nothing to keep, the system ends it.
        early = code == -number and (moment < START_S or name in ("bless", "report"))
        sentence = code == 2 and "error: " in said
        if not (code == 3 or sentence or early or same(name, expected, code, said)):
            lost.append(f"exit code {code} after {took:.1f} s: {said.strip().splitlines()[-1:]}")
    lost += ["process left"] * len(until_gone(place))
    lost += [f"broken {path.name}" for path in place.broken_files()]
    lost += place.broken_worktrees()
    code, said = run(place, words)
    if not same(name, expected, code, said):
        lost.append(f"once more: exit code {code}: {said.strip().splitlines()[-1:]}")
    lost += ["process left by a whole run"] * len(until_gone(place))
    return lost


def campaign(name, place, tries, random_numbers):
    words = SUBJECTS[name](place)
    run(place, words)
    if name == "bless":
        shutil.rmtree(place.repository / "baselines")
    begun = time.monotonic()
    usual = run(place, words)
    length = time.monotonic() - begun
    rows = []
    for number, count in tries:
        lost = []
        for _ in range(count):
            if name == "bless":
                shutil.rmtree(place.repository / "baselines", ignore_errors=True)
            moment = random_numbers.uniform(0, length)
            found = fault(place, name, words, usual, number, moment)
            lost += [f"{name}, {signal.Signals(number).name} after {moment:.2f} s: {what}" for what in found]
        rows.append((name, f"{length:.1f}", signal.Signals(number).name, count, len(lost)))
        for line in lost:
            print(f"lost: {line}", file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="SIGKILL so often, over all commands")
    parser.add_argument("--signals", type=int, default=40, help="SIGINT and SIGTERM so often each, over all commands")
    parser.add_argument("--only", default=",".join(SUBJECTS), help="these commands alone")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "target/debug", help="where cargo put the command and the examples")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    names, random_numbers = asked.only.split(","), random.Random(asked.seed)
    share = lambda count, at: count // len(names) + (at < count % len(names))
    rows = []
    with tempfile.TemporaryDirectory(prefix="infergate-faults-") as folder:
        for at, name in enumerate(names):
            place = Place(pathlib.Path(folder) / name, asked.build.resolve())
            tries = [(signal.SIGKILL, share(asked.kills, at)), (signal.SIGINT, share(asked.signals, at)), (signal.SIGTERM, share(asked.signals, at))]
            rows += campaign(name, place, tries, random_numbers)
    print("| command | takes s | fault | times | lost |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(f"\n{sum(row[3] for row in rows)} faults, {sum(row[4] for row in rows)} things lost")
    sys.exit(1 if any(row[4] for row in rows) else 0)


if __name__ == "__main__":
    main()
