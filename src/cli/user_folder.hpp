#pragma once

#include <string>

namespace ddprof {

// Our folder for files of one kind: below the directory that the XDG variable names, else in the directory
// that systemd made for the unit that runs us (STATE_DIRECTORY for XDG_STATE_HOME, CACHE_DIRECTORY for
// XDG_CACHE_HOME), else below HOME. Empty: there is none.
std::string user_folder(const char* variable, const char* below_home);

}  // namespace ddprof
