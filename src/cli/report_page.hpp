#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/report.hpp"
#include "report/view.hpp"

namespace ddprof {

// The text of a report while it is written: its width, its colours and how it writes amounts.
class ReportPage {
 public:
  ReportPage(const ReportOptions& options, const ReportView& view);

  [[nodiscard]] std::size_t width() const { return width_; }
  // Room for shares or for values, not for both.
  [[nodiscard]] bool is_narrow() const { return width_ < kNarrow; }
  // Columns of an amount.
  [[nodiscard]] std::size_t amount_width() const {
    return is_narrow() ? kPercentWidth : kPercentWidth + 2 + kValueWidth;
  }

  // Spaces at the end are dropped.
  void line(std::string text);
  // Made printable and broken at spaces where it is too wide.
  void paragraph(std::string_view text);
  void heading(std::string_view text);
  // The sentence that matters most: a paragraph of its own, in bold.
  void headline(std::string_view text);

  // "  12.3 %    310 ms", in colour by how much it is; the share alone on a narrow page.
  [[nodiscard]] std::string amount(std::int64_t value) const;
  // As amount, but blank for zero: in listings where most lines have none.
  [[nodiscard]] std::string amount_if_any(std::int64_t value) const;
  // "self" and "total" over two amounts.
  [[nodiscard]] std::string amount_titles() const;

  std::string text() && { return std::move(text_); }

 private:
  static constexpr std::size_t kPercentWidth = 7;  // "100.0 %"
  static constexpr std::size_t kValueWidth = 9;    // "1,023 MiB"
  static constexpr std::size_t kNarrow = 80;

  std::size_t width_;
  bool color_;
  std::string_view unit_;
  std::int64_t whole_;
  std::string text_;
};

}  // namespace ddprof
