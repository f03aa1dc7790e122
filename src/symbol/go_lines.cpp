#include "symbol/go_lines.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

// Fields of a function's description. Behind its last one are offsets of further sequences, then offsets into
// the data of functions; both have numbers with a meaning.
constexpr std::uint64_t kNameField = 4;
constexpr std::uint64_t kFilesField = 20;
constexpr std::uint64_t kLinesField = 24;
constexpr std::uint64_t kSequenceCountField = 28;
constexpr std::uint64_t kUnitField = 32;
constexpr std::uint64_t kStartLineField120 = 36;
constexpr std::uint64_t kDescriptionBytes118 = 40;
constexpr std::uint64_t kDescriptionBytes120 = 44;
constexpr std::uint32_t kInlinedSequence = 2;
constexpr std::uint32_t kInlinedData = 3;

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::uint64_t kInlinedCallBytes118 = 20;  // caller, kind, file, line, name, address
constexpr std::uint64_t kInlinedCallBytes120 = 16;  // kind, name, address, first line

constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxTextBytes = 4096;
// The longest functions of the Go programs of a large SDK have some 100,000 steps in all their sequences.
constexpr std::size_t kMaxSteps = 1'000'000;

std::string_view text_at(std::span<const std::byte> texts, std::uint64_t offset) {
  if (offset >= texts.size()) return {};
  const auto rest = texts.subspan(offset).first(std::min(kMaxTextBytes, texts.size() - offset));
  const auto* first = reinterpret_cast<const char*>(rest.data());
  const std::string_view text(first, rest.size());
  return text.substr(0, text.find('\0'));
}

}  // namespace

// One question, and what is left of the time that it may take.
class GoLines::Lookup {
 public:
  Lookup(const GoLines& lines, const Function& function) : lines_(lines), function_(function) {}

  [[nodiscard]] std::uint64_t steps() const { return kMaxSteps - steps_left_; }

  std::span<const SourceCall> calls_at(std::uint64_t address) {
    const std::optional<std::int32_t> line = value_at(function_.lines, address);
    if (!line) return {};  // behind the code of the function: padding
    // Callers come before what is inlined into them: whatever the table says, this ends.
    std::int32_t last_index = std::numeric_limits<std::int32_t>::max();
    while (count_ + 1 < kMaxDepth) {
      const std::int32_t index = value_at(function_.inlined, address).value_or(-1);
      const auto inlined = lines_.inlined_call(function_, index);
      if (!inlined || index >= last_index) break;
      last_index = index;
      add(inlined->name, inlined->start_line, address);
      address = inlined->parent;
    }
    add(function_.name, function_.start_line, address);
    return std::span(calls_).first(count_);
  }

 private:
  std::optional<std::int32_t> value_at(std::uint32_t sequence, std::uint64_t address) {
    GoSequence values(lines_.table_, sequence, function_.begin, function_.end);
    while (steps_left_ > 0 && values.next()) {
      --steps_left_;
      if (address < values.end()) return values.value();
    }
    return std::nullopt;
  }

  void add(std::uint32_t name, std::uint32_t start_line, std::uint64_t address) {
    SourceCall call;
    call.name = lines_.name_at(name);
    call.start_line = start_line;
    call.file = lines_.file_at(function_, value_at(function_.files, address).value_or(-1));
    call.line = static_cast<std::uint32_t>(std::max(value_at(function_.lines, address).value_or(0), 0));
    calls_[count_++] = call;
  }

  const GoLines& lines_;
  const Function& function_;
  std::size_t steps_left_ = kMaxSteps;
  std::size_t count_ = 0;
  std::array<SourceCall, kMaxDepth> calls_;
};

std::optional<GoLines> GoLines::find(const ElfFile& file) {
  const auto table = GoTable::find(file);
  if (!table) return std::nullopt;
  GoLines lines(*table);
  lines.function_data_ = table->find_function_data(file);
  return lines;
}

