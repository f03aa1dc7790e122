#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/collector.hpp"

namespace ddprof {

// Carries the notes of a collector (Handover) and their descriptors from a worker to its supervisor. The end
// of file means that the worker is gone.
struct NoteChannel {
  UniqueFd supervisor_end;
  UniqueFd worker_end;

  static Result<NoteChannel> open();
};

void send_note(int worker_end, std::span<const std::byte> note, int fd);

struct ReceivedNote {
  enum class Kind { note, nothing_yet, closed };
  Kind kind = Kind::closed;
  std::array<std::byte, Handover::kMaxNoteBytes> bytes{};
  std::size_t size = 0;
  UniqueFd fd;

  [[nodiscard]] std::span<const std::byte> note() const { return std::span(bytes).first(size); }
};
// Does not wait. What is too long for a note counts as nothing; an empty packet as the end of file.
ReceivedNote receive_note(int supervisor_end);

}  // namespace ddprof
