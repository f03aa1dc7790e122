#include "profile/profile_view.hpp"

#include <fmt/format.h>

#include <functional>

#include "profile/dense_index.hpp"
#include "profile/marker.hpp"

namespace ddprof {

namespace {

std::string_view module_of(const Profile& profile, const ProfileLocation& location) {
  if (location.mapping == kNoMapping) return {};
  return base_name(profile.text(profile.mappings[location.mapping].path));
}

std::string unnamed(const Profile& profile, const ProfileLocation& location) {
  const std::string_view module = module_of(profile, location);
  if (module.empty()) return fmt::format("{:#x}", location.address.value);
  const ProfileMapping& mapping = profile.mappings[location.mapping];
  return fmt::format("{}+{:#x}", module, location.address - mapping.start + mapping.file_offset);
}

}  // namespace

std::optional<std::size_t> default_column(const Profile& profile) {
  if (profile.value_types.empty()) return std::nullopt;
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    if (profile.default_value_type != 0 && profile.value_types[column].type == profile.default_value_type)
      return column;
  }
  return profile.value_types.size() - 1;
}

std::optional<std::size_t> find_column(const Profile& profile, std::string_view type) {
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    if (profile.text(profile.value_types[column].type) == type) return column;
  }
  return std::nullopt;
}

std::optional<std::size_t> samples_column(const Profile& profile) {
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    const ValueType& type = profile.value_types[column];
    if (profile.text(type.unit) == "count" && profile.text(type.type).ends_with("samples")) return column;
  }
  return std::nullopt;
}

std::string label_text(const Profile& profile, const ProfileSample& sample, std::string_view key) {
  for (const ProfileLabel& label : sample.labels) {
    if (profile.text(label.key) != key) continue;
    // An empty text and a plain zero look the same in the model, and pprof drops both.
    if (label.text == 0 && label.number == 0) return {};
    return label.text != 0 ? std::string(profile.text(label.text)) : fmt::format("{}", label.number);
  }
  return {};
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

FrameTable::FrameTable(const Profile& profile) {
  DenseIndex index;
  // Writers name what they cannot name by its address, as we do.
  const auto is_address = [](std::string_view name, std::string_view module) {
    if (!module.empty() && name.starts_with(module))
      name.remove_prefix(module.size() + (name.size() > module.size() ? 1 : 0));
    return name.starts_with("0x");
  };
  const auto add = [&](std::string_view name, std::string_view module, bool is_unnamed = false) {
    const std::uint64_t hash =
        hash_mix(std::hash<std::string_view>{}(name), std::hash<std::string_view>{}(module));
    std::uint32_t frame = index.find(
        hash, [&](std::uint32_t at) { return frames_[at].name == name && frames_[at].module == module; });
    if (frame == DenseIndex::kNotFound) {
      frame = index.append(hash);
      frames_.push_back({std::string(name), std::string(module), is_marker_name(name),
                         is_unnamed || is_address(name, module)});
    }
    ids_.add(frame);
  };
  for (const ProfileLocation& location : profile.locations) {
    const std::string_view module = module_of(profile, location);
    for (const ProfileLine& line : location.lines) {
      const ProfileFunction& function = profile.functions[line.function];
      const std::string_view name = profile.text(function.name != 0 ? function.name : function.system_name);
      if (name.empty()) {
        add(unnamed(profile, location), module, true);
      } else {
        add(name, module);
      }
    }
    if (location.lines.empty()) add(unnamed(profile, location), module, true);
    ids_.end_location();
  }
}

}  // namespace ddprof
