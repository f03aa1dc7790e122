#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/ids.hpp"

namespace ddprof {

// Runs for the sampling thread what reads files: it opens, verifies and compiles them, which takes long and
// may hang. A job belongs to the user of a process that maps the file. The jobs of one user run one after the
// other, those of several users beside each other, so that a file system that hangs delays the files of one
// user. A job that takes longer than `patience` has hung: the next one of that user no longer waits for it.
//
// While the sampling thread waits for a job nothing empties the rings, and they hold less than a second. So
// it waits at most `most_waiting` of each second; for large files, and for files of one user other than root,
// half of that.
class FileThreads {
 public:
  using User = std::optional<std::uint32_t>;  // none: unknown
  using Job = std::function<void()>;
  enum class Urgency : std::uint8_t { now, later };  // now: before all other jobs of that user

  struct Limits {
    Nanoseconds most_waiting = std::chrono::milliseconds(300);
    Nanoseconds patience = std::chrono::seconds(2);  // more than that of PatientOpener for one file
    Nanoseconds last_patience = std::chrono::seconds(2);
    std::size_t threads = 8;  // that work at once
    std::size_t hung_of_user = 2;
    std::size_t hung = 16;
  };

  FileThreads();
  explicit FileThreads(const Limits& limits);
  // Drops what has not begun. A job that hangs is left behind.
  ~FileThreads();
  FileThreads(const FileThreads&) = delete;
  FileThreads& operator=(const FileThreads&) = delete;

  // A job owns all that it uses. False: too many jobs of this user hang, or there is no thread to be had.
  [[nodiscard]] bool post(User user, Job job, Urgency urgency = Urgency::now);
  // Until jobs have made `is_done` true, as far as the calling thread may still wait in this second. It is
  // asked again after each job.
  void wait(User user, bool is_large, const std::function<bool()>& is_done);
  // The same, but as long as that.
  void wait_for(Nanoseconds most, const std::function<bool()>& is_done);
  // How many jobs are done.
  [[nodiscard]] std::uint64_t finished() const;

 private:
  struct State;

  [[nodiscard]] Nanoseconds waiting_left(User user, bool is_large, Nanoseconds now);

  Limits limits_;
  std::shared_ptr<State> state_;  // of threads that are left behind too
  Nanoseconds second_{};          // that what follows is of
  Nanoseconds waited_{}, waited_for_large_{};
  absl::flat_hash_map<User, Nanoseconds> waited_for_;
};

}  // namespace ddprof
