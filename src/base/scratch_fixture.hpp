#pragma once

// For tests: a folder that is gone afterwards, and what is made in it by the tools of the system.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ddprof {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ddprof_test_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }

  // A shell command in this folder; throws, and so fails the test, when it does not end well.
  void run(const std::string& command) const {
    const std::string line = "cd '" + path_ + "' && { " + command + "; } >output.txt 2>&1";
    if (std::system(line.c_str()) != 0) throw std::runtime_error(command + ": " + read("output.txt"));
  }
  void write(std::string_view name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(std::string_view name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] bool has(std::string_view name) const { return std::filesystem::exists(path(name)); }

 private:
  std::string path_;
};

}  // namespace ddprof
