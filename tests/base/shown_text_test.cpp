#include "base/shown_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/console.h"
#include "base/error.h"
#include "captured_stream.h"

namespace snug::base {
namespace {

using std::string_literals::operator""s;

// U+1F600 and letters with marks are nobody's trick.
constexpr const char* kPlain = "caf\xC3\xA9\t\xE2\x96\x81 \xF0\x9F\x98\x80\n";

TEST(ShownText, StandsAsItIsWhereNothingIsHidden) { EXPECT_EQ(shown_text(kPlain), kPlain); }

TEST(ShownText, HidesNothing) {
  EXPECT_EQ(shown_text("a\x1b[31mb\r\a\x7f"), "a\\u001b[31mb\\u000d\\u0007\\u007f");
  EXPECT_EQ(shown_text("a\0b"s), "a\\u0000b");
  EXPECT_EQ(shown_text("\xC2\x9B"), "\\u009b");  // CSI in one character
  EXPECT_EQ(shown_text("\xE2\x80\xAE"
                       "cod.exe"),
            "\\u202ecod.exe");  // turns what follows
  EXPECT_EQ(shown_text("\xE2\x81\xA6\xE2\x80\xA8"), "\\u2066\\u2028");
}

TEST(ShownText, NulsDoNotEndAnError) {
  EXPECT_EQ(with_shown_nuls("a\0b\0"s), "a\\u0000b\\u0000");
  const UserError error("the key 'a\0b' is unknown; remove it"s, {"f.json"});
  EXPECT_STREQ(error.what(), "f.json: the key 'a\\u0000b' is unknown; remove it");
}

TEST(ShownText, ShowsBytesThatAreNoText) {
  EXPECT_EQ(shown_text("\xFF"
                       "a\xC3"),
            "\\xffa\\xc3");
  EXPECT_EQ(shown_text("\x9B\xE2\x80"), "\\x9b\\xe2\\x80");
}

TEST(ShownText, LeavesJsonAsItWasMeant) {
  const nlohmann::json document = {{"name", "\x1b\xC2\x9B\x7f\xE2\x80\xAE"}};
  EXPECT_EQ(nlohmann::json::parse(shown_text(document.dump())), document);
}

TEST(ShownText, LinesLoseTheirMiddle) {
  const std::string text = "model.json: " + std::string(1 << 20, 'a') + "; choose another";
  const std::string shown(ShownLine(text, 1000).view());
  EXPECT_LE(shown.size(), 1000U);
  EXPECT_GT(shown.size(), 900U);
  EXPECT_TRUE(shown.starts_with("model.json: aaa")) << shown;
  EXPECT_TRUE(shown.ends_with("; choose another")) << shown;
  EXPECT_NE(shown.find("bytes left out"), std::string::npos) << shown;
}

// Every length, around the bound, of characters and of what becomes longer.
TEST(ShownText, LinesAreNeverTooLongNorCutWithinACharacter) {
  for (const std::string part : {"a", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x1b", "\xFF"}) {
    std::string text;
    for (int i = 0; i < 400; ++i, text += part) {
      const std::string shown(ShownLine(text, 300).view());
      ASSERT_LE(shown.size(), 300U);
      ASSERT_EQ(shown_text(shown), shown);
      if (shown_text(text).size() <= 300) {
        ASSERT_EQ(shown, shown_text(text));
      }
    }
  }
}

TEST(ShownText, ConsoleShowsWhatOthersWrote) {
  std::string said;
  {
    const testing::CapturedStream console(stderr);
    say("the tensor {} is {}", "a\x1b]0;title\x07", std::string(1 << 20, 'b'));
    said = console.text();
  }
  EXPECT_TRUE(said.starts_with("the tensor a\\u001b]0;title\\u0007 is bbb")) << said.substr(0, 80);
  EXPECT_LT(said.size(), size_t{20000});
  const testing::CapturedStream output(stdout);
  print("{}\n", "row \x1b[2K");
  flush_output();
  EXPECT_EQ(output.text(), "row \\u001b[2K\n");
}

}  // namespace
}  // namespace snug::base
