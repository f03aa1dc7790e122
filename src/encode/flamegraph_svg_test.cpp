#include "encode/viewer_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <regex>
#include <set>

#include "encode/escaped_text.hpp"
#include "encode/flame_colors.hpp"
#include "encode/profile_fixture.hpp"
#include "import/import_profile.hpp"
#include "import/json_document.hpp"

namespace ddprof {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// Tests of the whole system open it in a browser and with a parser of XML.

std::string svg_of(const Profile& profile) { return encode_flamegraph_svg(profile).value(); }

// What the script gets.
JsonDocument data_of(const std::string& svg) {
  constexpr std::string_view kBegin = "id=\"data\">";
  const std::size_t begin = svg.find(kBegin) + kBegin.size();
  return JsonDocument::parse(svg.substr(begin, svg.find("</script>", begin) - begin), std::size_t{64} << 20U)
      .value();
}

// Self value by name; what was merged is under "".
std::map<std::string, std::int64_t> selves_of(const JsonDocument& data) {
  const auto& frames = *json_array(data.root(), "frames");
  const auto& nodes = *json_array(data.root(), "nodes");
  std::map<std::string, std::int64_t> selves;
  std::vector<std::string> callers;
  for (std::size_t at = 0; at < nodes.size(); at += 4) {
    const auto depth = static_cast<std::size_t>(json_integer(nodes[at]).value());
    const std::int64_t frame = json_integer(nodes[at + 1]).value(),
                       value = json_integer(nodes[at + 2]).value();
    const std::string name(frame < 0 ? std::string_view()
                                     : json_text(frames[static_cast<std::size_t>(frame)].as_array()[0]));
    callers.resize(depth);
    if (depth > 0) selves[callers.back()] -= value;
    selves[name] += value;
    callers.push_back(name);
  }
  return selves;
}

Profile one_sample(std::string_view name, std::string_view module = "/bin/app", std::int64_t value = 7) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  const ProfileLine line{builder.add_function(name, name, name, 3), 4};
  const std::uint32_t mapping =
      builder.add_mapping({.start = {0x1000}, .limit = {0x2000}, .path = builder.intern(module)});
  builder.add_sample({{builder.add_location(mapping, {0x1500}, std::span(&line, 1))},
                      {value},
                      {builder.text_label(kProcessNameLabel, name)}});
  return std::move(builder).build();
}

