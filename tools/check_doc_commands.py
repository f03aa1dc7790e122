#!/usr/bin/env python3
"""Every `ddprof ...` command line in README.md and docs/ uses options that the option table knows."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def known_options():
    text = (ROOT / "docs/commands.md").read_text()
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text))


def main():
    known = known_options()
    problems, lines = [], 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"```(?:sh|console|bash)?\n(.*?)```", page.read_text(), re.S):
            for line in block.splitlines():
                words = re.match(r"\s*(?:\$ )?(?:sudo )?(?:build/release/)?ddprof\s+(.*)", line)
                if not words:
                    continue
                lines += 1
                own = re.split(r"\s(?:--|\./)", " " + words.group(1) + " ")[0]
                for word in re.findall(r"(?<=\s)(--?[a-zA-Z][\w-]*)", own):
                    if word not in known and word.replace("_", "-") not in known:
                        problems.append(f"{page.relative_to(ROOT)}: {line.strip()}: unknown option {word}")
    print("\n".join(problems))
    print(f"{lines} command lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
