"""Reads changed copies of real files with every parser, in a worker's limits, for so many seconds:
`soak.py READ_ALL SECONDS FILE...`. Prints what ended, hung or took too much, and keeps that file."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import make_files

BATCH = 400
SECONDS_PER_FILE = 2


def read_batch(read_all, paths):
    """Lines of the files that were read, and what ended the reader, if anything did."""
    try:
        result = subprocess.run([read_all, "--seconds", str(SECONDS_PER_FILE)], input="\n".join(paths) + "\n", stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600, check=False)
        return result.stdout.splitlines(), result.returncode
    except subprocess.TimeoutExpired as hung:
        return (hung.stdout or b"").decode(errors="replace").splitlines(), "hung"


def main(read_all, seconds, *files):
    sources = [open(file, "rb").read() for file in files]
    end, seed, read, slowest, bad = time.monotonic() + float(seconds), int(time.time()), 0, 0.0, 0
    folder = tempfile.mkdtemp(prefix="soak_")
    while time.monotonic() < end:
        paths = []
        for number, content in make_files.mutants(sources, seed, BATCH):
            paths.append(os.path.join(folder, "mutant%d" % number))
            with open(paths[-1], "wb") as file:
                file.write(content)
        lines, status = read_batch(read_all, paths)
        for line in lines:
            name, _, rest = line.partition(": ")
            if " s" in rest:
                slowest = max(slowest, float(rest.split()[0]))
            if "SLOW" in rest or "OUT OF MEMORY" in rest or " s" not in rest:
                bad += 1
                print(line, status, flush=True)
                shutil.copy(name, os.getcwd())
        read, seed = read + len(lines), seed + BATCH
        for path in paths:
            os.unlink(path)
    os.rmdir(folder)
    print("%d files, the slowest took %.3f s, %d failed" % (read, slowest, bad))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
