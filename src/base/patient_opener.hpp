#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/foreign_file.hpp"
#include "base/result.hpp"

namespace ddprof {

// Opens files on file systems that may hang: a dead NFS server, a stopped FUSE daemon. Waits for each at most
// its patience; the mount that made it wait is left alone from then on. Others go on, and so do other users:
// each call that hangs costs time and a thread, so a user has few of them, and each waits half as long as the
// one before. For one thread.
class PatientOpener {
 public:
  using Open = std::function<Result<ForeignFile>(const FileRequest&)>;
  static constexpr std::chrono::milliseconds kPatience{1000};
  // After this many nothing more is opened for that user; root's file systems are the administrator's.
  static constexpr std::size_t kMaxHungCallsOfUser = 4;
  // After this many nothing more is opened.
  static constexpr std::size_t kMaxHungCalls = 64;

  explicit PatientOpener(std::chrono::milliseconds patience = kPatience, Open open = open_foreign_file)
      : patience_(patience), open_(std::move(open)) {}

  // `exhausted` when the file system hangs, or did before.
  Result<ForeignFile> open(const FileRequest& request);

  // What is left alone, and for whom.
  struct HungPlace {
    std::string path;
    std::uint32_t user = 0;

    friend bool operator==(const HungPlace&, const HungPlace&) = default;
  };
  [[nodiscard]] const std::vector<HungPlace>& hung_places() const { return hung_places_; }

 private:
  [[nodiscard]] std::size_t hung_calls_of(std::uint32_t user) const;
  [[nodiscard]] bool is_left_alone(const HungPlace& place, std::string_view path) const;

  std::chrono::milliseconds patience_;
  Open open_;
  std::vector<HungPlace> hung_places_;
};

// Where the file system begins that the file is on, by the mount table of who lives there; the folder of the
// file when that is the root of all, or unknown: links may lead elsewhere, and one that hangs shall not take
// everything with it. And who answers for it: the user who serves it, else the one whose process it is.
[[nodiscard]] PatientOpener::HungPlace place_of(const FileRequest& request, std::string_view mountinfo);

}  // namespace ddprof
