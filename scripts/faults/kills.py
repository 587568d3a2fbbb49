"""SIGKILL, SIGINT and SIGTERM at random moments of every command.

After each: no process is left within 5 s, every file is whole, every worktree of git is there or forgotten by `git worktree prune`, and
the same command once more gives what it gave before. A signal that can be handled ends the command within 5 s, with exit code 2 and a
sentence, or 3; one that has not begun yet, or measures nothing, is ended by the system.
"""
import signal
import subprocess
import time

from faults.place import SOON_S, Row, how, last_line, sentence
from faults.subjects import SUBJECTS, forget, same, usual

# A command has begun after so long, on a machine that does something else too.
START_S = 0.3
TIMES = {signal.SIGKILL: 200, signal.SIGINT: 40, signal.SIGTERM: 40}
SHORT = {signal.SIGKILL: 10, signal.SIGINT: 5, signal.SIGTERM: 5}


def rows(campaign):
    tries = SHORT if campaign.short else TIMES
    found = {number: Row(f"{number.name} at a random moment") for number in tries}
    names = campaign.chosen(SUBJECTS)
    for at, name in enumerate(names):
        place = campaign.place(f"kills-{name}")
        words = SUBJECTS[name](place)
        expected = usual(place, name, words)
        for number, count in tries.items():
            # Where there are fewer than commands, one signal begins with the first command and the other with the last.
            place_in_line = len(names) - 1 - at if number == signal.SIGTERM else at
            for _ in range(count // len(names) + (place_in_line < count % len(names))):
                forget(place, name)
                moment = campaign.random.uniform(0, expected.took_s)
                code, lost = fault(place, name, words, expected, number, moment)
                found[number].note(name, code, lost, f" after {moment:.2f} s")
    return list(found.values())


def fault(place, name, words, expected, number, moment):
    """How the command ended, and what is lost by it."""
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
            process.wait()
    code, took_s = process.returncode, time.monotonic() - sent
    if number != signal.SIGKILL and not lost:
        # Before it has begun, and where there is nothing to keep, the system ends it.
        early = code == -number and (moment < START_S or name in ("bless", "report"))
        if not (code == 3 or code == 2 and sentence(said) or early or same(name, expected, code, said)):
            lost.append(f"{how(code)} after {took_s:.1f} s: {last_line(said)}")
    lost += place.lost(killed=True)
    again = place.run(words)
    if not same(name, expected, again.code, again.said):
        lost.append(f"once more: {how(again.code)}: {last_line(again.said)}")
    return code, lost + place.lost(killed=True)
