#include "import/foreign_formats.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/sample_merger.hpp"
#include "import/text_lines.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {

namespace {

// The text of /proc/PID/maps that the profiles of gperftools and jemalloc end with: what turns their bare
// addresses into places in files.
class LegacyMaps {
 public:
  // Executable lines become mappings; lines of any other form are passed over.
  LegacyMaps(std::string_view text, ProfileBuilder& builder);

  // The location of an address, with its mapping if there is one.
  std::uint32_t location(std::uint64_t address);

 private:
  ProfileBuilder& builder_;
  std::vector<std::uint32_t> by_start_;  // mappings, in the order of their addresses
};

// 00400000-00452000 r-xp 00001000 08:02 173521 /usr/bin/app
std::optional<ProfileMapping> parse_maps_line(std::string_view line, ProfileBuilder& builder) {
  const std::optional<std::uint64_t> start = take_number(line, 16);
  if (!start || !take_word(line, "-")) return std::nullopt;
  const std::optional<std::uint64_t> limit = take_number(line, 16);
  line = trimmed(line);
  if (!limit || *limit <= *start || line.size() < 5 || line[2] != 'x') return std::nullopt;
  line.remove_prefix(4);
  const std::optional<std::uint64_t> offset = take_number(line, 16);
  const bool has_device = offset && take_number(line, 16) && take_word(line, ":") && take_number(line, 16);
  if (!has_device || !take_number(line)) return std::nullopt;
  return ProfileMapping{
      .start = {*start}, .limit = {*limit}, .file_offset = *offset, .path = builder.intern(trimmed(line))};
}

LegacyMaps::LegacyMaps(std::string_view text, ProfileBuilder& builder) : builder_(builder) {
  TextLines lines(text);
  while (const std::optional<std::string_view> line = lines.next()) {
    if (const std::optional<ProfileMapping> mapping = parse_maps_line(*line, builder))
      by_start_.push_back(builder.add_mapping(*mapping));
  }
  const std::vector<ProfileMapping>& mappings = builder.profile().mappings;
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t left, std::uint32_t right) {
    return mappings[left].start < mappings[right].start;
  });
}

std::uint32_t LegacyMaps::location(std::uint64_t address) {
  const std::vector<ProfileMapping>& mappings = builder_.profile().mappings;
  const auto after = std::upper_bound(
      by_start_.begin(), by_start_.end(), address,
      [&](std::uint64_t wanted, std::uint32_t at) { return wanted < mappings[at].start.value; });
  const bool is_inside = after != by_start_.begin() && address < mappings[*std::prev(after)].limit.value;
  return builder_.add_location(is_inside ? *std::prev(after) : kNoMapping, {address}, {});
}

struct WordShape {
  std::size_t bytes;
  bool is_big_endian;
};
constexpr std::array<WordShape, 4> kWordShapes{{{8, false}, {4, false}, {8, true}, {4, true}}};

class WordReader {
 public:
  WordReader(std::string_view bytes, WordShape shape) : rest_(bytes), shape_(shape) {}