TEST(FlamegraphSvg, HoldsTheNumbersOfTheProfile) {
  const JsonDocument data = data_of(svg_of(testing_data::RichProfile().build()));
  EXPECT_EQ(json_integer(data.root().at("total")), 3'550'000'000);
  EXPECT_EQ(json_text(data.root(), "type"), "cpu");
  EXPECT_EQ(json_text(data.root(), "unit"), "nanoseconds");
  std::map<std::string, std::int64_t> selves = selves_of(data);
  std::erase_if(selves, [](const auto& entry) { return entry.second == 0; });
  const std::map<std::string, std::int64_t> expected{{"add(int; int)", 2'300'000'000},
                                                     {"lambda\xef\xbf\xbd"
                                                      "1",
                                                      700'000'000},
                                                     {"sys_read", 500'000'000},
                                                     {"[lost: ring buffer full]", 50'000'000}};
  EXPECT_EQ(selves, expected);
}

TEST(FlamegraphSvg, SaysWhatItIsAndWhatWasMissed) {
  const std::string svg = svg_of(testing_data::RichProfile().build());
  EXPECT_THAT(svg, HasSubstr("<title id=\"title\">all processes: 3.55 s cpu</title>"));
  EXPECT_THAT(svg, HasSubstr("3.55 s cpu in 4.00 s (0.89 CPUs)<"));
  EXPECT_THAT(svg, HasSubstr("from 2023-11-14 22:13:20 UTC<"));
  EXPECT_THAT(svg, HasSubstr("355 samples<"));
  EXPECT_THAT(svg, HasSubstr("1.4 % lost<"));
  EXPECT_THAT(svg, HasSubstr("no stack truncated<"));
  EXPECT_THAT(svg, HasSubstr("app 64.8 %<")) << "the legend: self, by module";
  EXPECT_THAT(svg, HasSubstr("kernel 14.1 %<"));
  EXPECT_THAT(svg, HasSubstr("JIT code 19.7 %<"));
  EXPECT_THAT(svg, HasSubstr("missed 1.4 %<"));
  EXPECT_THAT(svg_of(one_sample("f")), HasSubstr("the profile does not say what was missed"));
}

TEST(FlamegraphSvg, AsksForNothingFromOutside) {
  std::string svg = svg_of(testing_data::RichProfile().build());
  for (const std::string_view name : {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}) {
    for (std::size_t at = svg.find(name); at != std::string::npos; at = svg.find(name))
      svg.erase(at, name.size());
  }
  for (const char* word : {"://", "href", "@import", "innerHTML", "eval("})
    EXPECT_THAT(svg, Not(HasSubstr(word)));
}

TEST(FlamegraphSvg, ForeignNamesAreOnlyText) {
  const std::string plain = svg_of(one_sample("plain"));
  const auto count = [](const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  for (const std::string_view name :
       {"</script><script>alert(1)</script>", "]]>", "<![CDATA[", "\"><img src=x onerror=y>", "&amp;&x;",
        "a\x01\x1b[31m\x7f\xff\xef\xbf\xbe\xef\xbf\xbf", "--><!--", "<title>"}) {
    const std::string svg = svg_of(one_sample(name, fmt::format("/lib/{}", name)));
    for (const char* mark : {"<script", "</script", "]]>", "<![CDATA[", "<img", "<!--", "<title"})
      EXPECT_LE(count(svg, mark), std::max(count(plain, mark), std::size_t{0})) << name;
    EXPECT_THAT(svg, Each(Not(::testing::AnyOf('\x01', '\x1b', '\x7f', '\xff'))));
    EXPECT_EQ(count(svg, "\xef\xbf\xbe") + count(svg, "\xef\xbf\xbf"), 0U);
    EXPECT_EQ(json_text(json_array(data_of(svg).root(), "frames")->at(1).as_array()[0]), clean_text(name));
  }
}

TEST(FlamegraphSvg, ALongNameLosesItsMiddle) {
  const std::string svg = svg_of(one_sample(std::string(100'000, 'x') + "end"));
  EXPECT_LT(svg.size(), 150'000U);
  EXPECT_THAT(std::string(json_text(json_array(data_of(svg).root(), "frames")->at(1).as_array()[0])),
              ::testing::EndsWith("xend"));
}

TEST(FlamegraphSvg, IsBoundedWhateverTheProfileHolds) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  std::vector<std::uint32_t> locations;
  for (int at = 0; at < 300; ++at) locations.push_back(builder.add_named_location(fmt::format("f{}", at)));
  std::uint32_t random = 1;
  std::int64_t total = 0;
  for (int at = 0; at < 60'000; ++at) {
    std::vector<std::uint32_t> stack;
    for (int frame = 0; frame < 12; ++frame) {
      random = random * 1664525U + 1013904223U;
      stack.push_back(locations[(random >> 16U) % locations.size()]);
    }
    builder.add_sample({std::move(stack), {1 + at % 3}, {}});
    total += 1 + at % 3;
  }
  const std::string svg = svg_of(std::move(builder).build());
  EXPECT_LT(svg.size(), 2'500'000U);
  std::int64_t sum = 0;
  for (const auto& [name, self] : selves_of(data_of(svg))) sum += self;
  EXPECT_EQ(sum, total) << "what is merged has a value";
}

TEST(FlamegraphSvg, AnEmptyProfileSaysSo) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  EXPECT_THAT(svg_of(std::move(builder).build()), HasSubstr("nothing was sampled"));
  EXPECT_THAT(encode_flamegraph_svg(Profile{}).error().message, HasSubstr("no values"));
}

TEST(FlamegraphSvg, RefusesADifference) {
  const Result<std::string> svg = encode_flamegraph_svg(one_sample("f", "/bin/app", -1));
  ASSERT_FALSE(svg.ok());
  EXPECT_THAT(svg.error().message, HasSubstr("negative"));
  EXPECT_THAT(svg.error().hint, HasSubstr(".folded"));
  EXPECT_TRUE(encode_flamegraph_svg(one_sample("f", "/bin/app", 0)).ok()) << "nothing is no difference";
}

TEST(FlamegraphSvg, IsNotReadAsAProfile) {
  const std::string svg = svg_of(one_sample("f"));
  const Result<Profile> profile = import_profile(std::as_bytes(std::span(svg)));
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.error().message, HasSubstr("a picture"));
}

TEST(FlameColors, GivesHuesToTheLargestModulesAndGreyToTheRest) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  for (int at = 0; at < 12; ++at) {
    const std::string path = at == 3 ? "/bin/app" : fmt::format("/lib/lib{}.so", at);
    const std::uint32_t mapping =
        builder.add_mapping({.start = {0x1000}, .limit = {0x2000}, .path = builder.intern(path)});
    builder.add_sample({{builder.add_location(mapping, {0x1500}, {})}, {100 - at}, {}});
  }
  const Profile profile = std::move(builder).build();
  const FlameColors colors(profile, FrameTable(profile), 0);
  ASSERT_EQ(colors.modules().size(), 8U);
  EXPECT_EQ(colors.modules()[0].name, "lib0.so");
  EXPECT_EQ(colors.modules()[0].kind, FlameColors::Kind::library);
  EXPECT_EQ(colors.modules()[3].name, "app");
  EXPECT_EQ(colors.modules()[7].name, "other modules");
  EXPECT_EQ(colors.modules()[7].modules, 5U);
  EXPECT_EQ(colors.modules()[7].self, 93 + 92 + 91 + 90 + 89);
  EXPECT_THAT(colors.css(), HasSubstr(".m3a{fill:#ee8866}")) << "the program has the first hue, in full";
  EXPECT_THAT(colors.css(), HasSubstr(".m7a{fill:#dddddd}"));
  const std::string css = colors.css();
  EXPECT_EQ(std::count(css.begin(), css.end(), '\n'), 8 * 3) << "three shades of each";
}

struct Bar {
  double left = 0, right = 0;
  int top = 0;
};

// Of the picture itself: those as high as the first, which are frames.
std::vector<Bar> bars_of(const std::string& svg) {
  const std::regex form(
      "<rect class=\"[^\"]+\" x=\"([0-9.]+)\" y=\"([0-9]+)\" width=\"([0-9.]+)\" height=\"([0-9]+)\"");
  std::vector<Bar> bars;
  std::string height;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), form); at != std::sregex_iterator(); ++at) {
    if (height.empty()) height = (*at)[4];
    if ((*at)[4] != height) continue;
    bars.push_back({std::stod((*at)[1]), std::stod((*at)[1]) + std::stod((*at)[3]), std::stoi((*at)[2])});
  }
  return bars;
}

