#include "report/own_code.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>

#include "base/text_pattern.hpp"

// The hottest function is rarely the answer: it is malloc, or the exit path of a system call. The answer is
// the function that the author wrote and that made the call. What follows tells the two apart, by rules that
// were tried on C, C++, Rust, Go and JavaScript. A path such as /usr/lib decides nothing: compilers live
// there too, and their code is their own.

namespace ddprof {

namespace {

using Words = std::initializer_list<std::string_view>;

bool starts_with_any(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.starts_with(word); });
}

bool ends_with_any(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.ends_with(word); });
}

bool contains_any(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool is_one_of(std::string_view text, Words words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_shared_library(std::string_view module) {
  return module.ends_with(".so") || module.find(".so.") != std::string_view::npos ||
         module.ends_with(".node");
}

bool is_jit_module(std::string_view path) {
  return path.empty() || starts_with_any(path, {"[anon", "//anon", "/memfd:", "/tmp/perf-", "jitted-"});
}

// "python3.11" -> "python": what is left of a name without its version.
std::string_view without_version(std::string_view name) {
  return name.substr(0, name.find_last_not_of("0123456789.-") + 1);
}

bool is_interpreter(std::string_view module) {
  const bool is_library = starts_with_any(module, {"libpython", "libjvm.", "libnode.", "libruby", "libperl.",
                                                   "libphp", "libmono", "libcoreclr.", "liblua", "libv8"});
  return is_library ||
         is_one_of(without_version(module),
                   {"python",  "node",     "nodejs", "bun",   "deno",  "java", "ruby", "perl",   "php",
                    "php-fpm", "lua",      "luajit", "bash",  "dash",  "sh",   "zsh",  "dotnet", "mono",
                    "R",       "beam.smp", "guile",  "tclsh", "julia", "gawk", "mawk"});
}

// Code of packages that an interpreter loads: what stands nearest to the author's own.
bool is_package_module(std::string_view path) {
  return contains_any(path, {".cpython-", "/site-packages/", "/dist-packages/", "/node_modules/", ".node"});
}

// Where toolchains, package managers and runtimes keep the sources of code that ends up in a program.
bool is_foreign_source(std::string_view file) {
  return starts_with_any(
             file, {"/usr/include/", "/usr/local/include/", "/usr/lib/gcc/", "/rustc/", "/usr/src/rustc-",
                    "library/std/", "library/core/", "library/alloc/", "/usr/local/go/src/", "/usr/lib/go-",
                    "/usr/lib/go/", "/usr/share/go-", "node:", "internal/"}) ||
         contains_any(file, {"/include/c++/", "/.cargo/registry/", "/.cargo/git/", "/.rustup/", "/pkg/mod/",
                             "/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python3"});
}

// The first folders of Go's standard library. A program's own package is main, or has a dot in its first
// folder, or is called otherwise.
bool is_go_library(std::string_view name) {
  const std::string_view package = name.substr(0, name.find_first_of("./"));
  return is_one_of(package, {"runtime",
                             "sync",
                             "syscall",
                             "internal",
                             "fmt",
                             "strings",
                             "strconv",
                             "bytes",
                             "encoding",
                             "reflect",
                             "sort",
                             "math",
                             "os",
                             "io",
                             "bufio",
                             "net",
                             "time",
                             "unicode",
                             "regexp",
                             "crypto",
                             "hash",
                             "compress",
                             "context",
                             "errors",
                             "log",
                             "container",
                             "html",
                             "text",
                             "go",
                             "image",
                             "index",
                             "database",
                             "debug",
                             "archive",
                             "mime",
                             "path",
                             "plugin",
                             "slices",
                             "maps",
                             "iter",
                             "testing",
                             "unsafe",
                             "vendor",
                             "cmp",
                             "unique",
                             "embed",
                             "expvar",
                             "type:",
                             "_rt0_amd64_linux",
                             "_rt0_arm64_linux",
                             "gcWriteBarrier",
                             "aeshashbody",
                             "memeqbody"});
}

// "<alloc::vec::Vec<T> as core::ops::Drop>::drop" is about alloc::vec::Vec.
std::string_view rust_subject(std::string_view name) {
  while (!name.empty() &&
         (name.front() == '<' || name.front() == '&' || name.front() == '*' || name.front() == '['))
    name.remove_prefix(1);
  for (std::string_view word : {"mut ", "const ", "dyn "}) {
    if (name.starts_with(word)) name.remove_prefix(word.size());
  }
  return name;
}

// Functions that only hand out memory, under whatever name a program gave them: their callers are meant.
bool is_allocation_shim(std::string_view plain) {
  constexpr std::size_t kLongest = 16;
  return plain.size() <= kLongest &&
         (ends_with_any(plain, {"malloc", "calloc", "realloc", "memalign", "strdup"}) ||
          is_one_of(plain, {"free", "xfree", "zfree", "sfree", "cfree"}));
}

bool is_foreign_name(std::string_view name, std::string_view file) {
  const bool is_go = file.ends_with(".go") || starts_with_any(name, {"runtime.", "type:."});
  if (is_go || file.ends_with(".s")) return is_go_library(name);
  const std::string whole = qualified_name(name);
  const std::string_view subject = rust_subject(whole);
  if (starts_with_any(subject, {"std::", "__gnu_cxx::", "__cxxabiv1::", "boost::", "operator new",
                                "operator delete", "__rust_", "rust_begin_unwind", "rust_panic"}))
    return true;
  // Namespaces of C++ programs may have these names too.
  const bool is_cpp = ends_with_any(file, {".cpp", ".cc", ".cxx", ".hpp", ".h", ".C"});
  if (!is_cpp && starts_with_any(subject, {"core::", "alloc::", "hashbrown::", "compiler_builtins::"}))
    return true;
  // "<u32 as core::iter::range::Step>::forward": types without a path are the language's own.
  const std::size_t trait = subject.find(" as ");
  if (!is_cpp && whole.starts_with('<') && trait != std::string_view::npos &&
      subject.substr(0, trait).find("::") == std::string_view::npos &&
      starts_with_any(subject.substr(trait + 4), {"core::", "alloc::", "std::"}))
    return true;
  if (subject.find("::") != std::string_view::npos) return false;
  // Names with two underscores belong to the implementation of the language.
  return starts_with_any(subject, {"__", "_start", "_dl_", "_IO_", "_int_"}) || is_allocation_shim(subject) ||
         is_one_of(subject, {"start_thread", "clone", "clone3", "memcpy", "memmove", "memset", "memcmp",
                             "strlen", "strcmp", "_init", "_fini", "deregister_tm_clones", "frame_dummy"});
}

// Names that JIT compilers give to code of their own.
bool is_jit_runtime(const CodeName& code) {
  if (is_foreign_source(code.file)) return true;
  return starts_with_any(code.name,
                         {"Builtin", "Stub:", "BytecodeHandler:", "Trampoline", "Interpreter",
                          "RegExp:", "StubRoutines", "vtable stub", "itable stub", "py_trampoline"});
}

class Roles {
 public:
  Roles(const Profile& profile, const FrameTable& frames, const TextPattern* own)
      : profile_(profile), frames_(frames), own_(own) {
    for (const ProfileMapping& mapping : profile.mappings)
      has_interpreter_ |= is_interpreter(base_name(profile.text(mapping.path)));
  }

  std::vector<CodeRole> take() && {
    std::vector<CodeRole> roles(frames_.size(), CodeRole::marker);
    std::vector<bool> is_known(frames_.size());
    for (std::uint32_t at = 0; at < profile_.locations.size(); ++at) {
      const auto ids = frames_.frames(at);
      for (std::size_t line = 0; line < ids.size(); ++line) {
        if (is_known[ids[line]]) continue;
        is_known[ids[line]] = true;
        roles[ids[line]] = role_of(profile_.locations[at], line, frames_[ids[line]]);
      }
    }
    return roles;
  }

 private:
  CodeRole role_of(const ProfileLocation& location, std::size_t line, const NamedFrame& frame) const {
    if (frame.is_marker) return CodeRole::marker;
    const bool has_mapping = location.mapping != kNoMapping;
    const std::string_view path =
        has_mapping ? profile_.text(profile_.mappings[location.mapping].path) : std::string_view();
    const std::string_view file =
        location.lines.empty() ? "" : profile_.text(profile_.functions[location.lines[line].function].file);
    if (path.starts_with("[kernel")) return CodeRole::kernel;
    if (own_ != nullptr) {
      const bool is_own =
          own_->matches(frame.name) || own_->matches(std::string(path)) || own_->matches(std::string(file));
      return is_own ? CodeRole::own : CodeRole::library;
    }
    return by_rules(path, file, frame);
  }

  CodeRole by_rules(std::string_view path, std::string_view file, const NamedFrame& frame) const {
    if (is_jit_module(path)) {
      if (is_jit_runtime(code_name(frame.name))) return CodeRole::library;
    } else if (path.starts_with('[')) {
      return CodeRole::library;  // [vdso]
    } else if (is_interpreter(frame.module)) {
      return CodeRole::interpreter;
    } else if (is_shared_library(frame.module)) {
      return has_interpreter_ && is_package_module(path) ? CodeRole::own : CodeRole::library;
    }
    if (is_foreign_source(file)) return CodeRole::library;
    return !frame.is_unnamed && is_foreign_name(frame.name, file) ? CodeRole::library : CodeRole::own;
  }

  const Profile& profile_;
  const FrameTable& frames_;
  const TextPattern* own_;
  bool has_interpreter_ = false;
};

// The number at the end of a text that ends in ":12", which is taken off; 0: there is none.
std::int64_t take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  std::int64_t number = 0;
  if (colon == std::string_view::npos) return 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return 0;
  text = text.substr(0, colon);
  return number;
}

// "*fib /srv/fib.js:1:13"
CodeName v8_name(std::string_view rest) {
  while (!rest.empty() && std::string_view("*~^+").find(rest.front()) != std::string_view::npos)
    rest.remove_prefix(1);
  CodeName code;
  std::string_view place = rest;
  const std::int64_t column = take_number(place);
  code.line = column > 0 ? take_number(place) : 0;
  const std::size_t space = place.find(' ');
  if (space == std::string_view::npos) return {std::string(rest), "", 0};
  code.name = space == 0 ? "(anonymous)" : place.substr(0, space);
  code.file = place.substr(space + 1);
  if (code.line == 0) code.line = column;  // only one number
  return code;
}

}  // namespace

