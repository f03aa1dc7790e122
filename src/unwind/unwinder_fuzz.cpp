// Registers, stack and code are the target's: no byte of them may lead the unwinder astray.
#include <algorithm>
#include <cstring>
#include <span>

#include "unwind/unwinder_scene.hpp"

namespace {

using namespace ddprof;

constexpr std::uint64_t kCodeStart = 0x10000;
constexpr std::size_t kCodeBytes = 256;
constexpr std::uint64_t kStackStart386 = 0xff000000;

// Takes a value off the front; zero when there is not enough left.
template <typename T>
T take(std::span<const std::byte>& bytes) {
  T value{};
  if (bytes.size() < sizeof value) return value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

// The memory of a target that changes all the time.
class HostileMemory final : public MemoryReader {
 public:
  explicit HostileMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t read(Address address, std::span<std::byte> into) override {
    if (bytes_.empty()) return 0;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = bytes_[(address.value + i) % bytes_.size()];
    return into.size();
  }
  [[nodiscard]] Nanoseconds now() const override { return Nanoseconds{5}; }
  CodeBytes read_code(const Module& module, Address /*address*/, bool is_doubted) override {
    if (is_doubted) ++version_;
    const auto code = bytes_.subspan(std::min<std::size_t>(version_, bytes_.size()));
    return {module.start.value, code, version_};
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t version_ = 1;
};

// Rules as the table may hold them, whatever made it.
void add_rules(UnwindScene& scene, std::span<const std::byte>& bytes, std::span<const std::byte> code) {
  const auto rule = [&] { return take<ddprof_unwind_rule>(bytes); };
  scene.add_module(kCodeStart, FileId{1},
                   {{0x10, rule()}, {0x40, rule()}, {0x80, rule()}, {0xc0, {}}, {0xe0, sp_rule(8)}}, code);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto choices = take<std::uint8_t>(bytes);
  UnwindScene scene((choices & 1) != 0 ? Architecture::aarch64 : Architecture::x86_64);
  const std::span<const std::byte> code = bytes.first(std::min(bytes.size(), kCodeBytes));
  add_rules(scene, bytes, code);
  scene.add_module_without_table(kCodeStart + 0x1000, FileId{2}, code);
  scene.map.add({.start = Address{kCodeStart + 0x2000},
                 .end = Address{kCodeStart + 0x3000},
                 .file = FileId{3},
                 .is_generated = true});
  scene.registers.pc = kCodeStart + take<std::uint16_t>(bytes) % 0x3000;
  const bool is_32_bit = (choices & 16) != 0;
  const std::uint64_t stack_start = is_32_bit ? kStackStart386 : UnwindScene::kStackStart;
  scene.registers.sp = stack_start + take<std::uint8_t>(bytes);
  scene.registers.fp = stack_start + take<std::uint16_t>(bytes);
  scene.registers.lr = kCodeStart + take<std::uint16_t>(bytes);
  for (std::uint64_t& value : scene.registers.by_dwarf_number)
    value = stack_start + take<std::uint8_t>(bytes);

  OuterFrames outer;
  HostileMemory live(bytes);
  const StackCopy copy{Address{stack_start}, bytes, (choices & 2) != 0, Nanoseconds{choices}, is_32_bit};
  for (int i = 0; i < 3; ++i) {
    scene.unwind(copy, (choices & 4) != 0 ? &outer : nullptr, (choices & 8) != 0 ? &live : nullptr);
    if (scene.result.frames.size() > Unwinder::kMaxFrames) __builtin_trap();
    if (outer.size() > OuterFrames::kMaxFrames) __builtin_trap();
  }
  return 0;
}
