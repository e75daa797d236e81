// One run tells of all records that cannot be learned from.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/bad_records.h"
#include "text/record/record_reader.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;

constexpr const char* kGood = "{\"prompt\": \"a\", \"completion\": \"b\"}\n";
constexpr const char* kEmpty = "{\"prompt\": \"a\", \"completion\": \" \"}\n";

class BadRecordsOf : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, const std::string& name = "data.jsonl") {
    return load_dataset(folder_.write(name, contents), tokenizer_, options_);
  }
  std::string error(const std::string& contents, const std::string& name = "data.jsonl") {
    return message_of<UserError>([&] { load(contents, name); });
  }
  testing::TemporaryFolder folder_;
  Tokenizer tokenizer_ = TinyTokenizer{}.make();
  DatasetOptions options_{.max_length = 32, .threads = 2};
};

TEST_F(BadRecordsOf, AFileAreToldOfByReason) {
  const std::string file = std::string(kEmpty) + kGood + kEmpty + "{\"text\": \"x\"}\n" + kEmpty +
                           "{\"prompt\": 3, \"completion\": \"b\"}\n" + kEmpty + "{\"a\": }\n" +
                           kGood +
                           "{\"prompt\": \"0123456789012345678901234567890123456789\", "
                           "\"completion\": \"b\"}\n";
  const std::string message = error(file);
  for (const char* part :
       {"data.jsonl: 8 of 10 records cannot be learned from; on_bad_record=skip leaves them out:\n",
        "data.jsonl:1: record 1: the answer ('completion') is empty "
        "(4 records, lines 1, 3, 5, ...)\n",
        "data.jsonl:4: record 4 is of the form text", "data.jsonl:6: record 6: expected the field",
        "data.jsonl:8: broken JSON in record 8", "data.jsonl:10: record 10: its answer begins at"})
    EXPECT_TRUE(contains(message, part)) << part << "\nis not in: " << message;
  options_.skips = {.refuses_any = false, .mapping_share = 1};
  const Dataset data = load(file);
  EXPECT_EQ(data.audit.records, 2);
  EXPECT_EQ(data.audit.bad, 8);
  EXPECT_TRUE(contains(data.audit.bad_told, "(4 records, lines 1, 3, 5, ...)"));
}

TEST_F(BadRecordsOf, OneIsToldOfByItself) {
  const std::string what = "data.jsonl:2: record 2: the answer ('completion') is empty";
  EXPECT_TRUE(
      contains(error(std::string(kGood) + kEmpty), what + "; on_bad_record=skip leaves it out"));
  EXPECT_TRUE(contains(error(std::string(kGood) + kEmpty + kGood + kEmpty),
                       what + " (2 records, lines 2, 4); on_bad_record=skip leaves them out"));
}

TEST_F(BadRecordsOf, AFileMayBeAll) {
  EXPECT_TRUE(contains(error(std::string(kEmpty) + kEmpty), "(2 records, lines 1, 2)"));
  options_.skips.refuses_any = false;
  EXPECT_TRUE(contains(error(std::string(kEmpty) + kEmpty), "; nothing is left to learn from"));
}

// What stops the reader comes after what was found before.
TEST_F(BadRecordsOf, AreToldOfBeforeWhatStopsTheReader) {
  const std::string message = error(
      "[{\"prompt\": \"a\", \"completion\": \"\"},\n {\"prompt\": \"a\", \"completion\": \"b\"}\n",
      "data.json");
  EXPECT_TRUE(contains(message, "data.json:1: record 1: the answer")) << message;
  EXPECT_TRUE(contains(message, "\n" + (folder_ / "data.json").string() + ":3: broken JSON"))
      << message;
  options_.skips.refuses_any = false;
  EXPECT_TRUE(contains(error("[{\"prompt\": \"a\", \"completion\": \"\"}", "data.json"), "broken"));
}

