// A JSON file that is one object, which holds the list of its records.
#include "text/record/list_in_object.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/record_reader.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using testing::contains;
using Texts = std::vector<std::string>;

class ListInObjectTest : public ::testing::Test {
 protected:
  // The records of a file, with their lines.
  Texts records(const std::string& contents, const char* name = "data.json") {
    RecordReader reader(folder_.write(name, contents));
    told_ = reader.list() ? reader.list()->told() : "";
    Texts found;
    for (RawRecord raw; reader.next(raw);)
      found.push_back(std::to_string(raw.line) + ":" + raw.text);
    return found;
  }
  std::string error(const std::string& contents) {
    return message_of<base::UserError>([&] { records(contents); });
  }

  testing::TemporaryFolder folder_;
  std::string told_;
};

// SQuAD's files and Natural Instructions' tasks.
TEST_F(ListInObjectTest, ItsItemsAreTheRecords) {
  EXPECT_EQ(records(R"({"version": "v2.0", "data": [{"a": 1}, {"a": "]}\""}], "n": [1, {}]})"),
            (Texts{R"(1:{"a": 1})", R"(1:{"a": "]}\""})"}));
  EXPECT_EQ(told_, "the records are its list 'data', not used are its other fields 'version', 'n'");
  const std::string task =
      "\xEF\xBB\xBF{\n  \"Definition\": [\"Do it.\"],\n  \"Positive Examples\": [{\"input\": "
      "\"x\"}],\n"
      "  \"Instances\": [\n    {\"input\": \"a\"},\n    {\"input\": \"b\"}\n  ],\n"
      "  \"License\": [\"none\", 1.5e-3, true, null]\n}\n";
  EXPECT_EQ(records(task), (Texts{R"(5:{"input": "a"})", R"(6:{"input": "b"})"}));
  EXPECT_TRUE(contains(told_, "its list 'Instances', not used are its other fields 'Definition'"));
  EXPECT_EQ(records("{\"questions\":\n[{\"q\": 1}]}"), Texts{R"(2:{"q": 1})"});
  EXPECT_EQ(records("{\"data\": []}"), Texts{R"(1:{"data": []})"});
}

TEST_F(ListInObjectTest, SeveralListsAreAnError) {
  EXPECT_TRUE(contains(error(R"({"train": [{"a": 1}], "rows": [{"a": 2}]})"),
                       "several lists may be the records: 'train', 'rows'"));
  EXPECT_TRUE(contains(error("{\"easy\": [{\"a\": 1}],\n\"hard\": [{\"a\": 2}]}"),
                       "data.json:1: it is one JSON object, of which several lists"));
}

// All of these are records, or broken, as they have been.
TEST_F(ListInObjectTest, ARecordIsNone) {
  for (const char* record :
       {R"({"messages": [{"role": "user", "content": "a"}], "data": [{"x": 1}]})",
        R"({"data": [{"role": "user", "content": "a"}]})", R"({"data": [{"from": "gpt"}]})",
        R"({"prompt": "a", "completion": "b", "rows": [{"x": 1}]})", R"({"scores": [{"x": 1}]})",
        R"({"data": ["a", {"b": 1}]})", R"({"data": {"a": []}})", R"({"x": {"data": [{"a": 1}]}})",
        R"({"data": [{"a": 1}]} x)", R"({"data": [{"a": 1}])", R"({"data": [{"a" 1}]})",
        R"({"data": [{"a": "b}]})"})
    EXPECT_EQ(records(record), Texts{"1:" + std::string(record)});
  const std::string lines = "{\"data\": [{\"a\": 1}]}\n{\"data\": [{\"a\": 2}]}\n";
  EXPECT_EQ(records(lines).size(), 2U);
  // Lines of .jsonl files are records.
  EXPECT_EQ(records("{\"data\": [{\"a\": 1}]}\n", "data.jsonl").size(), 1U);
}

// What is read does not grow with the list.
TEST_F(ListInObjectTest, MayBeLong) {
  std::string list;
  for (int i = 0; i < 40000; ++i)
    list += (i > 0 ? ",\n" : "") + std::string(R"({"question": "How many is )") +
            std::to_string(i) + R"(?", "answer": ")" + std::to_string(i) + "\"}";
  const Texts found = records("{\"version\": 1, \"data\": [" + list + "], \"more\": {}}");
  ASSERT_EQ(found.size(), 40000U);
  EXPECT_EQ(found.back(), R"(40000:{"question": "How many is 39999?", "answer": "39999"})");
}

TEST_F(ListInObjectTest, TheAuditSaysSo) {
  const std::string file = R"({"date": "today", "rows": [{"prompt": "a", "completion": "b"}]})";
  const Tokenizer tokenizer = TinyTokenizer{}.make();
  const Dataset data =
      load_dataset(folder_.write("data.json", file), tokenizer, DatasetOptions{.max_length = 8});
  EXPECT_EQ(data.audit.list_told,
            "the records are its list 'rows', not used are its other fields 'date'");
  EXPECT_EQ(data.documents.size(), 1);
}

}  // namespace
}  // namespace snug::text