OwnCode::OwnCode(const Profile& profile, const FrameTable& frames, const TextPattern* own)
    : roles_(Roles(profile, frames, own).take()) {}

CodeName code_name(std::string_view name) {
  for (std::string_view kind : {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"}) {
    if (name.starts_with(kind)) return v8_name(name.substr(kind.size()));
  }
  if (name.starts_with("py::")) {
    const std::string_view rest = name.substr(4);
    const std::size_t colon = rest.find(':');
    if (colon != std::string_view::npos)
      return {std::string(rest.substr(0, colon)), std::string(rest.substr(colon + 1)), 0};
  }
  return {std::string(name), "", 0};
}

std::string qualified_name(std::string_view name) {
  // Arguments of templates say nothing of where a function is from. Brackets of operators are not of
  // templates.
  std::string outside;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const char letter = name[at];
    const bool is_arrow = letter == '>' && at > 0 && (name[at - 1] == '-' || name[at - 1] == '=');
    const bool is_operator = outside.ends_with("operator") || outside.ends_with("operator<");
    const bool is_rust_subject = letter == '<' && at == 0;
    if (letter == '<' && !is_operator && !is_rust_subject) {
      ++depth;
    } else if (letter == '>' && depth > 0 && !is_arrow) {
      --depth;
    } else if (depth == 0) {
      outside += letter;
    }
  }
  // Anonymous namespaces and lambdas have parentheses of their own.
  std::size_t end = outside.size();
  for (std::size_t at = 1; at < outside.size(); ++at) {
    if (outside[at] != '(' || outside[at - 1] == ':' || outside[at - 1] == '.' ||
        outside.compare(at, 9, "(anonymou") == 0)
      continue;
    if (std::string_view(outside).substr(0, at).ends_with("operator")) continue;
    const bool is_lambda = std::string_view(outside).substr(0, at).ends_with("{lambda");
    if (is_lambda || std::string_view(outside).substr(0, at).ends_with("decltype")) {
      at = std::min(outside.find(is_lambda ? '}' : ')', at), outside.size() - 1);
      continue;
    }
    end = at;
    break;
  }
  std::string_view head = std::string_view(outside).substr(0, end);
  while (head.ends_with(' ')) head.remove_suffix(1);
  if (head.starts_with('<')) return std::string(head);
  // The return type is in front of the last space that is no part of the name itself.
  const std::size_t word =
      std::min({head.find("operator "), head.find("(anonymous namespace)"), head.size()});
  const std::size_t space = head.substr(0, word).rfind(' ');
  return std::string(space == std::string_view::npos ? head : head.substr(space + 1));
}

std::string spoken_name(std::string_view whole) {
  if (const std::size_t clone = whole.find(" [clone "); clone != std::string_view::npos)
    whole = whole.substr(0, clone);
  // What compilers append to copies of a function: "f.constprop.0".
  for (std::string_view suffix : {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv."})
    whole = whole.substr(0, whole.find(suffix));
  std::string name(whole);
  for (std::size_t at = 0; (at = name.find("[abi:")) != std::string::npos;)
    name.erase(at, std::min(name.find(']', at), name.size() - 1) + 1 - at);
  const bool has_arguments = name.ends_with(')') || name.ends_with(") const");
  const bool is_lambda = name.find('{') != std::string::npos;
  if (!has_arguments || is_lambda || name.ends_with("operator()")) return name;
  return qualified_name(name);
}

}  // namespace ddprof
