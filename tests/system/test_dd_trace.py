"""npm's dd-trace and ddprof profile the same process, configured by the same variables, and send to the same agent. The two uploads
are compared part by part; docs/upload_compared.md says why they differ where they do."""

import os
import re
import shutil
import subprocess
import unittest

import agent
import harness
import judges
import pprof
import upload_facts
from upload_facts import Upload

PAGE = os.path.join(harness.REPOSITORY, "docs", "upload_compared.md")
TABLE = "| | dd-trace | ddprof | why |\n|---|---|---|---|\n"
# Both know these variables.
VARIABLES = {"DD_SERVICE": "shop", "DD_ENV": "prod", "DD_VERSION": "1.2", "DD_TAGS": "team:a", "DD_EXTERNAL_ENV": "it-false,cn-shop",
             "DD_PROFILING_ENABLED": "true", "DD_PROFILING_UPLOAD_PERIOD": "1"}
# dd-trace does more than we ask it for.
QUIET = {"DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false", "DD_REMOTE_CONFIGURATION_ENABLED": "false",
         "DD_TRACE_STARTUP_LOGS": "false"}
THEIR_CPU, OURS = "wall.pprof", "profile.pprof"  # theirs has wall-clock and CPU time


def documented():
    """{(what, theirs, ours): why} of the page."""
    rows = {}
    for line in harness.read_text(PAGE).split(TABLE)[1].splitlines():
        if line.startswith("| "):
            *row, why = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows[tuple(row)] = why
    return rows


def rewrite_page(rows):
    """With the reasons that it has. A row without one fails the test until somebody finds it."""
    why = documented()
    table = "".join("| %s | %s |\n" % (" | ".join(row), why.get(row, "")) for row in rows)
    head = harness.read_text(PAGE).split(TABLE)[0]
    with open(PAGE, "w") as file:
        file.write(head + TABLE + table)


class Compared(harness.SystemTest):
    theirs = ours = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("node"):
            raise unittest.SkipTest("node is not installed")

    def setUp(self):
        if Compared.theirs is None:
            Compared.theirs, Compared.ours = self.profile_one_process_twice()

    def profile_one_process_twice(self):
        """The second upload of each: the first period is shorter."""
        uploads = {}

        def keep(handler):
            upload = Upload(handler.path, handler.headers, handler.body)
            uploads[upload.origin, upload.tags["profile_seq"]] = upload
        receiver = agent.Agent(self, answer=keep)
        inherited = {key: value for key, value in self.environment().items() if not key.startswith(("DD_", "OTEL_"))}
        variables = dict(inherited, DD_TRACE_AGENT_URL=receiver.url, **VARIABLES, **QUIET)
        command = [self.binary, "--timeline", "node", os.path.join(judges.SOURCES, "send_profiles.cjs")]
        target = subprocess.Popen(command, cwd=judges.installed(), env=variables, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        wanted = ("dd-trace-js", "1"), ("ddprof", "1")
        try:
            harness.wait_for(lambda: all(key in uploads for key in wanted), 60, "uploads of dd-trace and ddprof")
        finally:
            target.stdin.close()
            target.wait()
            self.wait_until_profiler_ends()
        return tuple(uploads[key] for key in wanted)

    def differences(self):
        both = (self.theirs, self.ours)
        files = (self.theirs.unpack(THEIR_CPU, self.path("theirs.pb")), self.ours.unpack(OURS, self.path("ours.pb")))
        sections = (map(upload_facts.headers_of, both), map(upload_facts.parts_of, both),
                    upload_facts.event_facts(self.theirs.event, self.ours.event), map(upload_facts.tags_of, both), map(upload_facts.pprof_facts, files))
        return [row for theirs, ours in sections for row in upload_facts.differences(theirs, ours)]

    def test_every_difference_has_a_reason(self):
        rows = self.differences()
        if os.environ.get("DDPROF_UPDATE_DOCS"):
            rewrite_page(rows)
        reasons = documented()
        self.assertEqual("\n".join(map(str, rows)), "\n".join(map(str, reasons)), "see docs/upload_compared.md, DDPROF_UPDATE_DOCS=1 rewrites it")
        self.assertEqual([row for row, why in reasons.items() if not why], [])

    def test_both_say_the_same_of_the_process(self):
        for name in ("service", "env", "version", "team", "process_id", "runtime_os", "profile_seq"):
            self.assertEqual(self.ours.tags[name], self.theirs.tags[name], name)
        platforms = [upload.event["info"]["platform"] for upload in (self.ours, self.theirs)]
        for name in ("kernel_name", "kernel_release", "kernel_version"):
            self.assertEqual(platforms[0][name], platforms[1][name])
        self.assertEqual(self.ours.path, self.theirs.path)
        self.assertEqual(self.ours.headers["datadog-external-env"], self.theirs.headers["datadog-external-env"])
        # dd-trace names a control group that is no container's, too.
        for name in ("datadog-container-id", "datadog-entity-id"):
            self.assertIn(self.ours.headers.get(name), (None, self.theirs.headers.get(name)))

    def test_pprof_format_reads_what_was_sent(self):
        path = self.ours.unpack(OURS, self.path("sent.pb"))
        judges.assert_pprof_format_agrees(self, path, pprof.read(path))

    def test_gos_pprof_reads_what_was_sent(self):
        path = self.ours.unpack(OURS, self.path("sent.pb"))
        self.assertEqual(judges.go_values(judges.go_raw(path, self.folder)), [sample.values for sample in pprof.read(path).samples])


if __name__ == "__main__":
    unittest.main()