bool GoLines::find(std::uint64_t address, const std::function<void(std::span<const SourceCall>)>& take,
                   WorkBudget* budget) const {
  const std::optional<Function> function = function_at(address);
  if (!function || (budget != nullptr && budget->is_spent())) return false;
  Lookup lookup(*this, *function);
  const auto calls = lookup.calls_at(address);
  if (budget != nullptr) budget->spend(lookup.steps());
  if (calls.empty() || calls.back().name.empty()) return false;
  take(calls);
  return true;
}

std::optional<GoLines::Function> GoLines::function_at(std::uint64_t address) const {
  std::size_t first = 0;
  std::size_t last = table_.function_count;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (table_.begin_of(middle) <= address) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first == 0) return std::nullopt;
  const auto function = describe(first - 1);
  // A table that is not sorted answers nonsense: it must not be believed.
  if (!function || address < function->begin || address >= function->end) return std::nullopt;
  return function;
}

std::optional<GoLines::Function> GoLines::describe(std::size_t index) const {
  const auto offset = load<std::uint32_t>(table_.functions, index * GoTable::kEntryBytes + 4);
  const std::uint64_t bytes = table_.has_start_lines ? kDescriptionBytes120 : kDescriptionBytes118;
  const auto fields = slice_of(table_.functions, offset.value_or(kNone), bytes);
  if (fields.empty()) return std::nullopt;
  Function function{.begin = table_.begin_of(index), .end = table_.begin_of(index + 1)};
  function.name = *load<std::uint32_t>(fields, kNameField);
  function.files = *load<std::uint32_t>(fields, kFilesField);
  function.lines = *load<std::uint32_t>(fields, kLinesField);
  function.unit = *load<std::uint32_t>(fields, kUnitField);
  if (table_.has_start_lines) function.start_line = *load<std::uint32_t>(fields, kStartLineField120);
  const std::uint64_t sequences = *offset + bytes;
  const std::uint32_t sequence_count = *load<std::uint32_t>(fields, kSequenceCountField);
  const auto data_count = *load<std::uint8_t>(fields, bytes - 1);
  if (sequence_count > kInlinedSequence)
    function.inlined = load<std::uint32_t>(table_.functions, sequences + 4 * kInlinedSequence).value_or(0);
  if (data_count > kInlinedData)
    function.inlined_calls =
        inlined_calls_at(sequences + 4 * std::uint64_t{sequence_count} + 4 * kInlinedData);
  return function;
}

std::span<const std::byte> GoLines::inlined_calls_at(std::uint64_t field) const {
  const std::uint32_t offset = load<std::uint32_t>(table_.functions, field).value_or(kNone);
  if (offset == kNone || offset >= function_data_.size()) return {};
  return function_data_.subspan(offset);
}

std::optional<GoLines::InlinedCall> GoLines::inlined_call(const Function& function,
                                                          std::int32_t index) const {
  const std::uint64_t bytes = table_.has_start_lines ? kInlinedCallBytes120 : kInlinedCallBytes118;
  if (index < 0) return std::nullopt;
  const auto fields = slice_of(function.inlined_calls, static_cast<std::uint64_t>(index) * bytes, bytes);
  if (fields.empty()) return std::nullopt;
  InlinedCall call;
  call.name = *load<std::uint32_t>(fields, table_.has_start_lines ? 4 : 12);
  call.parent = function.begin + *load<std::uint32_t>(fields, table_.has_start_lines ? 8 : 16);
  if (table_.has_start_lines) call.start_line = *load<std::uint32_t>(fields, 12);
  if (call.parent >= function.end || name_at(call.name).empty()) return std::nullopt;
  return call;
}

std::string_view GoLines::name_at(std::uint32_t offset) const { return text_at(table_.names, offset); }

std::string_view GoLines::file_at(const Function& function, std::int32_t number) const {
  if (number < 0) return {};
  const std::uint64_t entry = std::uint64_t{function.unit} + static_cast<std::uint32_t>(number);
  const std::uint32_t offset = load<std::uint32_t>(table_.units, 4 * entry).value_or(kNone);
  return offset == kNone ? std::string_view{} : text_at(table_.files, offset);
}

}  // namespace ddprof
