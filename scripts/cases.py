#!/usr/bin/env python3
"""Changes in published crates, found by the gate: runs each case and prints what it said.

    python3 scripts/cases.py            # all of them; each builds its crate twice or more often
    python3 scripts/cases.py NAME       # one

It takes the command cargo-infergate from the PATH, or INFERGATE, and works in CASES_FOLDER or the cache folder.
"""
import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Outside this repository: below it cargo would add this repository's compiler flags.
PLACE = pathlib.Path(os.environ.get("CASES_FOLDER", pathlib.Path.home() / ".cache" / "infergate" / "cases"))

class Case(NamedTuple):
    """A crate of its own, a dependency of it, and versions that come in place of the locked one."""

    name: str
    folder: str
    """Below scripts/cases."""
    crate: str
    versions: list[str]
    """The locked one first. Two are compared; among more the first slower one is searched."""
    more: list[str] = []
    """Further arguments."""
    variables: dict[str, str] = {}
    """Variables of the engine's process."""
    report: str = ""
    """Where a user reported the slowdown, and the figure there."""

    def asks(self):
        """What the gate is asked."""
        if len(self.versions) == 2:
            return ["gate", "--swap", f"{self.crate}={self.versions[1]}", *self.more]
        return ["bisect", "--swap", self.crate, "--versions", ",".join(self.versions), *self.more]


CASES = [
    Case("tokenizers-reload", "tokenizers-reload", "tokenizers", ["0.22.2", "0.23.2"]),
    Case("candle-broadcast", "candle-broadcast", "candle-core", ["0.8.4", "0.9.0"]),
    Case("candle-step", "candle-step", "candle-core", ["0.10.2", "0.11.1"]),
    Case("candle-step-threads", "candle-step", "candle-core", ["0.10.2", "0.11.1"], variables={"RAYON_NUM_THREADS": "1"}),
    Case("candle-step-versions", "candle-step", "candle-core", ["0.10.2", "0.11.0", "0.11.1"], ["--case", "decode/p16"]),
    Case("candle-quantised", "candle-step", "candle-core", ["0.10.2", "0.11.1"], ["--model", "quantised", "--cases", "prefill/p128"]),
    Case("embedding-json", "embedding-json", "serde_json", ["1.0.145", "1.0.154"]),
    Case("word-bounds", "word-bounds", "unicode-segmentation", ["1.12.0", "1.13.3"]),
    Case("chat-template", "chat-template", "minijinja", ["2.17.1", "2.24.0"]),
    Case("vocabulary-lookup", "vocabulary-lookup", "hashbrown", ["0.3.1", "0.4.0", "0.5.0", "0.6.0", "0.6.3"], ["--case", "prefill/p128"],
         report="https://github.com/rust-lang/hashbrown/issues/142: a million lookups 19 to 28 ms"),
    Case("dense-network", "dense-network", "tract-onnx", ["0.21.7", "0.21.8"],
         # Since 0.21.8 its crates take newer ones of each other.
         [word for part in ("core", "data", "hir", "linalg", "nnef", "onnx-opl") for word in ("--swap", f"tract-{part}=0.21.8")],
         report="https://github.com/sonos/tract/issues/1803: contact 51 % slower, race 16 %; an x86-64 machine did not show it"),
    Case("message-forwarding", "message-forwarding", "tokio", ["1.50.0", "1.51.0"],
         report="https://github.com/agntcy/slim/issues/1603: 29 % fewer messages a second, with ten senders; two cores show it in `one` alone"),
    Case("regex-build", "regex-build", "regex", ["1.7.3", "1.8.0"],
         report="https://github.com/rust-lang/regex/issues/988: 10 to 50 % more instructions"),
    Case("wordpiece-decode", "wordpiece-decode", "tokenizers", ["0.11.3", "0.13.0"],
         report="https://github.com/huggingface/tokenizers/issues/1564: 242 % slower"),
]


def run(folder, *command, **more):
    return subprocess.run(command, cwd=folder, check=True, text=True, **more)


def measure(case):
    """Copies the case to a repository of its own and gates it with the other version. Gives the report."""
    folder = PLACE / case.folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "scripts" / "cases" / case.folder, folder)
    manifest = folder / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("INFERGATE", str(ROOT)))
    (folder / ".gitignore").write_text("target\n")
    run(folder, "cargo", "generate-lockfile", "--quiet")
    run(folder, "git", "init", "--quiet", "--initial-branch=main")
    run(folder, "git", "add", "-A")
    author = ["-c", "user.name=infergate", "-c", "user.email=infergate@localhost"]
    run(folder, "git", *author, "commit", "--quiet", "-m", f"{case.crate} {case.versions[0]}")
    # A case is measured as most programs run, unless it says otherwise: nobody sets the threads of candle.
    quiet = {key: value for key, value in os.environ.items() if key not in ("RAYON_NUM_THREADS", "CARGO_TARGET_DIR")}
    quiet |= case.variables
    command = [os.environ.get("INFERGATE", "cargo-infergate"), "infergate", *case.asks()]
    # One folder for all: what they have in common is compiled once.
    command += ["--base-folder", str(folder.parent / "checkouts")]
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, env=quiet)
    if not done.stdout:
        sys.exit(f"error: {case.name}: the gate gave no verdict (exit {done.returncode}); its output is above")
    return done.stdout.strip()


def main():
    wanted = sys.argv[1:]
    names = [case.name for case in CASES]
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"error: no case is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for case in CASES:
        if not wanted or case.name in wanted:
            print(f"{case.name}: {case.crate} {' '.join(case.versions)}", file=sys.stderr)
            print(measure(case), flush=True)
            if case.report:
                print(f"reported: {case.report}", flush=True)


main()
