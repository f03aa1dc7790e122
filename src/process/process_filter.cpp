#include "process/process_filter.hpp"

#include <fnmatch.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/nearest.hpp"

namespace ddprof {

namespace {

constexpr std::array<std::string_view, 5> kFactNames = {"name", "user", "cgroup", "container", "service"};

Result<std::uint32_t> parse_user(const std::string& text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return static_cast<std::uint32_t>(found->pw_uid);
  return make_error(ErrorCode::invalid_argument, "no user of that name here; a number works everywhere");
}

bool is_expression(const std::string& value) {
  return value.size() > 2 && value.starts_with('/') && value.ends_with('/');
}

Result<std::vector<ProcessCondition>> parse_all(const std::vector<std::string>& texts,
                                                std::string_view option) {
  std::vector<ProcessCondition> conditions;
  for (const std::string& text : texts) {
    auto condition = ProcessCondition::parse(text);
    if (!condition) {
      return make_error(ErrorCode::invalid_argument, "--{} {}: {}", option, text, condition.error().message);
    }
    conditions.push_back(std::move(condition).value());
  }
  return conditions;
}

}  // namespace

FilterFacts gather_facts(ProcessTable& processes, Process& process) {
  processes.identify(process);
  processes.read_user(process);
  FilterFacts facts{
      .name = process.name, .executable = read_executable_name(process.pid), .user = process.user};
  if (process.confinement) {
    facts.cgroup = process.confinement->cgroup;
    facts.container_id = process.confinement->container_id;
  }
  facts.service = process.started->program;
  return facts;
}

Result<ProcessCondition> ProcessCondition::parse(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string_view fact = std::string_view(text).substr(0, colon);
  const auto known = std::find(kFactNames.begin(), kFactNames.end(), fact);
  if (colon == std::string::npos)
    return make_error(ErrorCode::invalid_argument,
                      "must be one of {}, a colon and a value, such as name:redis*",
                      fmt::join(kFactNames, ", "));
  if (known == kFactNames.end()) {
    return make_error(ErrorCode::invalid_argument, "{}: must be one of {}{}", fact,
                      fmt::join(kFactNames, ", "), did_you_mean(fact, kFactNames));
  }
  const std::string value = text.substr(colon + 1);
  if (value.empty()) return make_error(ErrorCode::invalid_argument, "needs a value behind the colon");
  return parse_value(static_cast<Fact>(known - kFactNames.begin()), value);
}

Result<ProcessCondition> ProcessCondition::parse_value(Fact fact, const std::string& value) {
  ProcessCondition condition;
  condition.fact_ = fact;
  condition.value_ = value;
  if (fact == Fact::user) {
    condition.user_ = TRY(parse_user(value));
  } else if (fact == Fact::container) {
    if (value.find_first_not_of("0123456789abcdef-_") != std::string::npos)
      return make_error(ErrorCode::invalid_argument, "must be the beginning of a container's id");
  } else if (is_expression(value)) {
    condition.pattern_ = TRY(TextPattern::compile(value.substr(1, value.size() - 2)));
  }
  return condition;
}

bool ProcessCondition::matches_text(const std::string& text) const {
  if (text.empty()) return false;
  return pattern_ ? pattern_->matches(text) : ::fnmatch(value_.c_str(), text.c_str(), 0) == 0;
}

bool ProcessCondition::matches(const FilterFacts& facts) const {
  switch (fact_) {
    case Fact::name:
      return matches_text(facts.name) || matches_text(facts.executable);
    case Fact::user:
      return facts.user == user_;
    case Fact::cgroup:
      return matches_text(facts.cgroup);
    case Fact::container:
      return facts.container_id.starts_with(value_);
    case Fact::service:
      return matches_text(facts.service);
  }
  return false;
}

Result<ProcessFilter> ProcessFilter::parse(const std::vector<std::string>& include,
                                           const std::vector<std::string>& exclude) {
  ProcessFilter filter;
  filter.include_ = TRY(parse_all(include, "include"));
  filter.exclude_ = TRY(parse_all(exclude, "exclude"));
  return filter;
}

bool ProcessFilter::admits(const FilterFacts& facts) const {
  const auto matches = [&](const ProcessCondition& condition) { return condition.matches(facts); };
  if (std::any_of(exclude_.begin(), exclude_.end(), matches)) return false;
  return include_.empty() || std::any_of(include_.begin(), include_.end(), matches);
}

}  // namespace ddprof
