#include "cli/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "encode/display_text.hpp"
#include "encode/human_value.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMinWidth = 60;
constexpr double kHotShare = 0.1, kColdShare = 0.005;

// Red for what matters, grey for what does not.
std::string_view color_of(std::int64_t value, std::int64_t whole) {
  const double share =
      whole == 0 ? 0 : static_cast<double>(size_of_value(value)) / static_cast<double>(whole);
  if (share >= kHotShare) return "\x1b[31m";
  return share < kColdShare ? "\x1b[90m" : "";
}

}  // namespace

ReportPage::ReportPage(const ReportOptions& options, const ReportView& view)
    : width_(std::max(options.width, kMinWidth)),
      color_(options.color),
      unit_(view.unit),
      whole_(view.left.size) {}

void ReportPage::line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text_ += text + "\n";
}

void ReportPage::paragraph(std::string_view text) {
  const std::string clean = printable(text);
  std::string row;
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t end = std::min(clean.find(' ', at), clean.size());
    const std::string word = fit(std::string_view(clean).substr(at, end - at), width_);
    if (!row.empty() && display_width(row) + 1 + display_width(word) > width_)
      line(std::exchange(row, std::string()));
    row += (row.empty() ? "" : " ") + word;
    at = end + 1;
  }
  line(row);
}

void ReportPage::headline(std::string_view text) {
  if (!text_.empty()) text_ += "\n";
  if (color_) text_ += "\x1b[1m";
  paragraph(text);
  if (color_) text_.insert(text_.size() - 1, "\x1b[0m");
}

void ReportPage::heading(std::string_view text) {
  const std::string title = fit(text, width_);
  text_ += color_ ? fmt::format("\n\x1b[1m{}\x1b[0m\n", title) : fmt::format("\n{}\n", title);
}

std::string ReportPage::amount(std::int64_t value) const {
  std::string text = right_aligned(human_percent(value, whole_), kPercentWidth);
  if (!is_narrow()) text += "  " + right_aligned(human_value(value, unit_), kValueWidth);
  const std::string_view color = color_ ? color_of(value, whole_) : "";
  return color.empty() ? text : fmt::format("{}{}\x1b[0m", color, text);
}

std::string ReportPage::amount_if_any(std::int64_t value) const {
  return value == 0 ? std::string(amount_width(), ' ') : amount(value);
}

std::string ReportPage::amount_titles() const {
  return right_aligned("self", amount_width()) + "  " + right_aligned("total", amount_width());
}

}  // namespace ddprof
