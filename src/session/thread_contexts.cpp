#include "session/thread_contexts.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/clock.hpp"
#include "base/read_file.hpp"
#include "elf/thread_symbol.hpp"
#include "process/thread_context.hpp"
#include "profile/profile.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kFirstWait = 100ms;   // for a process to publish something, doubled each time
constexpr Nanoseconds kLongestWait = 30s;   // most never do, and every look holds up its calls of mmap()
constexpr Nanoseconds kBetweenChecks = 1s;  // whether what is published has changed
constexpr int kRestFactor = 200;            // looks take at most a half percent of our time
constexpr std::size_t kMostPublishers = 100'000;
constexpr std::size_t kMostOtherLabels = 32;

// The variable that threads publish their contexts by; empty: they do not. libddprof.so has the same records
// in a variable of another name: with that of a tracer it would come before the tracer's own.
std::string_view variable_name(const ProcessContext& context) {
  constexpr auto kName = "threadlocal.schema_version";
  const auto found = context.attributes.find(kName);
  const std::string schema = found != context.attributes.end() ? found->second : context.text(kName);
  if (schema == "tlsdesc_v1_dev" || schema == "tls_v1") return "otel_thread_ctx_v1";
  return schema == "ddprof_v1" ? "ddprof_thread_ctx_v1" : "";
}

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > 16) return std::nullopt;
  return number;
}

// The best comes first. No specification names one: `http.route` is OpenTelemetry's, the others are guesses.
constexpr auto kEndpointKeys = std::to_array<std::string_view>(
    {kTraceEndpointLabel, "datadog.trace_endpoint", "trace.endpoint", "http.route"});

std::size_t endpoint_rank(std::string_view key) {
  return static_cast<std::size_t>(std::find(kEndpointKeys.begin(), kEndpointKeys.end(), key) -
                                  kEndpointKeys.begin());
}

// Names that stand for something else in a profile.
bool is_taken(std::string_view key) {
  constexpr auto kTaken = std::to_array<std::string_view>(
      {kThreadIdLabel, kThreadNameLabel, kProcessIdLabel, kProcessNameLabel, kEndTimestampLabel,
       kNamespacePidLabel, kContainerIdLabel, kCgroupLabel, kServiceLabel, kTraceIdLabel, kSpanIdLabel,
       kLocalRootSpanIdLabel, "process_id"});
  return std::find(kTaken.begin(), kTaken.end(), key) != kTaken.end();
}

// Where the program itself begins, as the kernel told it: that tells it from its libraries.
std::optional<Address> find_entry(Pid pid) {
  const auto vector = read_file(fmt::format("/proc/{}/auxv", to_int(pid)));
  if (!vector) return std::nullopt;
  std::array<std::uint64_t, 2> entry{};
  for (std::size_t at = 0; at + sizeof entry <= vector->size(); at += sizeof entry) {
    std::memcpy(entry.data(), vector->data() + at, sizeof entry);
    if (entry[0] == AT_ENTRY) return Address{entry[1]};
  }
  return std::nullopt;
}

}  // namespace

SampleContext to_sample_context(const ThreadContext& context, const std::vector<std::string>& keys) {
  SampleContext made{.trace_id = context.trace_id, .span_id = context.span_id};
  std::size_t best_endpoint = kEndpointKeys.size();
  for (const auto& [key, text] : context.attributes) {
    if (key >= keys.size() || keys[key].empty() || text.empty()) continue;
    const std::string& name = keys[key];
    if (name == "datadog.local_root_span_id") {
      made.local_root_span_id = parse_hexadecimal(text);
    } else if (const std::size_t rank = endpoint_rank(name); rank < kEndpointKeys.size()) {
      if (rank < best_endpoint) made.endpoint = text;
      best_endpoint = std::min(best_endpoint, rank);
    } else if (!is_taken(name) && made.others.size() < kMostOtherLabels) {
      made.others.emplace_back(name, text);
    }
  }
  return made;
}

