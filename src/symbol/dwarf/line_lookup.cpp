#include "symbol/dwarf/line_lookup.hpp"

#include <algorithm>

#include "symbol/dwarf/line_rows.hpp"

namespace ddprof {

namespace {

// Rows come in ascending order within a sequence, so that one finger on the addresses moves along with them.
class LineMatcher {
 public:
  LineMatcher(std::span<const std::uint64_t> addresses, const CodeBounds& bounds, WorkBudget& budget)
      : addresses_(addresses), bounds_(bounds), budget_(budget), found_(addresses.size()) {}

  void take(const LineRow& row) {
    if (!is_inside_)
      start(row.address);
    else if (row.address > last_.address)
      give_last_line_until(row.address);
    else if (row.address < last_.address)
      find_address(row.address);
    last_ = row;
    is_inside_ = !row.ends_sequence;
  }
  std::vector<FoundLine> finish() && { return std::move(found_); }

 private:
  void start(std::uint64_t address) {
    // Of code that the linker threw away.
    is_ignored_ = address < bounds_.begin || address >= bounds_.end;
    find_address(address);
  }
  void find_address(std::uint64_t address) {
    at_ = static_cast<std::size_t>(std::lower_bound(addresses_.begin(), addresses_.end(), address) -
                                   addresses_.begin());
  }
  void give_last_line_until(std::uint64_t end) {
    for (; at_ < addresses_.size() && addresses_[at_] < end; ++at_) {
      if (!budget_.spend(1)) return;
      if (is_ignored_ || found_[at_].is_found) continue;
      found_[at_] = {last_.file, last_.line, last_.column, true};
    }
  }

  std::span<const std::uint64_t> addresses_;
  const CodeBounds& bounds_;
  WorkBudget& budget_;
  std::vector<FoundLine> found_;
  LineRow last_;
  std::size_t at_ = 0;
  bool is_inside_ = false;
  bool is_ignored_ = false;
};

}  // namespace

std::vector<FoundLine> find_lines(const LineProgram& program, std::span<const std::uint64_t> addresses,
                                  const CodeBounds& bounds, WorkBudget& budget) {
  LineMatcher matcher(addresses, bounds, budget);
  if (!budget.spend(program.instructions().size())) return std::move(matcher).finish();
  LineRows rows(program);
  while (const LineRow* row = rows.next()) matcher.take(*row);
  return std::move(matcher).finish();
}

}  // namespace ddprof
