"""A clock that is set an hour forward or back in the middle of a run.

The same verdict as ever, in no more time; what is written has a date of one clock or the other, and times that fit into the run.
"""
import calendar
import json
import pathlib
import shutil
import subprocess
import time

from faults.place import Row, how, last_line, verdict
from faults.subjects import SUBJECTS, forget, same, usual

SOURCE = pathlib.Path(__file__).with_name("step.c")
HOUR_S = 3600
NAMES = ("pair", "program", "server", "bench", "bless", "load", "memory")


def rows(campaign):
    row = Row("clock set an hour forward or back")
    library = built(campaign.folder)
    if library is None:
        row.not_tried("there is no C compiler, or its library is not loaded")
        return [row]
    for number, name in enumerate(campaign.chosen(NAMES)):
        begun, place = time.time(), campaign.place(f"clock-{name}")
        words = SUBJECTS[name](place)
        expected = usual(place, name, words)
        for at in range(number, number + (1 if campaign.short else 8)):
            forget(place, name)
            shutil.rmtree(place.repository / "out", ignore_errors=True)
            moment, step_s = campaign.random.uniform(0, expected.took_s), HOUR_S if at % 2 == 0 else -HOUR_S
            ended = place.run(words, more=stepping(library, time.monotonic() + moment, step_s))
            lost = [f"another time: {text}" for text in odd_times(place, begun, time.time())]
            if not same(name, expected, ended.code, ended.said) or expected.verdict != verdict(ended.said):
                lost.append(f"{how(ended.code)}: {last_line(ended.said)}")
            if ended.took_s > 3 * expected.took_s + 30:
                lost.append(f"took {ended.took_s:.0f} s in place of {expected.took_s:.0f} s")
            row.note(name, ended.code, lost + place.lost(), f", {step_s:+} s after {moment:.2f} s")
    return [row]


def stepping(library, at_s, step_s):
    return {"LD_PRELOAD": str(library), "FAULTS_STEP_AT_MS": str(int(1000 * at_s)), "FAULTS_STEP_S": str(step_s)}


def built(folder):
    """The library that sets the clock, once it was seen to do so."""
    library = folder / "step.so"
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None or subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=False).returncode:
        return None
    ask = ["date", "+%s"]
    seen = int(subprocess.run(ask, env=stepping(library, 0, HOUR_S), check=True, capture_output=True, text=True).stdout)
    return library if abs(seen - time.time() - HOUR_S) < 60 else None


def odd_times(place, begun, ended):
    """Dates in what was written that no clock of this run has shown, and times that hold the step."""
    for path in (place.repository / "out").rglob("*.json"):
        for key, value in fields(json.loads(path.read_bytes())):
            if key == "created" and value:
                date = calendar.timegm(time.strptime(value, "%Y-%m-%dT%H:%M:%SZ"))
                if not any(begun - 2 <= date - shown <= ended + 2 for shown in (0, HOUR_S, -HOUR_S)):
                    yield f"{path.name}: {key} {value}"
            elif key.endswith("_ns") and "unix" not in key and isinstance(value, (int, float)) and not 0 <= value < HOUR_S * 5e8:
                yield f"{path.name}: {key} {value}"


def fields(value, key=""):
    """Every number and text of a document, by the name of the field that it stands in."""
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from fields(each, inner)
    elif isinstance(value, list):
        for each in value:
            yield from fields(each, key)
    else:
        yield key, value