// A few records may be strange; where many are, something else is wrong.
TEST_F(BadRecordsOf, AFileWhoseFieldsAreWrongMayBeFewOfMany) {
  options_.skips.refuses_any = false;
  const std::string other = "{\"prompt\": 3, \"completion\": \"b\"}\n";
  const auto file = [&](int good, int bad) {
    std::string contents;
    for (int i = 0; i < good; ++i) contents += kGood;
    for (int i = 0; i < bad; ++i) contents += other;
    return contents;
  };
  EXPECT_EQ(load(file(1, 3)).audit.bad, 3);  // three may always be
  EXPECT_EQ(load(file(396, 4)).audit.bad, 4);
  const std::string message = error(file(395, 4));
  for (const char* part : {"(4 records, lines 396, 397, 398, ...)", "1 % do not hold what is read",
                           "max_skipped=0.01", "max_skipped=1 leaves them out"})
    EXPECT_TRUE(contains(message, part)) << part << "\nis not in: " << message;
  options_.skips.mapping_share = 0.02;
  EXPECT_EQ(load(file(395, 4)).audit.bad, 4);
}

// One record of a list or a table is no more than one of lines.
TEST_F(BadRecordsOf, AListOrATableAreLeftOutOneByOne) {
  options_.skips.refuses_any = false;
  const std::string good = "{\"prompt\": \"a\", \"completion\": \"b\"}";
  const Dataset list =
      load("[" + good + ", null, " + good + ",\n7 , [{\"a\": \"]\"}]," + good + "]", "data.json");
  EXPECT_EQ(list.audit.records, 3);
  EXPECT_EQ(list.audit.bad, 3);
  for (const char* part : {"data.json:1: record 2: expected an object, found null",
                           "data.json:2: record 4: expected an "
                           "object, found number",
                           "data.json:2: record 5: expected an object, found array"})
    EXPECT_TRUE(contains(list.audit.bad_told, part)) << list.audit.bad_told;
  EXPECT_EQ(load("[\"a,]\", true," + good + "]", "data.json").audit.bad, 2);
  EXPECT_EQ(load("[{\"text\": \"\xFF\"}," + good + "]", "data.json").audit.bad, 1);
  EXPECT_TRUE(contains(error("[" + good + ",,", "data.json"), "broken JSON: expected record 2"));
  EXPECT_TRUE(
      contains(error("[" + good + ",nul", "data.json"), "broken JSON: expected ',' or ']'"));

  const Dataset table = load("prompt,completion\na,b\na\na,b,c\na,\xFF\na,b\n", "data.csv");
  EXPECT_EQ(table.audit.records, 2);
  EXPECT_EQ(table.audit.bad, 3);
  EXPECT_TRUE(contains(table.audit.bad_told, "data.csv:3: record 2: the row has 1 cells"))
      << table.audit.bad_told;
  const Dataset text = load("{\"text\": \"a\xC3\"}\n{\"text\": \"ab\"}\n");
  EXPECT_EQ(text.audit.bad, 1);
  // Such a record may be longer than what is held.
  const std::string much(kMaxRecordBytes, 'x');
  EXPECT_EQ(load("{\"text\": \"" + much + "\xFF" + much + "\"}\n{\"text\": \"ab\"}\n").audit.bad,
            1);
}

// NaN and infinity, as tables have them.
TEST_F(BadRecordsOf, AFileWithNumbersThatJsonHasNotAreLeftOut) {
  options_.skips.refuses_any = false;
  const auto record = [](const std::string& field, const std::string& number) {
    return fmt::format(
        "{{\"prompt\": \"a\", \"completion\": \"b\", \"{}\": {{\"number\": \"{}\"}}}}\n", field,
        number);
  };
  const Dataset data =
      load(record("weight", "inf") + record("loss_weight", "nan") + record("score", "nan"));
  EXPECT_EQ(data.audit.bad, 2);
  EXPECT_EQ(data.audit.unused.list(), "'score' (1 record)");
  options_.mapping = RecordMapping(std::array<std::string, 1>{"completion=costs {score}"}, {});
  EXPECT_TRUE(contains(error(record("score", "nan")), "'score' is an object"));
}

