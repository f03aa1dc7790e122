#include "collect/machine.hpp"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kSmallFile = 1U << 20U;

}  // namespace

std::optional<std::string> Machine::text(std::string_view path) const {
  auto content = read_file(this->path(path), kSmallFile);
  if (!content) return std::nullopt;
  while (content->ends_with('\n')) content->pop_back();
  return *std::move(content);
}

std::optional<std::int64_t> Machine::number(std::string_view path) const {
  const std::optional<std::string> content = text(path);
  if (!content) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(content->data(), content->data() + content->size(), value);
  return failure == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::string> Machine::link(std::string_view path) const {
  std::error_code failure;
  const std::filesystem::path target = std::filesystem::read_symlink(this->path(path), failure);
  return failure ? std::nullopt : std::optional(target.string());
}

bool Machine::exists(std::string_view path) const {
  std::error_code ignored;
  return std::filesystem::exists(this->path(path), ignored);
}

}  // namespace ddprof
