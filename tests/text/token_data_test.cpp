// Data that was tokenized elsewhere: what is taken of it, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/row/dataset.h"
#include "text/row/row_source.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

const Tokenizer& no_tokenizer() { base::throw_user_error("a tokenizer was asked for"); }

class TokenData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, int32_t max_length = 64,
               std::optional<RecordForm> form = std::nullopt) {
    return load_dataset(folder_.write("data.jsonl", contents), no_tokenizer,
                        {.max_length = max_length, .form = form, .vocabulary = 100, .threads = 2});
  }
  void expect_error(const std::string& contents, const std::string& expected) {
    const std::string message = message_of<UserError>([&] { load(contents); });
    EXPECT_NE(message.find(expected), std::string::npos) << contents << "\ngives: " << message;
  }
  // Of document 0: ids, those that are targets negated.
  static Ids marked(const Dataset& data) {
    Ids ids(static_cast<size_t>(data.documents.length(0)));
    data.documents.read(0, ids);
    for (int32_t& id : ids)
      if (DocumentStore::is_target(id)) id = -DocumentStore::id_of(id);
    return ids;
  }

  TemporaryFolder folder_;
};

TEST_F(TokenData, EveryIdIsLearnedAndNothingIsAdded) {
  const Dataset data = load(R"({"input_ids": [5, 6, 7], "text": "abc", "labels": null})");
  EXPECT_EQ(data.audit.form, "tokens");
  EXPECT_EQ(marked(data), (Ids{5, -6, -7}));
  EXPECT_EQ(data.audit.trained_tokens, 2);
}

TEST_F(TokenData, LabelsSayWhatIsLearned) {
  EXPECT_EQ(marked(load(R"({"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]})")),
            (Ids{5, 6, -7, -8}));
}

// A record's own say counts before the recipe's.
TEST_F(TokenData, TrainOnPromptLearnsNothingThatIsMasked) {
  const DatasetOptions all{.max_length = 64, .train_on_prompt = true, .vocabulary = 100};
  for (const char* mask : {R"("labels": [-100, -100, 7])", R"("loss_mask": [0, 0, 1])"}) {
    const std::string path =
        folder_.write("data.jsonl", fmt::format(R"({{"input_ids": [5, 6, 7], {}}})", mask));
    EXPECT_EQ(marked(load_dataset(path, no_tokenizer, all)), (Ids{5, 6, -7})) << mask;
  }
}

TEST_F(TokenData, PackedDocumentsAreRefusedWhateverTheirListIsCalled) {
  for (const char* field : {"seq_start_id", "sequence_id", "document_id", "doc_id", "doc_ids",
                            "segment_id", "sample_ids", "seq_idx", "cu_seqlens_q",
                            "packed_seq_lens", "length", "lengths", "num_tokens", "sequenceIds"})
    expect_error(fmt::format(R"({{"input_ids": [5, 6, 7, 8], "{}": [2, 2]}})", field),
                 fmt::format("the field '{}' tells documents apart", field));
  for (const char* label : {R"("length": 4)", R"("doc_id": "a")", R"("sequence_id": 3)",
                            R"("token_type_ids": [0, 0])", R"("special_tokens_mask": [1, 0])"}) {
    const Dataset data = load(fmt::format(R"({{"input_ids": [5, 6], {}}})", label));
    EXPECT_EQ(data.audit.unused.list(), "") << label;
  }
  EXPECT_EQ(load(R"({"input_ids": [5, 6], "word_id": [0, 1]})").audit.unused.list(),
            "'word_id' (1 record)");
}

TEST_F(TokenData, NoLabelOfARecordHidesAMask) {
  for (const char* field :
       {R"("mask_id": [1, 1, 0, 0])", R"("loss_id": 0)", R"("__weight": 0)", R"("__mask": true)"})
    expect_error(fmt::format(R"({{"input_ids": [5, 6, 7, 8], {}}})", field),
                 "says what is to be learned");
}

