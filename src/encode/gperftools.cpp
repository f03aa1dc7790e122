#include "encode/gperftools.hpp"

#include <absl/container/flat_hash_map.h>

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "encode/legacy_maps.hpp"
#include "encode/sample_merger.hpp"

namespace ddprof {

namespace {

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

}  // namespace ddprof
