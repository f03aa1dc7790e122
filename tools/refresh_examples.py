#!/usr/bin/env python3
"""Runs the examples whose output the documents show and puts the new output in: README.md, docs/, docs/images/shop.svg.

A fenced block after the line <!-- output of NAME --> is replaced. Needs build/release/ddprof, the puppets of build/dev,
and root: one example runs as nobody, and debug packages of this machine are hidden, so that the outputs are those of the machine
that `make demo` makes. Read the result before you commit it.

With --check nothing is written: it fails when what is shown no longer has the shape of what is printed (numbers and names differ in
every run; headings, columns and the lines of the summary do not). With --demo FILE it checks README.md alone, against a file that
holds what `make demo` printed elsewhere, such as in a bare root."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path("/tmp/ddprof")  # shown in the output, as the place of the clone
DDPROF = FOLDER / "build/release/ddprof"
WIDTHS = (60, 100, 200)
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]
HIDDEN = "DDPROF_EXAMPLES_WITHOUT_DEBUG_PACKAGES"


def run(*command, columns=100, check=True, **variables):
    done = subprocess.run(command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=check,
                          env={**os.environ, "PATH": f"{DDPROF.parent}:{os.environ['PATH']}", "COLUMNS": str(columns),
                               "XDG_CACHE_HOME": str(FOLDER / "cache"), "XDG_STATE_HOME": str(FOLDER / "state"), **variables})
    return done.stdout


def shape(text):
    """The skeleton of an output: headings without their numbers, rows of tables as one, the first words of a summary."""
    lines, in_notes, in_headline = [], False, False
    for line in text.splitlines():
        in_notes = line == "Notes" or in_notes and not line.startswith("$ ")
        in_headline = re.match(r"\d+ % of ", line) or in_headline and line and not line.startswith(" ")
        if line.startswith("$ "):
            kind = line
        elif in_notes and line != "Notes" or not line or line.startswith("What was missed"):
            continue  # wrapped anew each time; where something was missed
        elif found := re.match(r"(?:ok|limited|missing) +(\S+) ", line):
            kind = found.group(1)  # a check of the doctor, whose state is the machine's
        elif re.match(r"  (?:yes|partly|no) ", line):
            kind = "answer"
        elif line.startswith(" " * 13):
            continue  # time that no sample caught, where there was some
        elif "%" in line and not line.startswith("  target"):
            kind = "row"
        elif in_headline:
            continue  # its second line: on a busy machine there are few samples, and it says so
        elif re.match(r"  [a-z]+ ", line):
            kind = line.split()[0]
        elif line.startswith((" ", "served")):
            continue  # a second line of something; what the example itself prints
        else:
            kind = re.sub(r"\S*\d\S*", "0", line)
            kind = re.sub(r" +", " ", re.sub(r"\b0 +[mun]s\b", "0 s", kind))  # less than a second where the machine is busy
            kind = re.sub(r"\b0 [KMG]iB\b", "0 B", kind)  # a last profile may be small
        if not lines or kind != lines[-1]:
            lines.append(kind)
    return lines


def blocks(text):
    """The outputs that a page shows, by name."""
    return dict(re.findall(r"<!-- output of (.*?) -->\n```\n(.*?)```\n", text, re.S))


def shown(*command, columns=100, **variables):
    return f"$ {' '.join(command)}\n" + run(*command, columns=columns, **variables)


def of_record(demo):
    """What `make demo` prints for its first command."""
    return demo[demo.index("$ ddprof record -O"):demo.index("\n$ ddprof report")]


def of_memory(demo):
    """And for its last one."""
    return demo[demo.rindex("$ ddprof report"):]


def examples():
    demo = run("tools/demo.sh")
    yield "record", of_record(demo)
    yield "memory", of_memory(demo)
    for options in (["--lines", "-n", "8"], ["--modules"], ["--callers", "is_blocked"], ["--callees", "is_blocked"]):
        yield "report " + options[0], shown("ddprof", "report", *options, "build/demo/shop.pb.gz")
    yield "doctor", shown("ddprof", "doctor")
    yield "doctor as nobody", "$ ddprof doctor\n" + run(*NOBODY, str(DDPROF), "doctor")
    yield "record as nobody", run(*NOBODY, str(DDPROF), "record", "-O", "mine.pb.gz", "--", "build/demo/shop", "3")
    refused = run(str(ROOT / "build/dev/puppets/deny_perf"), str(DDPROF), "record", "-O", "none.pb.gz", "--", "build/demo/shop", "1")
    yield "record under seccomp", "".join(line for line in refused.splitlines(True) if not line.startswith("served"))
    run("ddprof", "-O", "kept/", "-u", "1", "-S", "shop", "build/demo/shop", "3")
    for width in WIDTHS:
        for command in (["ddprof", "help"], ["ddprof", "help", "record"], ["ddprof", "report", "build/demo/shop.pb.gz"],
                        ["ddprof", "list", "kept"]):
            yield f"{' '.join(command[1:3])} at {width}", shown(*command, columns=width)
        record = ["ddprof", "record", "-O", "wide.pb.gz", "--", "build/demo/shop", "1"]
        yield f"record at {width}", shown(*record, columns=width)


def check(pages, outputs):
    problems = 0
    for page in pages:
        for name, text in blocks(page.read_text()).items():
            if shape(text) != shape(outputs.get(name, "")):
                problems += 1
                print(f"{page.name}: the output of {name} looks like\n  {shape(text)}\nbut now is like\n  {shape(outputs.get(name, ''))}")
    print(f"{problems} outputs in the documents are not like real ones" + (": run make docs" if problems else ""))
    return 1 if problems else 0


def check_demo(path):
    """README.md against what `make demo` printed on another machine."""
    demo = pathlib.Path(path).read_text(errors="replace")
    return check([ROOT / "README.md"], {"record": of_record(demo), "memory": of_memory(demo)})


def prepare():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for part in ("tools/demo.sh", "examples/shop.cpp", "build/release/ddprof"):
        (FOLDER / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, FOLDER / part)
    FOLDER.chmod(0o777)


def main():
    if sys.argv[1:2] == ["--demo"]:
        return check_demo(sys.argv[2])
    if HIDDEN not in os.environ:  # the mount ends with us
        hide = "mkdir -p /usr/lib/debug && mount -t tmpfs none /usr/lib/debug && exec \"$@\""
        os.execvpe("unshare", ["unshare", "-m", "sh", "-c", hide, "sh", *sys.orig_argv], {**os.environ, HIDDEN: "1"})
    prepare()
    outputs = dict(examples())
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if sys.argv[1:] == ["--check"]:
        return check(pages, outputs)
    run("ddprof", "record", "-F", "499", "-O", str(ROOT / "docs/images/shop.svg"), "--", "build/demo/shop", "5")
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
