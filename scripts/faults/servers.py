"""`load` on servers that do what no server should.

Every request is in the receipt and has completed, failed or been cancelled; none takes longer than --timeout; the exit code is that of a
run without numbers (3), or of one with some (0 or 3); and the command takes little memory.
"""
import json
import shutil

from faults.hostile_servers import SERVERS, TOKENS, Server
from faults.place import Row, how, last_line

REQUESTS, USERS, TIMEOUT_S = 4, 2, 1.0
# What a request may take beyond its limit on a machine that does something else too.
SLACK_S = 1.0
# A failed user waits so long.
AFTER_FAILURE_S = 0.1
# What the command may ask the system for, where not each of its threads reserves a room of its own. It takes a third of it, code and all.
MOST_BYTES = 1 << 30
SMALL = {"MALLOC_ARENA_MAX": "1"}
LOAD = ["load", "--model=m", "--api=completions", "--input-tokens=8", f"--output-tokens={TOKENS}", f"--timeout={TIMEOUT_S:.0f}s",
        "--attempts=2", "--warm-up=0", "--out=out/load.json"]
LOOPS = {"closed": [f"--users={USERS}", f"--requests={REQUESTS}"], "open": ["--rate=10", "--arrivals=constant", f"--requests={REQUESTS}"]}


def rows(campaign):
    place = campaign.place("servers")
    before = ["prlimit", f"--as={MOST_BYTES}"] if shutil.which("prlimit") else []
    row = Row(f"{len(SERVERS)} kinds of server that do what none should")
    for name, (act, completes) in SERVERS.items() if campaign.chosen(["load"]) else ():
        for loop in ["closed"] if campaign.short else LOOPS:
            server = Server(act)
            ended = place.run([*LOAD, *LOOPS[loop], f"--target=http://127.0.0.1:{server.port}"], before=before, more=SMALL)
            server.close()
            lost = [] if ended.code in ((0, 3) if completes else (3,)) else [f"{how(ended.code)}: {last_line(ended.said)}"]
            lost += ["panicked"] if "panicked" in ended.said else []
            row.note("load", ended.code, lost + counted(place, completes) + place.lost(), f", {name}, {loop} loop")
    return [row]


def counted(place, completes):
    """What is wrong with the receipt."""
    try:
        levels = json.loads((place.repository / "out/load.json").read_bytes())["levels"]
    except FileNotFoundError:
        return ["there is no receipt"]
    if len(levels) != 1:
        return [f"{len(levels)} levels"]
    level = levels[0]
    requests, lost = level["requests"], []
    failed = [each["failure"]["class"] for each in requests if each.get("failure")]
    whole = [each for each in requests if not each.get("failure") and len(each["chunk_ns"]) == TOKENS]
    cancelled = failed.count("cancelled")
    if len(requests) != len(whole) + len(failed):
        lost.append(f"{len(requests)} sent, {len(whole)} completed, {len(failed) - cancelled} failed, {cancelled} cancelled")
    if (len(whole) > 0) != completes:
        lost.append(f"{len(whole)} completed")
    if sum(each.get("measured", False) for each in requests) != REQUESTS:
        lost.append("not all that were to be measured are")
    longest_s = max((each["ended_ns"] - each["scheduled_ns"] for each in requests), default=0) / 1e9
    if longest_s > TIMEOUT_S + SLACK_S:
        lost.append(f"a request took {longest_s:.1f} s")
    # Each of a user's requests one after the other, and what is in flight behind the last one, which is given up.
    most_s = (REQUESTS + 1) * (TIMEOUT_S + AFTER_FAILURE_S) + 1 + 2 * SLACK_S
    if level["wall_ns"] / 1e9 > most_s:
        lost.append(f"the level took {level['wall_ns'] / 1e9:.1f} s")
    return lost
