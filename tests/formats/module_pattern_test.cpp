// Each case was checked against Python's re.fullmatch.
#include "formats/adapter/module_pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace snug::formats {
namespace {

constexpr const char* kName = "model.layers.10.self_attn.q_proj";

std::string error_of(const std::string& pattern) {
  try {
    ModulePattern{pattern};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ModulePattern, MatchesWholeNames) {
  for (const char* pattern :
       {"model.layers.10.self_attn.q_proj", R"(.*\.q_proj)", ".*proj$",
        R"(^model\..*(q|k|v)_proj\Z)", R"(.*\.layers\.(?:1\d|2[0-3])\..*)", R"((?=.*attn).*)",
        R"((?!.*mlp).*_proj)", R"((?P<a>m).*(?P=a)?.*)", R"((.).*)", "(?i)MODEL.*", "(?i:MODEL).*",
        "[^k]*q_proj", R"([\w.]+)", R"(.*\.1{,1}0\..*)", R"(.*[]q]_proj)", "model.*|x", "m.*+",
        "(?>model).*"})
    EXPECT_TRUE(ModulePattern(pattern).matches(kName)) << pattern;
  for (const char* pattern :
       {"q_proj", ".*layers", "model", R"(.*\.layers\.1\..*)", "", "MODEL.*", "(?!model).*",
        R"(.*\.1{,0}0\..*)", "model|q_proj", R"((o).*\1_proj)"})
    EXPECT_FALSE(ModulePattern(pattern).matches(kName)) << pattern;
}

TEST(ModulePattern, RefusesWhatPythonReadsOtherwise) {
  for (const char* pattern : {R"(\p{L}+)", R"(.*\R)", R"(\Q.\E)", R"(\z)", R"(\012)", R"(\x41)",
                              R"(\u0041)", "(*UTF).*", "(?R)", "(?|a|b)", "(?<a>b)", "(?x)a b",
                              "a(?i)b", "[[:alpha:]]+", "[a[b]", R"([\b])", "a{,}", "a\\"})
    EXPECT_NE(error_of(pattern).find("which is not supported"), std::string::npos)
        << pattern << ": " << error_of(pattern);
  for (const char* pattern : {"(", "[a", "*", "a{2,1}", "(?P<a>b)(?P<a>c)", R"(\1)", "[b-a]"})
    EXPECT_NE(error_of(pattern).find(pattern), std::string::npos)
        << pattern << ": " << error_of(pattern);
  EXPECT_THROW(ModulePattern("(a|aa)*[bc]").matches(std::string(4000, 'a')), std::invalid_argument);
}

TEST(ModulePattern, NamesAreNoExpressions) {
  for (const char* name : {"q_proj", "all-linear", "model.layers.0.mlp", "lm_head"})
    EXPECT_FALSE(is_module_pattern(name)) << name;
  for (const char* pattern : {".*", "q|v", "(q)", "a[0]", "a\\.b", "^a", "a$"})
    EXPECT_TRUE(is_module_pattern(pattern)) << pattern;
}

}  // namespace
}  // namespace snug::formats
