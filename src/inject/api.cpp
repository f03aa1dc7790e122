// include/ddprof.h: the functions that a program calls to be profiled.

#include "ddprof.h"
#include "inject/hooks.hpp"
#include "inject/lock.hpp"
#include "inject/session.hpp"
#include "inject/thread_labels.hpp"

namespace inject {

namespace {

constinit Session the_session{};

uint32_t session_holder;

class Turn {
 public:
  Turn() : lock_(session_holder) { the_session.look_around(); }

 private:
  Lock lock_;
};

// Of this version: what an older program does not know is not set, and what a newer one sets must not be
// passed over.
bool read_options(const ddprof_options* given, ddprof_options& options) {
  if (given == nullptr) return true;
  const auto* bytes = reinterpret_cast<const char*>(given);
  if (given->size < sizeof given->size) {
    set_last_error("ddprof_options.size is not set");
    return false;
  }
  for (size_t i = 0; i < given->size; ++i) {
    if (i < sizeof options) {
      reinterpret_cast<char*>(&options)[i] = bytes[i];
    } else if (bytes[i] != 0) {
      set_last_error("ddprof_options has fields that this libddprof.so does not know");
      return false;
    }
  }
  return true;
}

}  // namespace

}  // namespace inject

using namespace inject;  // NOLINT: only what the program sees is below

DDPROF_EXPORT int ddprof_start(const ddprof_options* given) {
  const Turn turn;
  ddprof_options options{};
  return read_options(given, options) && the_session.start(options) ? 0 : -1;
}

DDPROF_EXPORT int ddprof_stop() {
  const Turn turn;
  return the_session.stop() ? 0 : -1;
}

DDPROF_EXPORT int ddprof_flush() {
  const Turn turn;
  return the_session.flush() ? 0 : -1;
}

DDPROF_EXPORT int ddprof_status() {
  const Turn turn;
  return the_session.status();
}

DDPROF_EXPORT const char* ddprof_last_error() { return last_error(); }

DDPROF_EXPORT int ddprof_label_set(const char* key, const char* value) {
  return set_label(key, value != nullptr ? value : "") ? 0 : -1;
}

DDPROF_EXPORT int ddprof_label_clear(const char* key) {
  if (key != nullptr) return set_label(key, "") ? 0 : -1;
  clear_labels();
  return 0;
}
