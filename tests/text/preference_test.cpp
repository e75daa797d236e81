// Pairs of answers as data: the tokens and the boundary that TRL gives them, and rows that hold
// whole pairs.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/dataset.h"
#include "text/row_source.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

Json golden() {
  std::ifstream stream("tests/goldens/preference_data/golden.json");
  return Json::parse(stream);
}

class PreferenceData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, int32_t max_length = 64) {
    DatasetOptions options;
    options.max_length = max_length;
    options.form = RecordForm::preference;
    options.chat_template = template_;
    options.train_on_chosen_prompt = train_on_chosen_prompt_;
    return load_dataset(folder_.write("data.jsonl", contents).string(), tokenizer_, options);
  }

  std::string error_of(const std::string& contents) {
    return message_of<UserError>([&] { load(contents); });
  }

  bool train_on_chosen_prompt_ = false;
  testing::TemporaryFolder folder_;
  Tokenizer tokenizer_ = Tokenizer::from_folder("examples/wordnet");
  std::string template_ =
      folder_.write("template.jinja", golden()["chat_template"].get<std::string>()).string();
};

// A document's ids, and how many of its first are prompt.
struct Parts {
  Ids ids;
  size_t prompt = 0;
};

Parts parts_of(const DocumentStore& documents, int64_t document) {
  Parts parts;
  parts.ids.resize(static_cast<size_t>(documents.length(document)));
  documents.read(document, parts.ids);
  while (parts.prompt < parts.ids.size() && !DocumentStore::is_target(parts.ids[parts.prompt]))
    ++parts.prompt;
  for (size_t i = parts.prompt; i < parts.ids.size(); ++i)
    EXPECT_TRUE(DocumentStore::is_target(parts.ids[i])) << "token " << i;
  for (int32_t& id : parts.ids) id = DocumentStore::id_of(id);
  return parts;
}

Ids joined(const Json& pair, const char* answer, size_t most) {
  auto ids = pair["prompt_ids"].get<Ids>();
  const auto more = pair[answer].get<Ids>();
  ids.insert(ids.end(), more.begin(), more.end());
  ids.resize(std::min(ids.size(), most));
  return ids;
}

TEST_F(PreferenceData, has_the_tokens_of_trl) {
  const Json cases = golden();
  const int32_t max_length = cases["max_length"];
  int compared = 0;
  int left_out = 0;
  for (const char* form : {"texts", "chats"})
    for (const Json& each : cases[form]) {
      const std::string line = each["record"].dump() + "\n";
      SCOPED_TRACE(line);
      if (each["kept"].empty()) {
        EXPECT_NE(message_of<UserError>([&] { load(line, max_length); }).find("larger max_length"),
                  std::string::npos);
        ++left_out;
        continue;
      }
      const Dataset data = load(line, max_length);
      ASSERT_EQ(data.documents.size(), 2);
      const Json& pair = each["kept"][0];
      const auto most = static_cast<size_t>(max_length);
      for (const auto& [document, answer] : {std::pair{0, "chosen_ids"}, {1, "rejected_ids"}}) {
        const Parts parts = parts_of(data.documents, document);
        EXPECT_EQ(parts.ids, joined(pair, answer, most));
        EXPECT_EQ(parts.prompt, pair["prompt_ids"].size());
      }
      ++compared;
    }
  EXPECT_GE(compared, 7);
  EXPECT_GE(left_out, 1);
}

TEST_F(PreferenceData, cuts_answers_and_leaves_out_pairs_without_one) {
  const std::string kept = R"({"prompt": "a dog", "chosen": " one two three four five six seven",)"
                           R"( "rejected": " no"})";
  const std::string lost = R"({"prompt": "the dog is an animal and so is the cat they say",)"
                           R"( "chosen": " yes", "rejected": " no"})";
  const Dataset data = load(kept + "\n" + lost + "\n", 6);
  EXPECT_EQ(data.documents.size(), 2);
  EXPECT_EQ(data.documents.length(0), 6);
  EXPECT_EQ(data.audit.records, 2);
  EXPECT_EQ(data.audit.left_out, 1);
  EXPECT_EQ(data.audit.truncated, 1);
}

