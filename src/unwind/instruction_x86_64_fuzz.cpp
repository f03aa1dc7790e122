// Arbitrary bytes as instructions: none is longer than 15 bytes or than its bytes, and its registers exist.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "unwind/instruction_x86_64.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  // A copy of exactly this size: AddressSanitizer sees any read behind it.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  const auto is_register = [](std::uint8_t number) {
    return number < x86_64::kRegisters || number == x86_64::kNoRegister;
  };
  for (std::size_t at = 0; at < bytes.size();) {
    const auto instruction = x86_64::decode(std::span(bytes).subspan(at));
    if (!instruction) {
      ++at;
      continue;
    }
    const std::size_t most = std::min(bytes.size() - at, x86_64::kMaxInstructionBytes);
    if (instruction->length == 0 || instruction->length > most) std::abort();
    if (!is_register(instruction->to) || !is_register(instruction->from)) std::abort();
    at += instruction->length;
  }
  return 0;
}