// Where the first record is what is strange, the advice is not to leave out all others.
TEST_F(BadRecordsOf, AFileOfAnotherFormThanTheFirstRecordsIsNamed) {
  options_.skips.refuses_any = false;
  std::string file = "{\"text\": \"x\"}\n";
  for (int i = 0; i < 3000; ++i) file += kGood;
  const std::string message = error(file);
  EXPECT_TRUE(contains(message, "more than 99.9 % do not hold what is read")) << message;
  EXPECT_TRUE(contains(message,
                       "3000 of 3001 are of the form prompt_completion: "
                       "data_format=prompt_completion reads them"))
      << message;
  EXPECT_FALSE(contains(message, "max_skipped=1"));
  options_.form = RecordForm::prompt_completion;
  EXPECT_EQ(load(file).audit.bad, 1);
}

TEST_F(BadRecordsOf, AFileMayBeHalfEmptyOrTooLong) {
  options_.skips.refuses_any = false;
  const std::string long_prompt =
      "{\"prompt\": \"0123456789012345678901234567890123456789\", \"completion\": \"b\"}\n";
  const Dataset half = load(std::string(kGood) + kEmpty + kGood + long_prompt);
  EXPECT_EQ(half.audit.bad, 2);
  EXPECT_TRUE(half.audit.bad_told.starts_with("WARNING: ")) << half.audit.bad_told;
  EXPECT_TRUE(contains(half.audit.bad_told, "2 of 4 records (50 %) are left out:\n(1) "));
  const std::string message = error(std::string(kGood) + kEmpty + long_prompt);
  EXPECT_TRUE(contains(message, "66.7 % are empty or too long")) << message;
  options_.skips.mapping_share = 0.7;
  EXPECT_EQ(load(std::string(kGood) + kEmpty + long_prompt).audit.bad, 2);
}

TEST_F(BadRecordsOf, AFileAreToldOfQuietlyWhereTheyAreFew) {
  options_.skips.refuses_any = false;
  std::string file = kEmpty;
  for (int i = 0; i < 199; ++i) file += kGood;
  const std::string told = load(file).audit.bad_told;
  EXPECT_TRUE(contains(told, "data.jsonl: 1 of 200 records (0.5 %) is left out:\n")) << told;
  EXPECT_FALSE(contains(told, "WARNING"));
}

// The length that all of them need, in one sentence.
TEST_F(BadRecordsOf, OneLengthHoldsAllThatAreCutAway) {
  const auto record = [](size_t prompt, size_t answer) {
    return fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", std::string(prompt, 'a'),
                       std::string(answer, 'b'));
  };
  const std::string file = record(40, 4) + kGood + record(60, 20) + record(50, 10);
  options_.positions = 200;
  EXPECT_TRUE(contains(error(file),
                       "set max_length=81, which holds all of them (3 records, lines 1, 3, 4)"))
      << error(file);
  EXPECT_FALSE(contains(error(file), "max_length=45"));
  EXPECT_TRUE(contains(error(record(40, 4)), "set max_length=45, which holds all of it;"));
  // One is longer than what the model takes: it is told of with the others.
  options_.positions = 70;
  EXPECT_TRUE(contains(error(file),
                       "the longest takes 81 tokens, and the model has 70 positions: set "
                       "max_length=70, which holds a part of each answer at least"))
      << error(file);
  // And one whose answer no length reaches is a reason of its own.
  options_.positions = 55;
  EXPECT_TRUE(contains(error(file), "set max_length=55")) << error(file);
  EXPECT_TRUE(contains(error(file), "set max_length=55, which holds a part")) << error(file);
  EXPECT_TRUE(contains(error(file), "record 3: its answer begins")) << error(file);
  EXPECT_TRUE(contains(error(file), "no max_length keeps any of it: shorten the prompt"))
      << error(file);
}

TEST(BadRecords, AreHeldInBounds) {
  BadRecords bad;
  for (int i = 0; i < 1000; ++i)
    bad.add(RecordError(i, std::string(static_cast<size_t>(i % 50 + 1), 'x'), "f", i));
  EXPECT_EQ(bad.count(), 1000);
  EXPECT_TRUE(contains(bad.list(), "\n600 more records for other reasons")) << bad.list();
}

}  // namespace
}  // namespace snug::text
