#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ddprof {

using Nanoseconds = std::chrono::nanoseconds;

// Identifiers are never bare integers: a Tid cannot be passed where a Pid is meant.
enum class Pid : std::int32_t {};
enum class Tid : std::int32_t {};

constexpr std::int32_t to_int(Pid pid) { return static_cast<std::int32_t>(pid); }
constexpr std::int32_t to_int(Tid tid) { return static_cast<std::int32_t>(tid); }

// A distinct ELF file (or vdso, or kernel) seen in this run; an index into the file registry. 0 is "no file".
enum class FileId : std::uint32_t { none = 0 };
constexpr std::uint32_t to_int(FileId id) { return static_cast<std::uint32_t>(id); }

// A virtual address, in a process or as written in an ELF file; which of the two is in the variable's name.
struct Address {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address address, std::uint64_t bytes) { return {address.value + bytes}; }
  friend constexpr Address operator-(Address address, std::uint64_t bytes) { return {address.value - bytes}; }
  friend constexpr std::uint64_t operator-(Address left, Address right) { return left.value - right.value; }
};

}  // namespace ddprof

template <>
struct std::hash<ddprof::Address> {
  std::size_t operator()(ddprof::Address address) const noexcept {
    return std::hash<std::uint64_t>{}(address.value);
  }
};
