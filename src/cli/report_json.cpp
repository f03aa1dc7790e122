#include "cli/report_json.hpp"

#include <algorithm>

#include "cli/json_writer.hpp"
#include "report/hot_paths.hpp"
#include "report/tables.hpp"

namespace ddprof {

namespace {

class ReportJson {
 public:
  ReportJson(const ReportView& view, const ReportOptions& options) : view_(view), options_(options) {}

  std::string write(const ReportParts& parts) && {
    json_.begin_object();
    header();
    if (options_.modules) modules();
    if (options_.lines) lines();
    if (!options_.annotate.empty())
      array("annotations", parts.annotations, [&](const Annotation& one) { annotation(one); });
    if (!options_.callers.empty()) calls("callers", parts.calls, PathDirection::callers);
    if (!options_.callees.empty()) calls("callees", parts.calls, PathDirection::callees);
    if (is_usual(options_)) {
      if (!parts.headlines.empty()) headlines(parts.headlines);
      usual_sections();
    }
    notes();
    json_.end_object();
    return std::move(json_).finish();
  }

 private:
  template <typename Rows, typename Write>
  void array(std::string_view name, const Rows& rows, Write&& write) {
    json_.key(name);
    json_.begin_array();
    for (const auto& row : rows) write(row);
    json_.end_array();
  }

  // An object for each row.
  template <typename Rows, typename Write>
  void objects(std::string_view name, const Rows& rows, Write&& write) {
    array(name, rows, [&](const auto& row) {
      json_.begin_object();
      write(row);
      json_.end_object();
    });
  }

  template <typename Row>
  [[nodiscard]] std::span<const Row> top_of(const std::vector<Row>& rows) const {
    constexpr std::size_t kJsonRows = 20;
    return std::span(rows).first(std::min(options_.top > 0 ? options_.top : kJsonRows, rows.size()));
  }

  void header() {
    json_.member("title", options_.title);
    json_.member("type", view_.type);
    json_.member("unit", view_.unit);
    json_.member("total", view_.left.value);
    json_.member("total_size", view_.left.size);
    json_.member("unfiltered_size", view_.whole.size);
    json_.member("samples", view_.left.samples);
    json_.member("time_ns", view_.profile.time_ns);
    json_.member("duration_ns", view_.profile.duration_ns);
    array("filters", view_.selected.descriptions, [&](const std::string& text) { json_.text(text); });
    array("sample_types", view_.profile.value_types,
          [&](const ValueType& type) { json_.text(view_.profile.text(type.type)); });
  }

  void sums(const StackSum& sum) {
    json_.member("self", sum.self);
    json_.member("total", sum.total);
  }

  void functions(std::string_view name, const std::vector<SumRow>& rows) {
    objects(name, top_of(rows), [&](const SumRow& row) {
      json_.member("name", view_.frames[row.id].name);
      json_.member("module", view_.frames[row.id].module);
      sums(row.sum);
    });
  }

  void usual_sections() {
    const FunctionTables tables = function_tables(view_);
    json_.member("function_count", static_cast<std::int64_t>(tables.by_self.size()));
    functions("functions_by_self", tables.by_self);
    functions("functions_by_total", tables.by_total);
    paths();
    threads();
    processes();
    objects("missed", tables.missed, [&](const SumRow& row) {
      json_.member("reason", view_.frames[row.id].name);
      json_.member("total", row.sum.total);
    });
  }

  void paths() {
    const auto least =
        static_cast<std::int64_t>(static_cast<double>(view_.left.size) * options_.min_path_percent / 100.0);
    const bool by_process = view_.by_thread.processes.size() > 1;
    path_lines(hot_paths(view_, least, by_process));
  }

  void path_lines(const std::vector<PathLine>& lines) {
    objects("paths", lines, [&](const PathLine& path) {
      json_.member("depth", static_cast<std::int64_t>(path.depth));
      json_.member("total", path.value);
      array("frames", path.names, [&](std::string_view name) { json_.text(name); });
    });
  }

  void calls(std::string_view key, const std::vector<CallTree>& trees, PathDirection direction) {
    json_.key(key);
    json_.begin_array();
    for (const CallTree& tree : trees) {
      if (tree.direction != direction) continue;
      json_.begin_object();
      json_.member("function", view_.frames[tree.function.id].name);
      json_.member("module", view_.frames[tree.function.id].module);
      sums(tree.function.sum);
      path_lines(tree.paths);
      json_.end_object();
    }
    json_.end_array();
  }

