#!/usr/bin/env python3
"""What README.md, SECURITY.md and docs/ cite exists: files, functions, types and tests; and limits have the values of the code."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE_ENDINGS = "cpp|hpp|h|c|py|sh|mjs|go|rs"

# Where a page states a limit: page, the text around the number, the file with the constant, its name.
LIMITS = [
    ("docs/limits.md", r"distinct stacks in a period \| ([\d,]+)", "src/profile/aggregator.hpp", "stacks"),
    ("docs/limits.md", r"At most ([\d,]+) frames", "src/unwind/unwinder.hpp", "kMaxFrames"),
    ("docs/limits.md", r"Remembered for completion: ([\d,]+) threads", "src/session/stack_builder.cpp", "kMaxDeepThreads"),
    ("docs/limits.md", r"distinct unwind rules \| ([\d,]+)", "src/wire/unwind_table.h", "DDPROF_MAX_UNWIND_RULES"),
    ("docs/limits.md", r"segments, sections \| ([\d,]+),", "src/elf/elf_file.hpp", "kMaxSegments"),
    ("docs/limits.md", r"segments, sections \| [\d,]+, ([\d,]+)", "src/elf/elf_file.hpp", "kMaxSections"),
    ("docs/limits.md", r"profiles in a directory \| ([\d,]+)", "src/export/profile_folder.hpp", "files"),
    ("docs/files.md", r"the newest ([\d,]+) files", "src/export/profile_folder.hpp", "files"),
    ("docs/getting_started.md", r"The newest ([\d,]+) profiles", "src/export/profile_folder.hpp", "files"),
]


def pages():
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def tracked():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return listed.stdout.split("\n")[:-1]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and "build" not in path.parts]


class Code:
    def __init__(self):
        self.files = tracked()
        texts = [path for path in self.files if re.search(rf"\.({CODE_ENDINGS}|txt|json)$|^bench/|^tools/|Makefile", path) and not path.startswith("docs/")]
        self.words = set()
        for path in texts:
            try:
                self.words.update(re.findall(r"\w+", (ROOT / path).read_text()))
            except (UnicodeDecodeError, OSError):
                pass

    def has_file(self, name):
        """`src/elf/load.hpp`, `elf/load.hpp`, `load.hpp`, `session/source_reader` (its two files), with * for any letters."""
        pattern = re.escape(name.rstrip("/")).replace(r"\*", "[^/]*")
        return any(re.search(rf"(^|/){pattern}($|/|\.\w+$)", path) for path in self.files)


def cited(text):
    """What stands in backticks outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def problems_of(page, code):
    text = page.read_text()
    for word in cited(text):
        if re.fullmatch(rf"[\w./*-]+\.({CODE_ENDINGS})", word) or re.fullmatch(r"(src|tests|tools|bench|docs|packaging)/[\w./*-]+", word):
            if not code.has_file(word) and not pathlib.Path("/usr/include", word).exists():
                yield f"there is no file {word}"
            continue
        name = re.fullmatch(r"([A-Z]\w*|\w+)((?:::\w+)+)(\(\))?", word)
        function = re.fullmatch(r"([a-z]+_[a-z_0-9]+)\(\)", word)
        if name and name.group(1)[0].isupper():
            for part in re.split("::", word.rstrip("()")):
                if part not in code.words:
                    yield f"{word}: there is no {part} in the code"
        elif function and function.group(1) not in code.words and not is_of_the_system(function.group(1)):
            yield f"{word}: there is no such function in the code"


def is_of_the_system(name):
    return subprocess.run(["sh", "-c", f"grep -rqsw {name} /usr/include/linux /usr/include/asm-generic /usr/include/unistd.h"]).returncode == 0


def value_of(path, name):
    """The number that a constant is set to: digits, shifts and products."""
    text = (ROOT / path).read_text()
    found = re.search(rf"\b{name}\s*=\s*([^;,/]+)", text) or re.search(rf"#define {name} (.+)", text)
    if not found:
        return None
    expression = re.sub(r"std::\w+\{(\w+)\}", r"\1", found.group(1)).replace("'", "")
    expression = re.sub(r"(\d)[UuLl]+", r"\1", expression).strip()
    return eval(expression) if re.fullmatch(r"[\d\s<*+()]+", expression) else None  # digits and operators only


def limit_problems():
    for page, around, path, name in LIMITS:
        told = re.search(around, (ROOT / page).read_text())
        value = value_of(path, name) if (ROOT / path).exists() else None
        if not told:
            yield f"{page}: nothing there reads {around}"
        elif value is None:
            yield f"{page}: {path} has no number {name}"
        elif int(told.group(1).replace(",", "")) != value:
            yield f"{page}: {told.group(0)}, but {name} in {path} is {value}"


def enum_problems():
    """Every way in which a stack can end has a row in the page about it."""
    members = re.search(r"enum class StopReason[^{]*\{(.*?)\};", (ROOT / "src/base/frame.hpp").read_text(), re.S).group(1)
    text = (ROOT / "docs/unwinding.md").read_text()
    for member in re.findall(r"^  (\w+),", members, re.M):
        if f"| `{member}` |" not in text:
            yield f"docs/unwinding.md: no row for {member}"


def main():
    code = Code()
    problems = [f"{page.relative_to(ROOT)}: {problem}" for page in pages() for problem in problems_of(page, code)]
    problems += [*limit_problems(), *enum_problems()]
    print("\n".join(problems))
    print(f"{len(pages())} pages, {len(LIMITS)} limits, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
