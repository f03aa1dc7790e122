#include "import/firefox_stacks.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "import/json_document.hpp"

namespace ddprof {

namespace {

namespace json = boost::json;

constexpr std::uint64_t kPage = 4096;

[[nodiscard]] Error bad_tables(std::string_view reason) {
  return make_error(ErrorCode::corrupt, "read Firefox profile: {}", reason);
}

// One table of columns, all of the same length.
class Table {
 public:
  static Result<Table> open(const json::object& shared, std::string_view name) {
    Table table;
    table.object_ = json_object(shared, name);
    if (table.object_ == nullptr) return bad_tables(fmt::format("it has no {}", name));
    const std::optional<double> length = json_number(*table.object_, "length");
    if (!length || *length < 0 || *length > 0xfffffffe)
      return bad_tables(fmt::format("{} has no length", name));
    table.name_ = name;
    table.length_ = static_cast<std::size_t>(*length);
    return table;
  }

  [[nodiscard]] std::size_t length() const { return length_; }

  Result<const json::array*> column(std::string_view name) const {
    const json::array* column = json_array(*object_, name);
    if (column == nullptr || column->size() != length_)
      return bad_tables(fmt::format("{} has no {} for each row", name_, name));
    return column;
  }
  // Columns that only some versions have.
  [[nodiscard]] const json::array* find_column(std::string_view name) const {
    const json::array* column = json_array(*object_, name);
    return column != nullptr && column->size() == length_ ? column : nullptr;
  }

 private:
  const json::object* object_ = nullptr;
  std::string_view name_;
  std::size_t length_ = 0;
};

Result<std::uint32_t> index_below(const json::value& value, std::size_t count, std::string_view what) {
  const std::optional<std::int64_t> index = json_integer(value);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= count)
    return bad_tables(fmt::format("a {} does not exist", what));
  return static_cast<std::uint32_t>(*index);
}

std::int64_t number_or(const json::array* column, std::size_t row, std::int64_t fallback) {
  return column != nullptr ? json_integer((*column)[row]).value_or(fallback) : fallback;
}

// For columns whose absence, null, -1 or nonsense all mean that nothing is known.
std::optional<std::uint32_t> find_index(const json::array* column, std::optional<std::size_t> row,
                                        std::size_t count) {
  if (column == nullptr || !row || *row >= column->size()) return std::nullopt;
  const std::int64_t index = number_or(column, *row, -1);
  if (index < 0 || static_cast<std::size_t>(index) >= count) return std::nullopt;
  return static_cast<std::uint32_t>(index);
}

}  // namespace

Result<void> FirefoxStacks::read_strings(const json::object& shared) {
  const json::array* strings = json_array(shared, "stringArray");
  if (strings == nullptr) return bad_tables("it has no shared strings; versions before 60 are not read");
  for (const json::value& text : *strings) strings_.push_back(json_text(text));
  return {};
}

Result<void> FirefoxStacks::read_functions(const json::object& shared, std::size_t libs) {
  const Table table = TRY(Table::open(shared, "funcTable"));
  const Table resources = TRY(Table::open(shared, "resourceTable"));
  const json::array* names = TRY(table.column("name"));
  const json::array* resource = table.find_column("resource");
  const json::array* source = table.find_column("source");
  const json::array* line = table.find_column("lineNumber");
  const json::array* lib = resources.find_column("lib");
  const json::object* sources = json_object(shared, "sources");
  const json::array* files = sources != nullptr ? json_array(*sources, "filename") : nullptr;
  const std::size_t file_count = files != nullptr ? files->size() : 0;
  for (std::size_t row = 0; row < table.length(); ++row) {
    const std::uint32_t name = TRY(index_below((*names)[row], strings_.size(), "name of a function"));
    const auto file = find_index(files, find_index(source, row, file_count), strings_.size());
    const std::int64_t start_line = std::max<std::int64_t>(number_or(line, row, 0), 0);
    Function function{builder_->add_function(strings_[name], {}, file ? strings_[*file] : "", start_line)};
    function.lib = find_index(lib, find_index(resource, row, resources.length()), libs).value_or(kNone);
    functions_.push_back(function);
  }
  return {};
}

Result<void> FirefoxStacks::read_frames(const json::object& shared, std::size_t libs) {
  const Table table = TRY(Table::open(shared, "frameTable"));
  const json::array* function = TRY(table.column("func"));
  const json::array* address = table.find_column("address");
  const json::array* depth = table.find_column("inlineDepth");
  const json::array* line = table.find_column("line");
  const json::array* column = table.find_column("column");
  const json::array* lib = table.find_column("lib");
  for (std::size_t row = 0; row < table.length(); ++row) {
    Frame frame;
    frame.function = TRY(index_below((*function)[row], functions_.size(), "function of a frame"));
    frame.address = number_or(address, row, -1);
    frame.depth = number_or(depth, row, 0);
    frame.line = std::max<std::int64_t>(number_or(line, row, 0), 0);
    frame.column = std::max<std::int64_t>(number_or(column, row, 0), 0);
    frame.lib = find_index(lib, row, libs).value_or(functions_[frame.function].lib);
    frames_.push_back(frame);
  }
  return {};
}

