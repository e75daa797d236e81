// Pages are whole documents: every tag is closed, every text escaped, nothing comes from elsewhere.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "planned_example.h"
#include "report/charts.h"
#include "report/plan_page.h"
#include "report/run_page.h"

namespace snug::report {
namespace {

using snug::testing::contains;

const std::vector<std::string> kWords{"model=smollm2-135m", "method=lora", "max_length=64"};

// The first tag that is not closed where it should be; empty: all are.
std::string unclosed_tag(const std::string& html) {
  static const std::regex kTag(R"(<(/?)(\w+)[^<>]*?(/?)>)");
  static const std::set<std::string> kAlone{"meta"};
  std::vector<std::string> open;
  const std::string body = html.substr(html.find("<html"));
  for (std::sregex_iterator tag(body.begin(), body.end(), kTag), end; tag != end; ++tag) {
    const std::string name = (*tag)[2];
    if ((*tag)[3].length() > 0) continue;
    if ((*tag)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) return name;
    open.pop_back();
  }
  return open.empty() ? "" : open.back();
}

bool is_self_contained(const std::string& html) {
  static const std::regex kOutside(R"((src|href)=|url\(|@import|<script|<link)");
  return !std::regex_search(html, kOutside);
}

TEST(Pages, AreWhole) {
  const Example example(kWords);
  const std::string html = plan_page(example.planned);
  EXPECT_EQ(unclosed_tag(html), "");
  EXPECT_TRUE(is_self_contained(html));
  EXPECT_FALSE(contains(html, "nan") || contains(html, "inf\"")) << "a coordinate is no number";
  for (const char* part :
       {"Memory over a step: device", "What each channel does", "Bytes of each layer at the peak",
        "Where the time goes", "Other values of recompute", "(this plan)"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_TRUE(
      contains(html, plan::readable_bytes(example.planned.document.device.report.peak_bytes)));
}

TEST(Pages, CompareStrategiesOfRanks) {
  std::vector<std::string> words = kWords;
  words.insert(words.end(), {"devices=2", "strategy=full_shard"});
  const Example example(words);
  const std::string html = plan_page(example.planned);
  EXPECT_TRUE(contains(html, "Other values of strategy"));
  EXPECT_TRUE(contains(html, "full_shard (this plan)"));
  EXPECT_TRUE(contains(html, "shard_grad_op"));
}

TEST(Pages, OfARunHaveItsCurves) {
  const Example example(kWords);
  const testing::TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  {
    std::ofstream lines(path);
    for (int step = 1; step <= 9000; ++step)
      lines << "{\"step\":" << step << ",\"loss\":" << 1.0 / step << ",\"grad_norm\":null}\n";
    lines << "{\"step\":9000,\"eval_lo";  // torn
  }
  plan::Measured measured;
  measured.device_bytes = 12345678;
  const std::string html = run_page(example.planned, measured, path);
  EXPECT_EQ(unclosed_tag(html), "");
  EXPECT_TRUE(contains(html, "Planned and measured"));
  EXPECT_TRUE(contains(html, plan::readable_bytes(12345678)));
  EXPECT_TRUE(contains(html, ">Loss<"));
  EXPECT_FALSE(contains(html, "Norm of the gradient")) << "there is none to draw";
  EXPECT_LT(html.size(), 400'000U) << "many steps are thinned out";
  EXPECT_THROW(run_page(example.planned, measured, "no/such/metrics.jsonl"), base::UserError);
}

TEST(Pages, OfARunHaveACurveOfEachEvaluationSet) {
  const Example example(kWords);
  const testing::TemporaryFolder folder;
  folder.write("metrics.jsonl",
               "{\"step\":1,\"eval_loss\":3,\"eval_a<b_loss\":2,\"eval_c_loss\":4}\n"
               "{\"step\":2,\"eval_loss\":2,\"eval_a<b_loss\":1,\"eval_c_loss\":3}\n");
  const std::vector<NamedCurve> sets{{"eval_a<b_loss", "Loss of a<b"},
                                     {"eval_d_loss", "Loss of d"}};
  const std::string html = run_page(example.planned, {}, folder / "metrics.jsonl", sets);
  EXPECT_EQ(unclosed_tag(html), "");
  EXPECT_TRUE(contains(html, "Loss of the evaluation data"));
  EXPECT_TRUE(contains(html, "Loss of a&lt;b"));
  EXPECT_FALSE(contains(html, "Loss of d")) << "there is none to draw";
}

TEST(Pages, EscapeTexts) {
  EXPECT_EQ(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  Page page("<script>alert(1)</script>");
  page.table({{"<b>", "x"}, {"&", "y"}});
  const std::string html = page.text();
  EXPECT_TRUE(is_self_contained(html));
  EXPECT_FALSE(contains(html, "<b>"));
  EXPECT_EQ(unclosed_tag(html), "");
}

TEST(Pages, LinesWithGapsAreDrawnInParts) {
  const double gap = std::numeric_limits<double>::quiet_NaN();
  const TextOf text = [](double value) { return std::to_string(value); };
  const std::string html = line_chart({{1, 2, 3, 4}, {1, gap, 3, 2}, 0, text, text});
  EXPECT_FALSE(contains(html, "nan"));
  const std::regex moves("M[0-9]");
  EXPECT_EQ(std::distance(std::sregex_iterator(html.begin(), html.end(), moves), {}), 2);
  EXPECT_EQ(line_chart({{1, 2}, {gap, gap}, 0, text, text}), "");
}

}  // namespace
}  // namespace snug::report
