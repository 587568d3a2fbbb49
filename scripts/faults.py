#!/usr/bin/env python3
"""Faults in the middle of commands of infergate: what was tried, and what was lost by it. Linux only.

    cargo build --locked --package cargo-infergate --package infergate --package infergate-candle --bins --examples
    python3 scripts/faults.py                  # everything: some hours
    python3 scripts/faults.py --short          # a few of each: minutes
    python3 scripts/faults.py --only disks,clock --commands gate,bless --seed 7

Some faults are root's to make: a small disk, a memory cgroup. Where they cannot be made the table says so. Nothing of this machine is
changed: disks are mounted in a namespace that ends with this program. The first lines of each file in scripts/faults/ say what has to be
true after its faults. Exit code 1 when anything was lost.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from faults import clock, disks, kills, servers, workers
from faults.place import Place

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"kills": kills, "disks": disks, "clock": clock, "workers": workers, "servers": servers}
# Set in the copy of this program that has disks of its own.
APART = "FAULTS_APART"


class Campaign:
    """What the kinds of fault have in common."""

    def __init__(self, asked, folder):
        self.folder, self.build, self.short = folder, asked.build.resolve(), asked.short
        self.commands = asked.commands.split(",") if asked.commands else None
        self.random = random.Random(asked.seed)
        self.can_mount = os.environ.get(APART) == "1"

    def chosen(self, names):
        """Those that were asked for. A gate of two servers takes a minute or more."""
        return [name for name in names if (not self.short or name != "server") and (self.commands is None or name in self.commands)]

    def place(self, name):
        return Place(self.folder / name, self.build)


def apart():
    """Starts this program again where it may mount disks that nobody else sees; returns where it may not."""
    if os.environ.get(APART):
        return
    for words in (["unshare", "--mount", "--propagation", "private"], ["unshare", "--user", "--map-root-user", "--mount"]):
        try:
            tried = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True)
        except FileNotFoundError:
            return
        if tried.returncode == 0:
            os.environ[APART] = "1"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--only", default=",".join(KINDS), help="these kinds alone: " + ", ".join(KINDS))
    parser.add_argument("--commands", help="on these commands alone")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "target/debug", help="where cargo put the command and the examples")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    kinds = asked.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--only {','.join(unknown)}: there are {', '.join(KINDS)}")
    apart()
    begun, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="infergate-faults-", ignore_cleanup_errors=True) as folder:
        # One fault is that of another user.
        os.chmod(folder, 0o755)
        campaign = Campaign(asked, pathlib.Path(folder))
        for kind in kinds:
            for row in KINDS[kind].rows(campaign):
                rows.append(row)
                print(f"{time.monotonic() - begun:.0f} s: {' | '.join(map(str, row.cells()))}", file=sys.stderr, flush=True)
                for line in row.lost:
                    print(f"lost: {line}", file=sys.stderr, flush=True)
    print("| fault | commands | times | ended with | lost |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row.cells())) + " |")
    lost = sum(len(row.lost) for row in rows)
    print(f"\n{sum(row.cells()[2] for row in rows)} faults in {time.monotonic() - begun:.0f} s, {lost} things lost")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
