#!/usr/bin/env python3
"""A worker that hands each request on to an engine, until a plan says what happens to it.

    relay.py ENGINE PLAN [WORDS OF A WORKER]

The plan is a file: `PROCESS OPERATION COUNT WHAT`, as in `3 sample 1 stop`: at the first `sample` that its third process is asked for
it stops, as by Ctrl-Z; `grow` takes memory until somebody ends it. An empty plan: nothing ever happens.
"""
import os
import pathlib
import signal
import subprocess
import sys

GROWS_TO_BYTES = 256 << 20


def number(plan):
    """Which process of this plan this one is."""
    with open(plan.with_suffix(".started"), "ab") as started:
        started.write(b".")
        return started.tell()


def grow():
    """Takes memory in the group that allows less than it takes; where there is none, ends as the system would end it."""
    group = os.environ.get("FAULTS_CGROUP")
    if group:
        pathlib.Path(group, "cgroup.procs").write_text(str(os.getpid()))
    taken = []
    while len(taken) << 20 < GROWS_TO_BYTES:
        taken.append(b"x" * (1 << 20))
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    engine, plan, *words = sys.argv[1:]
    plan = pathlib.Path(plan)
    process, operation, count, what = (plan.read_text().split() or ["0", "", "0", ""])[:4]
    mine, asked = number(plan) == int(process), 0
    child = subprocess.Popen([engine, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in sys.stdin.buffer:
        asked += mine and f'"op":"{operation}"'.encode() in line
        if mine and asked == int(count):
            mine = False
            if what == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                grow()
        child.stdin.write(line)
        child.stdin.flush()
        sys.stdout.buffer.write(child.stdout.readline())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
