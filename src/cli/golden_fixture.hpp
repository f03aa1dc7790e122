#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ddprof {

// For tests: the text of a file in the repository. With DDPROF_UPDATE_DOCS set the file is written instead of
// compared; the diff is then read by a person.
inline void expect_file(const std::string& path, const std::string& text) {
  const std::string whole_path = std::string(DDPROF_SOURCE_DIR) + "/" + path;
  if (std::getenv("DDPROF_UPDATE_DOCS") != nullptr) {
    std::ofstream(whole_path) << text;
    GTEST_SKIP() << path << " was written, not compared (DDPROF_UPDATE_DOCS)";
  }
  std::ifstream file(whole_path);
  std::ostringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), text) << path
                                 << " is out of date: run `make docs`, or DDPROF_UPDATE_DOCS=1 cli_test";
}

}  // namespace ddprof
