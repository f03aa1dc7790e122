#pragma once

// For tests: a machine made of the files that a test writes.
#include <filesystem>
#include <string>
#include <string_view>

#include "base/scratch_fixture.hpp"
#include "collect/machine.hpp"

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

}  // namespace ddprof
