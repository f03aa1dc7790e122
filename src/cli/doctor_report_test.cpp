#include "cli/doctor_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/json_document.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

Diagnosis example() {
  Diagnosis diagnosis;
  diagnosis.findings = {
      {.name = "kernel", .fact = "Linux 6.1", .meaning = "has what ddprof uses"},
      {.name = "paranoid",
       .state = CheckState::limited,
       .fact = "kernel.perf_event_paranoid is 2",
       .meaning = "own processes, without the kernel",
       .hint = {"sudo sysctl kernel.perf_event_paranoid=1", "--cap-add PERFMON", "capabilities: [PERFMON]"}}};
  diagnosis.abilities = {
      {"own-programs", CheckState::ok, "your own programs", "ddprof record PROGRAM"},
      {"whole-host", CheckState::missing, "the whole machine", "not allowed", {.command = "run as root"}}};
  diagnosis.can_profile = true;
  return diagnosis;
}

TEST(DoctorText, IsInColumns) {
  EXPECT_EQ(doctor_text(example(), 100),
            "ok       kernel         Linux 6.1: has what ddprof uses\n"
            "limited  paranoid       kernel.perf_event_paranoid is 2: own processes, without the kernel\n"
            "                        try: sudo sysctl kernel.perf_event_paranoid=1\n"
            "\n"
            "What can be profiled here:\n"
            "  yes      your own programs         ddprof record PROGRAM\n"
            "  no       the whole machine         not allowed\n"
            "                                     try: run as root\n");
}

TEST(DoctorText, NamesSettingsOfContainersInContainers) {
  Diagnosis diagnosis = example();
  EXPECT_THAT(doctor_text(diagnosis, 100), Not(HasSubstr("docker")));
  diagnosis.is_in_container = true;
  EXPECT_THAT(doctor_text(diagnosis, 100), HasSubstr("                        docker: --cap-add PERFMON\n"));
  EXPECT_THAT(doctor_text(diagnosis, 100), HasSubstr("kubernetes: capabilities: [PERFMON]\n"));
}

TEST(DoctorText, BreaksLinesAtTheWidthAndObeysNoForeignText) {
  Diagnosis diagnosis = example();
  diagnosis.findings[0].fact = "answer \x1b[31m of a server";
  const std::string text = doctor_text(diagnosis, 60);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr(": own\n                        processes, without the kernel\n"));
  EXPECT_THAT(text, HasSubstr("\n                        try: sudo sysctl kernel.perf_event_paranoid=1\n"));
}

TEST(DoctorJson, HasEverything) {
  const std::string text = doctor_json(example());
  ASSERT_TRUE(JsonDocument::parse(text, 1U << 20U).ok());
  for (const char* part :
       {R"("can_profile": true)", R"("in_container": false)", R"("name": "paranoid")",
        R"("state": "limited")", R"("docker": "--cap-add PERFMON")", R"("name": "whole-host")",
        R"("meaning": "not allowed")", R"("command": "run as root")"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace ddprof
