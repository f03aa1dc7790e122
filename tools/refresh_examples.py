#!/usr/bin/env python3
"""Runs the examples whose output the documents show and puts the new output in: README.md, docs/, docs/images/shop.svg.

A fenced block after the line <!-- output of NAME --> is replaced. Needs build/release/ddprof, the puppets of build/dev,
and root, because one example runs as nobody. Read the result before you commit it."""
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


def examples():
    record = ["ddprof", "record", "-O", "shop.pb.gz", "--", "./shop", "3"]
    yield "record", f"$ {' '.join(record)}\n" + run(*record)
    report = run("ddprof", "report", "-n", "5", "shop.pb.gz").splitlines()
    yield "report", "$ ddprof report -n 5 shop.pb.gz | head -20\n" + "\n".join(report[:20]) + "\n"
    yield "record as nobody", run(*NOBODY, DDPROF, "record", "-O", "mine.pb.gz", "--", "./shop", "3")
    refused = run(ROOT / "build/dev/puppets/deny_perf", DDPROF, "record", "-O", "none.pb.gz", "--", "./shop", "1")
    yield "record under seccomp", "".join(line for line in refused.splitlines(True) if not line.startswith("served"))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    DDPROF.parent.mkdir(parents=True)
    FOLDER.chmod(0o777)
    shutil.copy(ROOT / "build/release/ddprof", DDPROF)
    run("g++", "-O2", "-std=c++20", "-pthread", str(ROOT / "examples/shop.cpp"), "-o", "shop")
    run("ddprof", "record", "-F", "499", "-O", "shop.folded", "--", "./shop", "5")
    run(str(ROOT / "tools/flamegraph_svg.py"), "shop.folded", str(ROOT / "docs/images/shop.svg"))
    outputs = dict(examples())
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        for name, output in outputs.items():
            block = re.compile(rf"(<!-- output of {re.escape(name)} -->\n```\n).*?(```\n)", re.S)
            text = block.sub(lambda found, new=output: found.group(1) + new + found.group(2), text)
        page.write_text(text)
    print(f"{len(outputs)} outputs and a picture; read them before you commit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
