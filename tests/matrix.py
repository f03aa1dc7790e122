#!/usr/bin/env python3
"""Prints how many stacks reach their thread's root, for programs of all kinds, and by what reason the rest do not.

One row is one program, recorded once. A stack counts as complete when it carries no [truncated …] frame and its outermost
frame is a place where threads begin: by name, or in stripped files by being the file's entry point or in libc. Ends with status 1 when a row is below
99.5 %, 2 when a program could not be recorded at all."""

import argparse
import collections
import concurrent.futures
import functools
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "system"))
import matrix_rows  # noqa: E402
import pprof  # noqa: E402

FEW_SAMPLES = 100
# Where threads begin: the entry of a program, of the dynamic loader, of a thread, of a goroutine, of a kernel thread, of a context.
ROOTS = re.compile(r"^(_start|_dl_start\w*|__libc_start_main\S*|__libc_start_call_main|_?_?clone3?|start_thread|thread_start"
                   r"|runtime\.(goexit|mstart|rt0_go|clone|mcall|systemstack|morestack|sigtramp|asmcgocall)\S*|_rt0_\w+|ret_from_fork\w*|libc_start_main_stage2|__start_context|first_of_stack|make_fcontext)(@|\.|$|\+)")
UNNAMED = re.compile(r"\+0x[0-9a-f]+$|^0x[0-9a-f]+$")
SYSTEM_LIBRARY = re.compile(r"/(libc\.so(\.6)?|ld-(linux|musl)[^/]*)$")  # clone3, start_thread and _dl_start are local symbols there
ENTRY_BYTES = 64  # _start is shorter

Result = collections.namedtuple("Result", "samples complete reasons")


@functools.lru_cache(maxsize=None)
def entry_offset(path):
    """The place in an ELF file where the program begins."""
    with open(path, "rb") as file:
        data = file.read(4096)
    entry, table = struct.unpack_from("<QQ", data, 24)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == 1 and address <= entry < address + length:
            return entry - address + offset
    raise ValueError("%s: the entry point is in no segment" % path)


