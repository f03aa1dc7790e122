"""Code whose file is hard to find: other mount namespaces, deleted, replaced and rewritten files, files that never had a name."""

import os
import shutil
import subprocess
import sys
import unittest

import harness

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static inline void inlined_into_%(name)s(void) { for (int i = 0; i < 100000; ++i) sink += i * 2654435761UL; }
__attribute__((noinline)) void work_of_%(name)s(void) { inlined_into_%(name)s(); __asm__ volatile(""); }
int main(int argc, char** argv) {
  puts("ready");
  fflush(stdout);
  while ((double)clock() / CLOCKS_PER_SEC < atof(argv[argc - 1])) work_of_%(name)s();
}
"""


class Places(harness.SystemTest):
    @classmethod
    def program(cls, name):
        """A program whose functions and source file have `name` in their names."""
        path, source = cls.path(name), cls.path(name + ".c")
        if not os.path.exists(path):
            with open(source, "w") as file:
                file.write(SOURCE % {"name": name})
            subprocess.run(["gcc", "-O2", "-g", "-o", path, source], check=True)
        return path

    def start(self, path, seconds="30"):
        target = subprocess.Popen([path, seconds], stdout=subprocess.PIPE, text=True)
        self.addCleanup(target.communicate)
        self.addCleanup(target.kill)
        target.stdout.readline()
        return target

    def attach(self, target):
        path = self.path("%d.pb.gz" % next(self.numbers))
        result = self.ddprof("-p", str(target.pid), "-d", "1", "-F", "499", "-O", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def assert_named(self, recording, name, seconds=1):
        self.assert_sampled(recording, seconds * 499, "work_of_" + name)
        self.assert_sampled(recording, seconds * 499, "inlined_into_" + name)
        files = {os.path.basename(call.file) for location in recording.profile.locations for call in location.calls
                 if call.name in ("work_of_" + name, "inlined_into_" + name)}
        self.assertEqual(files, {name + ".c"})

    @harness.needs_root
    def test_two_files_of_one_path_in_two_mount_namespaces(self):
        place = self.path("place")
        os.makedirs(place, exist_ok=True)
        parts = []
        for name in ("first", "second"):
            folder = self.path("root_of_" + name)
            os.makedirs(folder, exist_ok=True)
            shutil.copy2(self.program(name), os.path.join(folder, "program"))
            parts.append("unshare -m sh -c 'mount --bind %s %s && exec %s/program 1' & " % (folder, place, place))
        recording = self.record(["sh", "-c", "".join(parts) + "wait"], ["-F", "499"])
        self.assert_named(recording, "first")
        self.assert_named(recording, "second")

    @harness.needs_root
    def test_a_program_in_another_root(self):
        """Nothing of the program is where its path says, for us: everything is found through the target."""
        root = self.path("jail")
        for folder in ("app", "lib64", "lib/x86_64-linux-gnu", "proc"):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
        shutil.copy2(self.program("jailed"), os.path.join(root, "app", "jailed"))
        for library in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
            shutil.copy2(os.path.realpath(library), root + library)
        subprocess.run(["objcopy", "--only-keep-debug", "app/jailed", "app/jailed.debug"], cwd=root, check=True)
        subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=app/jailed.debug", "app/jailed"], cwd=root, check=True)
        recording = self.record(["chroot", root, "/app/jailed", "1"], ["-F", "499"])
        self.assert_named(recording, "jailed")

    def test_a_deleted_program(self):
        path = self.path("soon_gone")
        shutil.copy2(self.program("deleted"), path)
        target = self.start(path)
        os.unlink(path)
        self.assert_named(self.attach(target), "deleted")

    def test_a_replaced_program(self):
        path = self.path("soon_another")
        shutil.copy2(self.program("replaced"), path)
        target = self.start(path)
        shutil.copy2(self.program("replacement"), path + ".new")
        os.rename(path + ".new", path)
        recording = self.attach(target)
        self.assert_named(recording, "replaced")
        self.assertEqual(recording.count("work_of_replacement"), 0)

    def test_a_program_that_never_had_a_path(self):
        script = ("import os, sys\n"
                  "fd = os.memfd_create('nameless', 0)\n"
                  "os.write(fd, open(sys.argv[1], 'rb').read())\n"
                  "os.execve(fd, ['nameless', '1'], {})\n")
        recording = self.record([sys.executable, "-c", script, self.program("nameless")], ["-F", "499"])
        self.assert_named(recording, "nameless")

    def test_a_library_written_over_while_it_is_profiled(self):
        """What the file says afterwards is not believed: no names are better than wrong ones."""
        library, path = self.path("rewritten.so"), self.path("rewritten.pb.gz")
        shutil.copy2(self.puppet("plugin.so"), library)
        profiler = subprocess.Popen([self.binary, "record", "-F", "499", "-O", path, "--", self.puppet("dlopen_user"), library, "1"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(profiler.kill)
        harness.wait_for(lambda: any(library in harness.read_text("/proc/%d/maps" % pid) for pid in harness.processes_of(self.binary)),
                         10, "the profiler to open the library")
        offset, size = harness.section_range(library, ".note.gnu.build-id")
        with open(library, "r+b") as file:  # the code stays as it is, or the target would not survive
            file.seek(offset + size - 4)
            file.write(b"\0\0\0\0")
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        self.assertIn("written over", stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        names = {call.name for location in recording.profile.locations if location.mapping and location.mapping.path == library
                 for call in location.calls}
        self.assertTrue(names)
        for name in names:
            self.assertRegex(name, r"^rewritten\.so\+0x")


if __name__ == "__main__":
    unittest.main()
