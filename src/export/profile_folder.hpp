#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "export/destination.hpp"

namespace ddprof {

struct FolderLimits {
  std::size_t files = 1000;
  std::uint64_t bytes = std::uint64_t{1} << 30U;
};

inline constexpr std::string_view kIndexName = "index.jsonl";

// One line of a folder's index.
struct IndexEntry {
  std::string file;  // its name
  std::uint64_t bytes = 0;
  std::string line;  // as JSON, with what else is known of it
};

// The entries of an index. Lines that nobody here has written are left out.
std::vector<IndexEntry> read_index(std::string_view text);

// A file for each batch, PREFIX-000000.pb.gz and so on, and an index beside them that says which times they
// cover and what they hold. When there are too many files in the index, or too many bytes, the oldest are
// removed, of earlier runs too. Several processes may write into one folder.
class ProfileFolder final : public Destination {
 public:
  // Fails at once when nothing could be written later.
  static Result<ProfileFolder> create(std::string prefix, FolderLimits limits = {});

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return prefix_ + "-*.pb.gz"; }

 private:
  ProfileFolder(std::string prefix, FolderLimits limits) : prefix_(std::move(prefix)), limits_(limits) {}

  [[nodiscard]] Result<void> note(IndexEntry entry) const;

  std::string prefix_;
  FolderLimits limits_;
};

}  // namespace ddprof
