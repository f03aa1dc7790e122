#pragma once

#include <optional>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/perf/custody.hpp"

namespace ddprof {

// Carries custody notes, and the descriptors that belong to them, from a worker to its supervisor. The end of
// file means that the worker is gone.
struct NoteChannel {
  UniqueFd supervisor_end;
  UniqueFd worker_end;

  static Result<NoteChannel> open();
};

void send_note(int worker_end, const CustodyNote& note, int fd);

struct ReceivedNote {
  enum class Kind { note, nothing_yet, closed };
  Kind kind = Kind::closed;
  CustodyNote note;
  UniqueFd fd;
};
// Does not wait. What is no note counts as nothing; an empty packet as the end of file.
ReceivedNote receive_note(int supervisor_end);

}  // namespace ddprof