  // The first is "headline"; where there are several processes all of them are in "headlines".
  void headlines(const std::vector<Headline>& all) {
    json_.key("headline");
    headline(all.front());
    if (all.size() > 1) array("headlines", all, [&](const Headline& one) { headline(one); });
  }

  void headline(const Headline& one) {
    json_.begin_object();
    json_.member("text", headline_text(one, spoken_name));
    json_.member("kind", kind_word(one.kind));
    json_.member("process", one.process);
    json_.member("total", one.whole);
    json_.member("samples", one.samples);
    json_.member("missed", one.missed);
    json_.member("missed_reason", one.missed_reason);
    json_.member("kernel", one.kernel_value);
    json_.member("system_call", one.system_call);
    json_.member("system_call_total", one.system_call_value);
    json_.member("module", one.module);
    json_.member("module_total", one.module_value);
    json_.member("under", one.under);
    json_.member("under_total", one.under_value);
    json_.member("function_count", static_cast<std::int64_t>(one.payer_count));
    objects("functions", one.payers, [&](const Payer& payer) {
      json_.member("name", payer.name);
      json_.member("module", payer.module);
      json_.member("file", payer.file);
      json_.member("line", payer.line);
      json_.member("total", payer.value);
      json_.key("own");
      json_.flag(payer.is_own);
      json_.member("caller", payer.caller);
      json_.member("caller_total", payer.caller_value);
      json_.member("callee", payer.callee);
      json_.member("callee_module", payer.callee_module);
    });
    json_.end_object();
  }

  static std::string_view kind_word(Headline::Kind kind) {
    switch (kind) {
      case Headline::Kind::nothing:
        return "nothing";
      case Headline::Kind::one:
        return "one";
      case Headline::Kind::several:
        return "several";
      case Headline::Kind::spread:
        return "spread";
      case Headline::Kind::kernel:
        return "kernel";
      case Headline::Kind::library:
        return "library";
      case Headline::Kind::interpreter:
        return "interpreter";
    }
    return "";
  }

  void threads() {
    objects("threads", view_.by_thread.threads, [&](const ValueRow& row) {
      const SampledThread& thread = view_.threads.threads()[row.id];
      json_.member("name", thread.name);
      json_.member("id", thread.id);
      json_.member("process", view_.threads.processes()[thread.process].name);
      json_.member("process_id", view_.threads.processes()[thread.process].id);
      json_.member("total", row.value);
    });
  }

  void processes() {
    objects("processes", view_.by_thread.processes, [&](const ValueRow& row) {
      json_.member("name", view_.threads.processes()[row.id].name);
      json_.member("id", view_.threads.processes()[row.id].id);
      json_.member("total", row.value);
    });
  }

  void modules() {
    objects("modules", module_rows(view_), [&](const ModuleRow& row) {
      json_.member("path", row.path);
      json_.member("build_id", row.build_id);
      json_.member("names", row.names);
      sums(row.sum);
    });
  }

  void lines() {
    const LineTable table = line_table(view_);
    json_.member("line_count", static_cast<std::int64_t>(table.rows.size()));
    objects("lines", top_of(table.rows), [&](const LineRow& row) {
      json_.member("file", view_.profile.text(row.file));
      json_.member("line", row.line);
      json_.member("function", view_.frames[row.frame].name);
      sums(row.sum);
    });
    json_.member("unknown_lines_self", table.unknown);
  }

  void annotation(const Annotation& one) {
    json_.begin_object();
    const NamedFrame& frame = view_.frames[one.function.id];
    json_.member("function", frame.name);
    json_.member("module", frame.module);
    sums(one.function.sum);
    listings("source", one.source, "file", "line");
    listings("assembly", one.code, "symbol", "address");
    json_.end_object();
  }

  void listings(std::string_view name, const std::vector<Listing>& all, std::string_view title,
                std::string_view number) {
    objects(name, all, [&](const Listing& listing) {
      json_.member(title, listing.title);
      json_.member("problem", listing.problem);
      json_.member("note", listing.note);
      objects("rows", listing.rows, [&](const ListingRow& row) {
        json_.member(number, static_cast<std::int64_t>(row.number));
        sums(row.sum);
        json_.member("text", row.text);
        json_.member("place", row.place);
      });
    });
  }

  void notes() {
    array("notes", view_.profile.comments,
          [&](StringIndex comment) { json_.text(view_.profile.text(comment)); });
  }

  const ReportView& view_;
  const ReportOptions& options_;
  JsonWriter json_;
};

}  // namespace

std::string report_json(const ReportView& view, const ReportOptions& options, const ReportParts& parts) {
  return ReportJson(view, options).write(parts);
}

}  // namespace ddprof
