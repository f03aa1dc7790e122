#include <fmt/format.h>

#include <algorithm>

#include "encode/human_value.hpp"
#include "profile/snapshot.hpp"
#include "report/headline.hpp"

namespace ddprof {

namespace {

constexpr std::int64_t kFewSamples = 100;
constexpr double kMuchMissed = 0.1;
constexpr double kNearlyAllCalls = 0.9;
constexpr double kWorthNaming = 0.1;

// The sentence is put together from its parts: how much of what, where, from where, and how sure that is.
class Sentence {
 public:
  Sentence(const Headline& headline, const ShortName& short_name)
      : headline_(headline), short_name_(short_name) {}

  [[nodiscard]] std::string text() const {
    if (headline_.whole == 0) return "Nothing was sampled.";
    if (headline_.kind == Headline::Kind::nothing)
      return headline_.missed == headline_.whole
                 ? fmt::format("{} has no stacks: {}", headline_.noun, headline_.missed_reason)
                 : "";
    return process() + missed() + body() + headline_.growth + caveat();
  }

 private:
  [[nodiscard]] std::string percent(std::int64_t value) const {
    return round_percent(value, headline_.whole);
  }

  // "89 % of CPU"; behind the share of a process, "89 % of that"; behind what was missed, "89 %".
  [[nodiscard]] std::string of_it(std::int64_t value) const {
    if (is_much_missed() && value != headline_.missed) return percent(value);
    return fmt::format("{} of {}", percent(value), headline_.process.empty() ? headline_.noun : "that");
  }

  [[nodiscard]] std::string process() const {
    if (headline_.process.empty()) return "";
    return fmt::format("{} of {} in process {}, ", round_percent(headline_.whole, headline_.all_processes),
                       headline_.noun, headline_.process);
  }

  [[nodiscard]] std::string missed() const {
    if (!is_much_missed()) return "";
    return fmt::format("{} has no whole stack ({}); ", of_it(headline_.missed), headline_.missed_reason);
  }

  [[nodiscard]] bool is_much_missed() const {
    return static_cast<double>(headline_.missed) >= kMuchMissed * static_cast<double>(headline_.whole);
  }

  [[nodiscard]] std::string caveat() const {
    if (headline_.samples == 0 || headline_.samples >= kFewSamples) return "";
    return fmt::format("; only {}", plural(static_cast<std::size_t>(headline_.samples), "sample", "samples"));
  }

  // "shop::is_blocked (shop.cpp:56)"
  [[nodiscard]] std::string named(const Payer& payer) const {
    if (payer.is_unnamed && payer.module.starts_with("[anon"))
      return "code of a JIT compiler, which has no names";
    if (payer.is_unnamed)
      return fmt::format("{}, which has no symbols", payer.name.empty() ? "code" : short_name_(payer.name));
    std::string text = short_name_(payer.name);
    if (!payer.file.empty()) {
      text += fmt::format(" ({}", base_name(payer.file));
      if (payer.line > 0) text += fmt::format(":{}", payer.line);
      return text + ")";
    }
    return payer.is_own || payer.module.empty() ? text : fmt::format("{} ({})", text, payer.module);
  }

  [[nodiscard]] std::string relations(const Payer& payer) const {
    std::string text;
    if (!payer.callee.empty())
      text += payer.callee == payer.callee_module
                  ? fmt::format(", mostly in {}", payer.callee)
                  : fmt::format(", mostly in {} ({})", short_name_(payer.callee), payer.callee_module);
    if (payer.caller.empty()) return text;
    const bool is_most =
        static_cast<double>(payer.caller_value) < kNearlyAllCalls * static_cast<double>(payer.value);
    return text + fmt::format(", called {}by {}", is_most ? "mostly " : "", short_name_(payer.caller));
  }

  [[nodiscard]] std::string body() const {
    const std::vector<Payer>& payers = headline_.payers;
    switch (headline_.kind) {
      case Headline::Kind::nothing:
        return "";
      case Headline::Kind::one:
        return fmt::format("{} {} {}{}", of_it(payers[0].value), headline_.verb, named(payers[0]),
                           relations(payers[0]));
      case Headline::Kind::several:
        return several();
      case Headline::Kind::spread:
        return spread();
      case Headline::Kind::kernel:
        return kernel();
      case Headline::Kind::library:
      case Headline::Kind::interpreter:
        return foreign();
    }
    return "";
  }

  // As many as have a tenth, three at most.
  [[nodiscard]] std::string several() const {
    std::string text;
    for (std::size_t at = 0; at < std::min<std::size_t>(headline_.payers.size(), 3); ++at) {
      const Payer& payer = headline_.payers[at];
      if (at > 0 && static_cast<double>(payer.value) < kWorthNaming * static_cast<double>(headline_.whole))
        break;
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ",
                          at == 0 ? of_it(payer.value) : percent(payer.value),
                          at == 0 || headline_.verb == "in" ? headline_.verb : "by", named(payer));
    }
    return text;
  }

  [[nodiscard]] std::string spread() const {
    const Payer& largest = headline_.payers.front();
    std::string text = fmt::format("{}spread over {}, the largest {} ({})",
                                   headline_.process.empty() ? headline_.noun + " is " : "",
                                   plural(headline_.payer_count, "function", "functions"),
                                   percent(largest.value), short_name_(largest.name));
    if (!headline_.under.empty())
      text += fmt::format("; {} below {}", percent(headline_.under_value), short_name_(headline_.under));
    return text;
  }

  [[nodiscard]] std::string kernel() const {
    std::string text = fmt::format("{} in the kernel", of_it(headline_.kernel_value));
    if (static_cast<double>(headline_.system_call_value) >=
        kWorthNaming * static_cast<double>(headline_.kernel_value))
      text += fmt::format(", {} in {}", percent(headline_.system_call_value), headline_.system_call);
    const Payer& payer = headline_.payers.front();
    return text +
           fmt::format(", {} of all for {}{}", percent(payer.value), named(payer),
                       payer.caller.empty() ? "" : fmt::format(", called by {}", short_name_(payer.caller)));
  }

  [[nodiscard]] std::string foreign() const {
    std::string text = of_it(headline_.module_value);
    if (headline_.kind == Headline::Kind::interpreter) {
      text += fmt::format(" in the interpreter {}", headline_.module);
    } else {
      text += fmt::format(" in {}, not called by the program's own code",
                          headline_.module.empty() ? "the kernel" : headline_.module);
    }
    const Payer& payer = headline_.payers.front();
    return payer.is_unnamed ? text
                            : text + fmt::format("; {} in {}", percent(payer.value), short_name_(payer.name));
  }

  const Headline& headline_;
  const ShortName& short_name_;
};

}  // namespace

std::string noun_of_type(std::string_view type, std::int64_t whole, std::string_view unit) {
  if (type == "cpu") return "CPU";
  const auto amount = [&] { return human_value(whole, unit) + (unit == "bytes" ? "" : " objects"); };
  if (type.starts_with("alloc")) return amount() + " allocated";
  if (is_snapshot(type)) return amount() + " live";
  std::string noun(type);
  std::replace_if(
      noun.begin(), noun.end(), [](char letter) { return letter == '-' || letter == '_'; }, ' ');
  return noun.starts_with("cpu ") ? "CPU" + noun.substr(3) : noun;
}

std::string round_percent(std::int64_t part, std::int64_t whole) {
  const double percent = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.95 && percent > 0 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string headline_text(const Headline& headline, const ShortName& short_name) {
  return Sentence(headline, short_name).text();
}

}  // namespace ddprof
