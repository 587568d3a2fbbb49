"""A worker that is suspended, or ended because the memory is full; a command that is suspended itself.

A worker that is continued goes on. One that is not is ended after its limit, 10 s here. Each is one sentence, what was measured before is
kept, and the same command goes on with it, or gives the same once more.
"""
import collections
import json
import os
import pathlib
import signal
import sys
import time

from faults import subjects
from faults.place import SOON_S, Row, Said, how, last_line, sentence
from faults.subjects import flag, same, usual

RELAY = pathlib.Path(__file__).with_name("relay.py")
# An answer has at least so long, and who started a worker may take so long to end it, on a machine that does something else too.
LIMIT_S, END_S = 10.0, 15.0
# So long a command is suspended: longer than an answer may take.
AWAY_S = 12.0
GROUP_BYTES = 64 << 20

# An engine behind the relay: the command, its engine, when something happens to the worker, and the exit code then.
Relayed = collections.namedtuple("Relayed", "words engine moment code")
RELAYED = {
    "pair": Relayed(subjects.pair, "fake_engine", "3 sample 1", 2),
    "bench": Relayed(lambda place, worker: subjects.bench(place, worker, runs=3), "fake_engine", "3 sample 1", 2),
    "memory": Relayed(subjects.memory, "leaky_engine", "1 memory 60", 3),
    "load": Relayed(subjects.load, "fake_load", "1 load_level 3", 2),
}


class Behind:
    """A command in a place of its own, whose worker a plan says something about."""

    def __init__(self, campaign, name):
        self.name, self.kind = name, RELAYED[name]
        self.place = campaign.place(f"workers-{name}")
        self.plan = self.place.folder / "worker.plan"
        self.happens("")
        engine = self.place.example(self.kind.engine)
        worker = self.place.write("worker.sh", f"#!/bin/sh\nexec '{sys.executable}' '{RELAY}' '{engine}' '{self.plan}' \"$@\"\n")
        self.words = self.kind.words(self.place, worker)
        self.expected = usual(self.place, name, self.words)

    def happens(self, what):
        """From now on that happens at the command's moment, or nothing."""
        self.plan.with_suffix(".started").unlink(missing_ok=True)
        self.plan.write_text(f"{self.kind.moment} {what}" if what else "")

    def until_stopped(self):
        """The command, what it says, and its worker, which has been suspended."""
        self.happens("stop")
        process = self.place.start(self.words)
        return process, Said(process), stopped(self.place)

    def is_as_usual(self, worker, code, said):
        lost = [] if worker and same(self.name, self.expected, code, said) else [f"{how(code)}: {last_line(said)}"]
        return lost + self.place.lost()


def rows(campaign):
    group = cgroup()
    memory = "its memory cgroup" if group else "SIGKILL, as by a memory cgroup, of which none could be made"
    found = {
        continued: Row("worker suspended (SIGSTOP) for a second"),
        stopped_for_good: Row("worker suspended for good"),
        command_stopped: Row(f"command suspended for {AWAY_S:.0f} s while its worker answers"),
        out_of_memory: Row(f"worker ended by {memory}"),
    }
    for name in campaign.chosen(RELAYED):
        behind = Behind(campaign, name)
        for fault, row in found.items():
            if not (campaign.short and fault is command_stopped and name != "pair"):
                row.note(name, *fault(behind, group))
    if group:
        if "\noom_kill 0" in (group / "memory.events").read_text():
            found[out_of_memory].lost.append("the memory cgroup ended nobody: the workers ended themselves")
        # All that were in it have ended.
        group.rmdir()
    stops = {"program": [(stopped_for_good, "gave no answer within", stop_program), (out_of_memory, "out of memory", end_program)],
             "server": [(stopped_for_good, "gave no answer within", stop_server)]}
    for name in campaign.chosen(stops):
        place = campaign.place(f"workers-{name}")
        words = subjects.SUBJECTS[name](place)
        expected = usual(place, name, words)
        for fault, sentence_of_it, act in stops[name]:
            found[fault].note(name, *in_block_2(place, name, words, expected, sentence_of_it, act))
    return list(found.values())


def continued(behind, _group):
    _, said, worker = behind.until_stopped()
    time.sleep(1)
    go_on(worker)
    code = said.end(60)
    return code, behind.is_as_usual(worker, code, said.text)