  std::optional<std::uint64_t> next() {
    if (rest_.size() < shape_.bytes) return std::nullopt;
    std::uint64_t word = 0;
    for (std::size_t at = 0; at < shape_.bytes; ++at) {
      const std::size_t from = shape_.is_big_endian ? at : shape_.bytes - 1 - at;
      word = word << 8U | static_cast<unsigned char>(rest_[from]);
    }
    rest_.remove_prefix(shape_.bytes);
    return word;
  }
  [[nodiscard]] std::size_t words_left() const { return rest_.size() / shape_.bytes; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  WordShape shape_;
};

struct CpuHeader {
  WordReader samples;
  std::uint64_t period_us;
};

// 0, the number of words that follow, version 0, the period, and a padding that is 0.
std::optional<CpuHeader> read_cpu_header(std::string_view bytes) {
  constexpr std::size_t kHeaderWords = 5;
  for (const WordShape shape : kWordShapes) {
    WordReader reader(bytes, shape);
    std::array<std::uint64_t, kHeaderWords> words{};
    if (reader.words_left() < words.size()) continue;
    for (std::uint64_t& word : words) word = reader.next().value_or(0);
    constexpr std::uint64_t kMaxPeriod = 1'000'000'000'000;
    const bool is_header = words[0] == 0 && words[1] == 3 && words[2] == 0 && words[4] == 0;
    if (is_header && words[3] > 0 && words[3] < kMaxPeriod) return CpuHeader{reader, words[3]};
  }
  return std::nullopt;
}

struct CpuSample {
  std::uint64_t count;
  std::vector<std::uint64_t> addresses;  // leaf first; the others point behind their calls
};

[[nodiscard]] Error bad_cpu_profile(std::string_view reason) {
  return make_error(ErrorCode::corrupt, "read gperftools CPU profile: {}", reason);
}

Result<std::vector<CpuSample>> read_cpu_samples(WordReader& reader, MemoryBudget& budget) {
  std::vector<CpuSample> samples;
  while (true) {
    const std::optional<std::uint64_t> count = reader.next(), depth = reader.next();
    if (!depth || *depth > reader.words_left()) return bad_cpu_profile("it ends too soon");
    if (!budget.take(sizeof(CpuSample) + *depth * sizeof(std::uint64_t))) return bad_cpu_profile("too large");
    CpuSample sample{*count, {}};
    for (std::uint64_t at = 0; at < *depth; ++at) sample.addresses.push_back(reader.next().value_or(0));
    if (*count == 0 && *depth == 1 && sample.addresses[0] == 0) return samples;  // the mark at the end
    samples.push_back(std::move(sample));
  }
}

// The stack is walked inside of a signal handler, whose own frame comes second in (nearly) every sample.
void strip_handler_frames(std::vector<CpuSample>& samples) {
  constexpr int kMaxHandlerFrames = 2;
  constexpr std::size_t kExceptions = 32;  // one sample in so many may differ
  for (int turn = 0; turn < kMaxHandlerFrames; ++turn) {
    absl::flat_hash_map<std::uint64_t, std::size_t> seconds;
    std::optional<std::uint64_t> handler;
    for (const CpuSample& sample : samples) {
      if (sample.addresses.size() < 2) continue;
      const std::size_t seen = ++seconds[sample.addresses[1]];
      if (seen >= samples.size() - samples.size() / kExceptions) handler = sample.addresses[1];
    }
    if (!handler) return;
    for (CpuSample& sample : samples) {
      if (sample.addresses.size() > 1 && sample.addresses[1] == *handler)
        sample.addresses.erase(sample.addresses.begin() + 1);
    }
  }
}

std::int64_t as_value(std::uint64_t count) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(count, kMax));
}

std::int64_t cpu_time(std::uint64_t count, std::int64_t period) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(as_value(count), period, &product) ? std::numeric_limits<std::int64_t>::max()
                                                                   : product;
}

}  // namespace

bool is_gperftools_cpu(std::string_view bytes) { return read_cpu_header(bytes).has_value(); }

Result<Profile> decode_gperftools_cpu(std::string_view bytes, const DecodeLimits& limits) {
  std::optional<CpuHeader> header = read_cpu_header(bytes);
  if (!header) return bad_cpu_profile("no header");
  MemoryBudget budget(limits.memory_bytes);
  std::vector<CpuSample> samples = TRY(read_cpu_samples(header->samples, budget));
  strip_handler_frames(samples);

  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.value_types = {builder.value_type("samples", "count"), builder.value_type("cpu", "nanoseconds")};
  profile.period_type = profile.value_types[1];
  profile.period = static_cast<std::int64_t>(header->period_us) * 1000;
  LegacyMaps maps(header->samples.rest(), builder);
  SampleMerger merger(budget);
  std::vector<std::uint32_t> stack;
  for (const CpuSample& sample : samples) {
    stack.clear();
    for (const std::uint64_t address : sample.addresses)
      stack.push_back(maps.location(stack.empty() ? address : address - 1));
    if (!merger.add(0, stack, 0, as_value(sample.count)) ||
        !merger.add(0, stack, 1, cpu_time(sample.count, profile.period)))
      return bad_cpu_profile("too large");
  }
  std::move(merger).move_into(builder, 2);
  return std::move(builder).build();
}

