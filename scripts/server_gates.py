#!/usr/bin/env python3
"""Two builds of a server under load: what the gate says of known changes to the example `serve`, and how long that takes.

    python3 scripts/server_gates.py                        # each change once, and equal builds 20 times; about 3 hours
    python3 scripts/server_gates.py --equal 1 --only stall # one of them
    python3 scripts/server_gates.py --command PATH         # takes a cargo-infergate that is built already

Each change is a commit on top of a clone of this repository, gated against that by `gate --against HEAD~1 --server --users 16`. The
server is infergate-candle's example `serve` with set token times: its tokens cost no processor, so what is seen is the batch, the queue and the
engine's thread. It ends with exit code 1 at the first verdict that is not the expected one, or that takes more than 8 minutes.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from repositories import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVER = "crates/infergate-candle/examples/serve.rs"
MOST_SECONDS = 480

# 12 of 16 users are served at once, the others wait.
SETTINGS = """
[server]
build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "infergate-candle", "--example", "serve"]
command = ["./target/release/examples/serve", "--port", "{port}", "--slots", "12", "--queue", "64",
           "--timed", "40,12"]
model = "timed"

[[scenario]]
name = "chat"
input_tokens = 32
output_tokens = 16
"""

# A change, what becomes what in the server, and what has to be named.
CHANGES = {
    "comment": ("/// Gives each request its tokens", "/// Gives every request its tokens", None),
    # Each row of the batch takes 1.5 ms by itself: 18 ms a step in place of 12.
    "rows": ("events.push(running.next()?);", "events.push(running.next()?);\n                thread::sleep(Duration::from_micros(1500));",
             "chat/16-users/token"),
    # Beside others a tenth of the answers has another word.
    "garble": ("""        for running in &mut self.running {
            if running.due <= now {
                running.due += self.itl;
                events.push(running.next()?);
""", """        let others = self.running.len() > 1;
        for running in &mut self.running {
            if running.due <= now {
                running.due += self.itl;
                let mut event = running.next()?;
                if others && event.request.0 % 10 == 3 && event.index == 4 {
                    event.token ^= 1;
                }
                events.push(event);
""", "load:chat/16 users"),
    # The newest request is served first.
    "queue": ("waiting.pop_front()", "waiting.pop_back()", "load:chat/16 users"),
    # Every ten seconds nothing happens for half of one, and everything is that much later from then on.
    "stall": ("        let now = Instant::now();\n        let mut events", """        static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        static STALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let periods = BEGUN.get_or_init(Instant::now).elapsed().as_secs() / 10;
        if STALLS.swap(periods, std::sync::atomic::Ordering::Relaxed) < periods {
            let pause = Duration::from_millis(500);
            thread::sleep(pause);
            self.running.iter_mut().for_each(|running| running.due += pause);
        }
        let now = Instant::now();
        let mut events""", "chat/16-users/longest-gap or chat/16-users/token"),
}


class Failed(Exception):
    """Something did not come out as it has to."""


def run(folder, env, *command, expected=(0,)):
    """Runs one command; gives its exit code and what it said."""
    done = subprocess.run([str(word) for word in command], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode not in expected:
        raise Failed(f"'{' '.join(map(str, command))}' ended with exit code {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.returncode, done.stdout


def repository(place, env):
    """A clone whose infergate.toml names the server, and whose HEAD is what every change is made on."""
    clone = place / "clone"
    run(place, env, "git", "clone", "--quiet", ROOT, clone)
    (clone / "infergate.toml").write_text(SETTINGS)
    run(clone, env, "git", "commit", "--quiet", "--all", "--message", "a server with set token times")
    run(clone, env, "git", "tag", "gated")
    return clone


def changed(clone, env, name):
    """The clone with one change as its HEAD, built: its build is no part of the gate's time."""
    before, after, named = CHANGES[name]
    run(clone, env, "git", "reset", "--quiet", "--hard", "gated")
    text = (clone / SERVER).read_text()
    if before not in text:
        raise Failed(f"{SERVER}: has no '{before}'")
    (clone / SERVER).write_text(text.replace(before, after, 1))
    run(clone, env, "git", "commit", "--quiet", "--all", "--message", name)
    run(clone, env, "cargo", "build", "--quiet", "--release", "--locked", "--package", "infergate-candle", "--example", "serve")
    return named


def gate(place, clone, env, command, name, more):
    """One gate of a change. Gives its verdict, the rows that fail, and how long it took."""
    named = changed(clone, env, name)
    path = place / "verdict.json"
    path.unlink(missing_ok=True)
    began = time.monotonic()
    code, said = run(clone, env, command, "infergate", "gate", "--against", "HEAD~1", "--server", "--users", "16", "--memory-runs", "0",
                     "--base-folder", place / "base", "--json", path, "--out", place / "paired.json", *more, expected=(0, 1, 3))
    seconds = time.monotonic() - began
    verdict = json.loads(path.read_text())
    wrong = [row["subject"].removeprefix("bench:") for row in verdict["rows"] if row["outcome"] in ("regressed", "counter_regressed", "output_changed")]
    blocks = len(json.loads((place / "paired.json").read_text())["blocks"])
    right = code == 1 and any(subject in wrong for subject in named.split(" or ")) if named else code == 0
    if not right:
        raise Failed(f"{name}: the verdict is {verdict['verdict']} and names {', '.join(wrong) or 'nothing'}:\n{said}")
    print(f"{name:8} {verdict['verdict']:18} {blocks:3} blocks {seconds:6.0f} s  {', '.join(wrong) or 'nothing'}", flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=pathlib.Path, help="a cargo-infergate that is built already, in place of building it")
    parser.add_argument("--equal", type=int, default=20, help="gates of equal builds [default: 20]")
    parser.add_argument("--only", choices=[name for name in CHANGES if name != "comment"], help="this change alone")
    parser.add_argument("--window-s", help="a window's length in place of the gate's own choice, to try this script")
    asked = parser.parse_args()
    command = asked.command
    if not command:
        subprocess.run(["cargo", "build", "--release", "--locked", "--package", "cargo-infergate"], cwd=ROOT, check=True)
        command = ROOT / "target" / "release" / "cargo-infergate"
    if not command.is_file():
        sys.exit(f"error: {command}: there is no such program; build it with cargo build --release --package cargo-infergate")
    more = ["--server-window-s", asked.window_s] if asked.window_s else []
    # Below the repository cargo would take the repository's own compiler flags.
    with tempfile.TemporaryDirectory(prefix="infergate-server-gates-") as folder:
        place = pathlib.Path(folder)
        env = environment(XDG_CACHE_HOME=str(place / "cache"))
        try:
            clone = repository(place, env)
            names = [asked.only] if asked.only else [name for name in CHANGES if name != "comment"]
            # The first gate builds base, too.
            equal = [gate(place, clone, env, command.resolve(), "comment", more) for _ in range(asked.equal)]
            took = {name: gate(place, clone, env, command.resolve(), name, more) for name in names}
        except Failed as wrong:
            sys.exit(f"error: {wrong}")
    if equal:
        print(f"\n{len(equal)} gates of equal builds passed, in {statistics.median(equal):.0f} s in the median, {max(equal):.0f} s at most")
    late = [name for name, seconds in list(took.items())[0 if equal else 1:] if seconds > MOST_SECONDS]
    if late:
        sys.exit(f"error: more than {MOST_SECONDS} s: {', '.join(late)}")


main()