def stopped_for_good(behind, _group):
    _, said, worker = behind.until_stopped()
    begun = worker and time.monotonic()
    code = said.end(60)
    lost = ended_with(behind.kind.code, "gave no answer within", code, said.text) + late(begun)
    return code, lost + after(behind)


def command_stopped(behind, _group):
    """That it does not hear its worker is no fault of the worker's."""
    process, said, worker = behind.until_stopped()
    process.send_signal(signal.SIGSTOP)
    go_on(worker)
    time.sleep(AWAY_S)
    process.send_signal(signal.SIGCONT)
    code = said.end(60)
    return code, behind.is_as_usual(worker, code, said.text)


def out_of_memory(behind, group):
    behind.happens("grow")
    ended = behind.place.run(behind.words, more={"FAULTS_CGROUP": str(group)} if group else {})
    return ended.code, ended_with(behind.kind.code, "out of memory", ended.code, ended.said) + after(behind)


def after(behind):
    """What was lost, once nothing happens any more."""
    behind.happens("")
    return kept(behind.place, behind.name) + afterwards(behind.place, behind.name, behind.words, behind.expected)


def in_block_2(place, name, words, expected, sentence_of_it, act):
    """A program or a server to which `act` happens when one block is kept."""
    process = place.start(words)
    said = Said(process)
    begun = said.wait_for("block 2 of") and act(place) and time.monotonic()
    code = said.end(60)
    flag(place).unlink(missing_ok=True)
    lost = ended_with(2, sentence_of_it, code, said.text) + late(begun)
    return code, lost + kept(place, "pair") + afterwards(place, name, words, expected)


def cgroup():
    """A group that may take little memory, where this system lets us make one (version 2, as root)."""
    top = pathlib.Path("/sys/fs/cgroup")
    group = top / f"infergate-faults-{os.getpid()}"
    try:
        if "memory" not in (top / "cgroup.subtree_control").read_text().split():
            return None
        group.mkdir()
        (group / "memory.max").write_text(str(GROUP_BYTES))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
        return group
    except OSError:
        if group.exists():
            group.rmdir()
        return None


def stopped(place, within_s=60.0):
    """The process here that is suspended, once there is one."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        for process in place.processes():
            try:
                state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state == "T":
                return process
        time.sleep(0.05)
    return None


def go_on(process):
    if process:
        os.kill(process, signal.SIGCONT)


def stop_program(place):
    """The program of the next sample suspends itself."""
    flag(place).write_text("STOP")
    return stopped(place)


def end_program(place):
    """The program of the next sample is ended."""
    flag(place).write_text("KILL")
    return True


def stop_server(place):
    """The first server of the block, once it is there."""
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        for process in place.processes():
            try:
                if pathlib.Path(f"/proc/{process}/exe").resolve().name == "serve":
                    os.kill(process, signal.SIGSTOP)
                    return process
            except OSError:
                continue
    return None


def ended_with(expected, words, code, said):
    lost = ["panicked"] if "panicked" in said else []
    if code != expected or words not in said:
        lost.append(f"{how(code)} without '{words}': {last_line(said)}")
    if code == 2 and not sentence(said):
        lost.append("no sentence")
    return lost


def late(begun):
    if not begun:
        return ["it never came to that"]
    took_s = time.monotonic() - begun
    return [f"ended only after {took_s:.0f} s"] if took_s > LIMIT_S + END_S else []


def kept(place, name):
    """What is wrong with what was measured before."""
    file, measured = {
        "pair": ("paired", lambda receipt: receipt["blocks"]),
        "bench": ("receipt", lambda receipt: receipt["cases"]),
        "memory": ("memory", lambda receipt: any(receipt["memory"]["runs"].values())),
        "load": ("load", lambda receipt: receipt["levels"]),
    }[name]
    try:
        receipt = json.loads((place.repository / f"out/{file}.json").read_bytes())
        partial = receipt["memory"]["partial"] if name == "memory" else receipt["partial"]
        return [] if partial and measured(receipt) else [f"out/{file}.json does not hold what was measured, or is not partial"]
    except FileNotFoundError:
        return [f"out/{file}.json is not there: what was measured is lost"]


def afterwards(place, name, words, expected):
    lost = place.lost()
    again = place.run(words)
    if not same(name, expected, again.code, again.said):
        lost.append(f"once more: {how(again.code)}: {last_line(again.said)}")
    return lost + place.lost()
