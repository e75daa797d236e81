// Several sources in one dataset, and records that are held out of them.
#include <set>

#include "field_data.h"
#include "text/row/held_out.h"

namespace snug::text {
namespace {

using testing::contains;

class Sources : public FieldData {
 protected:
  RecordSource source(const std::string& name, const std::string& contents) {
    return {.name = name, .files = {folder_.write(name, contents).string()}, .options = options_};
  }
  TokenizerOpener opener() {
    return [this]() -> const Tokenizer& { return tokenizer_; };
  }
  Datasets load_all(const std::vector<RecordSource>& sources,
                    const std::optional<HeldOut>& held_out = std::nullopt) {
    return load_datasets(sources, opener(), held_out);
  }
  std::string text_of(const DocumentStore& documents, int64_t document) {
    std::vector<int32_t> words(static_cast<size_t>(documents.length(document)));
    documents.read(document, words);
    for (int32_t& word : words) word = DocumentStore::id_of(word);
    return tokenizer_.decode(words, true);
  }
  std::multiset<std::string> texts(const Dataset& dataset) {
    std::multiset<std::string> all;
    for (int64_t i = 0; i < dataset.documents.size(); ++i)
      all.insert(text_of(dataset.documents, i));
    return all;
  }
};

std::string pair(const std::string& prompt, const std::string& answer) {
  return "{\"prompt\": \"" + prompt + "\", \"completion\": \"" + answer + "\"}\n";
}

std::string pairs(int count, const std::string& word = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += pair("q" + std::to_string(i) + word, "a");
  return text;
}

TEST_F(Sources, FollowEachOtherWithTheirOwnForms) {
  RecordSource mapped = source("b.jsonl", "{\"frage\": \"x\", \"antwort\": \"y\"}\n");
  mapped.options.mapping =
      RecordMapping(std::vector<std::string>{"prompt=frage", "completion=antwort"}, {});
  const Datasets data =
      load_all({source("a.jsonl", pairs(2)), mapped,
                source("c.jsonl", "{\"instruction\": \"i\", \"output\": \"o\"}\n")});
  ASSERT_EQ(data.training.sources.size(), 3U);
  EXPECT_EQ(data.training.documents.size(), 4);
  EXPECT_EQ(data.training.sources[0].end, 2);
  EXPECT_EQ(data.training.sources[1].end, 3);
  EXPECT_EQ(data.training.sources[1].audit.documents, 1);
  EXPECT_EQ(data.training.sources[2].audit.form, "alpaca");
  EXPECT_EQ(data.training.audit.records, 4);
  EXPECT_EQ(data.training.audit.tokens, data.training.documents.tokens());
  EXPECT_EQ(text_of(data.training.documents, 2), "xy");
}

TEST_F(Sources, OfSeveralFilesAreOne) {
  RecordSource both = source("a.jsonl", pairs(3));
  both.files.push_back(folder_.write("b.jsonl", pairs(2, "b")).string());
  Datasets data = load_all({both});
  ASSERT_EQ(data.training.sources.size(), 1U);
  EXPECT_EQ(data.training.documents.size(), 5);
  both.limit = 4;
  data = load_all({both});
  EXPECT_EQ(data.training.documents.size(), 4);
  EXPECT_EQ(text_of(data.training.documents, 3), "q0ba");
}

TEST_F(Sources, TellOfTheBadRecordsOfAllAndNameTheirFiles) {
  RecordSource both = source("a.jsonl", pairs(3));
  both.files.push_back(folder_.write("b.jsonl", pairs(1) + "{\"prompt\": 1}\n").string());
  const std::string message = message_of<BadRecordsError>([&] {
    load_all({both, source("c.jsonl", pairs(1) + "broken\n")});
  });
  EXPECT_TRUE(contains(message, "b.jsonl:2"));
  EXPECT_TRUE(contains(message, "c.jsonl:2"));
}

TEST_F(Sources, WithAConversationAfterTextsAreReadAgain) {
  const Datasets data =
      load_all({source("a.jsonl", pairs(1)),
                source("b.jsonl", pair("p", "c") + "{\"prompt\": \"p\", \"completion\": \"c\", "
                                                   "\"system\": \"s\"}\n")});
  EXPECT_EQ(data.training.documents.size(), 3);
  EXPECT_EQ(data.training.sources[1].audit.chat_field, "system");
  EXPECT_EQ(data.training.sources[0].audit.chat_field, "");
}

TEST_F(Sources, GiveTheirHeldOutRecordsAway) {
  const std::vector<RecordSource> sources{source("a.jsonl", pairs(300)),
                                          source("b.jsonl", pairs(100, "b"))};
  const Datasets whole = load_all(sources);
  const Datasets parts = load_all(sources, held_out_share(0.25, 42));
  std::multiset<std::string> both = texts(parts.training);
  both.merge(texts(parts.held_out));
  EXPECT_EQ(both, texts(whole.training));
  EXPECT_GT(parts.held_out.documents.size(), 70);
  EXPECT_LT(parts.held_out.documents.size(), 130);
  EXPECT_EQ(parts.held_out.audit.records + parts.training.audit.records, 400);
  EXPECT_EQ(parts.held_out.sources[0].end + parts.held_out.sources[1].audit.documents,
            parts.held_out.documents.size());
  // Another seed, other records.
  EXPECT_NE(texts(load_all(sources, held_out_share(0.25, 43)).held_out), texts(parts.held_out));
}

TEST_F(Sources, KeepTheirPartsWhateverElseChanges) {
  const auto parts = [&](const std::string& contents) {
    return texts(load_all({source("a.jsonl", contents)}, held_out_share(0.3, 7)).held_out);
  };
  const std::multiset<std::string> before = parts(pairs(50));
  // The order, white space, the order of keys, and records that are left out change nothing.
  std::string other = "broken\n";
  for (int i = 49; i >= 0; --i)
    other += "{ \"completion\":\"a\",  \"prompt\" : \"q" + std::to_string(i) + "\" }\n";
  options_.skips.refuses_any = false;
  EXPECT_EQ(parts(other), before);
}

TEST_F(Sources, PutEqualRecordsOnOneSide) {
  std::string contents;
  for (int i = 0; i < 40; ++i)
    for (int copy = 0; copy < 5; ++copy) contents += pair("q" + std::to_string(i), "a");
  const std::vector<RecordSource> sources{source("a.jsonl", contents)};
  const Datasets parts = load_all(sources, held_out_share(0.5, 1));
  for (const std::string& text : texts(parts.held_out))
    EXPECT_EQ(texts(parts.training).count(text), 0U) << text;
  // A number of them: whole groups of equal ones, and no more than were asked for.
  const HeldOut bound = held_out_number(sources, opener(), 23, 1);
  EXPECT_EQ(load_all(sources, bound).held_out.documents.size(), 20);
}

TEST_F(Sources, HoldANumberOfRecordsOut) {
  const std::vector<RecordSource> sources{source("a.jsonl", pairs(60)),
                                          source("b.jsonl", pairs(40, "b"))};
  for (const int number : {1, 7, 99}) {
    const HeldOut bound = held_out_number(sources, opener(), number, 42);
    const Datasets parts = load_all(sources, bound);
    EXPECT_EQ(parts.held_out.documents.size(), number);
    EXPECT_EQ(parts.training.documents.size(), 100 - number);
  }
  EXPECT_TRUE(
      contains(message_of<base::UserError>([&] { held_out_number(sources, opener(), 100, 42); }),
               "val_set_size=100 is no fewer than the 100 records"));
}

TEST_F(Sources, SplitTheTextsOfATextFile) {
  std::string contents;
  for (int i = 0; i < 40; ++i) contents += "text " + std::to_string(i) + "</s>";
  const std::vector<RecordSource> sources{source("a.txt", contents)};
  const Datasets parts = load_all(sources, held_out_number(sources, opener(), 10, 3));
  EXPECT_EQ(parts.held_out.audit.records, 10);
  EXPECT_EQ(parts.training.audit.records, 30);
}

}  // namespace
}  // namespace snug::text
