#!/usr/bin/env python3
"""Measures what ddprof costs, beside its peers, prints one table of ratios and writes docs/overhead.md.

Each measurement is a function that takes a Bench and returns rows, or Findings; its docstring is what the page says about them."""

import argparse
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import allocations  # noqa: E402
import bursts  # noqa: E402
import headroom  # noqa: E402
import many  # noqa: E402
import measure  # noqa: E402
import memory  # noqa: E402
import micro  # noqa: E402
import names  # noqa: E402
import own_cost  # noqa: E402
import report  # noqa: E402
import report_command  # noqa: E402
import slow_down  # noqa: E402
import storms  # noqa: E402
import upload  # noqa: E402

MEASUREMENTS = (
    ("unwinding", "Unwinding", micro.unwinding),
    ("aggregation", "Aggregation", micro.aggregation),
    ("tables", "Unwind tables", micro.tables),
    ("encoding", "Encoding", micro.encoding),
    ("upload", "Upload", upload.upload),
    ("end_to_end", "A whole run", own_cost.end_to_end),
    ("steady_state", "Steady state", own_cost.steady_state),
    ("start", "Start", own_cost.start),
    ("end", "End", own_cost.end),
    ("idle", "Idle", own_cost.idle),
    ("slow_down", "Slow-down", slow_down.slow_down),
    ("allocations", "Allocations", allocations.allocations),
    ("headroom", "Headroom", headroom.headroom),
    ("many", "Many processes", many.many),
    ("bursts", "Bursts", bursts.bursts),
    ("storms", "Storms", storms.storms),
    ("large_program", "Memory", memory.large_program),
    ("names", "Names", names.names),
    ("report", "Reading a profile", report_command.million_samples),
    ("growth", "Growth", memory.growth),
)


def build():
    def step(*command):
        subprocess.run(command, cwd=measure.ROOT, check=True, stdout=subprocess.DEVNULL)

    jobs = str(os.cpu_count())
    step("cmake", "--preset", "release")
    step("cmake", "--build", "--preset", "release", "-j", jobs, "--target", "ddprof")
    step("cmake", "--preset", "bench")
    step("cmake", "--build", "--preset", "bench", "-j", jobs, "--target", "bench_programs")


def parse(arguments):
    names = [name for name, _, _ in MEASUREMENTS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about a minute, for trying; does not write docs/overhead.md")
    parser.add_argument("--long", action="store_true", help="1,000 periods for the growth of memory, 17 minutes more")
    parser.add_argument("--only", metavar="NAME", choices=names, action="append", help="only this: %(choices)s")
    parser.add_argument("--write", action="store_true", help="write docs/overhead.md also after --only: the sections that were measured")
    parser.add_argument("--no-build", action="store_true", help="measure what is built")
    return parser.parse_args(arguments)


def run_one(bench, name, title, measurement):
    print("measuring %s" % name, file=sys.stderr, flush=True)
    before = time.monotonic()
    try:
        found = measurement(bench)
    except (RuntimeError, AssertionError, OSError, KeyError, subprocess.CalledProcessError) as error:
        print("  failed: %s" % error, file=sys.stderr)
        found = [report.Row(title, "could not be measured", met=False)]
    print("  %.0f s" % (time.monotonic() - before), file=sys.stderr)
    return found if isinstance(found, report.Findings) else report.Findings(found, "")


def write_page(measured):
    path = os.path.join(measure.ROOT, "docs", "overhead.md")
    sections = {}
    if os.path.exists(path):
        with open(path) as file:
            sections = report.sections_of(file.read())
    sections.update(measured)
    with open(path, "w") as file:
        file.write(report.document(sections, [name for name, _, _ in MEASUREMENTS]))
    print("\nwritten: docs/overhead.md")


def main():
    options = parse(sys.argv[1:])
    if not options.no_build:
        build()
    bench = measure.Bench(options.quick, options.long)
    rows, conclusions, sections = [], [], {}
    try:
        for name, title, measurement in MEASUREMENTS:
            if options.only and name not in options.only:
                continue
            when = report.circumstances()
            found = run_one(bench, name, title, measurement)
            rows += found.rows
            conclusions += [found.conclusion] if found.conclusion else []
            sections[name] = report.section(name, title, measurement.__doc__, when, found)
    finally:
        bench.close()
    print("\n\n".join([report.text_table(rows), *conclusions]))
    if options.write or not (options.quick or options.only):
        write_page(sections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
