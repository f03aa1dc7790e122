#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/call_within.hpp"
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
// The index of a folder; empty where there is none that can be believed: it is this user's or root's, or of
// the folder's owner, who alone can write there.
std::string read_index_file(const std::string& folder);

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

// One profile on its way into a folder.
struct FolderProfile {
  std::string content;
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::string rest_of_line;  // of its entry in the index, behind the file's name and size

  struct Written {
    std::string path;
    std::optional<Error> index;  // why the index does not have it
  };
  [[nodiscard]] Result<Written> write(const FolderRun& run, const FolderLimits& limits) const;
};

// A file for each batch, PREFIX-000000.pb.gz and so on, and an index beside them that says which times they
// cover and what they hold. No file is ever replaced: where a name is taken, another is chosen. When there
// are too many files in the index, or too many bytes, the oldest are removed, of earlier runs too. Several
// processes may write into one folder. In one that other users can write to, only an index and files of this
// user count. A file system that hangs is an error.
class ProfileFolder final : public Destination {
 public:
  static constexpr std::chrono::milliseconds kPatience{15'000};  // for one profile

  // Fails at once when nothing could be written later.
  static Result<ProfileFolder> create(FolderRun run, FolderLimits limits = {}, Voice voice = {});

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return run_.prefix + "-*.pb.gz"; }

 private:
  ProfileFolder(FolderRun run, FolderLimits limits, Voice voice)
      : run_(std::move(run)), limits_(limits), voice_(std::move(voice)) {}

  Result<void> keep(const Batch& batch);
  [[nodiscard]] std::string rest_of_line(const Batch& batch, const Profile& profile) const;

  FolderRun run_;
  FolderLimits limits_;
  Voice voice_;
  PatientCalls calls_{kPatience};
  bool is_broken_ = false;  // the last profile could not be written, and that was said
  bool is_indexed_ = true;  // the last profile is in the index
};

}  // namespace ddprof