namespace {

constexpr std::string_view kGperftoolsMark = "heap profile:";
constexpr std::string_view kJemallocMark = "heap_v2/";

// "1: 64 [2: 128]": in use, and allocated so far.
struct HeapCounts {
  std::uint64_t objects = 0, bytes = 0, allocated_objects = 0, allocated_bytes = 0;
};

std::optional<HeapCounts> take_heap_counts(std::string_view& line) {
  std::array<std::uint64_t, 4> numbers{};
  constexpr std::array<std::string_view, 4> kAfter{":", "[", ":", "]"};
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const std::optional<std::uint64_t> number = take_number(line);
    if (!number || !take_word(line, kAfter[at])) return std::nullopt;
    numbers[at] = *number;
  }
  return HeapCounts{numbers[0], numbers[1], numbers[2], numbers[3]};
}

struct HeapHeader {
  bool is_jemalloc = false;
  std::uint64_t rate = 1;  // mean number of bytes between two samples; 1: every allocation was recorded
};

// What follows the "@": "heap_v2/524288", "heap/1048576", "heapprofile".
std::optional<std::uint64_t> heap_rate(std::string_view name) {
  name = trimmed(name);
  const std::size_t slash = std::min(name.find('/'), name.size());
  std::string_view number = name.substr(std::min(slash + 1, name.size()));
  const std::string_view kind = name.substr(0, slash);
  const std::uint64_t rate = take_number(number).value_or(1);
  if (kind == "heap_v2" || kind == "heapz_v2") return rate;
  if (kind == "heap") return rate / 2;  // the first version wrote twice the mean
  if (kind == "heapprofile") return 1;
  return std::nullopt;
}

std::optional<HeapHeader> parse_heap_header(std::string_view line) {
  if (line.starts_with(kJemallocMark)) return HeapHeader{true, heap_rate(line).value_or(1)};
  if (!take_word(line, kGperftoolsMark) || !take_heap_counts(line) || !take_word(line, "@"))
    return std::nullopt;
  const std::optional<std::uint64_t> rate = heap_rate(line);
  if (!rate) return std::nullopt;
  return HeapHeader{false, *rate};
}

// An allocation of `size` bytes is seen with probability 1 - exp(-size / rate), if the distances between
// samples are exponentially distributed with that mean; so each that was seen stands for the inverse.
double heap_scale(std::uint64_t objects, std::uint64_t bytes, std::uint64_t rate) {
  if (rate <= 1 || objects == 0 || bytes == 0) return 1;
  const double size = static_cast<double>(bytes) / static_cast<double>(objects);
  return 1 / -std::expm1(-size / static_cast<double>(rate));
}

std::int64_t scaled(std::uint64_t count, double scale) {
  const double value = static_cast<double>(count) * scale;
  return value < 0x1p63 ? static_cast<std::int64_t>(value) : std::numeric_limits<std::int64_t>::max();
}

[[nodiscard]] Error bad_heap(std::string_view reason) {
  return make_error(ErrorCode::corrupt, "read heap profile: {}", reason);
}

// Everything from the line that announces the maps.
std::string_view maps_part(std::string_view text) {
  for (const std::string_view mark : {"MAPPED_LIBRARIES:", "--- Memory map: ---"}) {
    const std::size_t at = text.find(mark);
    if (at != std::string_view::npos) return text.substr(at);
  }
  return {};
}

class HeapDecoder {
 public:
  HeapDecoder(std::string_view text, HeapHeader header, std::size_t memory_bytes)
      : lines_(text),
        header_(header),
        budget_(memory_bytes),
        merger_(budget_),
        maps_(maps_part(text), builder_) {}

  Result<Profile> decode() && {
    Profile& profile = builder_.profile();
    // In use comes last: that is what people look at first.
    profile.value_types = {
        builder_.value_type("alloc_objects", "count"), builder_.value_type("alloc_space", "bytes"),
        builder_.value_type("inuse_objects", "count"), builder_.value_type("inuse_space", "bytes")};
    profile.default_value_type = profile.value_types[3].type;
    profile.period_type = builder_.value_type("space", "bytes");
    profile.period = scaled(header_.rate, 1);
    (void)lines_.next();  // the header
    if (header_.is_jemalloc) {
      TRY(read_jemalloc());
    } else {
      TRY(read_gperftools());
    }
    std::move(merger_).move_into(builder_, 4);
    return std::move(builder_).build();
  }

