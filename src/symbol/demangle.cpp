#include "symbol/demangle.hpp"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <utility>

namespace ddprof {

namespace {

// Mangled names longer than this are not worth the stack and time that reading them takes.
constexpr std::size_t kMaxMangledBytes = 4096;

// libiberty hands the readable name over in pieces, so that a name that explodes (substitutions of
// substitutions: 400 bytes stand for a terabyte) costs no memory. It has no way to stop early, and would
// write for days; so the callback leaves by longjmp, which is sound because neither side holds anything that
// needs releasing then.
struct Output {
  std::string text;
  std::jmp_buf enough;
};

void append(const char* piece, std::size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  const std::size_t room = output.text.capacity() - output.text.size();  // reserved: never allocates here
  output.text.append(piece, std::min(size, room));
  if (size > room) std::longjmp(output.enough, 1);
}

// The recursion limit stays on: DMGL_NO_RECURSE_LIMIT is never set.
constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

bool is_rust(std::string_view name) { return name.starts_with("_R") || name.starts_with("_ZN"); }

using Reader = int (*)(const char*, int, demangle_callbackref, void*);

// True when the whole name, or as much as is wanted of it, has been read.
bool read_name(Reader reader, const char* name, Output& output) {
  output.text.clear();
  if (setjmp(output.enough) != 0) return true;
  return reader(name, kOptions, append, &output) != 0;
}

std::string demangle_in_pieces(const std::string& name) {
  Output output;
  output.text.reserve(kMaxNameBytes + 1);
  // Rust's legacy names are C++ names with a hash at the end; the Rust reader refuses those of C++.
  if (is_rust(name) && read_name(rust_demangle_callback, name.c_str(), output)) return std::move(output.text);
  if (name.starts_with("_R") || !read_name(cplus_demangle_v3_callback, name.c_str(), output)) return {};
  return std::move(output.text);
}

// D's reader has no callback to stop it, and its back references (Q) can explode as well: few are allowed.
constexpr std::ptrdiff_t kMaxBackReferences = 16;

std::string demangle_d(const std::string& name) {
  if (std::count(name.begin(), name.end(), 'Q') > kMaxBackReferences) return {};
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
  const bool is_mangled = name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D");
  if (!is_mangled || name.size() > kMaxMangledBytes) return bounded_name(name);
  const std::size_t suffix = linker_suffix(name);
  const std::string mangled(name.substr(0, suffix));
  std::string text = name.starts_with("_D") ? demangle_d(mangled) : demangle_in_pieces(mangled);
  if (text.empty()) return bounded_name(name);
  return bounded_name(text.append(name.substr(suffix)));
}

}  // namespace ddprof
