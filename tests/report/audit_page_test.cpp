// The page of an audit: what is trained is marked, what comes from the data is escaped.
#include "report/audit_page.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace snug::report {
namespace {

using snug::testing::contains;

TEST(AuditPage, MarksWhatIsTrainedAndEscapesTheData) {
  text::AuditReport report{.model = "m", .max_length = 64, .sets = {}};
  text::AuditedSet set{.name = "training", .path = "<d>.jsonl"};
  for (int64_t length = 1; length < 100; ++length) set.loaded.count_record(length);
  set.loaded.form = "messages";
  set.loaded.documents = 99;
  set.rows = {.rows = 10, .tokens = 64, .filled = 320};
  text::DocumentSample sample{.why = "the first"};
  sample.pieces = {{.text = "<b>ask & you", .begin = 0, .end = 2},
                   {.text = "<script>", .begin = 2, .end = 3, .is_trained = true},
                   {.text = "</s>", .begin = 3, .end = 4, .is_added = true}};
  set.samples.push_back(sample);
  set.findings.push_back({"cut", true, "much is <cut>", "give more"});
  report.sets.push_back(set);
  const std::string page = audit_page(report);
  for (const char* part :
       {"&lt;b&gt;ask &amp; you<mark>&lt;script&gt;</mark><i>&lt;/s&gt;</i>",
        "WARNING (training): much is &lt;cut&gt;.", "&lt;d&gt;.jsonl",
        "10 rows of 64 tokens, 50 % full", "tokens of a record", "64 (this recipe)"})
    EXPECT_TRUE(contains(page, part)) << part << "\n" << page;
  EXPECT_FALSE(contains(page, "<script"));
}

}  // namespace
}  // namespace snug::report
