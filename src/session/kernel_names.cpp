#include "session/kernel_names.hpp"

#include <string_view>
#include <tuple>
#include <utility>

#include "base/private_folder.hpp"
#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr const char* kFileName = "kernel-symbols";

// Addresses are the same until the machine is started anew, and only until then.
std::string kernel_key() {
  auto boot = read_file("/proc/sys/kernel/random/boot_id");
  return boot ? boot->substr(0, boot->find('\n')) : "";
}

Result<KernelSymbols> load_image(const PrivateFolder& folder, std::string_view key) {
  return KernelSymbols::from_image(TRY(folder.read(kFileName)), key);
}

}  // namespace

void KernelNames::read_kernel() {
  source_ = Source::kernel;
  KernelSymbolsParser parser;
  if (read_pieces(kallsyms_, [&](std::string_view piece) { parser.add(piece); }))
    symbols_ = std::move(parser).finish();
}

void KernelNames::load() {
  const std::string key = cache_folder_.empty() ? "" : kernel_key();
  auto folder = key.empty() ? PrivateFolder() : PrivateFolder::open(cache_folder_).value_or({});
  if (!folder.is_open()) return read_kernel();
  if (auto cached = load_image(folder, key)) {
    source_ = Source::cache;
    symbols_ = *std::move(cached);
    return;
  }
  read_kernel();
  // A disk without room costs the next run some time, and nothing else.
  if (!symbols_.empty()) std::ignore = folder.write(kFileName, symbols_.image(key));
}

std::optional<KernelSymbol> KernelNames::find(std::uint64_t address) {
  if (source_ == Source::none) load();
  auto symbol = symbols_.find(address);
  if (!symbol && source_ == Source::cache) {
    read_kernel();
    symbol = symbols_.find(address);
  }
  return symbol;
}

}  // namespace ddprof
