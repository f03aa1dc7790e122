"""What is gone when the profiler looks: programs replaced by exec, ended processes, unloaded and deleted libraries."""

import collections
import os
import shutil
import unittest

import harness


class ShortLived(harness.SystemTest):
    def test_names_follow_fork_and_exec(self):
        recording = self.record([self.puppet("exec_chain"), "200", self.puppet("split"), "1", "0.2"], ["-F", "499"])
        names, pids = collections.defaultdict(set), collections.defaultdict(set)
        for sample in recording.samples():
            for function in ("burn_before_exec", "burn_in_forked", "spend_70"):
                if recording.has(sample, function):
                    names[function].add(sample.labels[harness.PROCESS_NAME])
                    pids[function].add(sample.labels[harness.PROCESS_ID])
        self.assertEqual(names, {"burn_before_exec": {"before-exec"}, "burn_in_forked": {"forked"}, "spend_70": {"split"}})
        self.assertEqual(pids["spend_70"], pids["burn_before_exec"] | pids["burn_in_forked"])
        self.assertEqual(len(pids["spend_70"]), 2)

    def test_events_are_not_sent_to_their_rings_again_at_the_end(self):
        """Each time would cost a grace period of the kernel, some 13 ms, for every CPU."""
        log = self.path("outputs")
        environment = dict(self.environment(), LD_PRELOAD=self.puppet("output_log.so"), OUTPUT_LOG=log)
        result = self.run_command([self.binary, "record", "-O", self.path("true.pb.gz"), "--", "true"], env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = harness.read_text(log).splitlines()
        self.assertIn("set output", lines)
        worker = len(lines) - lines[::-1].index("fork")  # the last one to be forked
        self.assertEqual(lines[worker:], [])
        self.assertEqual(harness.processes_of(self.binary), [], "something is left behind")

    def test_programs_of_a_shell_loop_have_their_names(self):
        recording = self.record(["sh", "-c", "for i in $(seq 300); do /bin/true; done"])
        spent = collections.Counter()
        for sample in recording.profile.samples:
            spent[sample.labels[harness.PROCESS_NAME]] += sample.values[recording.profile.types.index(harness.CPU)]
        self.assertGreater(spent["true"], 0.2 * sum(spent.values()), spent)
        self.assertLessEqual(set(spent), {"sh", "true", "seq"})

    def dlopen(self, mode):
        library = self.path("plugin_%s.so" % mode)
        shutil.copy2(self.puppet("plugin.so"), library)
        recording = self.record([self.puppet("dlopen_user"), library, "0.5", mode], ["-F", "499"])
        self.assertGreater(recording.count("burn_in_plugin") / recording.count(), 0.95)
        return recording

    def test_a_library_loaded_at_run_time_is_named(self):
        recording = self.dlopen("keep")
        self.assertTrue(any(mapping.path.endswith("plugin_keep.so") and mapping.build_id for mapping in recording.profile.mappings))

    def test_a_library_deleted_while_in_use_is_named(self):
        self.dlopen("unlink")

    def test_a_library_unloaded_before_the_end_is_named(self):
        self.dlopen("close")

    def test_generated_code_is_passed_and_named_by_its_map(self):
        recording = self.record([self.puppet("jit"), "1", "map"], ["-F", "499"])
        for pid in recording.labels(harness.PROCESS_ID):
            os.unlink("/tmp/perf-%s.map" % pid)
        self.assertGreater(recording.count("main") / recording.count(), 0.99, "stacks stop at generated code")
        self.assertGreater(recording.count("jitted_function") / recording.count(), 0.95)

    def test_generated_code_without_frame_pointers_is_passed_by_its_jitdump(self):
        recording = self.record([self.puppet("jit_dump"), "2", self.folder], ["-F", "499"])
        self.assertGreater(recording.count("called_back") / recording.count(), 0.3)
        self.assertGreater(recording.count("call_jitted") / recording.count(), 0.95, "stacks stop at generated code")
        named = recording.count("jitted_first") + recording.count("jitted_second")
        self.assertGreater(named / recording.count(), 0.95, "moved code, and code where other code was, has its name")
        lines = {(call.name, call.file) for location in recording.profile.locations for call in location.calls if "jitted_" in call.name}
        self.assertEqual(lines, {("jitted_first", "/generated/source.jit"), ("jitted_second", "/generated/source.jit")})


if __name__ == "__main__":
    unittest.main()
