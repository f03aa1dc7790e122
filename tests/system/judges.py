"""The npm packages of tests/formats: programs of others that read what ddprof writes, or send what it sends."""

import fcntl
import json
import os
import shutil
import subprocess
import unittest

import harness

SOURCES = os.path.join(harness.REPOSITORY, "tests", "formats")


def installed():
    """The folder with the packages, installed when they are missing or others. Tests that run at the same time take turns."""
    folder = os.path.join(harness.REPOSITORY, "build", "formats")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(folder)
    return folder


def install(folder):
    lock, stamp = os.path.join(SOURCES, "package-lock.json"), os.path.join(folder, "installed")
    if os.path.exists(stamp) and harness.read_text(stamp) == harness.read_text(lock):
        return
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is not installed")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy2(os.path.join(SOURCES, name), folder)
    result = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
    if result.returncode != 0:
        raise unittest.SkipTest("npm could not install the judges: %s" % result.stdout.strip().splitlines()[-1])
    shutil.copy2(lock, stamp)


def node(script, *arguments):
    """What a script of tests/formats prints."""
    command = ["node", os.path.join(SOURCES, script), *arguments]
    result = subprocess.run(command, cwd=installed(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE)
    if result.returncode != 0:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout


def read_pprof(path):
    """A pprof that is not compressed, as npm's pprof-format understands it."""
    return json.loads(node("read_pprof.mjs", path))


def assert_pprof_format_agrees(test, path, profile):
    """On every value, label, name and address of a profile that tests/system/pprof.py has read."""
    seen = read_pprof(path)
    test.assertEqual(seen["types"], profile.types)
    test.assertEqual(int(seen["period"]), profile.period)
    test.assertEqual(len(seen["samples"]), len(profile.samples))
    for theirs, ours in zip(seen["samples"], profile.samples):
        test.assertEqual([int(value) for value in theirs["values"]], ours.values)
        test.assertEqual({key: str(value) for key, value in ours.labels.items()}, dict(theirs["labels"]))
        names = [line["name"] for location in theirs["stack"] for line in location["lines"]]
        # A location without a name has its address for one.
        test.assertEqual(names, [name for name in ours.stack if not name.startswith("0x")])
        test.assertEqual([int(location["address"]) for location in theirs["stack"]], ours.addresses)


def go_raw(path, folder):
    """All that Go's pprof has read. It may keep things in the folder."""
    if not shutil.which("go"):
        raise unittest.SkipTest("go is not installed")
    result = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-raw", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=harness.PATIENCE, env=dict(os.environ, HOME=folder, GOCACHE=folder, GOFLAGS=""))
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


def go_top(path, folder):
    """What `go tool pprof -top` prints."""
    if not shutil.which("go"):
        raise unittest.SkipTest("go is not installed")
    result = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-top", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=harness.PATIENCE, env=dict(os.environ, HOME=folder, GOCACHE=folder, GOFLAGS=""))
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


def go_values(raw):
    """The values of each sample."""
    values = []
    for line in raw.split("Samples:\n")[1].split("Locations\n")[0].splitlines()[1:]:
        numbers, colon, _ = line.partition(":")
        if colon and numbers.strip() and all(word.lstrip("-").isdigit() for word in numbers.split()):
            values.append([int(word) for word in numbers.split()])
    return values
