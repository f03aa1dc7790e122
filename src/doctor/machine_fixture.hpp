#pragma once

// For tests: a machine made of the files that a test writes.
#include <filesystem>
#include <string>
#include <string_view>

#include "base/scratch_fixture.hpp"
#include "collect/perf/own_privileges.hpp"
#include "doctor/machine.hpp"

namespace ddprof {

class RecordedMachine {
 public:
  RecordedMachine& file(std::string_view path, std::string_view content) {
    folder_.write(path.substr(1), content);
    return *this;
  }
  RecordedMachine& link(std::string_view path, std::string_view target) {
    const std::filesystem::path place = folder_.path(path.substr(1));
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::remove(place);
    std::filesystem::create_symlink(target, place);
    return *this;
  }
  [[nodiscard]] Machine machine() const { return Machine(folder_.path()); }

 private:
  ScratchFolder folder_;
};

// An ordinary user, or one with these capabilities.
inline OwnPrivileges user_at(int paranoid, std::initializer_list<int> capabilities = {}) {
  OwnPrivileges privileges{.paranoid = paranoid};
  for (const int capability : capabilities)
    privileges.capabilities |= std::uint64_t{1} << static_cast<unsigned>(capability);
  return privileges;
}

}  // namespace ddprof