TEST(FlamegraphSvg, EveryFrameLiesBelowItsCallerAndBesideItsSiblings) {
  const std::vector<Bar> bars = bars_of(svg_of(testing_data::RichProfile().build()));
  ASSERT_GT(bars.size(), 5U);
  const Bar& root = bars.front();
  EXPECT_EQ(std::count_if(bars.begin(), bars.end(), [&](const Bar& bar) { return bar.top <= root.top; }), 1);
  std::set<int> rows;
  for (const Bar& bar : bars) rows.insert(bar.top);
  const int height = *std::next(rows.begin()) - root.top;
  for (const Bar& bar : bars) {
    EXPECT_EQ((bar.top - root.top) % height, 0);
    if (bar.top == root.top) continue;
    const auto is_caller = [&](const Bar& other) {
      return other.top == bar.top - height && other.left <= bar.left + 0.02 &&
             bar.right <= other.right + 0.02;
    };
    EXPECT_EQ(std::count_if(bars.begin(), bars.end(), is_caller), 1);
    const auto overlaps = [&](const Bar& other) {
      return &other != &bar && other.top == bar.top && other.left < bar.right && bar.left < other.right;
    };
    EXPECT_TRUE(std::none_of(bars.begin(), bars.end(), overlaps));
  }
}

TEST(FlamegraphSvg, DrawsTheSmallestValueWhereItIsWideEnough) {
  EXPECT_EQ(bars_of(svg_of(one_sample("f", "/bin/app", 1))).size(), 2U) << "the process and the function";
}

TEST(FlamegraphSvg, HasFortyRowsAtMost) {
  const auto rows_of = [](int frames) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("samples", "count")};
    std::vector<std::uint32_t> stack;
    for (int at = 0; at < frames; ++at) stack.push_back(builder.add_named_location(fmt::format("f{}", at)));
    builder.add_sample({std::move(stack), {1}, {}});
    std::set<int> rows;
    for (const Bar& bar : bars_of(svg_of(std::move(builder).build()))) rows.insert(bar.top);
    return rows.size();
  };
  EXPECT_EQ(rows_of(38), 39U);
  EXPECT_EQ(rows_of(39), 40U);
  EXPECT_EQ(rows_of(60), 41U) << "and one for all that is deeper";
}

TEST(FlamegraphSvg, ALegendGoesOnInTheNextLine) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  for (int at = 0; at < 7; ++at) {
    const std::string path = fmt::format("/lib/{}{}.so", std::string(30, 'x'), at);
    const std::uint32_t mapping =
        builder.add_mapping({.start = {0x1000}, .limit = {0x2000}, .path = builder.intern(path)});
    builder.add_sample({{builder.add_location(mapping, {0x1500}, {})}, {100 - at}, {}});
  }
  const std::string svg = svg_of(std::move(builder).build());
  const std::size_t begin = svg.find("<g id=\"legend\">");
  const std::string legend = svg.substr(begin, svg.find("\n</g>", begin) - begin);
  const std::regex form(R"(translate\(([0-9]+) ([0-9]+)\))");
  std::vector<std::pair<int, int>> places;  // lines first
  for (auto at = std::sregex_iterator(legend.begin(), legend.end(), form); at != std::sregex_iterator(); ++at)
    places.emplace_back(std::stoi((*at)[2]), std::stoi((*at)[1]));
  ASSERT_EQ(places.size(), 8U);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_GT(places.back().first, places.front().first);
  EXPECT_EQ(std::adjacent_find(places.begin(), places.end()), places.end());
}

TEST(FlamegraphSvg, APlaceHasItsLineWhereThatIsKnown) {
  const auto svg_with = [](std::int64_t start, std::int64_t line) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
    const ProfileLine call{builder.add_function("f", "f", "app.cc", start), line};
    builder.add_sample({{builder.add_location(kNoMapping, {0x1500}, std::span(&call, 1))}, {7}, {}});
    return svg_of(std::move(builder).build());
  };
  EXPECT_THAT(svg_with(3, 4), HasSubstr("app.cc:3"));
  EXPECT_THAT(svg_with(0, 4), HasSubstr("app.cc:4"));
  EXPECT_THAT(svg_with(0, 0), HasSubstr("app.cc"));
  EXPECT_THAT(svg_with(0, 0), Not(HasSubstr("app.cc:")));
}

}  // namespace
}  // namespace ddprof