def places_of_roots(path):
    """Where threads begin in a program with symbols that is loaded where it was linked."""
    places = []
    for line in subprocess.run(["nm", "-S", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 4 and ROOTS.match(parts[3]):
            places.append(range(int(parts[0], 16), int(parts[0], 16) + int(parts[1], 16)))
    return places


def begins_a_thread(sample, places):
    if not sample.stack:
        return False
    if ROOTS.match(sample.stack[-1]) or any(sample.addresses[-1] in place for place in places):
        return True
    mapping = sample.mappings[-1]
    if not UNNAMED.search(sample.stack[-1]) or mapping is None or not os.path.isfile(mapping.path):
        return False
    if SYSTEM_LIBRARY.search(mapping.path):
        return True
    return 0 <= sample.addresses[-1] - mapping.start + mapping.offset - entry_offset(mapping.path) < ENTRY_BYTES


def judge(profile, places):
    """Counts samples by how their stack ends."""
    column = profile.types.index("samples/count")
    samples, complete, reasons = 0, 0, collections.Counter()
    for sample in profile.samples:
        if pprof.find_frame(sample, pprof.ACCOUNTED):
            continue
        count = sample.values[column]
        samples += count
        marker = pprof.find_frame(sample, pprof.STOPPED)
        root = sample.stack[-1] if sample.stack else "(no frames)"
        if marker:
            reasons[marker] += count
        elif begins_a_thread(sample, places):
            complete += count
        else:
            reasons["ends at %s" % root] += count  # without a marker: this is worse than a marker
    return Result(samples, complete, reasons)


def record(binary, command, during, folder, frequency):
    path = os.path.join(folder, "profile.pb.gz")
    if os.path.exists(path):
        os.unlink(path)
    line = [binary, "record", "-F", str(frequency), "-O", path, "--", *command]
    with open(os.path.join(folder, "stderr"), "w+") as stderr:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, cwd=folder)
        try:
            if during:
                during(folder)
            process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()
        stderr.seek(0)
        if process.returncode != 0 or not os.path.exists(path):
            raise RuntimeError("%s ended with %d\n%s" % (" ".join(line)[:300], process.returncode, stderr.read()[-2000:]))
    profile = pprof.read(path)
    for pid in {sample.labels.get("pid") for sample in profile.samples}:  # node's perf maps
        if os.path.exists("/tmp/perf-%s.map" % pid):
            os.unlink("/tmp/perf-%s.map" % pid)
    return profile


def describe(reasons, samples):
    return "; ".join("%.2f %% %s" % (100 * count / samples, reason) for reason, count in reasons.most_common(3))


def run_row(row, options, folder):
    command = [part.replace("{folder}", folder) for part in row.command]
    if row.build:
        command.insert(0, row.build())
    places = places_of_roots(row.twin()) if row.twin else []
    for _ in range(options.tries):
        result = judge(record(options.binary, command, row.during, folder, options.frequency), places)
        share = result.complete / result.samples if result.samples else 0.0
        fine = 100 * share >= options.threshold and result.samples >= FEW_SAMPLES
        if fine:
            break
    note = describe(result.reasons, result.samples) if result.samples else "no samples"
    if 0 < result.samples < FEW_SAMPLES:
        note = "too few samples to tell; " + note
    verdict = "ok" if fine else "FAIL" if row.required else "(low)"
    print("%-38s %8d %9.2f %%  %-5s %s" % (row.name, result.samples, 100 * share, verdict, note), flush=True)
    return fine or not row.required


def build_all(rows):
    """Compiles what is missing on all CPUs before anything is measured. Errors surface when the row is run."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(row.build) for row in rows if row.build]:
            future.exception()


def parse_arguments():
    repository = os.path.dirname(HERE)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a subset that takes a minute or two")
    parser.add_argument("--threshold", type=float, default=99.5, help="percent of stacks that must reach the root (default 99.5)")
    parser.add_argument("--tries", type=int, default=1, help="record a program that is below the threshold again, so many times in all (default 1)")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each program (default 2)")
    parser.add_argument("--frequency", type=int, default=199, help="samples per second of CPU time (default 199)")
    parser.add_argument("--binary", default=os.environ.get("DDPROF_BINARY") or os.path.join(repository, "build", "release", "ddprof"))
    parser.add_argument("--build-folder", default=os.path.join(repository, "build", "matrix"))
    return parser.parse_args()


def main():
    options = parse_arguments()
    options.binary = os.path.abspath(options.binary)
    rows = [row for row in matrix_rows.all_rows(matrix_rows.Builder(options.build_folder), options.seconds)
            if re.search(options.only, row.name) and (row.quick or not options.quick)]
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    skipped = [(row, matrix_rows.missing_programs(row)) for row in rows if matrix_rows.missing_programs(row)]
    rows = [row for row in rows if not matrix_rows.missing_programs(row)]
    build_all(rows)
    status, good = 0, 0
    print("%-38s %8s %11s  %-5s %s" % ("program", "samples", "to the root", "", "the rest"))
    with tempfile.TemporaryDirectory(prefix="ddprof_matrix_") as folder:
        matrix_rows.prepare_inputs(folder, options.seconds)
        for row in rows:
            try:
                fine = run_row(row, options, folder)
            except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
                print("%-38s could not be recorded: %s" % (row.name, error), flush=True)
                status, fine = 2, False
            good += fine
            status = status or (0 if fine else 1)
    for row, missing in skipped:
        print("%-38s skipped: %s not installed" % (row.name, ", ".join(missing)))
    print("%d of %d rows at %.1f %% or above, or not required; %d skipped" % (good, len(rows), options.threshold, len(skipped)))
    return status


if __name__ == "__main__":
    sys.exit(main())
