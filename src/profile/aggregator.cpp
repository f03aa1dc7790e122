#include "profile/aggregator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "profile/dense_index.hpp"

namespace ddprof {

std::uint64_t hash_of(const SampleContext& context) {
  std::array<std::uint64_t, 2> trace{};
  std::memcpy(trace.data(), context.trace_id.data(), sizeof trace);
  const std::hash<std::string_view> hash_text;
  std::uint64_t hash = hash_mix(hash_mix(trace[0], trace[1]), context.span_id);
  hash = hash_mix(hash, context.local_root_span_id.value_or(1));
  hash = hash_mix(hash, hash_text(context.endpoint));
  for (const auto& [key, text] : context.others)
    hash = hash_mix(hash_mix(hash, hash_text(key)), hash_text(text));
  return hash;
}

std::string trace_id_text(const SampleContext& context) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto& id = context.trace_id;
  if (std::all_of(id.begin(), id.end(), [](std::uint8_t byte) { return byte == 0; })) return "";
  std::string text;
  for (const std::uint8_t byte : id) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

namespace {

std::uint64_t meaning_of(const Frame& frame) {
  return static_cast<std::uint64_t>(frame.kind) | static_cast<std::uint64_t>(frame.reason) << 8 |
         static_cast<std::uint64_t>(frame.loss) << 16 | std::uint64_t{to_int(frame.file)} << 32;
}

std::uint64_t hash_of(std::uint64_t hash, const Frame& frame) {
  // The rotation keeps a frame from cancelling itself out when meaning and address share bits.
  const std::uint64_t meaning = meaning_of(frame);
  return hash_mix(hash, frame.address ^ (meaning << 17 | meaning >> 47));
}

std::uint64_t hash_of(std::span<const Frame> frames) {
  // Two chains halve the latency of the multiplications, which is what the time goes into.
  std::uint64_t even = frames.size();
  std::uint64_t odd = 1;
  std::size_t at = 0;
  for (; at + 2 <= frames.size(); at += 2) {
    even = hash_of(even, frames[at]);
    odd = hash_of(odd, frames[at + 1]);
  }
  if (at < frames.size()) even = hash_of(even, frames[at]);
  return hash_mix(even, odd);
}

std::uint64_t pack(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

bool is_same(const Frame& left, const Frame& right) {
  return left.address == right.address && meaning_of(left) == meaning_of(right);
}

}  // namespace

AggregatorBudget AggregatorBudget::within(std::uint64_t memory) {
  constexpr std::uint64_t kPerStoredFrame = 32;     // its copies: collected, settled, named and encoded
  constexpr std::uint64_t kPerDistinctFrame = 512;  // with its name, file and line
  AggregatorBudget budget;
  if (memory == 0) return budget;
  const auto fit = [&](std::uint32_t& count, std::uint64_t bytes) {
    count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, memory / bytes));
  };
  fit(budget.stored_frames, kPerStoredFrame);
  fit(budget.distinct_frames, kPerDistinctFrame);
  return budget;
}

Aggregator::Aggregator(std::vector<Column> columns, AggregatorBudget budget)
    : columns_(std::move(columns)), budget_(budget) {}

std::uint32_t Aggregator::add(ThreadKey thread, std::span<const Frame> frames,
                              std::span<const ColumnValue> values, const SampleContext* context) {
  const std::uint32_t sample =
      intern_sample({intern_stack(frames), intern_thread(thread), intern_context(context)});
  std::int64_t* row = period_.values.data() + std::size_t{sample} * columns_.size();
  for (const ColumnValue& value : values) {
    if (value.column < columns_.size()) row[value.column] += value.value;
  }
  return sample;
}

void Aggregator::add_moment(std::uint32_t sample, Nanoseconds time) {
  if (period_.moments.size() < budget_.moments) period_.moments.push_back({sample, time});
}

AggregatedProfile Aggregator::take(Nanoseconds start, Nanoseconds end) {
  AggregatedProfile taken = std::exchange(period_, {});
  taken.start = start;
  taken.end = end;
  taken.columns = columns_;
  frame_index_.clear();
  stack_index_.clear();
  thread_index_.clear();
  context_index_.clear();
  sample_index_.clear();
  return taken;
}

bool Aggregator::is_stack(std::uint32_t stack, std::span<const Frame> frames) const {
  const AggregatedProfile::Stack& known = period_.stacks[stack];
  if (known.count != frames.size()) return false;
  const std::uint32_t* index = period_.frame_indices.data() + known.begin;
  for (const Frame& frame : frames) {
    if (!is_same(period_.frames[*index++], frame)) return false;
  }
  return true;
}

bool Aggregator::has_room_for(std::span<const Frame> frames) const {
  // At worst all of its frames are new.
  return period_.stacks.size() < budget_.stacks &&
         period_.frame_indices.size() + frames.size() <= budget_.stored_frames &&
         period_.frames.size() + frames.size() <= budget_.distinct_frames;
}

