"""One row per measurement, as a table in the terminal and as docs/overhead.md."""

import collections
import datetime
import os
import platform
import re
import subprocess

from measure import ROOT

HEAD = ("measured", "ddprof", "beside it", "ratio", "goal", "")


class Row(collections.namedtuple("Row", "what ours beside ratio goal met")):
    """met: True, False, or None where there is no goal."""

    def __new__(cls, what, ours, beside="", ratio="", goal="", met=None):
        return super().__new__(cls, what, ours, beside, ratio, goal, met)

    def cells(self):
        return [self.what, self.ours, self.beside, self.ratio, self.goal, {True: "ok", False: "missed", None: ""}[self.met]]


def text_table(rows):
    lines = [list(HEAD)] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown_table(rows):
    lines = ["| %s |" % " | ".join(HEAD), "|---" * len(HEAD) + "|"]
    for row in rows:
        cells = row.cells()
        if row.met is False:
            cells[-1] = "**missed**"
        lines.append("| %s |" % " | ".join(cells))
    return "\n".join(lines)


def first_line(*command):
    try:
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")[0]
    except OSError:
        return "none"


def read(path, pattern):
    with open(path) as file:
        found = re.search(pattern, file.read(), re.M)
    return found.group(1).strip() if found else "unknown"


def machine():
    """Facts of this machine, without names or places that belong to one."""
    memory = int(read("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / (1 << 20)
    return [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("revision", first_line("git", "describe", "--always", "--dirty", "--exclude", "*")),
        ("processor", "%d x %s%s" % (os.cpu_count(), read("/proc/cpuinfo", r"^model name\s*: (.*)"),
                                     ", virtual machine" if "hypervisor" in read("/proc/cpuinfo", r"^flags\s*: (.*)").split() else "")),
        ("memory", "%.0f GiB" % memory),
        ("kernel", platform.release()),
        ("perf", first_line("perf", "--version")),
        ("compiler", first_line("g++", "--version")),
        ("load before the run", "%.2f" % os.getloadavg()[0]),
    ]


def document(rows, facts, explanations, arguments, seconds):
    """rows: of the whole run; explanations: (title, text) of each measurement that ran."""
    missed = [row for row in rows if row.met is False]
    goals = [row for row in rows if row.met is not None]
    sections = "\n\n".join("**%s.** %s" % (title, re.sub(r"\s+", " ", text.strip())) for title, text in explanations)
    return PAGE.format(
        command=" ".join(["bench/run.py", *arguments]), minutes="%.0f" % max(seconds / 60, 1),
        machine="\n".join("| %s | %s |" % fact for fact in facts), table=markdown_table(rows), sections=sections,
        verdict="All %d goals are met." % len(goals) if not missed else "%d of %d goals are missed in this run: %s."
        % (len(missed), len(goals), "; ".join(row.what for row in missed)))


PAGE = """# What profiling costs

<!-- Written by `make bench`; edits here are lost. -->

Every figure below was measured in one run of `{command}` (about {minutes} minutes), ddprof and its peers on the same machine in the
same loop. `make bench` repeats it and writes this page anew; `bench/run.py --help` shows how to run a part of it.
Compare the ratios: absolute times belong to the machine.

| | |
|---|---|
{machine}

## Figures

Ranges in brackets are the least and the greatest of several runs, the figure before them is the median.

{table}

{verdict}

## What they mean

{sections}
"""