std::optional<SampleContext> ThreadContexts::of(const SampleEvent& sample) {
  if (source_ == nullptr) return std::nullopt;
  if (publishers_.size() >= kMostPublishers && !publishers_.contains(to_int(sample.pid))) return std::nullopt;
  Publisher& publisher = publishers_[to_int(sample.pid)];
  publisher.has_samples = true;
  if (publisher.next_look.count() == 0) next_look_ = Nanoseconds(0);
  if (sample.thread_context.empty() || !publisher.published || sample.time < publisher.since)
    return std::nullopt;
  const auto context = parse_thread_context(sample.thread_context);
  if (!context) return std::nullopt;
  const auto is_unknown = [&](const ThreadContext::Attribute& attribute) {
    return attribute.key >= publisher.published->context.thread_keys.size();
  };
  // The list of keys grows: it is read again before anything is left out.
  if (std::any_of(context->attributes.begin(), context->attributes.end(), is_unknown))
    next_look_ = publisher.next_look = Nanoseconds(0);
  return to_sample_context(*context, publisher.published->context.thread_keys);
}

void ThreadContexts::forget(Pid pid) {
  const auto found = publishers_.find(to_int(pid));
  if (found == publishers_.end()) return;
  if (found->second.variable.kind != ThreadVariable::Kind::none) source_->read_thread_contexts(pid, {});
  publishers_.erase(found);
}

void ThreadContexts::look_around(Nanoseconds now) {
  if (source_ == nullptr || now < next_look_) return;
  next_look_ = now + kBetweenChecks;
  for (auto& [pid, publisher] : publishers_) {
    if (publisher.has_samples && publisher.next_look <= now) look_at(Pid{pid}, publisher, now);
    if (publisher.has_samples) next_look_ = std::min(next_look_, publisher.next_look);
  }
}

void ThreadContexts::look_at(Pid pid, Publisher& publisher, Nanoseconds now) {
  const Nanoseconds cpu_before = thread_cpu_now();
  const bool is_complete = publisher.published && publisher.variable.kind != ThreadVariable::Kind::none;
  if (!is_complete || !is_still_published(pid, *publisher.published, processes_.memory()))
    read_again(pid, publisher);
  const Nanoseconds cost = thread_cpu_now() - cpu_before;
  publisher.wait = std::clamp(publisher.wait * 2, kFirstWait, kLongestWait);
  if (publisher.variable.kind != ThreadVariable::Kind::none) publisher.wait = kBetweenChecks;
  publisher.next_look = now + std::max(publisher.wait, cost * kRestFactor);
  publisher.has_samples = false;
}

void ThreadContexts::read_again(Pid pid, Publisher& publisher) {
  publisher.published = read_published_context(pid, processes_.memory());
  ThreadVariable variable;
  const std::string_view name = publisher.published ? variable_name(publisher.published->context) : "";
  if (!name.empty()) variable = find_variable(pid, name);
  if (variable == publisher.variable) return;
  if (!source_->read_thread_contexts(pid, variable)) variable = {};
  publisher.variable = variable;
  publisher.since = monotonic_now();
}

ThreadVariable ThreadContexts::find_variable(Pid pid, std::string_view name) {
  const Process& process = processes_.find_or_read(pid);
  if (!process.space) return {};
  files_.wait_until_open(*process.space, process.user);
  const auto read = [&](Address from, std::span<std::byte> to) {
    return processes_.memory().read(pid, from, to) == to.size();
  };
  const auto entry = find_entry(pid);
  FileId last = FileId::none;
  for (const CodeMapping& mapped : process.space->mappings()) {
    const CodeMapping mapping = files_.resolved(mapped);
    const auto& file = files_.file(mapping.file);
    if (mapping.file == last || file == nullptr || file->kind != CodeFile::Kind::elf) continue;
    last = mapping.file;
    const auto symbol = find_thread_symbol(*file->elf, name);
    if (!symbol) continue;
    if (entry && entry->value == file->elf->entry() + mapping.bias) return locate_in_executable(*symbol);
    if (auto found = locate_in_library(*symbol, mapping.bias, read)) return *found;
  }
  return {};
}

}  // namespace ddprof
