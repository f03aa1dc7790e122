#!/usr/bin/env python3
"""Holds every #include to the dependencies that its module declares in CMake, and the declarations to the levels.

A module is a directory with a ddprof_module(NAME DEPENDS ...) call. An include of another module's header must be
declared, and a declared dependency must be used and sit on a lower level. Tests may also use what TEST_DEPENDS declares.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

LEVELS = {
    "wire": 0, "base": 0,
    "elf": 1, "proto": 1, "net": 1,
    "unwind": 2, "symbol_dwarf": 2, "symbol": 2, "process": 2, "profile": 2,
    "collect": 3, "collect_bpf": 3, "collect_heap": 3, "collect_perf": 3, "collect_replay": 3, "collect_engines": 3, "encode": 3, "unwind_oracle": 3, "debugfile": 3,
    "import": 4, "report": 4, "export": 4,
    "session": 5,
    "runtime": 6, "doctor": 6,
    "cli": 7, "inject": 7,
}
# An engine is a folder of collect, one step above the interface that it implements, and below the table of engines.
WITHIN_LEVEL = {
    ("collect_perf", "collect"), ("collect_perf", "collect_bpf"), ("collect_replay", "collect"), ("collect_heap", "collect"),
    ("collect_engines", "collect"), ("collect_engines", "collect_heap"), ("collect_engines", "collect_perf"), ("collect_engines", "collect_replay"),
}
# What no other module than these may depend on. (Tests may.)
LEAVES = {"import": {"cli"}, "inject": set()}
# Built in its own way: the library that is loaded into the target shares nothing with the program but layouts.
STANDALONE = {"inject": ("inject", {"wire"}, {"base"})}


# Modules that get bytes and make no system calls, and what would make some. The process module names files of /proc in one place.
PURE = {"elf", "unwind", "symbol", "symbol_dwarf", "profile", "encode", "encode_proto", "report"}
SYSTEM = re.compile(r'\s*#include (<(fcntl|unistd|dirent|poll|sched|sys/.*)\.h>|<(fstream|filesystem|thread)>|"base/(read_file|output_file|private_folder|foreign_file|unique_fd)\.hpp")')
PROC_NAMES = "src/process/proc_files.cpp"


def declared_modules():
    modules = dict(STANDALONE)
    for cmake in SRC.rglob("CMakeLists.txt"):
        call = re.search(r"ddprof_module\((\w+)([^)]*)\)", cmake.read_text())
        if not call:
            continue
        words, current, groups = call.group(2).split(), None, {}
        for word in words:
            if word.isupper() and word in {"DEPENDS", "LIBRARIES", "TEST_LIBRARIES", "TEST_DEPENDS"}:
                current = word
            else:
                groups.setdefault(current, set()).add(word)
        folder = cmake.parent.relative_to(SRC).as_posix()
        modules[folder] = (call.group(1), groups.get("DEPENDS", set()), groups.get("TEST_DEPENDS", set()))
    return modules


def main():
    modules = declared_modules()
    by_folder = {folder: name for folder, (name, _, _) in modules.items()}
    problems, used = [], {name: set() for name in by_folder.values()}
    for folder, (name, depends, _) in modules.items():
        if name not in LEVELS:
            problems.append(f"src/{folder}/CMakeLists.txt: module {name} has no level in tools/check_layering.py")
            continue
        for dependency in sorted(depends):
            if name not in LEAVES.get(dependency, {name}):
                problems.append(f"src/{folder}/CMakeLists.txt: {name} may not depend on {dependency}: it is a leaf")
            if LEVELS.get(dependency, 99) >= LEVELS[name] and (name, dependency) not in WITHIN_LEVEL:
                problems.append(f"src/{folder}/CMakeLists.txt: {name} may not depend on {dependency}: not a lower level")
    for source in sorted([*SRC.rglob("*.cpp"), *SRC.rglob("*.hpp"), *SRC.rglob("*.h")]):
        folder = source.parent.relative_to(SRC).as_posix()
        name, depends, test_depends = modules.get(folder, (None, set(), set()))
        if name is None:
            problems.append(f"{source.relative_to(ROOT)}: not in a module")
            continue
        is_test = re.search(r"_(test|bench|fuzz|main)\.cpp$", source.name)
        allowed = depends | {name} | (test_depends if is_test else set())
        is_helper = is_test or re.search(r"_(fixture|bytes|scene|nest|capture)\.hpp$", source.name)
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if name in PURE and not is_helper and SYSTEM.match(line):
                problems.append(f"{source.relative_to(ROOT)}:{number}: {name} makes no system calls")
            if name == "process" and not is_helper and '"/proc' in line.split("// ")[0] and str(source.relative_to(ROOT)) != PROC_NAMES:
                problems.append(f"{source.relative_to(ROOT)}:{number}: files of /proc are named in {PROC_NAMES} alone")
            include = re.match(r'\s*#include "([^"]+)/[^/"]+"', line)
            if not include:
                continue
            target = by_folder.get(include.group(1))
            if not is_test:
                used[name].add(target)
            if target is None:
                problems.append(f"{source.relative_to(ROOT)}:{number}: include of unknown module {include.group(1)}")
            elif target not in allowed:
                problems.append(f"{source.relative_to(ROOT)}:{number}: {name} does not declare a dependency on {target}")
    for folder, (name, depends, _) in modules.items():
        for dependency in sorted(depends - used[name]):
            problems.append(f"src/{folder}/CMakeLists.txt: {name} declares a dependency on {dependency} and includes nothing of it")
    for problem in problems:
        print(problem)
    print(f"layering: {len(modules)} modules, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
