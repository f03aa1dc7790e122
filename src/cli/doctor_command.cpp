#include "cli/doctor_command.hpp"

#include "cli/doctor_report.hpp"
#include "cli/terminal.hpp"
#include "doctor/doctor.hpp"

namespace ddprof {

int doctor(const Options& options) {
  const Diagnosis diagnosis = examine({.url = options.url, .host = options.host, .port = options.port});
  const int status =
      print_output(options.json ? doctor_json(diagnosis) : doctor_text(diagnosis, terminal_width()));
  return diagnosis.can_profile ? status : 1;
}

}  // namespace ddprof
