#include "cli/commands.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/option_table.hpp"
#include "cli/profiling_request.hpp"
#include "cli/report.hpp"
#include "cli/stored_profiles.hpp"
#include "cli/terminal.hpp"
#include "cli/user_folder.hpp"

namespace ddprof {

namespace {

// The files to read, and what they are called together.
struct ReportInput {
  std::vector<std::string> paths;
  std::string title;
};

ReportOptions report_options(const std::string& title, const Options& options) {
  return {.title = title,
          .sample_type = options.sample_type,
          .top = static_cast<std::size_t>(options.top),
          .width = terminal_width(),
          .own = options.own,
          .color = wants_color(),
          .json = options.json,
          .filter = {options.focus, options.ignore, options.thread, options.process, options.labels,
                     options.only_module},
          .modules = options.modules,
          .lines = options.lines,
          .callers = options.callers,
          .callees = options.callees,
          .annotate = options.annotate,
          .source_dir = options.source_dir};
}

// The process ends after its report: giving a million samples back piece by piece would take a tenth of its
// time.
const Profile& held_until_exit(Profile profile) {
  static const Profile* held = nullptr;  // for leak checkers, which look at exit
  held = std::make_unique<const Profile>(std::move(profile)).release();
  return *held;
}

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

Error nothing_found(const std::string& where, const ProfileChoice& choice) {
  return with_hint(make_error(ErrorCode::not_found, "{}: {}", where,
                              choice.is_all() ? "no profiles in it" : "none of its profiles is meant"),
                   "ddprof list " + where);
}

Result<ReportInput> newest_profile(const ProfileChoice& choice) {
  const std::string folder = TRY(stored_folder());
  std::vector<StoredProfile> stored = TRY(profiles_in(folder));
  std::erase_if(stored, [&](const StoredProfile& one) { return !choice.has(one); });
  if (stored.empty()) return nothing_found(folder, choice);
  if (choice.is_all())
    return ReportInput{{stored.back().path}, stored.back().path + " (the newest; ddprof list shows all)"};
  ReportInput input{{}, fmt::format("{} profiles of {}", stored.size(), folder)};
  for (StoredProfile& one : stored) input.paths.push_back(std::move(one.path));
  return input;
}

// Folders are replaced by the profiles in them that are meant.
Result<ReportInput> choose_input(const Options& options) {
  const ProfileChoice choice = TRY(profile_choice(options));
  if (options.files.empty()) return newest_profile(choice);
  ReportInput input;
  for (const std::string& path : options.files) {
    std::vector<StoredProfile> stored;
    if (is_folder(path)) {
      stored = TRY(profiles_in(path));
    } else if (choice.is_all()) {
      input.paths.push_back(path);
      continue;
    } else if (path == "-") {
      return make_error(ErrorCode::invalid_argument,
                        "-: a pipe is read once, and cannot be chosen by time or service");
    } else {
      stored.push_back(TRY(inspect_profile(path)));
    }
    std::erase_if(stored, [&](const StoredProfile& one) { return !choice.has(one); });
    for (StoredProfile& one : stored) input.paths.push_back(std::move(one.path));
  }
  if (input.paths.empty()) return nothing_found(options.files.front(), choice);
  const std::string from =
      options.files.size() == 1 && is_folder(options.files.front()) ? " of " + options.files.front() : "";
  input.title =
      input.paths.size() == 1 ? input.paths.front() : fmt::format("{} profiles{}", input.paths.size(), from);
  return input;
}

Result<std::string> report_text(const Options& options) {
  const ReportInput input = TRY(choose_input(options));
  MergedProfile merged = TRY(load_merged(input.paths, options.growth ? MergeView::growth : MergeView::sum));
  ReportOptions shown = report_options(input.title, options);
  shown.growth = merged.growth;
  if (options.growth && shown.sample_type.empty()) shown.sample_type = "inuse_space";
  auto text = render_report(held_until_exit(std::move(merged.profile)), shown);
  if (!text) text.error().message.insert(0, fmt::format("report {}: ", input.title));
  return text;
}

}  // namespace

Result<ProfileChoice> profile_choice(const Options& options) {
  ProfileChoice choice;
  const Nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const auto moment = [&](const std::string& text,
                          std::string_view option) -> Result<std::optional<Nanoseconds>> {
    if (text.empty()) return std::optional<Nanoseconds>();
    auto parsed = parse_moment(text, now);
    if (parsed) return std::optional(*parsed);
    parsed.error().message.insert(0, fmt::format("{} ", option));
    return std::move(parsed).error();
  };
  choice.since = TRY(moment(options.since, "--since"));
  choice.until = TRY(moment(options.until, "--until"));
  // A service that the environment names is that of programs to profile.
  if (!options.origins.empty() && origin_of(options, "service").kind == Origin::Kind::command_line)
    choice.service = options.service;
  return choice;
}

Result<std::string> stored_folder() {
  std::string folder = user_folder("XDG_STATE_HOME", ".local/state");
  if (folder.empty())
    return with_hint(
        make_error(ErrorCode::not_found, "no folder of profiles: neither XDG_STATE_HOME nor HOME is set"),
        "name a file or a folder");
  if (!is_folder(folder))
    return with_hint(make_error(ErrorCode::not_found, "{}: no profiles are kept there yet", folder),
                     "ddprof record COMMAND, or name a file or a folder");
  return folder;
}

int report(const Options& options) {
  const auto text = report_text(options);
  if (!text) {
    say_error(text.error());
    return 1;
  }
  return options.json || !options.pager ? print_output(*text) : page_output(*text);
}

}  // namespace ddprof
