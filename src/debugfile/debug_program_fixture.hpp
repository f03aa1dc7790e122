#pragma once

// For tests: a program of two functions, made by gcc below a folder that stands for the root of a target, and
// the debug files that the usual tools make of it.
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/scratch_fixture.hpp"
#include "debugfile/debug_file_finder.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

class DebugProgram {
 public:
  static constexpr std::string_view kPath = "/opt/app/program";

  // `seed` makes builds differ.
  explicit DebugProgram(const std::string& flags = "-g", int seed = 1) {
    folder_.write("root/opt/app/program.c",
                  "int helper(int x) { return x + " + std::to_string(seed) +
                      "; }\nint main(int argc, char** argv) { (void)argv; return helper(argc); }\n");
    in_app("gcc -O1 -Wl,--build-id=sha1 " + flags + " program.c -o program");
  }

  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }
  [[nodiscard]] std::string root() const { return folder_.path("root"); }
  // A command in the folder of the program.
  void in_app(const std::string& command) const { folder_.run("cd root/opt/app && " + command); }
  // Moves the debug information to program.debug, leaving a link.
  void separate() const {
    in_app("objcopy --only-keep-debug program program.debug && strip program");
    in_app("objcopy --add-gnu-debuglink=program.debug program");
  }
  // Puts a file of the program's folder where its build id leads.
  void move_to_build_id(const std::string& name) {
    const std::string hex = build_id().hex();
    in_app("mkdir -p ../../usr/lib/debug/.build-id/" + hex.substr(0, 2) + " && mv " + name +
           " ../../usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
  }

  // Each call reads the file as it is now.
  const ElfFile& file(const std::string& name = "program") {
    auto& kept = files_.emplace_back(folder_.read("root/opt/app/" + name));
    kept.elf = std::make_unique<ElfFile>(
        *ElfFile::parse({reinterpret_cast<const std::byte*>(kept.content.data()), kept.content.size()}));
    return *kept.elf;
  }
  BuildId build_id() { return file().build_id(); }

 private:
  struct Kept {
    explicit Kept(std::string bytes) : content(std::move(bytes)) {}
    std::string content;
    std::unique_ptr<ElfFile> elf;
  };
  ScratchFolder folder_;
  std::list<Kept> files_;
};

}  // namespace ddprof
