#include "cli/disassembler.hpp"

#include <capstone/capstone.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

Result<MappedRegion> map_plain_file(const std::string& path) {
  if (!path.starts_with('/'))
    return make_error(ErrorCode::not_found, "{} is not a file", path.empty() ? "[no path]" : path);
  // A profile is free to name a pipe or a device.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + path);
  if (!S_ISREG(status.st_mode)) return make_error(ErrorCode::unsupported, "{} is not a plain file", path);
  return MappedRegion::map_file(fd.get());
}

}  // namespace

Result<MappedCode> MappedCode::open(const Profile& profile, const ProfileMapping& mapping) {
  const std::string path(profile.text(mapping.path));
  MappedRegion image = TRY(map_plain_file(path));
  auto elf = ElfFile::parse(image.bytes());
  if (!elf) return make_error(ErrorCode::corrupt, "{} is not a program that can be read", path);
  const std::string_view wanted = profile.text(mapping.build_id);
  const std::string found = elf->build_id().hex();
  // Go's own build ids and other words are not hexadecimal numbers of a note: they cannot be compared.
  const bool is_comparable =
      !wanted.empty() && wanted.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (is_comparable && found != wanted) {
    return make_error(ErrorCode::not_found, "{} is not the file that was profiled: build id {}, not {}", path,
                      found.empty() ? "none" : found, wanted);
  }
  return MappedCode(std::move(image), std::move(*elf), is_comparable);
}

std::map<std::uint64_t, Symbol> MappedCode::symbols_at(std::vector<std::uint64_t> addresses) const {
  std::sort(addresses.begin(), addresses.end());
  std::map<std::uint64_t, Symbol> by_address;
  const std::vector<Symbol> found = find_symbols(elf_, addresses).value_or({});
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].name.empty()) by_address.emplace(addresses[i], found[i]);
  }
  return by_address;
}

std::optional<std::uint64_t> elf_address(const ElfFile& elf, const ProfileMapping& mapping, Address address) {
  if (address < mapping.start || address >= mapping.limit) return std::nullopt;
  return elf.vaddr_of_offset(address - mapping.start + mapping.file_offset);
}

namespace {

struct FreeInstruction {
  void operator()(cs_insn* instruction) const { cs_free(instruction, 1); }
};

std::string data_text(std::span<const std::byte> bytes) {
  std::string text = "(bad)";
  for (std::byte byte : bytes) text += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// The operand of a direct jump is a plain number at the end: "0x1234" or "x0, #0x1234".
std::uint64_t jump_target(csh handle, const cs_insn& instruction) {
  const bool is_jump = cs_insn_group(handle, &instruction, CS_GRP_JUMP) ||
                       cs_insn_group(handle, &instruction, CS_GRP_CALL) ||
                       cs_insn_group(handle, &instruction, CS_GRP_BRANCH_RELATIVE);
  if (!is_jump) return 0;
  const std::string_view operands(static_cast<const char*>(instruction.op_str));
  const std::size_t digits = operands.rfind("0x");
  if (digits == std::string_view::npos || operands.find('[') != std::string_view::npos) return 0;
  std::uint64_t target = 0;
  const char* const end = operands.data() + operands.size();
  const auto [stop, failure] = std::from_chars(operands.data() + digits + 2, end, target, 16);
  return failure == std::errc() && stop == end ? target : 0;
}

}  // namespace

void Disassembler::Close::operator()(const std::size_t* handle) const {
  csh closing = *handle;
  cs_close(&closing);
  std::default_delete<const std::size_t>{}(handle);
}

Result<Disassembler> Disassembler::open(Architecture architecture) {
  static_assert(sizeof(csh) == sizeof(std::size_t));
  csh handle = 0;
  const bool is_x86 = architecture != Architecture::aarch64;
  const cs_mode width = architecture == Architecture::i386 ? CS_MODE_32 : CS_MODE_64;
  const cs_err failure =
      is_x86 ? cs_open(CS_ARCH_X86, width, &handle) : cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle);
  if (failure != CS_ERR_OK)
    return make_error(ErrorCode::unsupported, "disassemble: {}", cs_strerror(failure));
  cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);  // which instructions are jumps
  return Disassembler(Handle(std::make_unique<const std::size_t>(handle).release()), is_x86 ? 1 : 4);
}

std::vector<Instruction> Disassembler::disassemble(std::span<const std::byte> code,
                                                   std::uint64_t address) const {
  std::vector<Instruction> instructions;
  const std::unique_ptr<cs_insn, FreeInstruction> decoded(cs_malloc(*handle_));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  while (left > 0 && decoded != nullptr) {
    const auto here = code.subspan(code.size() - left);
    if (cs_disasm_iter(*handle_, &bytes, &left, &address, decoded.get())) {
      const std::string_view operands(static_cast<const char*>(decoded->op_str));
      std::string text = static_cast<const char*>(decoded->mnemonic);
      if (!operands.empty()) text += fmt::format(" {}", operands);
      instructions.push_back(
          {decoded->address, decoded->size, std::move(text), jump_target(*handle_, *decoded)});
      continue;
    }
    const std::size_t skipped = std::min(smallest_, left);
    instructions.push_back({address, skipped, data_text(here.first(skipped)), 0});
    bytes += skipped;
    left -= skipped;
    address += skipped;
  }
  return instructions;
}

}  // namespace ddprof
