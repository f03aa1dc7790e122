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


class Findings(collections.namedtuple("Findings", "rows conclusion")):
    """What a measurement found: its rows, and where they answer a question, the answer in words, made from them."""


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
        ("processor", "%d x %s%s" % (os.cpu_count(), read("/proc/cpuinfo", r"^model name\s*: (.*)"),
                                     ", virtual machine" if "hypervisor" in read("/proc/cpuinfo", r"^flags\s*: (.*)").split() else "")),
        ("memory", "%.0f GiB" % memory),
        ("kernel", platform.release()),
        ("perf", first_line("perf", "--version")),
        ("compiler", first_line("g++", "--version")),
    ]


def circumstances():
    """When a section was measured, and of what."""
    return "Measured %s, revision %s, load before %.2f." % (
        datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        first_line("git", "describe", "--always", "--dirty", "--exclude", "*"), os.getloadavg()[0])


def section(name, title, explanation, when, findings):
    text = SECTION.format(name=name, title=title, text=re.sub(r"\s+", " ", explanation.strip()), when=when, table=markdown_table(findings.rows))
    return text + ("\n%s\n" % findings.conclusion if findings.conclusion else "")


def sections_of(page):
    """The sections that a page has already, by name."""
    return {name: text for text, name in re.findall(r"(<!-- section (\w+) -->\n.*?)(?=<!-- section |\Z)", page, re.S)}


def document(sections, order):
    """sections: text by name; order: their names. Goals are counted over all of them."""
    body = "\n".join(sections[name].strip() + "\n" for name in order if name in sections)
    missed = re.findall(r"^\| ([^|]*?) \|.*\*\*missed\*\* \|$", body, re.M)
    goals = len(re.findall(r"\| ok \|$", body, re.M)) + len(missed)
    return PAGE.format(machine="\n".join("| %s | %s |" % fact for fact in machine()), sections=body,
                       verdict="All %d goals are met." % goals if not missed else "%d of %d goals are missed: %s."
                       % (len(missed), goals, "; ".join(missed)))


SECTION = """<!-- section {name} -->
## {title}

{text}

{when}

{table}
"""

PAGE = """# What profiling costs

<!-- Written by `make bench`; edits here are lost. -->

ddprof and its peers, on the same machine in the same loop. `make bench` measures everything anew (about 50 minutes);
`bench/run.py --only NAME --write` measures one section. Compare the ratios: absolute times belong to the machine. Ranges in brackets are
the least and the greatest of several runs, the figure before them is the median.

| | |
|---|---|
{machine}

{verdict}

{sections}"""