 private:
  // A line of samples, until the maps begin.
  std::optional<std::string_view> next_line() {
    while (const std::optional<std::string_view> line = lines_.next()) {
      const std::string_view text = trimmed(*line);
      if (text.starts_with("MAPPED_LIBRARIES:") || text.starts_with("--- Memory map")) return std::nullopt;
      if (!text.empty() && !text.starts_with('#')) return text;
    }
    return std::nullopt;
  }

  Result<void> read_gperftools() {
    while (std::optional<std::string_view> line = next_line()) {
      const std::optional<HeapCounts> counts = take_heap_counts(*line);
      if (!counts || !take_word(*line, "@")) return bad_heap("a line is not counts and a stack");
      TRY(read_stack(*line));
      TRY(add(0, *counts, *counts));
    }
    return {};
  }

  // A stack, its total, then its threads. The threads share the total's scale, so that they add up to it.
  Result<void> read_jemalloc() {
    bool has_stack = false;
    HeapCounts total, of_threads;
    const auto finish = [&]() -> Result<void> {
      if (has_stack && of_threads.objects + of_threads.allocated_objects == 0) return add(0, total, total);
      return {};
    };
    while (std::optional<std::string_view> line = next_line()) {
      if (take_word(*line, "@")) {
        TRY(finish());
        TRY(read_stack(*line));
        has_stack = true;
        total = of_threads = {};
        continue;
      }
      if (!take_word(*line, "t")) return bad_heap("a line is neither a stack nor a thread's counts");
      const bool is_total = take_word(*line, "*");
      const std::optional<std::uint64_t> thread =
          is_total ? std::optional<std::uint64_t>(0) : take_number(*line);
      const bool has_colon = take_word(*line, ":");
      const std::optional<HeapCounts> counts = take_heap_counts(*line);
      if (!thread || !has_colon || !counts) return bad_heap("a line is not a thread's counts");
      if (!has_stack) continue;  // the sums over all stacks, at the top
      if (is_total) {
        total = *counts;
      } else {
        of_threads.objects += counts->objects;
        of_threads.allocated_objects += counts->allocated_objects;
        TRY(add(thread_number(*thread), *counts, total));
      }
    }
    return finish();
  }

  std::uint32_t thread_number(std::uint64_t tid) {
    const auto [entry, is_new] = threads_.try_emplace(tid, static_cast<std::uint32_t>(threads_.size() + 1));
    if (is_new)
      merger_.label_thread(entry->second, thread_labels(builder_, {}, fmt::format("{}", tid), {}, {}));
    return entry->second;
  }

  // Return addresses, leaf first: each points behind its call.
  Result<void> read_stack(std::string_view line) {
    stack_.clear();
    while (!trimmed(line).empty()) {
      const std::optional<std::uint64_t> address = take_number(line, 16);
      if (!address) return bad_heap("a stack is not a list of addresses");
      stack_.push_back(maps_.location(*address == 0 ? 0 : *address - 1));
    }
    return {};
  }

  // `basis` gives the mean sizes that the scale depends on.
  Result<void> add(std::uint32_t thread, const HeapCounts& counts, const HeapCounts& basis) {
    const double live = heap_scale(basis.objects, basis.bytes, header_.rate);
    const double total = heap_scale(basis.allocated_objects, basis.allocated_bytes, header_.rate);
    const std::array<std::int64_t, 4> values{scaled(counts.allocated_objects, total),
                                             scaled(counts.allocated_bytes, total),
                                             scaled(counts.objects, live), scaled(counts.bytes, live)};
    for (std::size_t column = 0; column < values.size(); ++column) {
      if (!merger_.add(thread, stack_, column, values[column])) return bad_heap("too large");
    }
    return {};
  }

  TextLines lines_;
  HeapHeader header_;
  MemoryBudget budget_;
  ProfileBuilder builder_;
  SampleMerger merger_;
  LegacyMaps maps_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> threads_;
  std::vector<std::uint32_t> stack_;
};

}  // namespace

bool is_heap_text(std::string_view text) {
  return text.starts_with(kGperftoolsMark) || text.starts_with(kJemallocMark);
}

Result<Profile> decode_heap_text(std::string_view text, const DecodeLimits& limits) {
  TextLines lines(text);
  const std::optional<HeapHeader> header = parse_heap_header(lines.next().value_or(""));
  if (!header) return bad_heap("its first line is of no known form");
  return HeapDecoder(text, *header, limits.memory_bytes).decode();
}

}  // namespace ddprof
