#pragma once

#include <span>

namespace ddprof {

// Overwrites the values of secret options in the arguments, which must have been read already: every user of
// the machine sees them in /proc/PID/cmdline, also those of our children.
void hide_secret_arguments(std::span<char* const> args);

}  // namespace ddprof
