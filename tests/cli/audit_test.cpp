// `snug audit` of the built binary on a folder without weights, and how its report is printed.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"
#include "cli/audit_text.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

class AuditVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl", std::string(kTinyData) +
                                    "{\"instruction\": \"Say d.\", \"output\": \"d\\nor e\"}\n"
                                    "{\"instruction\": \"Say f.\", \"output\": \"\"}\n");
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  BinaryRun audit(const std::vector<std::string>& more) const {
    return run_snug(joined({"audit", "model=" + path("shape"), "data=" + path("data.jsonl"),
                            "max_length=256", "threads=1"},
                           more));
  }
  testing::TemporaryFolder folder_;
};

TEST_F(AuditVerb, ShowsInAPipeWhatIsTrainedBetweenSigns) {
  const BinaryRun run = audit({});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* part :
       {"4 documents", "1 of 5 records (20 %) is left out", "rows of 256 tokens",
        "no record repeats another one", "### Response:\u23CE\n  | \u27E6a</s>\u27E7",
        "\u27E6d\u23CE\u27E7\n  | \u27E6or e</s>\u27E7", "(the first"})
    EXPECT_TRUE(contains(run.out, part)) << part << "\n" << run.out;
  EXPECT_FALSE(contains(run.out, "\033[")) << run.out;
}

TEST_F(AuditVerb, SaysTheSameAsJson) {
  // A slip of the pen replaces no data.
  const BinaryRun slip = audit({"picture=" + path("data.jsonl")});
  EXPECT_EQ(slip.exit_code, 2);
  EXPECT_TRUE(contains(slip.err, "is no page")) << slip.err;
  const BinaryRun run = audit({"--json", "picture=" + path("audit.html")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json set = json::parse(run.out)["sets"][0];
  EXPECT_EQ(set["documents"], 4);
  EXPECT_EQ(set["left_out"], 1);
  EXPECT_EQ(set["ends_trained"], 4);
  EXPECT_EQ(set["repeated"]["equal"], 0);
  const json& sample = set["samples"][0];
  EXPECT_EQ(sample["ids"].size(), sample["tokens"].get<size_t>());
  std::string trained;
  for (const json& piece : sample["pieces"])
    if (piece["trained"]) trained += piece["text"].get<std::string>();
  EXPECT_EQ(trained, "a</s>");
  EXPECT_EQ(sample["trained_tokens"], 2);
  const std::string page = contents_of(folder_ / "audit.html");
  EXPECT_TRUE(contains(page, "<mark>a</mark><mark>&lt;/s&gt;</mark>")) << page;
}

// The data decide what is learned, so a run tells the same before its first step.
TEST_F(AuditVerb, IsInShortInTheLogOfARun) {
  const BinaryRun run =
      run_snug({"train", "model=" + path("shape"), "init=random", "method=lora", "max_steps=1",
                "threads=1", "data=" + path("data.jsonl"), "eval_data=" + path("data.jsonl"),
                "max_length=256", "output_dir=" + path("run")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const size_t told = run.err.find("audit of " + path("data.jsonl"));
  ASSERT_NE(told, std::string::npos) << run.err;
  EXPECT_LT(told, run.err.find("step 1/1"));
  EXPECT_TRUE(contains(run.err, "4 of 4 records of")) << run.err;
}

TEST_F(AuditVerb, NeedsDataAndProposesAMapping) {
  EXPECT_EQ(run_snug({"audit", "model=" + path("shape")}).exit_code, 2);
  folder_.write("other.jsonl", "{\"frage\": \"Was?\", \"antwort\": \"Das.\"}\n");
  const BinaryRun run = audit({"data=" + path("other.jsonl")});
  EXPECT_EQ(run.exit_code, 2);
  const std::string proposal = "fields={prompt: frage, completion: antwort}";
  EXPECT_TRUE(contains(run.err, "perhaps " + proposal)) << run.err;
  EXPECT_EQ(audit({"data=" + path("other.jsonl"), proposal}).exit_code, 0);
}

TEST(AuditText, MarksWhatIsTrainedByColourOrBySignsThatNoSampleHas) {
  text::AuditReport report{.model = "m", .max_length = 64, .sets = {}};
  text::AuditedSet set{.name = "training", .path = "d"};
  text::DocumentSample sample{.why = "the first"};
  sample.pieces = {{.text = "ask \u27E6 ", .begin = 0, .end = 2},
                   {.text = "say\033[2J", .begin = 2, .end = 3, .is_trained = true},
                   {.text = "</s>", .begin = 3, .end = 4, .is_added = true}};
  set.samples.push_back(sample);
  report.sets.push_back(set);
  EXPECT_TRUE(contains(audit_text(report, false), "ask \u27E6 \u27EAsay\\u001b[2J\u27EB</s>\n"))
      << audit_text(report, false);
  EXPECT_TRUE(
      contains(audit_text(report, true), "\033[32msay\\u001b[2J\033[0m\033[2m</s>\033[0m\n"))
      << audit_text(report, true);
}

}  // namespace
}  // namespace snug::cli
