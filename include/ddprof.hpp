// ddprof.h for C++: options that know their size, a session and a label that end with their scope. Header
// only, C++11.
#ifndef DDPROF_HPP
#define DDPROF_HPP

#include <string>
#include <utility>

#include "ddprof.h"

namespace ddprof {

struct Options : ddprof_options {
  Options() : ddprof_options() { size = sizeof(ddprof_options); }
};

// Profiles this process while it lives. A program that cannot be profiled goes on without: ask it.
class Session {
 public:
  explicit Session(const Options& options = Options()) : is_started_(ddprof_start(&options) == 0) {}
  ~Session() {
    if (is_started_) ddprof_stop();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Whether the profiler has attached; if not, ddprof_last_error() says why.
  explicit operator bool() const { return is_started_; }

 private:
  bool is_started_;
};

// A label of the calling thread, which has to be the one that ends it. An inner one with the same key
// replaces the outer one, and when it ends there is none.
class Label {
 public:
  Label(std::string key, const std::string& value) : key_(std::move(key)) {
    ddprof_label_set(key_.c_str(), value.c_str());
  }
  ~Label() { ddprof_label_clear(key_.c_str()); }
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;

 private:
  std::string key_;
};

}  // namespace ddprof

#endif