// With the rules of short ones.
TEST_F(TokenData, LongRecordsHaveTheSameFields) {
  const std::string filler = "\"x\": \"" + std::string(kMaxRecordBytes, 'x') + "\"";
  const auto record = [&](const std::string& fields) {
    return "{\"input_ids\": [5, 6], " + filler + ", " + fields + "}";
  };
  const auto short_record = [](const std::string& fields) {
    return "{\"input_ids\": [5, 6], \"x\": 1, " + fields + "}";
  };
  for (const char* taken :
       {R"("weight": 1)", R"("train": true)", R"("loss_weights": "none")", R"("images": [])",
        R"("seq_lengths": [])", R"("weights": {})", R"("doc_id": 3)", R"("note": {"a": [1]})"})
    EXPECT_EQ(load(record(taken)).audit.unused.list(),
              load(short_record(taken)).audit.unused.list())
        << taken;
  for (const char* refused :
       {R"("images": ["a.png"])", R"("weight": 0)", R"("weights": [0.5, 1])",
        R"("seq_lengths": [1, 1])", R"("length": [1, 1])", R"("loss": false)",
        R"("input_ids": [7, 8])", R"("note": {"a": 1, "a": 2})", R"("note": 1, "note": 2)"}) {
    const auto why = [](const std::string& message) {
      const size_t at = message.find("the ");
      return at == std::string::npos ? message : message.substr(at);
    };
    const auto error = [&](const std::string& contents) {
      return why(message_of<UserError>([&] { load(contents); }));
    };
    const std::string expected = error(short_record(refused));
    EXPECT_NE(expected, "") << refused;
    EXPECT_EQ(error(record(refused)), expected) << refused;
  }
}

// As TRL's tokenized data have them, and others.
TEST_F(TokenData, MasksSayWhatIsLearned) {
  for (const char* mask : {"loss_mask", "completion_mask", "assistant_masks", "assistant_mask"})
    for (const char* values : {"[0, 0, 1, 1]", "[false, false, true, true]", "[0.0, 0, 1.0, 1]"})
      EXPECT_EQ(
          marked(load(fmt::format(R"({{"input_ids": [5, 6, 7, 8], "{}": {}}})", mask, values))),
          (Ids{5, 6, -7, -8}));
  EXPECT_EQ(marked(load(R"({"input_ids": [5, 6, 7, 8], "labels": [-100, 6, 7, 8], )"
                        R"("completion_mask": [0, 0, 1, 1], "assistant_masks": [0, 1, 1, 0]})")),
            (Ids{5, 6, -7, 8}));
  expect_error(R"({"input_ids": [5, 6], "loss_mask": [0, 0.5]})", "loss_mask[1] is 0.5; expected");
  expect_error(R"({"input_ids": [5, 6], "loss_mask": [1]})", "'loss_mask' has 1 entries");
  expect_error(R"({"input_ids": [5, 6], "loss_mask": [0, 0]})", "no token is to be learned");
  expect_error(R"({"input_ids": [5, 6], "loss_weights": [0, 1]})", "ignore_fields=loss_weights");
  expect_error(R"({"input_ids": [5, 6], "seq_lengths": [1, 1]})", "ignore_fields=seq_lengths");
  expect_error(R"({"input_ids": [5, 6], "mask": [0, 1]})", "ignore_fields=mask");
  EXPECT_EQ(load(R"({"input_ids": [5, 6], "token_type_ids": [0, 0], "special_tokens_mask": [1, 0],)"
                 R"("length": 2, "text": "ab"})")
                .audit.unused.list(),
            "'text' (1 record)");
}

TEST_F(TokenData, PaddingOfEitherSideIsLeftOut) {
  const char* right =
      R"({"input_ids": [5, 6, 7, 0, 0], "labels": [-100, 6, 7, -100, -100], "attention_mask": [1, 1, 1, 0, 0]})";
  const char* left =
      R"({"input_ids": [0, 0, 5, 6, 7], "attention_mask": [0, 0, 1, 1, 1], "position_ids": [0, 0, 0, 1, 2]})";
  EXPECT_EQ(marked(load(right)), (Ids{5, -6, -7}));
  EXPECT_EQ(marked(load(left)), (Ids{5, -6, -7}));
  expect_error(R"({"input_ids": [5, 6, 7], "attention_mask": [1, 0, 1]})",
               "data.jsonl:1: record 1: attention_mask hides token 1 and shows token 2");
  expect_error(R"({"input_ids": [5, 6, 0], "labels": [5, 6, 0], "attention_mask": [1, 1, 0]})",
               "labels[2] is 0 where attention_mask is 0; expected -100 there");
  expect_error(R"({"input_ids": [5, 6], "attention_mask": [1, 2]})", "attention_mask[1] is 2");
}

