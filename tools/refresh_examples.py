#!/usr/bin/env python3
"""Runs the examples whose output the documents show and puts the new output in: README.md, docs/, docs/images/shop.svg.

A fenced block after the line <!-- output of NAME --> is replaced. Needs build/release/ddprof, the puppets of build/dev,
and root, because one example runs as nobody. Read the result before you commit it.

With --check nothing is written: it fails when what is shown no longer has the shape of what is printed (numbers and names differ in
every run; headings, columns and the lines of the summary do not)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path("/tmp/shop")  # shown in the output
DDPROF = FOLDER / "bin/ddprof"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]


def run(*command):
    done = subprocess.run(command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
                          env={**os.environ, "PATH": f"{DDPROF.parent}:{os.environ['PATH']}", "COLUMNS": "100"})
    return done.stdout


def shape(text):
    """The skeleton of an output: headings without their numbers, rows of tables as one, the first words of a summary."""
    lines = []
    for line in text.splitlines():
        if line.startswith("$ "):
            kind = line
        elif found := re.match(r"(?:ok|limited|missing) +(\S+) ", line):
            kind = found.group(1)  # a check of the doctor, whose state is the machine's
        elif re.match(r"  (?:yes|partly|no) ", line):
            kind = "answer"
        elif line.startswith(" " * 13):
            continue  # time that no sample caught, where there was some
        elif "%" in line and not line.startswith("  target"):
            kind = "row"
        elif re.match(r"  [a-z]+ ", line):
            kind = line.split()[0]
        elif line.startswith((" ", "served")):
            continue  # a second line of something; what the example itself prints
        else:
            kind = re.sub(r"\S*\d\S*", "0", line)
        if not lines or kind != lines[-1]:
            lines.append(kind)
    return lines


def blocks(text):
    """The outputs that a page shows, by name."""
    return dict(re.findall(r"<!-- output of (.*?) -->\n```\n(.*?)```\n", text, re.S))


def examples():
    record = ["ddprof", "record", "-O", "shop.pb.gz", "--", "./shop", "3"]
    yield "record", f"$ {' '.join(record)}\n" + run(*record)
    report = run("ddprof", "report", "-n", "5", "shop.pb.gz").splitlines()
    yield "report", "$ ddprof report -n 5 shop.pb.gz | head -32\n" + "\n".join(report[:32]) + "\n"
    for options in (["--lines", "-n", "8"], ["--modules"]):
        command = ["ddprof", "report", *options, "shop.pb.gz"]
        yield "report " + options[0], f"$ {' '.join(command)}\n" + run(*command)
    yield "doctor", "$ ddprof doctor\n" + run("ddprof", "doctor")
    yield "doctor as nobody", "$ ddprof doctor\n" + run(*NOBODY, DDPROF, "doctor")
    yield "record as nobody", run(*NOBODY, DDPROF, "record", "-O", "mine.pb.gz", "--", "./shop", "3")
    refused = run(ROOT / "build/dev/puppets/deny_perf", DDPROF, "record", "-O", "none.pb.gz", "--", "./shop", "1")
    yield "record under seccomp", "".join(line for line in refused.splitlines(True) if not line.startswith("served"))


def check(pages, outputs):
    problems = 0
    for page in pages:
        for name, shown in blocks(page.read_text()).items():
            if shape(shown) != shape(outputs[name]):
                problems += 1
                print(f"{page.name}: the output of {name} looks like\n  {shape(shown)}\nbut now is like\n  {shape(outputs[name])}")
    print(f"{problems} outputs in the documents are not like real ones" + (": run make docs" if problems else ""))
    return 1 if problems else 0


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    DDPROF.parent.mkdir(parents=True)
    FOLDER.chmod(0o777)
    shutil.copy(ROOT / "build/release/ddprof", DDPROF)
    # The picture names source files: as they are called in the repository.
    run("g++", "-O2", "-g", "-std=c++20", "-pthread", f"-ffile-prefix-map={ROOT}/=", str(ROOT / "examples/shop.cpp"), "-o", "shop")
    outputs = dict(examples())
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if sys.argv[1:] == ["--check"]:
        return check(pages, outputs)
    run("ddprof", "record", "-F", "499", "-O", str(ROOT / "docs/images/shop.svg"), "--", "./shop", "5")
    (ROOT / "docs/images/shop.svg").chmod(0o644)
    for page in pages:
        text = page.read_text()
        for name, output in outputs.items():
            block = re.compile(rf"(<!-- output of {re.escape(name)} -->\n```\n).*?(```\n)", re.S)
            text = block.sub(lambda found, new=output: found.group(1) + new + found.group(2), text)
        page.write_text(text)
    print(f"{len(outputs)} outputs and a picture; read them before you commit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
