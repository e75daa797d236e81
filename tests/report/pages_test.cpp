// Pages are whole documents: every tag is closed, every text escaped, nothing comes from elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "planned_example.h"
#include "report/axis_ticks.h"
#include "report/charts.h"
#include "report/metric_charts.h"
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
  const std::string html = RunPage(example.planned, path).finished(measured);
  EXPECT_EQ(unclosed_tag(html), "");
  EXPECT_TRUE(contains(html, "Planned and measured"));
  EXPECT_TRUE(contains(html, plan::readable_bytes(12345678)));
  EXPECT_TRUE(contains(html, ">Loss<"));
  EXPECT_FALSE(contains(html, "Norm of the gradient")) << "there is none to draw";
  EXPECT_LT(html.size(), 400'000U) << "many steps are thinned out";
  EXPECT_THROW(RunPage(example.planned, "no/such/metrics.jsonl").finished(measured),
               base::UserError);
}

TEST(Pages, OfARunThatGoesOnAreLoadedAgain) {
  const Example example(kWords);
  const testing::TemporaryFolder folder;
  const double seconds = 2 * example.planned.document.step_seconds;
  folder.write("metrics.jsonl", fmt::format("{{\"step\":1,\"loss\":3,\"step_seconds\":{0}}}\n"
                                            "{{\"step\":2,\"loss\":2.5,\"step_seconds\":{0}}}\n",
                                            seconds));
  const RunPage page(example.planned, folder / "metrics.jsonl");
  RunProgress progress{.state = "running",
                       .goes_on = true,
                       .total_steps = 2 + static_cast<int64_t>(std::ceil(7200 / seconds)),
                       .written_at = "today"};
  const std::string html = page.unfinished(progress);
  EXPECT_EQ(unclosed_tag(html), "");
  EXPECT_TRUE(is_self_contained(html));
  for (const char* part : {"http-equiv=\"refresh\"", "<b>2 of ", "2.5 (best 2.5)", "<b>50 %</b>",
                           "<b>2:00:00</b>", "The plan", "Memory over a step"})
    EXPECT_TRUE(contains(html, part)) << part;
  progress.goes_on = false;
  EXPECT_FALSE(contains(page.unfinished(progress), "refresh"));
  progress.state = "stopped: step 7: the loss is nan, and the run stopped without saving";
  EXPECT_TRUE(contains(page.unfinished(progress), "<p>stopped: step 7"));
}

// Lines of steps come between those of evaluations, and are no gaps of their curves; nor are
// evaluations gaps of the others'.
TEST(Pages, EvaluationsAreJoinedAndTearNothing) {
  const testing::TemporaryFolder folder;
  std::string lines;
  for (int step = 1; step <= 6; ++step) {
    lines += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, 7 - step);
    if (step % 2 == 0) lines += fmt::format("{{\"step\":{},\"eval_loss\":{}}}\n", step, 8 - step);
  }
  const MetricsCurves metrics = read_metrics(folder.write("metrics.jsonl", lines));
  EXPECT_EQ(metrics.find("eval_loss")->steps, (std::vector<double>{2, 4, 6}));
  Page page("");
  const std::vector<ChartedRun> runs{{"", &metrics}};
  add_metric_charts(runs, page);
  const std::string html = page.text();
  const std::regex curve("class=\"curve\"[^>]* d=\"([^\"]*)\"");
  std::vector<std::string> paths;
  for (std::sregex_iterator found(html.begin(), html.end(), curve), end; found != end; ++found)
    paths.push_back((*found)[1]);
  ASSERT_EQ(paths.size(), 3U) << "of the loss, with its evaluation, and of the evaluation alone";
  for (const std::string& path : paths) EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 1);
  EXPECT_EQ(std::count(paths[0].begin(), paths[0].end(), 'L'), 5);
  EXPECT_EQ(std::count(paths[2].begin(), paths[2].end(), 'L'), 2);
}

TEST(Pages, OfARunHaveACurveOfEachEvaluationSetAndMeasure) {
  const testing::TemporaryFolder folder;
  const MetricsCurves metrics = read_metrics(folder.write(
      "metrics.jsonl",
      "{\"step\":1,\"eval_loss\":3,\"eval_a<b_loss\":2,\"eval_c_loss\":4,\"eval_c_new\":1}\n"
      "{\"step\":2,\"eval_loss\":2,\"eval_a<b_loss\":1,\"eval_c_loss\":3,\"eval_c_new\":2}\n"));
  Page page("");
  const std::vector<ChartedRun> runs{{"", &metrics}};
  add_metric_charts(runs, page);
  const std::string html = page.text();
  EXPECT_EQ(unclosed_tag(html), "");
  for (const char* part : {"Loss of the evaluation data", "</i>a&lt;b</li>", "</i>c</li>",
                           "</i>all sets</li>", "new of the evaluation data"})
    EXPECT_TRUE(contains(html, part)) << part;
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
  const auto drawn = [&](std::vector<double> x, std::vector<double> y) {
    return line_chart({{{.name = "", .x = std::move(x), .y = std::move(y)}}, true, text, text});
  };
  const std::string html = drawn({1, 2, 3, 4}, {1, gap, 3, 2});
  EXPECT_FALSE(contains(html, "nan"));
  const std::regex moves("M[0-9]");
  EXPECT_EQ(std::distance(std::sregex_iterator(html.begin(), html.end(), moves), {}), 2);
  EXPECT_EQ(drawn({1, 2}, {gap, gap}), "");
}

TEST(Pages, AxesHaveRoundTicks) {
  using Ticks = std::vector<double>;
  EXPECT_EQ(axis_ticks(1, 60, true), (Ticks{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(axis_ticks(1, 5, true), (Ticks{1, 2, 3, 4, 5})) << "no step is 3.75";
  EXPECT_EQ(axis_ticks(7, 8, true), (Ticks{7, 8}));
  EXPECT_EQ(axis_ticks(7, 7, true), (Ticks{7}));
  EXPECT_EQ(axis_ticks(-1, 1, false), (Ticks{-1, -0.5, 0, 0.5, 1}));
  for (const double last : {1.0, 2.5, 9.99, 1e-6, 123456.0, 1e9}) {
    const Ticks ticks = axis_ticks(0, last, false);
    EXPECT_TRUE(ticks.size() >= 3 && ticks.size() <= 9) << last << ": " << ticks.size();
  }
}

TEST(Pages, SmoothedValuesStartUnbiased) {
  const double gap = std::numeric_limits<double>::quiet_NaN();
  // The weights of the older values are 1/2, 1/4 and so on.
  const std::vector<double> means = smoothed({4, 4, gap, 1}, 2);
  EXPECT_DOUBLE_EQ(means[0], 4);
  EXPECT_DOUBLE_EQ(means[1], 4);
  EXPECT_TRUE(std::isnan(means[2]));
  EXPECT_DOUBLE_EQ(means[3], (1 + 0.5 * 4 + 0.25 * 4) / 1.75);
}

}  // namespace
}  // namespace snug::report
