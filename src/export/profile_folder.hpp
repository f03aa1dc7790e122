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

// The entries of an index. Lines that ddprof has not written are left out.
std::vector<IndexEntry> read_index(std::string_view text);

// When a run began, "20261116T065102Z", and something that no other run has, "9f3c21": two containers may
// start the same program with the same PID in the same second, and share a folder.
struct RunStamp {
  std::string time, random;

  static RunStamp at(Nanoseconds unix_time);
};

// Whose profiles they are, and how the names of their files begin. No two runs have the same prefix.
struct FolderRun {
  std::string prefix;  // a path: DIR/server-20261116T065102Z-4711-9f3c21
  std::string service = {};
  std::int64_t pid = 0;  // 0: of many processes
};

// A file for each batch, PREFIX-000000.pb.gz and so on, and an index beside them that says which times they
// cover and what they hold. No file is ever replaced: where a name is taken, another is chosen. When there
// are too many files in the index, or too many bytes, the oldest are removed, of earlier runs too. Several
// processes may write into one folder.
class ProfileFolder final : public Destination {
 public:
  // Fails at once when nothing could be written later.
  static Result<ProfileFolder> create(FolderRun run, FolderLimits limits = {}, Voice voice = {});

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return run_.prefix + "-*.pb.gz"; }

 private:
  ProfileFolder(FolderRun run, FolderLimits limits, Voice voice)
      : run_(std::move(run)), limits_(limits), voice_(std::move(voice)) {}

  Result<void> keep(const Batch& batch);
  Result<std::string> write_profile(const Batch& batch, const std::string& content) const;
  [[nodiscard]] IndexEntry entry_of(std::string file, std::size_t bytes, const Batch& batch) const;
  [[nodiscard]] Result<void> note(IndexEntry entry) const;

  FolderRun run_;
  FolderLimits limits_;
  Voice voice_;
  bool is_broken_ = false;  // the last profile could not be written, which was told
};

}  // namespace ddprof
