"""Other users on the same machine: one who means harm, one whose service is profiled meanwhile, and file systems that hang."""

import contextlib
import os
import re
import subprocess
import time

import harness
import pprof

HOSTILE, VICTIM = 61001, 61002  # nobody's numbers: the kernel asks for no account


def as_user(uid, command):
    """The command as this user, without groups and privileges."""
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups", "--inh-caps=-all", "--"] + list(command)


@contextlib.contextmanager
def running(uid, command, **options):
    """A process of this user, ended and reaped afterwards."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.DEVNULL)
    process = subprocess.Popen(as_user(uid, command), **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def cpu_ns(pid):
    """User and system time that the kernel has charged to this process."""
    fields = harness.read_text("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")


def waits_for_fuse(pid, call=""):
    """Whether a thread of the process waits for the server of a FUSE mount, in this function of the kernel."""
    with contextlib.suppress(OSError):
        for tid in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError):
                stack = harness.read_text("/proc/%d/task/%s/stack" % (pid, tid))
                if "request_wait_answer" in stack and call in stack:
                    return True
    return False


def waits_for_page(pid):
    """The same for a page of a mapped file, for longer than a mount that does not hang takes."""
    def waits():
        return waits_for_fuse(pid, "filemap_fault")
    return waits() and not time.sleep(0.3) and waits()


def shares_of_split(profile, pid=None):
    """What the puppet `split` is seen to spend in its functions, of all that this process is seen to spend: [0.7, 0.2, 0.1] when names
    are right and nothing is missing. And that total."""
    def of(name=None):
        return pprof.total(profile, harness.CPU, lambda sample: (pid is None or sample.labels.get(harness.PROCESS_ID) == pid) and
                           (name is None or harness.Recording.has(sample, name)))
    total = of()
    return [of("spend_%d" % part) / total if total else 0.0 for part in (70, 20, 10)], total


def is_whole_stack_of_split(sample):
    """Whether it is one of `split` at work, from its functions to its start."""
    return sample.stack[-1] == "_start" and any(name in sample.stack for name in ("spend_70", "spend_20", "spend_10"))


def lost_samples(profile):
    """What the profile says that is missing from it, of all processes."""
    return int(re.search(r"samples, ([\d,]+) lost", "\n".join(profile.comments)).group(1).replace(",", ""))


class HangingMount:
    """A FUSE mount with the files of a folder, which hangs when told to: calls into it then end by nothing but its own end."""

    def __init__(self, program, point, source, uid=0, is_private=False):
        os.makedirs(point, exist_ok=True)
        self.point = point
        self.process = subprocess.Popen([program, point, source, str(uid)] + ["private"] * is_private,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout.readline() == "mounted\n"

    def say(self, word, answer):
        self.process.stdin.write(word + "\n")
        assert self.process.stdout.readline() == answer + "\n"

    def hang(self, offset=0):
        """All calls; with an offset, the reads of what lies behind it in any file, until go()."""
        self.say("hang %d" % offset, "hangs")

    def go(self):
        self.say("go", "goes")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()  # which ends all calls that wait
        self.process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", self.point], stderr=subprocess.DEVNULL, check=False)

