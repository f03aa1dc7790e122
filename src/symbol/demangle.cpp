#include "symbol/demangle.hpp"

#include <libiberty/demangle.h>

#include <algorithm>
#include <charconv>
#include <csetjmp>
#include <cstdint>
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
  // Names of templates in templates are long, but their end is the function: it is waited for so long.
  static constexpr std::size_t kMaxReadBytes = std::size_t{64} << 10U;

  std::string text;
  bool is_whole = true;
  std::jmp_buf enough;
};

void append(const char* piece, std::size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  const std::size_t room = output.text.capacity() - output.text.size();  // reserved: never allocates here
  output.text.append(piece, std::min(size, room));
  if (size > room) std::longjmp(output.enough, 1);
}

constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;
// libiberty reads no C++ name of more than 1,024 bytes unless it is told to go without a limit. What is left
// then is the length of the name: of kMaxMangledBytes, no name that was tried needed a megabyte of stack.
constexpr int kLongNameOptions = kOptions | DMGL_NO_RECURSE_LIMIT;
constexpr std::size_t kLongName = 1024;

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

bool is_rust(std::string_view name) { return name.starts_with("_R") || name.starts_with("_ZN"); }

using Reader = int (*)(const char*, int, demangle_callbackref, void*);

// True when the whole name, or as much as is wanted of it, has been read.
bool read_name(Reader reader, const char* name, int options, Output& output) {
  output.text.clear();
  output.is_whole = false;
  if (setjmp(output.enough) != 0) return true;
  if (reader(name, options, append, &output) == 0) return false;
  output.is_whole = true;
  return true;
}

// Without an end that is known, the beginning.
std::string taken(Output& output) {
  if (output.is_whole || output.text.size() <= kMaxNameBytes) return std::move(output.text);
  std::size_t cut = kMaxNameBytes;
  while (cut > 0 && is_inside_character(output.text[cut])) --cut;
  return output.text.substr(0, cut) + "…";
}

void append_utf8(std::string& text, std::uint32_t letter) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (letter < 0x800) {
    add(0xc0U | letter >> 6U);
  } else if (letter < 0x10000) {
    add(0xe0U | letter >> 12U), add(0x80U | (letter >> 6U & 0x3fU));
  } else {
    add(0xf0U | letter >> 18U), add(0x80U | (letter >> 12U & 0x3fU)), add(0x80U | (letter >> 6U & 0x3fU));
  }
  add(0x80U | (letter & 0x3fU));
}

// Legacy names of Rust spell letters as "$u<hexadecimal>$"; libiberty leaves those outside of ASCII.
std::string with_letters(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; (at = name.find("$u")) != std::string_view::npos;) {
    std::uint32_t letter = 0;
    const auto [rest, error] = std::from_chars(name.data() + at + 2, name.data() + name.size(), letter, 16);
    const auto end = static_cast<std::size_t>(rest - name.data());
    const bool is_letter = error == std::errc{} && letter >= 0x80 && letter <= 0x10ffff &&
                           (letter < 0xd800 || letter > 0xdfff) && end < name.size() && name[end] == '$';
    text.append(name.substr(0, is_letter ? at : at + 2));
    if (is_letter) append_utf8(text, letter);
    name.remove_prefix(is_letter ? end + 1 : at + 2);
  }
  return text.append(name);
}

std::string demangle_in_pieces(const std::string& name) {
  Output output;
  output.text.reserve(Output::kMaxReadBytes);
  // Rust's legacy names are C++ names with a hash at the end; the Rust reader refuses those of C++.
  if (is_rust(name) && read_name(rust_demangle_callback, name.c_str(), kOptions, output))
    return with_letters(taken(output));
  const int options = name.size() > kLongName ? kLongNameOptions : kOptions;
  if (name.starts_with("_R") || !read_name(cplus_demangle_v3_callback, name.c_str(), options, output))
    return {};
  return taken(output);
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
// clones (it writes "[clone .cold]"), none of them knows "@plt" or "@@VERSION".
std::size_t linker_suffix(std::string_view name) { return std::min(name.find('@'), name.size()); }

// LLVM numbers local names that it had to make global when it optimised a whole program: that says nothing to
// people.
std::string_view without_llvm_number(std::string_view name) {
  const std::size_t last_letter = name.find_last_not_of("0123456789");
  if (last_letter == std::string_view::npos || last_letter + 1 == name.size()) return name;
  const std::string_view before = name.substr(0, last_letter + 1);
  constexpr std::string_view kSuffix = ".llvm.";
  return before.ends_with(kSuffix) && before.size() > kSuffix.size()
             ? before.substr(0, before.size() - kSuffix.size())
             : name;
}

// Rust's reader drops clones, D's gives up at them. Their names have no dots of their own.
std::size_t clone_suffix(std::string_view name) {
  return name.starts_with("_D") || name.starts_with("_R") ? name.find('.') : std::string_view::npos;
}

}  // namespace

std::string bounded_name(std::string_view name, std::size_t limit) {
  // What was cut already, because its end is not known, is not cut again.
  constexpr std::string_view kEllipsis = "…";
  if (name.size() <= limit || (name.ends_with(kEllipsis) && name.size() <= limit + kEllipsis.size()))
    return std::string(name);
  std::size_t head = limit / 2, tail = name.size() - (limit - limit / 2);
  while (head > 0 && is_inside_character(name[head])) --head;
  while (tail < name.size() && is_inside_character(name[tail])) ++tail;
  return std::string(name.substr(0, head)).append(kEllipsis).append(name.substr(tail));
}

std::string demangle(std::string_view name) {
  name = without_llvm_number(name);
  const bool is_mangled = name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D");
  if (!is_mangled || name.size() > kMaxMangledBytes) return bounded_name(name);
  const std::size_t suffix = linker_suffix(name);
  const std::size_t clone = std::min(clone_suffix(name), suffix);
  const std::string mangled(name.substr(0, clone));
  std::string text = name.starts_with("_D") ? demangle_d(mangled) : demangle_in_pieces(mangled);
  if (text.empty()) return bounded_name(name);
  if (clone < suffix) text.append(" [clone ").append(name.substr(clone, suffix - clone)).append("]");
  return bounded_name(text.append(name.substr(suffix)));
}

}  // namespace ddprof
