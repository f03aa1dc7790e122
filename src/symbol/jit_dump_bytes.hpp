#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddprof {

// Writes a jitdump as a JIT compiler does, for tests.
class JitDumpBytes {
 public:
  explicit JitDumpBytes(std::uint32_t magic = 0x4A695444, std::uint32_t version = 1,
                        std::uint32_t reserved = 0) {
    number(magic), number(version), number(40U), number(62U), number(reserved), number(7U);
    number(std::uint64_t{1}), number(std::uint64_t{0});
  }

  struct Line {
    std::uint64_t address = 0;
    std::uint32_t line = 0;
    std::string_view file;
  };

  JitDumpBytes& load(std::uint64_t start, std::string_view name, std::uint64_t size, std::uint64_t index) {
    begin(0, 40 + name.size() + 1 + size);
    number(7U), number(7U), number(start), number(start), number(size), number(index);
    text_.append(name) += '\0';
    text_.append(size, '\x90');
    return *this;
  }
  JitDumpBytes& move(std::uint64_t from, std::uint64_t to, std::uint64_t size, std::uint64_t index) {
    begin(1, 48);
    number(7U), number(7U), number(to), number(from), number(to), number(size), number(index);
    return *this;
  }
  JitDumpBytes& lines(std::uint64_t start, const std::vector<Line>& lines) {
    std::size_t bytes = 16;
    for (const Line& line : lines) bytes += 16 + line.file.size() + 1;
    begin(2, bytes);
    number(start), number(std::uint64_t{lines.size()});
    for (const Line& line : lines) {
      number(line.address), number(line.line), number(0U);
      text_.append(line.file) += '\0';
    }
    return *this;
  }
  JitDumpBytes& unwinding(std::string_view data, std::uint64_t header_bytes) {
    begin(4, 24 + data.size());
    number(std::uint64_t{data.size()}), number(header_bytes), number(std::uint64_t{0});
    text_.append(data);
    return *this;
  }
  JitDumpBytes& close() { return record(3, ""); }
  JitDumpBytes& record(std::uint32_t id, std::string_view payload) {
    begin(id, payload.size());
    text_.append(payload);
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }

 private:
  template <typename T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void begin(std::uint32_t id, std::size_t payload) {
    number(id), number(static_cast<std::uint32_t>(16 + payload)), number(std::uint64_t{5});
  }

  std::string text_;
};

}  // namespace ddprof
