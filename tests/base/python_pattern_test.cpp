// Expected values are those of Python's re.
#include "base/python_pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace snug::base {
namespace {

std::string shown(const std::string& pattern, const std::string& text) {
  std::string all;
  for (const PythonPattern::Match& match : PythonPattern(pattern).find_all(text)) {
    all += "<";
    for (size_t i = 0; i < match.size(); ++i) all += (i > 0 ? "|" : "") + match[i];
    all += ">";
  }
  return all;
}

TEST(PythonPattern, FindsWhatFindallFinds) {
  EXPECT_EQ(shown(R"(#### (\-?[0-9\.\,]+))", "a #### 1,234 and #### -5."),
            "<#### 1,234|1,234><#### -5.|-5.>");
  EXPECT_EQ(shown("(a)|(b)", "ab"), "<a|a|><b||b>");
  EXPECT_EQ(shown("x*", "axxb"), "<><xx><><>");
  EXPECT_EQ(shown(R"(\w+)", "né à"), "<né><à>");
  EXPECT_EQ(shown("(?i)YES", "yes Yes"), "<yes><Yes>");
  EXPECT_EQ(shown("(?s)a.b", "a\nb"), "<a\nb>");
  EXPECT_EQ(shown("a.b", "a\nb"), "");
  EXPECT_EQ(shown(R"(b\Z)", "b\n"), "");
  EXPECT_EQ(shown("b$", "b\n"), "<b>");
}

TEST(PythonPattern, ReplacesWhatSubReplaces) {
  EXPECT_EQ(PythonPattern("x*").replace_all("axxb", "-"), "-a--b-");
  EXPECT_EQ(PythonPattern(R"(\$|,)").replace_all("$1,000", ""), "1000");
  EXPECT_EQ(PythonPattern("é").replace_all("déjà é", "\\1"), "d\\1jà \\1");
}

TEST(PythonPattern, RefusesWhatIsReadDifferently) {
  for (const char* pattern : {"a(?i)b", "(?x)a", "(?L)a", R"(\h)", "[a[b]", "("})
    EXPECT_THROW(PythonPattern{pattern}, std::invalid_argument) << pattern;
}

}  // namespace
}  // namespace snug::base
