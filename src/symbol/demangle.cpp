#include "symbol/demangle.hpp"

#include <libiberty/demangle.h>

#include <algorithm>
#include <cstdlib>

namespace ddprof {

namespace {

// Mangled names longer than this are not worth the stack and time that reading them takes.
constexpr std::size_t kMaxMangledBytes = 4096;

struct Output {
  std::string text;
  bool is_cut = false;
};

// libiberty calls this with each piece of the readable name, so that a name that explodes (substitutions of
// substitutions) costs no more memory than we keep.
void append(const char* piece, std::size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  const std::size_t room = kMaxNameBytes + 4 - std::min(output.text.size(), kMaxNameBytes + 4);
  output.is_cut |= size > room;
  output.text.append(piece, std::min(size, room));
}

// The recursion limit stays on: DMGL_NO_RECURSE_LIMIT is never set.
constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

bool is_rust(std::string_view name) { return name.starts_with("_R") || name.starts_with("_ZN"); }

bool demangle_with_callback(const std::string& name, Output& output) {
  if (is_rust(name)) {
    // Rust's legacy names are C++ names with a hash at the end; the Rust reader refuses those of C++.
    if (rust_demangle_callback(name.c_str(), kOptions, append, &output) != 0) return true;
    output = {};
  }
  if (!name.starts_with("_Z") && !name.starts_with("___Z")) return false;
  return cplus_demangle_v3_callback(name.c_str(), kOptions, append, &output) != 0;
}

std::string demangle_d(const std::string& name) {
  char* text = dlang_demangle(name.c_str(), kOptions);
  if (text == nullptr) return {};
  std::string result = bounded_name(text);
  std::free(text);
  return result;
}

// What compilers and linkers append to a name: "@plt", ".cold", ".part.0", ".llvm.123". C++'s reader knows
// clones (it writes "[clone .cold]"), nobody knows "@plt" or "@@VERSION".
std::size_t linker_suffix(std::string_view name) { return std::min(name.find('@'), name.size()); }

}  // namespace

std::string bounded_name(std::string_view name, std::size_t limit) {
  if (name.size() <= limit) return std::string(name);
  std::size_t cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xc0U) == 0x80U) --cut;
  return std::string(name.substr(0, cut)) + "…";
}

std::string demangle(std::string_view name) {
  const bool is_mangled =
      name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D") || name.starts_with("___Z");
  if (!is_mangled || name.size() > kMaxMangledBytes) return bounded_name(name);
  const std::size_t suffix = linker_suffix(name);
  const std::string mangled(name.substr(0, suffix));
  Output output;
  if (name.starts_with("_D")) {
    output.text = demangle_d(mangled);
  } else if (!demangle_with_callback(mangled, output)) {
    output.text.clear();
  }
  if (output.text.empty()) return bounded_name(name);
  output.text += name.substr(suffix);
  return bounded_name(output.text);
}

}  // namespace ddprof
