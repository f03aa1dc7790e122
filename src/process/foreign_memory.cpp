#include "process/foreign_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/call_within.hpp"
#include "base/clock.hpp"
#include "base/read_file.hpp"
#include "process/confinement.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kFirstBlock =
    1s;  // of a user with a process that made a helper hang, doubled each time
constexpr std::uint32_t kMostDoublings = 12;
constexpr std::size_t kMostProcesses = 65'536;  // whose user is remembered

// Runs, or would if it had a CPU. A thread that does not, and owes an answer, waits for what it reads.
bool is_runnable(std::int32_t tid) {
  const auto text = read_proc_file(Pid{::getpid()}, fmt::format("task/{}/stat", tid));
  const std::size_t name_end = text ? text->rfind(") ") : std::string::npos;
  return name_end != std::string::npos && text->compare(name_end + 2, 1, "R") == 0;
}

}  // namespace

struct ForeignMemory::Helper {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<std::int32_t> tid{0};
  Work work;
  Answer answer;  // the helper's from question to answer, then the caller's
  bool is_asked = false;
  bool is_answered = false;
  bool is_dismissed = false;
  bool has_ended = false;

  void serve() {
    tid = ::gettid();
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_asked || is_dismissed; });
      if (!is_asked) break;
      is_asked = false;
      const Work current = std::move(work);
      lock.unlock();
      current(answer);
      lock.lock();
      if (is_dismissed) break;
      is_answered = true;
      lock.unlock();  // who is woken, on the same CPU, need not wait again
      changed.notify_one();
      lock.lock();
    }
    has_ended = true;
  }
  void dismiss() {
    const std::lock_guard lock(mutex);
    is_dismissed = true;
    changed.notify_one();
  }
};

ForeignMemory::ForeignMemory() : ForeignMemory(Limits()) {}
ForeignMemory::ForeignMemory(Limits limits, Read read) : limits_(limits), read_(std::move(read)) {}
ForeignMemory::~ForeignMemory() {
  if (helper_) helper_->dismiss();
}

std::size_t ForeignMemory::read_with_system_call(Pid pid, Address from, std::span<std::byte> into) {
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(from.value), into.size()};  // NOLINT: their address
  const ssize_t count = ::process_vm_readv(to_int(pid), &local, 1, &remote, 1, 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

std::size_t ForeignMemory::read(Pid pid, Address from, std::span<std::byte> into) {
  const std::size_t size = into.size();
  const auto answer = ask(pid, size, [read = read_, pid, from, size](Answer& out) {
    if (out.buffer.size() < size) out.buffer.resize(size);
    out.size = std::min(read(pid, from, std::span(out.buffer).first(size)), size);
  });
  if (!answer || answer->empty()) return 0;
  std::memcpy(into.data(), answer->data(), answer->size());
  return answer->size();
}

std::size_t ForeignMemory::read_stack(Pid pid, Address from, std::span<std::byte> into) {
  const auto user = user_of(pid);
  if (!user || user != limits_.own_user) return read(pid, from, into);
  return std::min(read_(pid, from, into), into.size());
}

Result<std::string> ForeignMemory::read_file(Pid pid, const std::string& name, std::size_t max_bytes) {
  const std::string path = proc_path(pid, name);
  if (!user_of(pid)) return make_error(ErrorCode::not_found, "read {}: the process has ended", path);
  auto failure = std::make_shared<std::optional<Error>>();
  const auto answer = ask(pid, 0, [path, max_bytes, failure](Answer& out) {
    auto text = ddprof::read_file(path, max_bytes);
    if (!text.ok()) *failure = text.error();
    const std::string content = std::move(text).value_or("");
    const auto view = std::as_bytes(std::span(content));
    out.buffer.assign(view.begin(), view.end());
    out.size = view.size();
  });
  if (!answer) return make_error(ErrorCode::exhausted, "read {}: its memory is not read", path);
  if (*failure) return std::move(**failure);
  return std::string(reinterpret_cast<const char*>(answer->data()), answer->size());
}

std::optional<std::span<const std::byte>> ForeignMemory::ask(Pid pid, std::size_t bytes, Work work) {
  const auto number = user_of(pid);
  if (!number) return std::nullopt;
  User& user = users_[*number];
  const Nanoseconds asked_at = monotonic_now();
  if (given_up_.contains(to_int(pid)) || !may_read(*number, user, bytes, asked_at)) return std::nullopt;
  if (!helper_) {
    auto helper = std::make_shared<Helper>();
    auto thread = start_quiet_thread([helper] { helper->serve(); });
    if (!thread.joinable()) return std::nullopt;
    thread.detach();
    helper_ = std::move(helper);
  }
  {
    const std::lock_guard lock(helper_->mutex);
    helper_->work = std::move(work);
    helper_->is_asked = true;
    helper_->is_answered = false;
  }
  helper_->changed.notify_one();
  const bool is_answered = wait_for_answer(*helper_);
  const Nanoseconds answered_at = monotonic_now();
  user.bytes += bytes;
  user.waited += answered_at - asked_at;
  if (is_answered) return std::span(helper_->answer.buffer).first(helper_->answer.size);
  helper_->dismiss();
  hung_.push_back({std::exchange(helper_, nullptr), *number});
  given_up_.insert(to_int(pid));
  user.blocked_until = answered_at + kFirstBlock * (1U << std::min(user.hangs, kMostDoublings));
  ++user.hangs;
  return std::nullopt;
}

bool ForeignMemory::wait_for_answer(Helper& helper) const {
  const Nanoseconds latest = monotonic_now() + limits_.longest_patience;
  std::unique_lock lock(helper.mutex);
  while (!helper.changed.wait_for(lock, limits_.patience, [&] { return helper.is_answered; })) {
    if (!is_runnable(helper.tid) || monotonic_now() >= latest) return false;
  }
  return true;
}

// An effective user that changes is noticed with the next exec: only then is the process another's to write.
std::optional<std::uint32_t> ForeignMemory::user_of(Pid pid) {
  const auto known = users_of_.find(to_int(pid));
  if (known != users_of_.end()) return known->second;
  const auto user = read_effective_user(pid);
  if (users_of_.size() >= kMostProcesses) users_of_.clear();
  if (user) users_of_[to_int(pid)] = *user;
  return user;
}

bool ForeignMemory::may_read(std::uint32_t number, User& user, std::size_t bytes, Nanoseconds now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != user.second) {
    user.second = second;
    user.bytes = 0;
    user.waited = {};
  }
  const bool has_used_it_up =
      user.waited > limits_.waiting_per_second || user.bytes + bytes > limits_.bytes_per_second;
  if (now < user.blocked_until || (has_used_it_up && number != limits_.own_user)) return false;
  if (!hung_.empty()) forget_returned();
  return hung_.empty() || (hung_.size() < limits_.hung_of_all && hung_of(number) < limits_.hung);
}

std::size_t ForeignMemory::hung_of(std::uint32_t user) const {
  return static_cast<std::size_t>(
      std::count_if(hung_.begin(), hung_.end(), [&](const Hung& hung) { return hung.user == user; }));
}

void ForeignMemory::forget_returned() {
  std::erase_if(hung_, [](const Hung& hung) {
    const std::lock_guard lock(hung.helper->mutex);
    return hung.helper->has_ended;
  });
}

void ForeignMemory::forget(Pid pid) {
  users_of_.erase(to_int(pid));
  given_up_.erase(to_int(pid));
}

std::size_t ForeignMemory::hung() {
  forget_returned();
  return hung_.size();
}

}  // namespace ddprof
