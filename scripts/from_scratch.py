#!/usr/bin/env python3
"""From an empty crate to a working gate, and what that gate then says of known changes.

    python3 scripts/from_scratch.py                 # installs the command first, as a new user does
    python3 scripts/from_scratch.py --command PATH  # takes a cargo-infergate that is built already

Every step is a command that a person would type. It ends with exit code 1 at the first verdict that is not the expected one, and
with how many commands and how long the first verdict took. All of it happens in a new folder for temporary files.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from repositories import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ROOT / "scripts" / "from_scratch"
MOST_COMMANDS = 6

# A change, what becomes what in the engine, the verdict it has to get, and what may be named beside that.
CHANGES = [
    ("a comment", "//! A toy engine.", "//! A small engine.", "pass", set()),
    ("10 % slower", "const ROUNDS: u64 = 20_000;", "const ROUNDS: u64 = 22_000;", "regressed", set()),
    # What is not freed is also one allocation more for each prompt, and stays in memory.
    ("a leak of 4 KiB a run", "self.context.clear();", "self.context.clear();\n        std::mem::forget(black_box(vec![1_u8; 4096]));",
     "leak", {"counter_regressed"}),
    ("another token", "% 256;", "% 255;", "output_changed", set()),
    ("one more allocation a token", "work(ROUNDS);", "work(ROUNDS);\n        drop(black_box(vec![1_u8; 64]));", "counter_regressed", set()),
]
# What a verdict names when it fails; it ends with exit code 1.
FAILURES = {"regressed", "leak", "growth", "output_changed", "counter_regressed", "target_missed"}


class Failed(Exception):
    """Something did not come out as it has to."""


class Shell:
    """Runs commands, and remembers how long each took."""

    def __init__(self, place):
        self.place = place
        # Every folder that is written to is in one place.
        path = f"{place / 'installed' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment = environment(PATH=path, XDG_CONFIG_HOME=str(place / "config"), XDG_CACHE_HOME=str(place / "cache"))
        self.steps = []

    def run(self, folder, *command, expected=0):
        """Runs one that has to end with the exit code `expected`. Gives what it said on stdout and on stderr."""
        shown = " ".join(str(word) for word in command).replace(f"{self.place}{os.sep}", "")
        print(f"\n$ {shown}", flush=True)
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said, told = process.communicate()
        self.steps.append((shown, time.monotonic() - began))
        print(said, end="")
        # Hundreds of lines of a build, unless it went wrong.
        lines = told.splitlines()
        print("\n".join(lines if process.returncode != expected else lines[-3:]), flush=True)
        if process.returncode != expected:
            raise Failed(f"'{shown}' ended with exit code {process.returncode}, and should have with {expected}")
        return said, told

    def quietly(self, folder, *command):
        """One that nobody waits for."""
        subprocess.run(command, cwd=folder, env=self.environment, check=True, capture_output=True)


def edit(path, before, after):
    """Replaces text that has to be there."""
    text = path.read_text()
    if before not in text:
        raise Failed(f"{path}: has no '{before}'")
    path.write_text(text.replace(before, after, 1))


def first_verdict(shell, place, command):
    """An empty crate, a toy engine in it, and the first gate: the commit it is compared with has no bench target."""
    if command:
        (place / "installed" / "bin").mkdir(parents=True)
        (place / "installed" / "bin" / "cargo-infergate").symlink_to(command)
    else:
        shell.run(ROOT, "cargo", "install", "--locked", "--quiet", "--path", "crates/cargo-infergate", "--root", str(place / "installed"),
                  "--target-dir", str(place / "install-target"))
    shell.run(place, "cargo", "new", "--quiet", "--lib", "toy")
    toy = place / "toy"
    shutil.copy(PARTS / "toy.rs", toy / "src" / "lib.rs")
    shell.run(toy, "git", "add", "--all")
    shell.run(toy, "git", "commit", "--quiet", "--message", "a toy engine")
    shell.run(toy, "cargo", "infergate", "init")
    # The one thing to write by hand: init left a placeholder there.
    shutil.copy(PARTS / "engine.rs", toy / "benches" / "engine" / "mod.rs")
    said, _ = shell.run(toy, "cargo", "infergate", "gate", "--against", "HEAD")
    for words in ("head's benches were laid over it", "verdict: pass (exit 0)"):
        if words not in said:
            raise Failed(f"the first verdict does not say '{words}'")
    return toy


def named(path):
    """What a verdict file says, and everything it names as wrong."""
    verdict = json.loads(path.read_text())
    return verdict["verdict"], {row["outcome"] for row in verdict["rows"]} & FAILURES


def changes(shell, toy):
    """Each change is a commit on top of the same one, and gated against that."""
    shell.quietly(toy, "git", "add", "--all")
    shell.quietly(toy, "git", "commit", "--message", "gated")
    shell.quietly(toy, "git", "tag", "gated")
    path = toy.parent / "verdict.json"
    found = []
    for name, before, after, expected, beside in CHANGES:
        shell.quietly(toy, "git", "reset", "--hard", "gated")
        edit(toy / "src" / "lib.rs", before, after)
        shell.quietly(toy, "git", "commit", "--all", "--message", name)
        path.unlink(missing_ok=True)
        shell.run(toy, "cargo", "infergate", "gate", "--against", "gated", "--cases", "decode/p128", "--json", str(path),
                  expected=0 if expected == "pass" else 1)
        verdict, wrong = named(path)
        right = {expected} & FAILURES
        if not right <= wrong or not wrong <= right | beside:
            raise Failed(f"{name}: the verdict {verdict} names {', '.join(sorted(wrong)) or 'nothing'}, and should name {expected}")
        found.append((name, verdict, ", ".join(sorted(wrong)) or "nothing"))
    return found


def hidden_upgrade(shell, toy):
    """A dependency that is raised together with the harness must not be raised in base, too: that would hide what it costs."""
    shell.quietly(toy, "git", "checkout", "--force", "-B", "upgrade", "gated~1")
    shell.quietly(toy, "git", "clean", "-fd")
    manifest = toy / "Cargo.toml"
    edit(manifest, "[dependencies]\n", "[dependencies]\nlibm = \"0.2\"\n")
    (toy / "Cargo.lock").unlink(missing_ok=True)
    shell.run(toy, "cargo", "update", "--quiet", "libm", "--precise", "0.2.11")
    shell.quietly(toy, "git", "add", "--all")
    shell.quietly(toy, "git", "commit", "--message", "an engine that is locked to an older libm")
    shell.run(toy, "cargo", "infergate", "init")
    shutil.copy(PARTS / "engine.rs", toy / "benches" / "engine" / "mod.rs")
    gate = ["cargo", "infergate", "gate", "--against", "HEAD", "--cases", "decode/p128", "--memory-runs", "0"]
    said, _ = shell.run(toy, *gate)
    if "head's benches were laid over it" not in said:
        raise Failed("a harness without an upgrade was not laid over base")
    edit(manifest, "[dev-dependencies]\n", "[dev-dependencies]\nlibm = \"0.2.15\"\n")
    _, told = shell.run(toy, *gate, expected=4)
    if not re.search(r"head's benches (need another version of libm|do not fit base: .*libm)", told):
        raise Failed(f"the refusal does not name the upgrade: {told.strip()}")


def table(shell, counted, found):
    """How long each step took, and what was found."""
    print("\nSteps up to the first verdict:")
    for shown, seconds in shell.steps[:counted]:
        print(f"{seconds:8.1f} s  {shown}")
    total = sum(seconds for _, seconds in shell.steps[:counted])
    print(f"{total:8.1f} s  {counted} commands, on {os.cpu_count()} cores (asked for: at most {MOST_COMMANDS} commands; 300 s on 2 cores)")
    print("\nThen:")
    for shown, seconds in shell.steps[counted:]:
        print(f"{seconds:8.1f} s  {shown}")
    print("\nchange                         verdict             named")
    for name, verdict, wrong in found:
        print(f"{name:30} {verdict:19} {wrong}")
    print("an upgrade behind the harness  not_comparable      refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=pathlib.Path, help="a cargo-infergate that is built already, in place of installing it")
    asked = parser.parse_args()
    if asked.command and not asked.command.is_file():
        sys.exit(f"error: {asked.command}: there is no such program; build it with cargo build --release --package cargo-infergate")
    # Below the repository cargo would take the repository's own compiler flags.
    with tempfile.TemporaryDirectory(prefix="infergate-from-scratch-") as folder:
        place = pathlib.Path(folder)
        shell = Shell(place)
        try:
            toy = first_verdict(shell, place, asked.command and asked.command.resolve())
            counted = len(shell.steps)
            if counted > MOST_COMMANDS:
                raise Failed(f"the first verdict took {counted} commands, and may take {MOST_COMMANDS}")
            found = changes(shell, toy)
            hidden_upgrade(shell, toy)
        except Failed as wrong:
            sys.exit(f"error: {wrong}")
        table(shell, counted, found)


main()
