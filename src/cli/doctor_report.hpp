#pragma once

#include <cstddef>
#include <string>

#include "doctor/doctor.hpp"

namespace ddprof {

// What was found, in columns, and what it comes to. Settings of containers are shown in a container only.
std::string doctor_text(const Diagnosis& diagnosis, std::size_t width);

// All of it, for programs: docs/doctor.md.
std::string doctor_json(const Diagnosis& diagnosis);

}  // namespace ddprof
