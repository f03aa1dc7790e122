#include "encode/speedscope_title.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kSeparator = " · ";
constexpr std::string_view kSum = "all threads";
constexpr std::string_view kNameless = "samples";  // of a thread without a name
constexpr std::string_view kTid = "tid ", kPid = "pid ";

void append_part(std::string& title, std::string_view prefix, std::string_view part) {
  if (part.empty()) return;
  title += prefix;
  title += part;
  title += kSeparator;
}

// Takes the part before the next separator off `text`; the rest when there is none.
std::string_view take_part(std::string_view& text) {
  const std::size_t end = text.find(kSeparator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + kSeparator.size());
  return part;
}

}  // namespace

std::string speedscope_title(const SpeedscopeTitle& title) {
  std::string text;
  append_part(text, "", title.is_sum ? kSum : title.thread.empty() ? kNameless : title.thread);
  append_part(text, kTid, title.tid);
  append_part(text, "", title.process);
  append_part(text, kPid, title.pid);
  return text + title.column;
}

SpeedscopeTitle parse_speedscope_title(std::string_view text) {
  SpeedscopeTitle title;
  const std::size_t last = text.rfind(kSeparator);
  if (last == std::string_view::npos) return {.thread = std::string(text)};
  title.column = text.substr(last + kSeparator.size());
  text = text.substr(0, last);
  const std::string_view thread = take_part(text);
  title.is_sum = thread == kSum && text.empty();
  if (thread != kNameless) title.thread = thread;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    if (part.starts_with(kTid)) {
      title.tid = part.substr(kTid.size());
    } else if (part.starts_with(kPid)) {
      title.pid = part.substr(kPid.size());
    } else {
      title.process = part;
    }
  }
  return title;
}

}  // namespace ddprof
