#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"
#include "symbol/code_names.hpp"

// Whatever a file of cached names holds, looking things up in it and writing it again stays inside of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  UniqueFd fd(::memfd_create("names", MFD_CLOEXEC));
  if (::write(fd.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  auto region = MappedRegion::map_file(fd.get());
  if (!region) return 0;
  auto names = CodeNames::from_image(*std::move(region), "k");
  if (!names) return 0;
  for (std::uint64_t address : {0U, 0x1000U, 0x2000U}) (void)names->find(address);
  (void)names->image("k");
  return 0;
}
