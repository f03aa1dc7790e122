#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

class TextPattern;

// Whose code a frame is: the program's own, which its author can change, or what it merely calls.
enum class CodeRole : std::uint8_t {
  own,
  library,      // shared libraries, language runtimes, the standard library where it was inlined
  interpreter,  // of a program in another language: node, python3
  kernel,
  marker,  // not code: "[lost: ring buffer full]"
};

// Own is a frame of an executable file, or of a JIT compiler, that neither its name nor its source makes part
// of a toolchain. Where an interpreter is the executable, native modules of its packages are own too.
class OwnCode {
 public:
  // With a pattern, own are the frames of which name, module or source file matches, and no others.
  OwnCode(const Profile& profile, const FrameTable& frames, const TextPattern* own = nullptr);

  [[nodiscard]] CodeRole role(std::uint32_t frame) const { return roles_[frame]; }
  [[nodiscard]] bool is_own(std::uint32_t frame) const { return roles_[frame] == CodeRole::own; }

 private:
  std::vector<CodeRole> roles_;
};

// What the author of a program calls a function.
struct CodeName {
  std::string name;
  std::string file;  // where a JIT compiler tells, else empty
  std::int64_t line = 0;
};
// "JS:*fib /srv/fib.js:1:13" of V8 and "py::fib:/srv/fib.py" of CPython in their parts; any other name as it
// is.
CodeName code_name(std::string_view name);

// "void std::__invoke_impl<void, F>(F&&)" -> "std::__invoke_impl": without return type and arguments.
std::string qualified_name(std::string_view name);

// The same for a sentence, where that loses nothing: not of lambdas, whose names are their places.
std::string spoken_name(std::string_view name);

}  // namespace ddprof
