"""A folder with a repository in it, in which one command runs again and again, and what can be lost there."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import uuid
import xml.etree.ElementTree

from repositories import environment

MARK = "FAULTS_OF"
# So long a command has to end in, with all that it started, once it was told to.
SOON_S = 5.0
# A whole run takes seconds; on a machine that compiles something else, minutes.
LONG_S = 900.0

Ended = collections.namedtuple("Ended", "code said took_s")
# What the command gives without a fault: its exit code, the words of its verdict, and how long it takes.
Usual = collections.namedtuple("Usual", "code verdict took_s")


class Place:
    """A folder with a repository in it; what runs there is known by a word in its environment."""

    def __init__(self, folder, build):
        self.folder, self.build, self.token = folder, build, str(uuid.uuid4())
        self.environment = environment(**{MARK: self.token}, INFERGATE_VIRTUAL_CLOCK="1", INFERGATE_LOCK=str(folder / "lock"), NO_COLOR="1",
                                       TMPDIR=str(folder / "tmp"))
        folder.mkdir(exist_ok=True)
        (folder / "tmp").mkdir()
        self.repository = folder / "repository"
        self.repository.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def write(self, name, text):
        path = self.repository / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.repository, env=self.environment, check=True, capture_output=True, text=True).stdout

    def commit(self, name, text):
        self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", name)

    def example(self, name):
        return self.build / "examples" / name

    def start(self, words, before=(), more=None, stdout=subprocess.PIPE):
        """The command, behind the words `before` and with `more` in its environment."""
        command = [*before, str(self.build / "cargo-infergate"), "infergate", *words]
        both = stdout is subprocess.PIPE
        return subprocess.Popen(command, cwd=self.repository, env=self.environment | (more or {}), stdin=subprocess.DEVNULL, stdout=stdout,
                                stderr=subprocess.STDOUT if both else subprocess.PIPE, text=True, errors="replace", start_new_session=True)

    def run(self, words, **how):
        """Runs it to its end. One that has none is killed, and has no exit code."""
        begun, process = time.monotonic(), self.start(words, **how)
        try:
            said = "".join(text or "" for text in process.communicate(timeout=LONG_S))
            return Ended(process.returncode, said, time.monotonic() - begun)
        except subprocess.TimeoutExpired:
            process.kill()
            self.until_gone()
            return Ended(None, "hangs", time.monotonic() - begun)

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

    def until_gone(self):
        """The processes that are left after SOON_S, which are ended then."""
        end = time.monotonic() + SOON_S
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left

    def files(self):
        """What commands wrote, without what git and cargo keep."""
        for folder, folders, names in os.walk(self.folder):
            in_target = os.path.basename(folder) == "target"
            folders[:] = [name for name in folders if name not in (".git", "tree") and (name == "infergate" or not in_target)]
            yield from (pathlib.Path(folder, name) for name in names if not in_target)

    def lost(self, killed=False):
        """What is wrong here after a command has ended. One that was killed may leave a file that is not in its place yet."""
        lost = ["process left"] * len(self.until_gone())
        for path in self.files():
            if path.name.startswith(".infergate-") and not killed:
                lost.append(f"left over: {path.relative_to(self.folder)}")
            elif not is_whole(path):
                lost.append(f"half a file: {path.relative_to(self.folder)}")
        return lost + self.broken_worktrees()

    def broken_worktrees(self):
        self.git("worktree", "prune")
        lines = self.git("worktree", "list", "--porcelain").splitlines()
        return [line for line in lines if line.startswith("worktree ") and not pathlib.Path(line[9:]).is_dir()]


class Said:
    """What a process says, line by line as it comes."""

    def __init__(self, process):
        self.process, self.text, self.changed = process, "", threading.Condition()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.text += line
                self.changed.notify_all()

    def wait_for(self, word, within_s=120.0):
        with self.changed:
            return self.changed.wait_for(lambda: word in self.text, within_s)

    def end(self, within_s):
        """The exit code; `None` where it has none within the time."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
        self.thread.join(SOON_S)
        return code


def is_whole(path):
    """Whether a file is as a command writes it, as far as its format says."""
    try:
        text = path.read_bytes()
        if path.suffix == ".json":
            json.loads(text)
        elif path.suffix == ".xml":
            xml.etree.ElementTree.fromstring(text)
        elif path.suffix in (".html", ".svg"):
            return text.rstrip().endswith(f"</{path.suffix[1:]}>".encode())
    except FileNotFoundError:
        pass
    except (ValueError, xml.etree.ElementTree.ParseError):
        return False
    return True


def verdict(said):
    """`verdict: pass (exit 0)`, where there is one."""
    found = re.findall(r"^verdict: [^(\n]*\(exit \d\)", said, re.MULTILINE)
    return found[-1] if found else ""


def sentence(said):
    """The last line that says what went wrong."""
    lines = [line for line in said.splitlines() if "error: " in line]
    return lines[-1].strip() if lines else ""


def last_line(said):
    return (said.strip().splitlines() or [""])[-1][:300]


def how(code):
    """An exit code in words."""
    if code is None:
        return "no end"
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


class Row:
    """One line of the table: a fault, the commands that it was tried on, what they ended with, and what was lost."""

    def __init__(self, fault):
        self.fault, self.commands, self.ends, self.lost = fault, {}, collections.Counter(), []

    def note(self, command, code, lost, detail=""):
        self.commands[command] = True
        self.ends[how(code)] += 1
        self.lost += [f"{self.fault}, {command}{detail}: {what}" for what in lost]

    def not_tried(self, why):
        self.commands[f"not tried: {why}"] = True

    def cells(self):
        ends = ", ".join(f"{end}: {count}" for end, count in sorted(self.ends.items()))
        return [self.fault, ", ".join(self.commands), sum(self.ends.values()), ends, len(self.lost)]