TEST_F(TokenData, LongOnesAreCutAndCounted) {
  const Dataset data = load("{\"input_ids\": [1, 2, 3, 4, 5, 6]}\n{\"input_ids\": [1, 2]}\n", 4);
  EXPECT_EQ(marked(data), (Ids{1, -2, -3, -4}));
  EXPECT_EQ(data.audit.truncated, 1);
  EXPECT_EQ(data.audit.cut_tokens, 2);
  EXPECT_EQ(data.audit.longest, 6);
  const auto cut_away = message_of<UserError>(
      [&] { load(R"({"input_ids": [1, 2, 3, 4], "labels": [-100, -100, -100, 4]})", 3); });
  EXPECT_NE(cut_away.find("what is learned of it begins at token 4 of 4"), std::string::npos)
      << cut_away;
}

// Lists longer than what is held at once, with every check that short ones have.
TEST_F(TokenData, ARecordMayBeAsLongAsOneWishes) {
  constexpr size_t kSize = 600'000;
  const auto list = [&](const std::function<int64_t(size_t)>& value) {
    std::string text = "[";
    for (size_t i = 0; i < kSize; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", value(i));
    return text + "]";
  };
  const auto id = [](size_t i) { return static_cast<int64_t>(i % 97); };
  const std::string ids = list(id);
  const std::string labels = list([&](size_t i) { return i < 3 ? -100 : id(i); });
  const std::string mask = list([](size_t i) { return i < kSize - 2 ? 1 : 0; });
  const Dataset whole = load("{\"input_ids\": " + ids + "}\n", 5);
  EXPECT_EQ(marked(whole), (Ids{0, -1, -2, -3, -4}));
  EXPECT_EQ(whole.audit.longest, static_cast<int64_t>(kSize));
  EXPECT_EQ(whole.audit.cut_tokens, static_cast<int64_t>(kSize) - 5);
  EXPECT_EQ(marked(load("{\"labels\": " + labels + ", \"input_ids\": " + ids + "}\n", 5)),
            (Ids{0, 1, 2, -3, -4}));
  expect_error(
      "{\"input_ids\": " + ids + ", \"labels\": " + labels + ", \"attention_mask\": " + mask + "}",
      "labels[599998] is 53 where attention_mask is 0");
  expect_error("{\"labels\": " + mask + ", \"input_ids\": " + ids + "}",
               "labels[0] is 1, but input_ids[0] is 0");
  const std::string learned = list([](size_t i) { return i == 2 ? 1 : 0; });
  EXPECT_EQ(marked(load("{\"loss_mask\": " + learned + ", \"input_ids\": " + ids + "}\n", 5)),
            (Ids{0, 1, -2, 3, 4}));
  expect_error("{\"train_mask\": 1, \"input_ids\": " + ids + "}", "ignore_fields=train_mask");
  expect_error("{\"labels\": [1], \"input_ids\": " + ids + "}",
               "'labels' has 1 entries, but input_ids 600000");
  expect_error("{\"input_ids\": " + ids + ", \"labels\": 3}",
               "expected the field 'labels' to be a list");
  expect_error("{\"input_ids\": " + ids.substr(0, ids.size() - 1) + ", 100]}", "holds the id 100");
  expect_error("{\"input_ids\": " + ids.substr(0, ids.size() - 1) + ", \"x\"]}",
               "input_ids[600000] is \"x\"");
  expect_error("{\"input_ids\": " + ids.substr(0, ids.size() - 1) + ", [1]]}",
               "input_ids[600000] is an array");
}

// The rows of a race: a document fills its row, and its last position predicts nothing.
TEST_F(TokenData, FullRowsAreOneDocumentEach) {
  const Dataset data = load("{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [4, 5, 6]}\n", 3);
  RowSource rows(data.documents, {.max_length = 3, .max_segments = 2, .shuffle = false});
  EXPECT_EQ(rows.rows_until(1), 2);
  Ids ids(3), targets(3), positions(3);
  std::vector<Segment> segments(2);
  const RowCounts counts = rows.fill(1, {StreamBuffers{ids, positions, segments}, targets});
  EXPECT_EQ(counts.targets, 2);
  EXPECT_EQ(ids, (Ids{4, 5, 6}));
  EXPECT_EQ(targets, (Ids{5, 6, -1}));
  EXPECT_EQ(positions, (Ids{0, 1, 2}));
  EXPECT_EQ(segments[0], (Segment{0, 3}));
}

TEST_F(TokenData, WrongListsAreNamedWithTheirLine) {
  const std::string good = "{\"input_ids\": [1, 2]}\n";
  expect_error(good + R"({"input_ids": [1, 2, 100]})",
               "data.jsonl:2: record 2: input_ids holds the id 100, but the model's vocabulary "
               "ends at 99");
  expect_error(good + R"({"input_ids": "1 2"})", "expected the field 'input_ids' to be a list");
  expect_error(good + R"({"input_ids": [[1, 2]]})", "input_ids[0] is [1,2]; expected an integer");
  expect_error(good + R"({"input_ids": [1, 2.5]})", "input_ids[1] is 2.5");
  expect_error(good + R"({"input_ids": [1, 18446744073709551615]})", "expected an integer below");
  expect_error(good + R"({"input_ids": [1, -1]})", "input_ids[1] is -1; expected ids from 0");
  expect_error(good + R"({"input_ids": [1]})", "input_ids has 1 tokens to train");
  expect_error(good + R"({"input_ids": []})", "input_ids has 0 tokens to train");
  expect_error(good + R"({"input_ids": [1, 2], "attention_mask": [0, 0]})", "has 0 tokens");
  expect_error(good + R"({"input_ids": [1, 2], "labels": 3})", "'labels' to be a list of integers");
  expect_error(good + R"({"input_ids": [1, 2], "labels": [1]})", "'labels' has 1 entries");
  expect_error(good + R"({"input_ids": [1, 2, 3], "labels": [2, 3, -100]})",
               "labels[0] is 2, but input_ids[0] is 1; expected the same id, or -100");
  expect_error(good + R"({"input_ids": [1, 2], "labels": [1, -100]})", "nothing to learn from it");
  expect_error(good + R"({"input_ids": [1, 2, 3], "position_ids": [0, 1, 0]})",
               "position_ids[2] is 0, expected 2");
  expect_error(good + R"({"text": "a"})", "record 2 is of the form text, but the records before");
}

// What is wrong with such records is told without a tokenizer, which their folder need not have.
TEST_F(TokenData, BrokenRecordsAloneNeedNoTokenizer) {
  for (const auto& [record, mistake] : std::vector<std::pair<const char*, const char*>>{
           {R"({"input_ids": [1, 2, 3], "weight": 0.5})", "weight"},
           {R"({"input_ids": [1, 2, 3)", "data.jsonl:1"},
           {R"({"input_ids": [1, 2, 3], "labels": [2, 3, -100]})", "labels[0] is 2"},
           {R"({"input_ids": [1, -2, 3]})", "input_ids"},
           {R"({"input_ids": [1]})", "input_ids"},
           {R"({"input_ids": "1 2 3"})", "input_ids"},
           {R"({"unknown": [1, 2]})", "unknown"}}) {
    for (const std::string name : {"data.jsonl", "data.json"}) {
      const std::string text = name == "data.json" ? fmt::format("[{}]", record) : record;
      std::string said = "nothing";
      try {
        said = needs_tokenizer(folder_.write(name, text), {}) ? "a tokenizer is needed" : "";
      } catch (const UserError& error) {
        said = "";  // of a file that is no JSON
      }
      EXPECT_EQ(said, "") << text;
    }
    expect_error(record, mistake);
  }
  // Where one that needs it comes later, they come first in what is told.
  const std::string both =
      message_of<UserError>([&] { load("{\"input_ids\": [1, -2]}\n{\"text\": \"a\"}"); });
  EXPECT_NE(both.find("input_ids[1] is -2; expected ids from 0\na tokenizer was asked for"),
            std::string::npos)
      << both;
  EXPECT_TRUE(
      needs_tokenizer(folder_.write("data.jsonl", "{\"input_ids\": [1]}\n{\"text\": \"a\"}"), {}));
}

TEST_F(TokenData, TheFormMayBeAskedFor) {
  const std::string both = R"({"input_ids": [1, 2], "text": "a"})";
  EXPECT_EQ(load(both, 64, RecordForm::tokens).audit.form, "tokens");
  EXPECT_FALSE(needs_tokenizer(folder_.write("data.jsonl", both), {}));
  EXPECT_TRUE(needs_tokenizer((folder_ / "data.jsonl").string(), {.form = RecordForm::text}));
  EXPECT_EQ(message_of<UserError>([&] { load(both, 64, RecordForm::text); }),
            "a tokenizer was asked for");
}

}  // namespace
}  // namespace snug::text
