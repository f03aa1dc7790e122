#!/usr/bin/env python3
"""Every system header and library that the release build read comes with the packages that tools/bootstrap.sh installs for it.

Otherwise the build works here, where more is installed, and fails on a fresh machine. Headers are in ninja's dependency log;
libraries, archives and start files are what the linker opens when the link line is run again with --trace. Each must belong to a
package of the `build` list or to one that these depend on. `--without PACKAGE` takes one from the list, to see that the check fails.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build" / "release"


def output_of(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True).stdout


def headers_read():
    """Paths outside of the repository in the dependency log; what ninja calls stale is of an earlier configuration."""
    found, is_valid = set(), False
    for line in output_of("ninja", "-C", str(BUILD), "-t", "deps").splitlines():
        if line.startswith("    "):
            path = line.strip()
            if is_valid and path.startswith("/") and not path.startswith(str(REPOSITORY) + "/"):
                found.add(path)
        elif line:
            is_valid = line.endswith("(VALID)")
    return found


def files_linked():
    """What the linker opens for the binary, start files and parts of the compiler included."""
    line = output_of("ninja", "-C", str(BUILD), "-t", "commands", "ddprof").splitlines()[-1]
    with tempfile.TemporaryDirectory() as folder:
        traced, count = re.subn(r" -o ddprof ", " -o %s/ddprof -Wl,--trace " % folder, line)
        if count != 1:
            sys.exit("check_packages: not a link line: " + line)
        opened = output_of("sh", "-c", traced, cwd=BUILD)
    # An archive's members follow its name in parentheses, or in newer linkers the name alone is printed.
    return {name for name in (row.split("(")[0].strip() for row in opened.splitlines()) if name.startswith("/")}


class Installed:
    """The packages of this machine: what each depends on and provides."""

    def __init__(self):
        self.depends, self.providers = {}, {}
        form = "${Package}\t${db:Status-Status}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
        for row in output_of("dpkg-query", "-W", "-f", form).splitlines():
            name, status, provides, depends = row.split("\t")
            if status != "installed":
                continue
            self.depends[name] = [self.names(part.split("|")) for part in depends.split(",")]
            for virtual in self.names(provides.split(",")):
                self.providers.setdefault(virtual, []).append(name)

    @staticmethod
    def names(parts):
        """Without versions and architectures: "libc6-dev:amd64 (>= 2.36)" is libc6-dev."""
        return [re.split(r"[\s:(]", part.strip())[0] for part in parts if part.strip()]

    def satisfying(self, alternatives):
        """The first alternative that is installed, as apt takes the first that it can install."""
        for name in alternatives:
            if name in self.depends:
                return [name]
            if name in self.providers:
                return self.providers[name]
        return []

    def closure(self, roots):
        reached, waiting = set(), list(roots)
        while waiting:
            name = waiting.pop()
            if name in reached or name not in self.depends:
                continue
            reached.add(name)
            for alternatives in self.depends[name]:
                waiting += self.satisfying(alternatives)
        return reached


def merged(path):
    """One spelling for /lib/x and /usr/lib/x, which are one file on a merged system."""
    return re.sub(r"^/(lib|lib32|lib64|libx32|bin|sbin)/", r"/usr/\1/", path)


def files_of(packages):
    """Each file with its package."""
    owners, folder = {}, pathlib.Path("/var/lib/dpkg/info")
    for listing in folder.glob("*.list"):
        package = listing.stem.split(":")[0]
        if packages is None or package in packages:
            owners.update((merged(path), package) for path in listing.read_text().splitlines())
    return owners


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", action="append", default=[], metavar="PACKAGE", help="as if the list did not name it")
    arguments = parser.parse_args()
    if not shutil.which("dpkg-query"):
        print("no packages of Debian here")
        return 77

    wanted = [name for name in output_of(str(REPOSITORY / "tools" / "bootstrap.sh"), "--list", "build").split()
              if name not in arguments.without]
    closure = Installed().closure(wanted)
    owners = files_of(None)
    files = headers_read() | files_linked()
    if len(files) < 100:
        sys.exit("check_packages: only %d files: is build/release built?" % len(files))

    strangers = {}
    for path in sorted(files):
        # A link and what it leads to may be of two packages: both are needed.
        spellings = {merged(path), merged(str(pathlib.Path(path).resolve()))}
        packages = {owners[spelling] for spelling in spellings if spelling in owners}
        for package in packages - closure if packages else {"no package"}:
            strangers.setdefault(package, []).append(path)
    for package, paths in sorted(strangers.items()):
        print("%s is not in the build list of tools/bootstrap.sh, nor needed by what is: %s%s"
              % (package, ", ".join(paths[:3]), " and %d more" % (len(paths) - 3) if len(paths) > 3 else ""))
    print("%d files of %d packages" % (len(files), len({owners.get(merged(path)) for path in files})))
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main())