Result<void> FirefoxStacks::read_stacks(const json::object& shared) {
  const Table table = TRY(Table::open(shared, "stackTable"));
  const json::array* frame = TRY(table.column("frame"));
  const json::array* offset = table.find_column("prefixOffset");
  const json::array* prefix = table.find_column("prefix");  // before version 66
  if (offset == nullptr && prefix == nullptr) return bad_tables("stackTable has no prefixes");
  for (std::size_t row = 0; row < table.length(); ++row) {
    Stack stack;
    stack.frame = TRY(index_below((*frame)[row], frames_.size(), "frame of a stack"));
    const auto self = static_cast<std::int64_t>(row);
    std::int64_t parent = -1;
    if (offset == nullptr) {
      parent = number_or(prefix, row, -1);
    } else if (const std::int64_t distance = number_or(offset, row, -1); distance != 0) {
      parent = distance > 0 ? self - distance : self;
      if (parent < 0) return bad_tables("a stack has a parent that does not exist");
    }
    // Parents come first, so that no stack can be its own ancestor.
    if (parent >= self) return bad_tables("a stack comes before its parent");
    if (parent >= 0) stack.parent = static_cast<std::uint32_t>(parent);
    stacks_.push_back(stack);
  }
  return {};
}

// The format has addresses within files, the model addresses within a process: the files are laid out one
// behind the other.
Result<void> FirefoxStacks::lay_out_libs(const json::object& profile) {
  const json::array* libs = json_array(profile, "libs");
  const std::size_t count = libs != nullptr ? libs->size() : 0;
  std::vector<std::uint64_t> sizes(count, kPage);
  for (const Frame& frame : frames_) {
    if (frame.lib == kNone || frame.address < 0) continue;
    sizes[frame.lib] =
        std::max(sizes[frame.lib], (static_cast<std::uint64_t>(frame.address) / kPage + 1) * kPage);
  }
  std::uint64_t start = kPage;
  for (std::size_t lib = 0; lib < count; ++lib) {
    std::uint64_t end = 0;
    const json::object* entry = (*libs)[lib].if_object();
    if (entry == nullptr || __builtin_add_overflow(start, sizes[lib], &end)) return bad_tables("bad libs");
    const std::string_view path = json_text(*entry, "path");
    ProfileMapping mapping{.start = {start}, .limit = {end}};
    mapping.path = builder_->intern(path.empty() ? json_text(*entry, "name") : path);
    mapping.build_id = builder_->intern(json_text(*entry, "codeId"));
    mapping.has_functions = true;
    mappings_.push_back(builder_->add_mapping(mapping));
    start = end;
  }
  return {};
}

Result<FirefoxStacks> FirefoxStacks::read(const json::object& profile, ProfileBuilder& builder,
                                          MemoryBudget& budget) {
  const json::object* shared = json_object(profile, "shared");
  const json::array* libs = json_array(profile, "libs");
  if (shared == nullptr) return bad_tables("it has no shared tables");
  FirefoxStacks stacks(builder, budget);
  const std::size_t lib_count = libs != nullptr ? libs->size() : 0;
  TRY(stacks.read_strings(*shared));
  TRY(stacks.read_functions(*shared, lib_count));
  TRY(stacks.read_frames(*shared, lib_count));
  TRY(stacks.read_stacks(*shared));
  TRY(stacks.lay_out_libs(profile));
  return stacks;
}

// Inlined calls have the address of the call around them, and a depth above 0: together they are one
// location.
bool FirefoxStacks::resolve(std::uint32_t index) {
  Stack& leaf = stacks_[index];
  const Frame& inner = frames_[leaf.frame];
  std::vector<ProfileLine> lines;
  std::uint32_t at = index;
  while (true) {
    const Frame& frame = frames_[stacks_[at].frame];
    if (!budget_->take(sizeof(ProfileLine))) return false;
    lines.push_back({functions_[frame.function].index, frame.line, frame.column});
    at = stacks_[at].parent;
    if (at == kNone || frame.depth <= 0) break;
    const Frame& outer = frames_[stacks_[at].frame];
    if (outer.depth >= frame.depth || outer.address != inner.address || outer.lib != inner.lib) break;
  }
  const bool has_place = inner.lib != kNone && inner.address >= 0;
  const std::uint32_t mapping = has_place ? mappings_[inner.lib] : kNoMapping;
  const Address base = has_place ? builder_->profile().mappings[mapping].start : Address{};
  const auto offset = static_cast<std::uint64_t>(std::max<std::int64_t>(inner.address, 0));
  leaf.location = builder_->add_location(mapping, base + offset, lines);
  leaf.caller = at;
  return true;
}

std::optional<std::vector<std::uint32_t>> FirefoxStacks::locations(std::uint32_t stack) {
  std::vector<std::uint32_t> locations;
  while (stack != kNone) {
    if (!budget_->take(sizeof(std::uint32_t))) return std::nullopt;
    if (stacks_[stack].location == kNone && !resolve(stack)) return std::nullopt;
    locations.push_back(stacks_[stack].location);
    stack = stacks_[stack].caller;
  }
  return locations;
}

}  // namespace ddprof