TEST_F(PreferenceData, may_train_on_the_prompt_of_what_was_chosen) {
  const std::string pair = R"({"prompt": "a dog", "chosen": " one two", "rejected": " no"})";
  const Parts answers = parts_of(load(pair).documents, 0);
  train_on_chosen_prompt_ = true;
  const Dataset data = load(pair);
  const Parts whole = parts_of(data.documents, 0);
  EXPECT_EQ(whole.ids, answers.ids);
  EXPECT_GT(answers.prompt, 1U);
  EXPECT_EQ(whole.prompt, 1U);  // nothing comes before the first token
  EXPECT_EQ(parts_of(data.documents, 1).prompt, answers.prompt);
}

TEST_F(PreferenceData, refuses_what_is_no_pair) {
  EXPECT_NE(error_of(R"({"prompt": "a", "chosen": "b"})").find("chosen and rejected"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": "a", "chosen": "b", "rejected": [{"role": "user"}]})")
                .find("three strings"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": "a", "chosen": " ", "rejected": "c"})").find("'chosen'"),
            std::string::npos);
  const std::string text = R"({"prompt": "a", "chosen": "b", "rejected": "c"})";
  const std::string chat = R"({"prompt": [{"role": "user", "content": "a"}], "chosen": )"
                           R"([{"role": "assistant", "content": "b"}], "rejected": )"
                           R"([{"role": "assistant", "content": "c"}]})";
  EXPECT_NE(error_of(text + "\n" + chat).find("others messages"), std::string::npos);
  EXPECT_NE(error_of(R"({"chosen": [{"role": "user", "content": "a"}], "rejected": )"
                     R"([{"role": "user", "content": "b"}]})")
                .find("no message is the prompt's"),
            std::string::npos);
}

TEST_F(PreferenceData, is_not_taken_for_answers_alone) {
  DatasetOptions options;
  options.max_length = 64;
  const auto path =
      folder_.write("data.jsonl", R"({"prompt": "a", "chosen": "b", "rejected": "c"})");
  EXPECT_NE(message_of<UserError>([&] {
              load_dataset(path.string(), tokenizer_, options);
            }).find("objective=dpo"),
            std::string::npos);
}

// Pairs of documents of these lengths; token i of document d is 1000 d + i.
DocumentStore pairs_of(const std::vector<int>& lengths) {
  DocumentStore store;
  for (size_t d = 0; d < lengths.size(); ++d) {
    Ids ids;
    for (int i = 0; i < lengths[d]; ++i) ids.push_back(static_cast<int32_t>(1000 * d) + i);
    store.add(ids, std::vector<uint8_t>(ids.size(), 1));
  }
  store.finish();
  return store;
}

TEST(PairRows, hold_whole_pairs_side_by_side) {
  const DocumentStore documents = pairs_of({3, 9, 2, 2, 7, 4, 10, 10, 5, 2, 3, 3});
  for (const bool packing : {false, true})
    for (const bool shuffle : {false, true}) {
      RowSource rows(documents, {.max_length = 20,
                                 .max_segments = packing ? 6 : 2,
                                 .packing = packing,
                                 .shuffle = shuffle,
                                 .seed = 3,
                                 .group = 2});
      std::set<int32_t> seen;
      const int64_t count = rows.rows_until(1);
      EXPECT_EQ(count == 6, !packing) << count;
      Ids ids(20), targets(20), positions(20), held(static_cast<size_t>(packing ? 6 : 2));
      std::vector<Segment> segments(held.size());
      for (int64_t row = 0; row < count; ++row) {
        const RowCounts counts =
            rows.fill(row, {StreamBuffers{ids, positions, segments}, targets, held});
        EXPECT_EQ(counts.segments % 2, 0);
        int32_t leading = 0;
        for (int32_t s = 0; s < counts.segments; s += 2)
          leading += documents.targets(held[static_cast<size_t>(s)]);
        EXPECT_EQ(counts.leading, leading);
        EXPECT_EQ(rows.counts(row).leading, leading);
        for (int32_t s = 0; s < counts.segments; ++s) {
          const auto at = static_cast<size_t>(s);
          EXPECT_EQ(held[at] % 2, s % 2) << "what was chosen comes first";
          if (s % 2 == 1) {
            EXPECT_EQ(held[at], held[at - 1] + 1);
          }
          EXPECT_EQ(ids[static_cast<size_t>(segments[at].begin)], 1000 * held[at]);
          EXPECT_TRUE(seen.insert(held[at]).second);
        }
        for (size_t s = static_cast<size_t>(counts.segments); s < held.size(); ++s) {
          EXPECT_EQ(held[s], -1);
          EXPECT_EQ(segments[s].begin, segments[s].end);
        }
      }
      EXPECT_EQ(seen.size(), 12U);
    }
}

}  // namespace
}  // namespace snug::text
