#include "cli/option_rules.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "cli/option_table.hpp"
#include "process/process_filter.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kNameFact = "name:";
constexpr std::int32_t kLargestPid = 4194304;  // PID_MAX_LIMIT of the kernel

// "12,34"
Result<std::vector<std::int32_t>> parse_numbers(std::string_view text) {
  std::vector<std::int32_t> numbers;
  const std::string_view all = text;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    std::int32_t number = 0;
    const auto [stop, failure] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = failure == std::errc() && stop == part.data() + part.size();
    if (!is_number || number < 1 || number > kLargestPid)
      return with_hint(
          make_error(ErrorCode::invalid_argument,
                     "--pid {}: must be whole numbers from 1 to {}, or name:GLOB", all, kLargestPid),
          "-p 12,34 or -p name:nginx");
    numbers.push_back(number);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

bool is_by_name(const std::string& text) { return text.starts_with(kNameFact); }

// A name that means itself: no glob, no expression between slashes.
bool is_literal(std::string_view name) { return name.find_first_of("*?[]\\/") == std::string_view::npos; }

}  // namespace

Result<void> check_attach(const Options& options) {
  if (is_attaching(options) && options.global)
    return make_error(ErrorCode::invalid_argument, "{} and -g: choose one",
                      options.pids.empty() ? "--container" : "-p");
  if (!options.pids.empty() && !options.container.empty())
    return make_error(ErrorCode::invalid_argument, "-p and --container: choose one");
  for (const std::string& text : options.pids) {
    if (!is_by_name(text)) {
      TRY(parse_numbers(text));
    } else if (auto condition = ProcessCondition::parse(text); !condition) {
      return make_error(ErrorCode::invalid_argument, "--pid {}: {}", text, condition.error().message);
    }
  }
  const bool has_choice = origin_of(options, "children").kind == Origin::Kind::command_line;
  if (has_choice && !is_attaching(options))
    return make_error(ErrorCode::invalid_argument,
                      "--children: is for processes that run already: -p, --container");
  return {};
}

Result<AttachChoice> choose_processes(const Options& options, const ProcessSearch& search) {
  AttachChoice choice;
  if (!options.container.empty()) {
    auto container = TRY(search.by_container(options.container));
    choice.pids = std::move(container.pids);
    if (container.is_named) choice.name = options.container;
    return choice;
  }
  for (const std::string& text : options.pids) {
    std::vector<Pid> found;
    if (is_by_name(text)) {
      found = TRY(search.by_name(text));
      const std::string name = text.substr(kNameFact.size());
      if (choice.pids.empty() && is_literal(name)) choice.name = name;
    } else {
      for (const std::int32_t number : TRY(parse_numbers(text)))
        found.push_back(TRY(search.by_number(number)));
    }
    for (const Pid pid : found)
      if (std::find(choice.pids.begin(), choice.pids.end(), pid) == choice.pids.end())
        choice.pids.push_back(pid);
  }
  return choice;
}

std::string attach_text(const Options& options) {
  if (!options.container.empty()) return "--container " + options.container;
  return fmt::format("-p {}", fmt::join(options.pids, " -p "));
}

}  // namespace ddprof
