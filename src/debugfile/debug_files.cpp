#include "debugfile/debug_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "elf/debug_links.hpp"

namespace ddprof {

namespace {

// Each costs a line for people, or a request; and a name that is asked for and absent costs its bytes.
constexpr std::size_t kMaxProblems = 4;
constexpr std::size_t kMaxAsked = 65536;

}  // namespace

DebugFiles::DebugFiles(DebugFileFinder& finder, Binary binary, const ReadLimits& limits)
    : finder_(finder), binary_(std::move(binary)) {
  const ElfFile* itself = binary_.file;
  if (itself == nullptr || !has_debug_info(*itself)) separate_ = finder_.find_separate(binary_, problems_);
  choose_debug_info();
  if (with_debug_info_ == nullptr && !binary_.build_id.empty()) missing_.push_back(binary_.build_id);
  choose_symbol_table(limits);
}

void DebugFiles::choose_debug_info() {
  if (separate_ && has_debug_info(separate_->file)) {
    with_debug_info_ = &separate_->file;
  } else if (binary_.file != nullptr && has_debug_info(*binary_.file)) {
    with_debug_info_ = binary_.file;
  }
}

void DebugFiles::choose_symbol_table(const ReadLimits& limits) {
  if (binary_.file != nullptr && has_symbol_table(*binary_.file)) {
    with_symbol_table_ = binary_.file;
    symbol_origin_ = SymbolOrigin::itself;
  } else if (separate_ && has_symbol_table(separate_->file)) {
    with_symbol_table_ = &separate_->file;
    symbol_origin_ = SymbolOrigin::separate;
  } else if (binary_.file != nullptr) {
    auto unpacked = unpack_mini_debug_info(*binary_.file, limits.bytes());
    if (!unpacked) {
      if (unpacked.error().code != ErrorCode::not_found)
        problems_.push_back(binary_.path + ": " + unpacked.error().message);
      return;
    }
    mini_debug_info_ = std::move(*unpacked);
    auto file = ElfFile::parse(mini_debug_info_);
    if (!file || !has_symbol_table(*file)) return;
    mini_file_ = std::move(*file);
    with_symbol_table_ = &*mini_file_;
    symbol_origin_ = SymbolOrigin::mini_debug_info;
  }
}

Binary DebugFiles::naming_file() const {
  if (!separate_ || with_debug_info_ != &separate_->file) return binary_;
  Binary naming = binary_;
  naming.path = separate_->path;
  naming.root = separate_->root;
  naming.owner = separate_->owner;
  // What root wrote, or we did, names what it likes.
  if (separate_->owner == 0U || separate_->owner == ::geteuid()) naming.rights.reset();
  return naming;
}

const ElfFile* DebugFiles::once(const std::string& key, const Find& find) {
  if (const auto known = others_.find(key); known != others_.end())
    return known->second ? &known->second->file : nullptr;
  if (open_files_ >= kMaxFiles || others_.size() >= kMaxAsked) {
    if (!is_full_) problems_.push_back(binary_.path + ": its debug information is in too many files");
    is_full_ = true;
    return nullptr;
  }
  auto& slot = others_[key];
  if (auto image = find()) {
    slot = std::make_unique<DebugImage>(std::move(*image));
    ++open_files_;
  }
  return slot ? &slot->file : nullptr;
}

const ElfFile* DebugFiles::supplementary(std::string_view path, const BuildId& build_id) {
  return once("supplementary " + build_id.hex() + std::string(path), [&] {
    auto found = finder_.find_supplementary(naming_file(), {path, build_id}, problems_);
    if (!found && !build_id.empty()) missing_.push_back(build_id);
    return found;
  });
}

const ElfFile* DebugFiles::split_unit(std::string_view directory, std::string_view name) {
  const std::string file(name);
  const std::string recorded = file.starts_with('/') ? file : std::string(directory) + "/" + file;
  return once("split " + recorded, [&] {
    const std::string base = "/" + base_name_of(file);
    const Binary naming = naming_file();
    auto found = finder_.find_first(naming, {recorded, folder_of(naming.path) + base}, problems_);
    return found ? std::move(found)
                 : finder_.find_first(binary_, {folder_of(binary_.path) + base}, problems_);
  });
}

const ElfFile* DebugFiles::package() {
  return once("package", [&] {
    auto found = finder_.find_first(binary_, {binary_.path + ".dwp"}, problems_);
    const Binary naming = naming_file();
    return found ? std::move(found) : finder_.find_first(naming, {naming.path + ".dwp"}, problems_);
  });
}

std::string DebugFiles::problem() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(problems_.size(), kMaxProblems); ++i)
    text += (i == 0 ? "" : "; ") + problems_[i];
  if (problems_.size() > kMaxProblems) text += fmt::format("; and {} more", problems_.size() - kMaxProblems);
  return text;
}

}  // namespace ddprof
