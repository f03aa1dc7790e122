#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "encode/viewer_formats.hpp"
#include "import/foreign_formats.hpp"
#include "import/sample_merger.hpp"
#include "import/text_lines.hpp"

namespace ddprof {

namespace {

constexpr int kMaxFractionDigits = 6;

struct FoldedLine {
  std::string_view stack, count;
};

// Names may hold spaces: the count is what follows the last one.
std::optional<FoldedLine> split_folded(std::string_view line) {
  line = trimmed(line);
  const std::size_t space = line.find_last_of(" \t");
  if (space == std::string_view::npos) return std::nullopt;
  FoldedLine parts{trimmed(line.substr(0, space)), line.substr(space + 1)};
  double number = 0;
  const auto [end, error] =
      std::from_chars(parts.count.data(), parts.count.data() + parts.count.size(), number);
  const bool is_number = error == std::errc() && end == parts.count.data() + parts.count.size();
  if (!is_number || !std::isfinite(number) || parts.stack.empty()) return std::nullopt;
  return parts;
}

struct FoldedColumn {
  std::string_view type, unit;
};

// "# value: cpu nanoseconds 0"
std::optional<FoldedColumn> parse_value_line(std::string_view line) {
  constexpr std::string_view kNoWeight = " 0";
  line = trimmed(line);
  if (!line.starts_with(kFoldedValue) || !line.ends_with(kNoWeight)) return std::nullopt;
  line.remove_prefix(kFoldedValue.size());
  line.remove_suffix(std::min(line.size(), kNoWeight.size()));
  const std::size_t space = line.find(' ');
  const bool has_two_words =
      space != 0 && space != std::string_view::npos && space == line.rfind(' ') && space + 1 < line.size();
  if (!has_two_words) return std::nullopt;
  return FoldedColumn{line.substr(0, space), line.substr(space + 1)};
}

int fraction_digits(std::string_view count) {
  if (count.find_first_of("eE") != std::string_view::npos) return kMaxFractionDigits;
  const std::size_t point = count.find('.');
  if (point == std::string_view::npos) return 0;
  const std::size_t last = count.find_last_not_of('0');
  return static_cast<int>(std::min<std::size_t>(last - point, kMaxFractionDigits));
}

std::int64_t scaled_count(std::string_view count, int digits) {
  std::int64_t whole = 0;
  const char* end = count.data() + count.size();
  if (const auto [at, error] = std::from_chars(count.data(), end, whole);
      digits == 0 && error == std::errc() && at == end)
    return whole;
  double number = 0;
  std::from_chars(count.data(), end, number);
  number *= std::pow(10, digits);
  return std::abs(number) < 0x1p62 ? std::llround(number)
         : number < 0              ? -(std::int64_t{1} << 62)
                                   : std::int64_t{1} << 62;
}

class FoldedDecoder {
 public:
  FoldedDecoder(std::string_view text, std::size_t memory_bytes)
      : text_(text), budget_(memory_bytes), merger_(budget_) {}

  Result<Profile> decode() && {
    TRY(read_nature());
    (void)find_or_add_column(builder_, column_.type, column_.unit);
    TextLines lines(text_);
    while (const std::optional<std::string_view> line = lines.next()) {
      if (parse_value_line(*line)) continue;
      const std::optional<FoldedLine> parts = split_folded(*line);
      if (parts) TRY(add(*parts));
    }
    if (digits_ > 0) {
      builder_.profile().comments.push_back(builder_.intern(fmt::format(
          "The counts had fractions: they are multiplied by {}.", std::llround(std::pow(10, digits_)))));
    }
    std::move(merger_).move_into(builder_, 1);
    return std::move(builder_).build();
  }

 private:
  // Every line must be a stack before any is believed: this format has no other mark.
  Result<void> read_nature() {
    TextLines lines(text_);
    std::size_t number = 0, stacks = 0;
    while (const std::optional<std::string_view> line = lines.next()) {
      ++number;
      if (number == 1) column_ = parse_value_line(*line).value_or(column_);
      if (trimmed(*line).empty() || line->starts_with('#')) continue;
      const std::optional<FoldedLine> parts = split_folded(*line);
      if (!parts) {
        return make_error(ErrorCode::corrupt,
                          "read profile: text of no known format; line {} is no folded stack (main;work 12)",
                          number);
      }
      digits_ = std::max(digits_, fraction_digits(parts->count));
      ++stacks;
    }
    if (stacks == 0) return make_error(ErrorCode::corrupt, "read folded stacks: there are none");
    return {};
  }

  Result<void> add(const FoldedLine& line) {
    stack_.clear();
    std::string_view rest = line.stack;
    std::uint32_t thread = 0;  // of stacks that name none
    if (const std::string_view first = rest.substr(0, rest.find(';')); is_thread_frame(first)) {
      thread = thread_of(first);
      take_frame(rest);
    }
    while (!rest.empty()) {
      const std::string_view frame = take_frame(rest);
      if (!frame.empty()) stack_.push_back(builder_.add_named_location(frame));
    }
    std::reverse(stack_.begin(), stack_.end());
    if (!merger_.add(thread, stack_, 0, scaled_count(line.count, digits_)))
      return make_error(ErrorCode::corrupt, "read folded stacks: too large");
    return {};
  }

  static std::string_view take_frame(std::string_view& rest) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view frame = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return frame;
  }

  // "[worker tid=12]"
  static bool is_thread_frame(std::string_view frame) {
    return frame.starts_with('[') && frame.ends_with(']') && frame.rfind(" tid=") != std::string_view::npos;
  }

  std::uint32_t thread_of(std::string_view frame) {
    const auto [entry, is_new] =
        threads_.try_emplace(std::string(frame), static_cast<std::uint32_t>(threads_.size() + 1));
    if (is_new) {
      const std::size_t mark = frame.rfind(" tid=");
      const std::string_view tid = frame.substr(mark + 5, frame.size() - mark - 6);
      merger_.label_thread(entry->second, thread_labels(builder_, frame.substr(1, mark - 1), tid, {}, {}));
    }
    return entry->second;
  }

  std::string_view text_;
  MemoryBudget budget_;
  ProfileBuilder builder_;
  SampleMerger merger_;
  absl::flat_hash_map<std::string, std::uint32_t> threads_;
  std::vector<std::uint32_t> stack_;
  FoldedColumn column_{"value", ""};
  int digits_ = 0;
};

}  // namespace

Result<Profile> decode_folded(std::string_view text, const DecodeLimits& limits) {
  return FoldedDecoder(text, limits.memory_bytes).decode();
}

}  // namespace ddprof
