#include "cli/doctor_command.hpp"

#include "cli/doctor_report.hpp"
#include "cli/option_table.hpp"
#include "cli/terminal.hpp"
#include "doctor/doctor.hpp"

namespace ddprof {

int doctor(const Options& options) {
  const auto is_named = [&](const char* name) {
    return origin_of(options, name).kind != Origin::Kind::default_value;
  };
  const Diagnosis diagnosis = examine({.url = options.url,
                                       .host = options.host,
                                       .port = options.port,
                                       .is_named = is_named("url") || is_named("host") || is_named("port")});
  const int status =
      print_output(options.json ? doctor_json(diagnosis) : doctor_text(diagnosis, terminal_width()));
  return diagnosis.can_profile ? status : 1;
}

}  // namespace ddprof