std::uint32_t Aggregator::intern_stack(std::span<const Frame> frames) {
  const std::uint64_t hash = hash_of(frames);
  const std::uint32_t known =
      stack_index_.find(hash, [&](std::uint32_t stack) { return is_stack(stack, frames); });
  if (known != DenseIndex::kNotFound) return known;
  if (!has_room_for(frames)) {
    ++period_.over_budget;
    return overflow_stack();
  }
  return append_stack(hash, frames);
}

std::uint32_t Aggregator::append_stack(std::uint64_t hash, std::span<const Frame> frames) {
  period_.stacks.push_back(
      {static_cast<std::uint32_t>(period_.frame_indices.size()), static_cast<std::uint32_t>(frames.size())});
  for (const Frame& frame : frames) period_.frame_indices.push_back(intern_frame(frame));
  return stack_index_.append(hash);
}

std::uint32_t Aggregator::intern_frame(const Frame& frame) {
  const std::uint64_t hash = hash_of(0, frame);
  const std::uint32_t known =
      frame_index_.find(hash, [&](std::uint32_t index) { return is_same(period_.frames[index], frame); });
  if (known != DenseIndex::kNotFound) return known;
  period_.frames.push_back(frame);
  return frame_index_.append(hash);
}

std::uint32_t Aggregator::intern_thread(ThreadKey thread) {
  const std::uint64_t hash = hash_mix(0, pack(static_cast<std::uint32_t>(to_int(thread.pid)),
                                              static_cast<std::uint32_t>(to_int(thread.tid))));
  const std::uint32_t known =
      thread_index_.find(hash, [&](std::uint32_t index) { return period_.threads[index] == thread; });
  if (known != DenseIndex::kNotFound) return known;
  if (period_.threads.size() >= budget_.threads && thread != ThreadKey{}) {
    ++period_.over_budget;
    return overflow_thread();
  }
  period_.threads.push_back(thread);
  return thread_index_.append(hash);
}

std::uint32_t Aggregator::intern_context(const SampleContext* context) {
  if (context == nullptr) return 0;
  const std::uint64_t hash = hash_of(*context);
  const std::uint32_t known =
      context_index_.find(hash, [&](std::uint32_t index) { return period_.contexts[index] == *context; });
  if (known != DenseIndex::kNotFound) return known + 1;
  if (period_.contexts.size() >= budget_.contexts) {
    ++period_.contexts_over_budget;
    return 0;
  }
  period_.contexts.push_back(*context);
  return context_index_.append(hash) + 1;
}

std::uint32_t Aggregator::intern_sample(AggregatedProfile::Sample sample) {
  const std::uint64_t hash = hash_mix(hash_mix(1, pack(sample.stack, sample.thread)), sample.context);
  const std::uint32_t known =
      sample_index_.find(hash, [&](std::uint32_t index) { return period_.samples[index] == sample; });
  if (known != DenseIndex::kNotFound) return known;
  if (period_.samples.size() >= budget_.samples) {
    const AggregatedProfile::Sample last{overflow_stack(), overflow_thread()};
    if (sample != last) {
      ++period_.over_budget;
      return intern_sample(last);
    }
  }
  period_.samples.push_back(sample);
  period_.values.resize(period_.values.size() + columns_.size());
  return sample_index_.append(hash);
}

std::uint32_t Aggregator::overflow_stack() {
  const Frame marker{.kind = FrameKind::accounted, .loss = Loss::too_many_stacks};
  const std::span<const Frame> frames(&marker, 1);
  const std::uint64_t hash = hash_of(frames);
  const std::uint32_t known =
      stack_index_.find(hash, [&](std::uint32_t stack) { return is_stack(stack, frames); });
  return known != DenseIndex::kNotFound ? known : append_stack(hash, frames);
}

std::uint32_t Aggregator::overflow_thread() { return intern_thread(ThreadKey{}); }

AggregatedProfile with_frames(const AggregatedProfile& profile, std::span<const Frame> frames) {
  Aggregator again(profile.columns);
  std::vector<std::uint32_t> numbers;  // of samples, in the new profile
  std::vector<Frame> stack;
  std::vector<ColumnValue> values;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const AggregatedProfile::Sample& sample = profile.samples[i];
    stack.clear();
    for (const std::uint32_t frame : profile.stack(sample.stack)) stack.push_back(frames[frame]);
    values.clear();
    for (const std::int64_t value : profile.sample_values(i))
      values.push_back({static_cast<std::uint32_t>(values.size()), value});
    const SampleContext* context = sample.context > 0 ? &profile.contexts[sample.context - 1] : nullptr;
    numbers.push_back(again.add(profile.threads[sample.thread], stack, values, context));
  }
  for (const AggregatedProfile::Moment& moment : profile.moments)
    again.add_moment(numbers[moment.sample], moment.time);
  AggregatedProfile made = again.take(profile.start, profile.end);
  made.over_budget = profile.over_budget;
  made.contexts_over_budget = profile.contexts_over_budget;
  return made;
}

}  // namespace ddprof
