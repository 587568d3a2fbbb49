"""A disk that is full, read-only or not this user's, a limit on the length of files, and a full standard output.

What was measured is shown all the same. A command ends with its verdict's own exit code, or with 2 and a sentence; no file is half
written; and once there is room the same command gives what it gives without a fault.
"""
import os
import pathlib
import shutil
import stat
import subprocess

from faults.place import Row, how, last_line, sentence
from faults.subjects import QUICK, SUBJECTS, same, usual

PAGE_BYTES = 4096
# More room than any command takes.
ROOM = {"size": "4g", "nr_inodes": "1m"}
# What stands above what is written, where there is no verdict.
SHOWN = {"bench": "decode/p8", "load": "time to first token"}
# Said once something is measured: what cannot be written before that is refused, and nothing is lost.
BEGAN = ("process 1 of", "block 1 of", "memory, ", "1 user")
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Disk:
    """A file system in memory of its own at a folder. It is gone with the namespace of this campaign."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ",".join(["mode=755", *(f"{key}={value}" for key, value in ROOM.items())])
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.folder], check=True)
        # An empty one cannot be made full: no size is no limit.
        (self.folder / "taken").write_text("taken\n")

    def used(self):
        """Pages and files that are in use."""
        state = os.statvfs(self.folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize // PAGE_BYTES, state.f_files - state.f_ffree

    def leave(self, pages=None, files=None):
        """Leaves room for so many, and no more."""
        used_pages, used_files = self.used()
        if pages is not None:
            self.remount(f"size={(used_pages + pages) * PAGE_BYTES}")
        if files is not None:
            self.remount(f"nr_inodes={used_files + files}")

    def free(self):
        self.remount("rw," + ",".join(f"{key}={value}" for key, value in ROOM.items()))

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)

    def clear(self):
        for path in self.folder.iterdir():
            if path.name != "taken":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def end(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)


def rows(campaign):
    faults = [full, read_only, not_ours, device, limited, full_stdout]
    found = {fault: Row(fault.__doc__) for fault in faults}
    left_out = {fault: why for fault in faults if (why := impossible(campaign, fault))}
    for name in campaign.chosen(QUICK):
        place = campaign.place(f"disks-{name}")
        words = QUICK[name](place)
        expected = usual(place, name, words)
        for fault in faults:
            if fault not in left_out:
                shutil.rmtree(place.repository / "out", ignore_errors=True)
                fault(campaign, found[fault], name, place, words, expected)
    for fault, why in left_out.items():
        found[fault].not_tried(why)
    return [full_build(campaign), *found.values()]


def impossible(campaign, fault):
    """Why a fault cannot be made here, if it cannot."""
    if fault in (full, read_only) and not campaign.can_mount:
        return "nothing can be mounted here"
    if fault is device and os.geteuid() != 0:
        return "only root makes devices"
    if fault is limited and shutil.which("prlimit") is None:
        return "there is no prlimit"
    if fault is not_ours and os.geteuid() == 0:
        try:
            if subprocess.run([*AS_NOBODY, campaign.build / "cargo-infergate", "--version"], check=False, capture_output=True).returncode:
                return "nobody else can start the command"
        except FileNotFoundError:
            return "root may write anywhere, and there is no setpriv"
    return None


def judged(name, expected, code, said, began=True):
    """What is wrong with how a command ended that could not write something."""
    lost = ["panicked"] if "panicked" in said else []
    refused = code == 2 and sentence(said)
    if not (same(name, expected, code, said) or refused):
        return [*lost, f"{how(code)}: {last_line(said)}"]
    shown = expected.verdict or SHOWN.get(name, "")
    if began and shown not in said:
        lost.append(f"what was measured is not shown: {last_line(said)}")
    return lost


def once_more(place, name, expected, words):
    again = place.run(words)
    lost = [] if same(name, expected, again.code, again.said) else [f"once more: {how(again.code)}: {last_line(again.said)}"]
    return lost + place.lost()


def full(campaign, row, name, place, words, expected):
    """full disk: room for a part of what it writes"""
    disk = Disk(place.repository / "out")
    empty = disk.used()
    place.run(words)
    needed = [after - before for after, before in zip(disk.used(), empty)]
    for at in range(2 if campaign.short else 20):
        disk.clear()
        by_files = at % 2 == 1
        left = campaign.random.randrange(max(1, needed[by_files]))
        disk.leave(**{"files" if by_files else "pages": left})
        ended = place.run(words)
        disk.free()
        began = not by_files or any(word in ended.said for word in BEGAN)
        lost = judged(name, expected, ended.code, ended.said, began) + place.lost() + once_more(place, name, expected, words)
        row.note(name, ended.code, lost, f", room for {left} {'files' if by_files else 'pages'}")
    disk.end()


def full_build(campaign):
    """The same where the repository, checkout, builds and temporary files lie on it."""
    row = Row("full disk: room for a part of checkout, builds and outputs")
    if not campaign.can_mount:
        row.not_tried("nothing can be mounted here")
        return row
    for name in campaign.chosen(["gate", "program"] if campaign.short else ["gate", "program", "server", "bisect"]):
        disk = Disk(campaign.folder / f"build-{name}")
        place = campaign.place(f"build-{name}")
        words = SUBJECTS[name](place)
        fresh(place)
        empty = disk.used()[0]
        expected = usual(place, name, words)
        needed = disk.used()[0] - empty
        for _ in range(1 if campaign.short else 8):
            fresh(place)
            left = campaign.random.randrange(max(1, needed))
            disk.leave(pages=left)
            ended = place.run(words)
            disk.free()
            # A build may not have come to its end, so that there is no verdict to show.
            lost = judged(name, expected, ended.code, ended.said, began=False) + place.lost()
            lost += once_more(place, name, expected, words)
            row.note(name, ended.code, lost, f", room for {left} pages of {needed}")
        disk.end()
    return row


def fresh(place):
    """Nothing is checked out, built or written yet."""
    for folder in (place.repository / "target", place.repository / "out", place.folder / "base"):
        shutil.rmtree(folder, ignore_errors=True)
    place.git("worktree", "prune")


def read_only(_campaign, row, name, place, words, _expected):
    """read-only disk"""
    disk = Disk(place.repository / "out")
    disk.remount("ro")
    ended = place.run(words)
    row.note(name, ended.code, refused(ended) + place.lost())
    disk.end()


def refused(ended):
    """What is wrong where something is to be refused before it begins."""
    if ended.code == 2 and sentence(ended.said) and "panicked" not in ended.said:
        return []
    return [f"{how(ended.code)}: {last_line(ended.said)}"]


def not_ours(_campaign, row, name, place, words, _expected):
    """folder without rights"""
    out = place.repository / "out"
    out.mkdir()
    # All else may be written, also by somebody else than root, who may write anywhere.
    for folder in (place.folder, place.folder / "tmp", place.repository, place.repository / "target", place.repository / "target/infergate"):
        if folder.exists():
            folder.chmod(0o777)
    out.chmod(0o555)
    ended = place.run(words, before=AS_NOBODY if os.geteuid() == 0 else ())
    out.chmod(0o755)
    row.note(name, ended.code, refused(ended) + place.lost())


def device(_campaign, row, name, place, words, _expected):
    """device that is always full, in place of a file"""
    named = [word.split("=")[1] for word in words if word.startswith(("--json=out/", "--out=out/load", "--out=out/receipt"))]
    # A baseline's and a report's files are in a folder that is named.
    if not named:
        return
    file = place.repository / named[0]
    file.parent.mkdir()
    # As /dev/full is one.
    os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    ended = place.run(words)
    lost = refused(ended) + ([] if stat.S_ISCHR(file.stat().st_mode) else ["it was replaced"])
    file.unlink()
    row.note(name, ended.code, lost + place.lost())


def limited(campaign, row, name, place, words, expected):
    """limit on the length of files (ulimit -f)"""
    place.run(words)
    longest = max(path.stat().st_size for path in place.files() if "out" in path.parts)
    for at in range(1 if campaign.short else 10):
        shutil.rmtree(place.repository / "out", ignore_errors=True)
        limit = 0 if at == 0 else campaign.random.randrange(longest)
        ended = place.run(words, before=["prlimit", f"--fsize={limit}"])
        lost = judged(name, expected, ended.code, ended.said) + place.lost() + once_more(place, name, expected, words)
        row.note(name, ended.code, lost, f", {limit} bytes")


def full_stdout(_campaign, row, name, place, words, expected):
    """full standard output (/dev/full)"""
    # Its result is its files.
    if name == "report":
        return
    with open("/dev/full", "w", encoding="utf-8") as nowhere:
        ended = place.run(words, stdout=nowhere)
    lost = [] if ended.code == (expected.code or 2) else [f"{how(ended.code)}: {last_line(ended.said)}"]
    if "stdout: cannot be written" not in ended.said:
        lost.append(f"it does not say so: {last_line(ended.said)}")
    row.note(name, ended.code, lost + place.lost() + once_more(place, name, expected, words))
