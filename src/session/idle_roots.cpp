#include "session/idle_roots.hpp"

#include <algorithm>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxChildren = 65536;  // beyond, they are many

}  // namespace

void IdleRoots::name(const ProcessTable& processes) {
  const Process* first = roots_.empty() ? nullptr : processes.find(roots_.front());
  if (first != nullptr) name_ = first->name;
}

void IdleRoots::add_other(Pid pid) {
  last_ = pid;
  if (has_busy_root_) return;
  has_busy_root_ = std::find(roots_.begin(), roots_.end(), pid) != roots_.end();
  has_busy_child_ = has_busy_child_ || !has_busy_root_;
  if (!has_busy_root_ && children_.size() < kMaxChildren) children_.insert(to_int(pid));
}

void IdleRoots::resume(const SessionHandover& handover) {
  is_first_worker_ = handover.sequence == 0;
  has_busy_root_ = handover.has_busy_root;
  has_busy_child_ = handover.has_busy_child;
}

void IdleRoots::hand_over(SessionHandover& handover) const {
  handover.has_busy_root = has_busy_root_;
  handover.has_busy_child = has_busy_child_;
}

std::string IdleRoots::notice() const {
  if (roots_.empty() || has_busy_root_ || !has_busy_child_) return {};
  const std::string who = roots_.size() == 1
                              ? fmt::format("process {} was", describe_process(roots_.front(), name_))
                              : fmt::format("the {} processes that were named were", roots_.size());
  const std::string_view whose = roots_.size() == 1 ? "it" : "they";
  // Those of earlier workers are not known one by one.
  const std::string number = is_first_worker_ && children_.size() < kMaxChildren
                                 ? fmt::format("{} ", children_.size())
                                 : std::string();
  return fmt::format("{} idle: all samples are of {}process{} that {} started", who, number,
                     children_.size() == 1 && !number.empty() ? "" : "es", whose);
}

}  // namespace ddprof
