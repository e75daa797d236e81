// Pairs of answers as data: the tokens and the boundary that TRL gives them, and rows that hold
// whole pairs.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/row/dataset.h"
#include "text/row/row_source.h"
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

Json label_golden() {
  std::ifstream stream("tests/goldens/label_data/golden.json");
  return Json::parse(stream);
}

class PreferenceData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, int32_t max_length = 64) {
    DatasetOptions options;
    options.max_length = max_length;
    options.form = RecordForm::preference;
    options.skips = skips_;
    options.chat_template = template_;
    options.train_on_chosen_prompt = train_on_chosen_prompt_;
    return load_dataset(folder_.write("data.jsonl", contents).string(), tokenizer_, options);
  }

  std::string error_of(const std::string& contents) {
    return message_of<UserError>([&] { load(contents); });
  }

  bool train_on_chosen_prompt_ = false;
  SkipLimits skips_;
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
        EXPECT_NE(message_of<UserError>([&] {
                    load(line, max_length);
                  }).find("leaves nothing of its answers; set max_length="),
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

// The conversations in the words of other tools: they are the same conversations to TRL.
TEST_F(PreferenceData, has_the_tokens_of_trl_in_other_words) {
  const Json chats = golden()["chats"];
  const std::string answers = R"("chosen": "An animal.", "rejected": "A plant, they say."})";
  const std::string colours = R"("chosen": "Blue.", "rejected": "Red."})";
  const std::vector<std::pair<size_t, std::string>> records = {
      {0, R"({"question": "What is a dog?", "system": "", )" + answers},
      {0, R"({"conversations": [{"from": "human", "value": "What is a dog?"}], "chosen": )"
          R"({"from": "gpt", "value": "An animal."}, "rejected": )"
          R"({"from": "gpt", "value": "A plant, they say."}})"},
      {0, R"({"messages": [{"role": "user", "content": "What is a dog?"},)"
          R"({"role": "assistant", "content": "An animal."}],)"
          R"("rejected_response": "A plant, they say."})"},
      {2, R"({"history": [["A colour?", "Red."]], "query": "And another?", )" + colours},
      {2, R"({"history": [["A colour?", "Red."]], "instruction": "And another?", )" + colours}};
  for (const auto& [chat, record] : records) {
    SCOPED_TRACE(record);
    const Dataset data = load(record);
    const Json& pair = chats[chat]["kept"][0];
    for (const auto& [document, answer] : {std::pair{0, "chosen_ids"}, {1, "rejected_ids"}}) {
      const Parts parts = parts_of(data.documents, document);
      EXPECT_EQ(parts.ids, joined(pair, answer, 40));
      EXPECT_EQ(parts.prompt, pair["prompt_ids"].size());
    }
  }
  Json record = chats[1]["record"];
  record["prompt"] = "Is water wet?";
  EXPECT_EQ(parts_of(load(record.dump()).documents, 1).ids,
            joined(chats[1]["kept"][0], "rejected_ids", 40));
}

TEST_F(PreferenceData, cuts_answers_and_leaves_out_pairs_without_one) {
  const std::string kept = R"({"prompt": "a dog", "chosen": " one two three four five six seven",)"
                           R"( "rejected": " no"})";
  const std::string lost = R"({"prompt": "the dog is an animal and so is the cat they say",)"
                           R"( "chosen": " yes", "rejected": " no"})";
  skips_.refuses_any = false;
  const Dataset data = load(kept + "\n" + lost + "\n", 6);
  EXPECT_EQ(data.documents.size(), 2);
  EXPECT_EQ(data.documents.length(0), 6);
  EXPECT_EQ(data.audit.records, 1);
  EXPECT_EQ(data.audit.bad, 1);
  EXPECT_EQ(data.audit.truncated, 1);
}

// Llama 2's tokenizer puts a space before a text and looks for </s> with one: "b</s>" has none.
TEST_F(PreferenceData, ends_texts_of_which_the_tokenizer_does_not_split_the_end) {
  TinyTokenizer tiny;
  tiny.keys["normalizer"] = {{"type", "Prepend"}, {"prepend", "_"}};
  Json document = tiny.document();
  for (Json& token : document["added_tokens"]) token["normalized"] = true;
  tokenizer_ = Tokenizer::from_text(document.dump(), tiny.config.dump(), "tiny/tokenizer.json");
  const Dataset data = load(R"({"prompt": "a", "chosen": "b", "rejected": "c"})");
  const int32_t eos = 257;
  EXPECT_EQ(parts_of(data.documents, 0).ids, (Ids{'_', 'a', 'b', eos}));
  EXPECT_EQ(parts_of(data.documents, 1).ids, (Ids{'_', 'a', 'c', eos}));
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

// Texts without a prompt that is known: what they happen to begin with is none.
TEST_F(PreferenceData, does_not_learn_from_an_empty_prompt) {
  const auto pair = [](const std::string& more) {
    return R"({"chosen": "Yes, it is", "rejected": "Yes, it was")" + more + "}";
  };
  EXPECT_EQ(error_of(pair("")), "");
  EXPECT_EQ(error_of(pair(R"(, "score": 3, "text": "")")), "");
  const auto differ = [](const std::string& more) {
    return R"({"chosen": "good", "rejected": "bad")" + more + "}";
  };
  EXPECT_EQ(error_of(differ("")), "");
  EXPECT_EQ(error_of(differ(R"(, "score": 3, "source": "web")")), "");
  EXPECT_TRUE(testing::contains(error_of(differ(R"(, "statement": "a dog")")),
                                "call it 'prompt', or ignore_fields=statement"));
  for (const char* key : {"problem", "text", "post", "user", "human", "inputs", "prompt_text",
                          "user_prompt", "context", "conversation"})
    EXPECT_TRUE(testing::contains(error_of(pair(fmt::format(R"(, "{}": "a")", key))),
                                  fmt::format("call it 'prompt', or ignore_fields={}", key)));
  const auto ids = [&](const char* key) {
    return parts_of(
               load(fmt::format(R"({{"{}": "a dog", "chosen": " one", "rejected": " no"}})", key))
                   .documents,
               0)
        .ids;
  };
  EXPECT_EQ(ids("input"), ids("prompt"));
}

TEST_F(PreferenceData, holds_a_prompt_of_text_once) {
  const std::string asked = R"("prompt": "What is a dog?", )";
  EXPECT_TRUE(testing::contains(error_of("{" + asked +
                                         R"("chosen": "What is a dog? An animal.",)"
                                         R"("rejected": "What is a dog? A plant."})"),
                                "both begin with the text of 'prompt'"));
  EXPECT_EQ(error_of("{" + asked + R"("chosen": "What is a dog? An animal.", "rejected": "No."})"),
            "");
  EXPECT_EQ(error_of(R"({"prompt": "A", "chosen": "An animal", "rejected": "A plant"})"), "");
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

class LabelData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, int64_t batch, int32_t max_length = 64) {
    DatasetOptions options;
    options.max_length = max_length;
    options.form = RecordForm::unpaired;
    options.skips = skips_;
    options.mismatch_batch = batch;
    options.chat_template = template_;
    return load_dataset(folder_.write("data.jsonl", contents).string(), tokenizer_, options);
  }
  std::string error_of(const std::string& contents) {
    return message_of<UserError>([&] { load(contents, 0); });
  }

  SkipLimits skips_;
  testing::TemporaryFolder folder_;
  Tokenizer tokenizer_ = Tokenizer::from_folder("examples/wordnet");
  std::string template_ =
      folder_.write("template.jinja", label_golden()["chat_template"].get<std::string>()).string();
};

// Within a batch an example may come later than in TRL's data, which learn the same from it.
TEST_F(LabelData, has_the_tokens_and_mismatched_answers_of_trl) {
  const Json golden = label_golden();
  skips_ = {.refuses_any = false, .mapping_share = 1};  // as TRL leaves out what has no answer left
  const auto most = golden["max_length"].get<size_t>();
  for (const Json& set : golden["sets"]) {
    SCOPED_TRACE(set["name"]);
    std::string lines;
    for (const Json& record : set["records"]) lines += record.dump() + "\n";
    const auto batch = set["batch"].get<size_t>();
    const Dataset data = load(lines, set["batch"], static_cast<int32_t>(most));
    const auto count = set["kept"].size();
    ASSERT_EQ(data.documents.size(), static_cast<int64_t>(2 * count));
    EXPECT_EQ(data.audit.examples, static_cast<int64_t>(count));
    using Example = std::tuple<Ids, size_t, Ids, size_t, bool>;
    for (size_t begin = 0; begin < count; begin += batch) {
      std::multiset<Example> trls;
      std::multiset<Example> ours;
      for (size_t i = begin; i < std::min(count, begin + batch); ++i) {
        const Json& each = set["kept"][i];
        const size_t prompt = each["prompt_ids"].size();
        trls.insert({joined(each, "completion_ids", most), prompt,
                     joined(each, "KL_completion_ids", most), prompt, each["label"].get<bool>()});
        const Parts own = parts_of(data.documents, static_cast<int64_t>(2 * i));
        const Parts other = parts_of(data.documents, static_cast<int64_t>(2 * i + 1));
        ours.insert({own.ids, own.prompt, other.ids, other.prompt,
                     data.documents.label(static_cast<int64_t>(2 * i)) > 0});
        EXPECT_EQ(data.documents.label(static_cast<int64_t>(2 * i)),
                  data.documents.label(static_cast<int64_t>(2 * i + 1)));
      }
      EXPECT_EQ(ours, trls);
    }
  }
}

// TRL would compare a single last example with its own answer.
TEST_F(LabelData, takes_the_answer_before_where_a_batch_has_one_example) {
  std::string lines;
  for (const char* word : {"one", "two", "three"})
    lines +=
        fmt::format(R"({{"prompt": "say it:", "completion": " {}", "label": true}})", word) + "\n";
  const Dataset data = load(lines, 2);
  ASSERT_EQ(data.documents.size(), 6);
  EXPECT_EQ(parts_of(data.documents, 5).ids, parts_of(data.documents, 0).ids);  // of "two"
  EXPECT_NE(parts_of(data.documents, 4).ids, parts_of(data.documents, 5).ids);
}

TEST_F(LabelData, leaves_out_prompts_that_fill_the_length) {
  const std::string kept = R"({"prompt": "a dog", "completion": " yes", "label": true})"
                           "\n";
  const std::string lost = R"({"prompt": "the dog is an animal and so is the cat they say",)"
                           R"( "completion": " no", "label": false})"
                           "\n";
  skips_.refuses_any = false;
  const Dataset data = load(kept + lost + kept, 0, 6);
  EXPECT_EQ(data.audit.bad, 1);
  EXPECT_EQ(data.audit.examples, 2);
  EXPECT_EQ(data.audit.desirable, 2);
  const std::string message = message_of<UserError>([&] { load(lost, 0, 6); });
  EXPECT_NE(message.find("data.jsonl:1: record 1: its prompt has"), std::string::npos) << message;
  const size_t advice = message.find("set max_length=");
  ASSERT_NE(advice, std::string::npos) << message;
  const int length = std::stoi(message.substr(advice + std::string("set max_length=").size()));
  EXPECT_EQ(load(lost + kept, 0, length).audit.truncated, 0);
  EXPECT_EQ(load(lost + kept, 0, length - 1).audit.truncated, 1);
}

// The order of TRL's unpair_preference_dataset: what was chosen of 1000 records, then what was not.
TEST_F(LabelData, unpairs_a_thousand_pairs_at_a_time) {
  std::string lines;
  for (int i = 0; i < 1002; ++i)
    lines += R"({"prompt": "a dog", "chosen": " yes", "rejected": " no"})"
             "\n";
  const Dataset data = load(lines, 0);
  ASSERT_EQ(data.documents.size(), 4 * 1002);
  // The first comes last of all, since it takes the answer of the last.
  const auto label = [&](int64_t example) { return data.documents.label(2 * example); };
  for (const auto& [begin, end, expected] :
       {std::tuple{0, 999, 1}, {999, 1999, -1}, {1999, 2001, 1}, {2001, 2003, -1}, {2003, 2004, 1}})
    for (int64_t example = begin; example < end; ++example)
      ASSERT_EQ(label(example), expected) << example;
}

// In tables all cells are texts, and TRL takes numbers.
TEST_F(LabelData, reads_labels_as_others_write_them) {
  const auto line = [](const char* label) {
    return fmt::format(R"({{"prompt": "a dog", "completion": " yes", "label": {}}})", label) + "\n";
  };
  for (const char* label : {"true", "1", "\"True\"", "\"1\""})
    EXPECT_EQ(load(line(label) + line("false") + line("\"FALSE\"") + line("0"), 0).audit.desirable,
              1)
        << label;
}

TEST_F(LabelData, refuses_what_has_no_label) {
  const std::string start = R"({"prompt": "a dog", "completion": " yes")";
  EXPECT_NE(error_of(start + "}").find("no field 'label'"), std::string::npos);
  for (const auto& [label, found] :
       {std::pair{"2", "found 2"}, {"\"yes\"", "found string"}, {"null", "found null"}})
    EXPECT_NE(error_of(start + R"(, "label": )" + label + "}").find(found), std::string::npos);
  const std::string one = start + R"(, "label": true})"
                                  "\n";
  EXPECT_NE(error_of(one).find("holds one example"), std::string::npos);
  EXPECT_NE(error_of(R"({"completion": "b", "label": true})").find("'prompt' and 'completion'"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": "a", "label": true})").find("'prompt' and 'completion'"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": "", "completion": "b", "label": true})").find("makes no token"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": "a", "completion": " ", "label": true})").find("is empty"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": [], "completion": "b", "label": true})").find("have a message"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"prompt": [], "completion": [], "label": true})").find("have a message"),
            std::string::npos);
  EXPECT_NE(error_of(one + R"({"prompt": "a", "chosen": "b", "rejected": "c"})").find("one form"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"instruction": "a", "output": "b"})").find("objective=kto"),
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
