// What a hostile world does to runs of snug, a part of it in "make test" and all of it, or a part,
// with --long:
//   hostile_test [--long[=PART]] [--seed=N] [--only=TRIAL] [--results=FILE] [--gtest_filter=...]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#include "findings.h"

namespace {

// False for a word that means nothing here.
bool take(std::string_view word) {
  snug::hostile::Options& options = snug::hostile::options();
  const std::string_view value = word.substr(word.find('=') + 1);
  if (word == "--long")
    options.part = 1;
  else if (word.starts_with("--long="))
    options.part = std::strtod(std::string(value).c_str(), nullptr);
  else if (word.starts_with("--seed="))
    options.seed = std::strtoull(std::string(value).c_str(), nullptr, 10);
  else if (word.starts_with("--only="))
    options.only = value;
  else if (word.starts_with("--results="))
    options.results = value;
  else
    return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (!take(argv[i])) {
      fmt::print(stderr, "hostile_test: '{}' means nothing here\n", argv[i]);
      return 2;
    }
  const int result = RUN_ALL_TESTS();
  if (!snug::hostile::options().results.empty())
    snug::hostile::write_results(snug::hostile::options().results);
  return result;
}
