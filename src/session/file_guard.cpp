#include "session/file_guard.hpp"

#include <span>

namespace ddprof {

namespace {

// FNV-1a: the same in every process.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes)
      value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  }
  void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  // Never 0, which stands for none.
  [[nodiscard]] std::uint64_t value() const { return value_ | 1U; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

std::string_view name_of(FileUse use) {
  switch (use) {
    case FileUse::unwind_table:
      return "unwind information";
    case FileUse::symbols:
      return "symbol table";
    case FileUse::debug_info:
      return "debug information";
    case FileUse::generated_code:
      return "the list of a JIT compiler";
    case FileUse::functions:
      return "where functions begin";
  }
  return "";
}

std::uint64_t FileGuard::number_of(const CodeFile& file, FileUse use) {
  Fingerprint fingerprint;
  fingerprint.add(static_cast<std::uint64_t>(use));
  fingerprint.add(std::as_bytes(std::span(file.path)));
  fingerprint.add(file.build_id.bytes());
  fingerprint.add(file.image.size());
  fingerprint.add(file.image.file_number());
  const bool is_of_process = file.kind == CodeFile::Kind::jit || file.kind == CodeFile::Kind::jit_dump;
  if (is_of_process) fingerprint.add(static_cast<std::uint64_t>(to_int(file.pid)));
  return fingerprint.value();
}

Error FileGuard::out_of_memory(FileUse use) const {
  return make_error(ErrorCode::exhausted, "read {}: too large to read with --max-memory {}", name_of(use),
                    limits.mebibytes());
}

Error FileGuard::left_alone(FileUse use) {
  return make_error(ErrorCode::exhausted,
                    "read {}: left alone, because a worker of the profiler ended while it read it",
                    name_of(use));
}

}  // namespace ddprof
