#include "encode/foreign_profile.hpp"

#include <charconv>
#include <cstdint>

#include "profile/labels.hpp"

namespace ddprof {

namespace {

// Numbers are numbers, as in the profiles that we record.
void add_number_or_text(std::vector<ProfileLabel>& labels, ProfileBuilder& builder, std::string_view key,
                        std::string_view text) {
  if (text.empty()) return;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number != 0;
  labels.push_back(is_number ? builder.number_label(key, number) : builder.text_label(key, text));
}

}  // namespace

std::optional<std::size_t> find_or_add_column(ProfileBuilder& builder, std::string_view type,
                                              std::string_view unit) {
  std::vector<ValueType>& columns = builder.profile().value_types;
  const ValueType wanted = builder.value_type(type, unit);
  for (std::size_t at = 0; at < columns.size(); ++at) {
    if (columns[at].type == wanted.type && columns[at].unit == wanted.unit) return at;
  }
  if (columns.size() == kMaxColumns) return std::nullopt;
  columns.push_back(wanted);
  return columns.size() - 1;
}

std::vector<ProfileLabel> thread_labels(ProfileBuilder& builder, std::string_view thread,
                                        std::string_view tid, std::string_view process,
                                        std::string_view pid) {
  std::vector<ProfileLabel> labels;
  add_number_or_text(labels, builder, kThreadIdLabel, tid);
  if (!thread.empty()) labels.push_back(builder.text_label(kThreadNameLabel, thread));
  add_number_or_text(labels, builder, kProcessIdLabel, pid);
  if (!process.empty()) labels.push_back(builder.text_label(kProcessNameLabel, process));
  return labels;
}

}  // namespace ddprof
