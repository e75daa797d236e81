#include "text/row/dataset.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "golden_files.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr int32_t kBos = 257;
constexpr int32_t kEos = 258;

// One merge, which can cross the border of prompt and answer: "xy" is 256; <s> 257, </s> 258.
Tokenizer tokenizer_with_bos() {
  TinyTokenizer tiny{{{"x", "y"}}};
  tiny.keys["post_processor"] = TinyTokenizer::bos_template(kBos);
  return tiny.make();
}

DatasetOptions options(int32_t max_length) {
  DatasetOptions result;
  result.max_length = max_length;
  return result;
}

Ids words_of(const DocumentStore& documents, int64_t document) {
  Ids words(static_cast<size_t>(documents.length(document)));
  documents.read(document, words);
  return words;
}

Ids ids_of(const DocumentStore& documents, int64_t document) {
  Ids ids = words_of(documents, document);
  for (int32_t& id : ids) id = DocumentStore::id_of(id);
  return ids;
}

// The targets as text, to compare with the answer.
std::string targets_of(const Tokenizer& tokenizer, const DocumentStore& documents,
                       int64_t document) {
  Ids ids;
  for (const int32_t word : words_of(documents, document))
    if (DocumentStore::is_target(word)) ids.push_back(DocumentStore::id_of(word));
  return tokenizer.decode(ids, false);
}

class DatasetFile : public ::testing::Test {
 protected:
  Dataset load(const std::string& name, const std::string& contents,
               const DatasetOptions& chosen = options(4096)) {
    return load_dataset(folder_.write(name, contents), tokenizer_, chosen);
  }
  std::string error(const std::string& name, const std::string& contents,
                    const DatasetOptions& chosen = options(4096)) {
    return message_of<UserError>([&] { load(name, contents, chosen); });
  }
  void expect_error(const std::string& contents, const std::string& expected,
                    const std::string& name = "data.jsonl") {
    const std::string message = error(name, contents);
    EXPECT_NE(message.find(expected), std::string::npos) << contents << "\ngives: " << message;
  }

  TemporaryFolder folder_;
  Tokenizer tokenizer_ = tokenizer_with_bos();
};

TEST_F(DatasetFile, TheFormThatWasAskedForCountsAlone) {
  const std::string both = R"({"instruction": "Add.", "output": "2", "text": "whole"})";
  EXPECT_EQ(load("a.jsonl", both).audit.form, "alpaca");
  DatasetOptions chosen = options(4096);
  chosen.form = RecordForm::text;
  EXPECT_EQ(load("a.jsonl", both, chosen).audit.form, "text");
  chosen.form = RecordForm::messages;
  EXPECT_NE(error("a.jsonl", both, chosen).find("a.jsonl:1: record 1: expected the fields of the"),
            std::string::npos);
  EXPECT_NE(error("a.txt", "plain", chosen).find("data_format says messages"), std::string::npos);
}

TEST_F(DatasetFile, AlpacaLearnsTheAnswerAndItsEnd) {
  const Dataset data = load("a.json", R"([{"instruction": "Add.", "input": "1+1", "output": "2"},
                         {"instruction": "Say hi.", "input": "", "output": "Hi!", "id": 7}])");
  EXPECT_EQ(data.audit.form, "alpaca");
  ASSERT_EQ(data.documents.size(), 2);
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 0), false),
            "<s>" + alpaca_prompt("Add.", "1+1") + "2</s>");
  EXPECT_EQ(targets_of(tokenizer_, data.documents, 0), "2</s>");
  EXPECT_EQ(targets_of(tokenizer_, data.documents, 1), "Hi!</s>");
  EXPECT_NE(alpaca_prompt("Add.", "1+1").find("### Input:\n1+1\n\n### Response:\n"),
            std::string::npos);
  EXPECT_EQ(alpaca_prompt("Add.", "").find("### Input"), std::string::npos);
}

TEST_F(DatasetFile, ATokenAcrossTheBorderBelongsToTheAnswer) {
  const Dataset data = load("p.jsonl", R"({"prompt": "Qx", "completion": "yz"})");
  EXPECT_EQ(data.audit.form, "prompt_completion");
  EXPECT_EQ(ids_of(data.documents, 0), (Ids{kBos, 'Q', 256, 'z', kEos}));
  EXPECT_EQ(targets_of(tokenizer_, data.documents, 0), "xyz</s>");
  EXPECT_EQ(data.documents.targets(0), 3);
}

TEST_F(DatasetFile, TrainOnPromptLearnsAllButTheFirst) {
  DatasetOptions chosen = options(64);
  chosen.train_on_prompt = true;
  const Dataset data = load("p.jsonl", R"({"prompt": "Qx", "completion": "yz"})", chosen);
  EXPECT_EQ(data.documents.targets(0), 4);
  EXPECT_FALSE(DocumentStore::is_target(words_of(data.documents, 0)[0]));
}

TEST_F(DatasetFile, ConversationsLearnEveryAssistantTurn) {
  DatasetOptions chosen = options(512);
  chosen.chat_template = "plain";
  const std::string messages =
      R"({"messages": [{"role": "system", "content": "Be brief."},)"
      R"({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},)"
      R"({"role": "user", "content": "Bye"}, {"role": "assistant", "content": "See you"}]})";
  const Dataset data = load("m.jsonl", messages, chosen);
  EXPECT_EQ(data.audit.chat_template, "plain");
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 0), false),
            "<s>Be brief.\nUser: Hi\nAssistant: Hello</s>\nUser: Bye\nAssistant: See you</s>\n");
  EXPECT_EQ(targets_of(tokenizer_, data.documents, 0), "Hello</s>See you</s>");

  const Dataset shared = load("s.json",
                              R"([{"conversations": [{"from": "human", "value": "Hi"},)"
                              R"({"from": "gpt", "value": "Hello"}]}])",
                              chosen);
  EXPECT_EQ(shared.audit.form, "sharegpt");
  EXPECT_EQ(targets_of(tokenizer_, shared.documents, 0), "Hello</s>");
}

TEST_F(DatasetFile, LongDocumentsAreCutAndCounted) {
  const Dataset data = load("p.jsonl",
                            "{\"prompt\": \"ab\", \"completion\": \"cdefgh\"}\n"
                            "{\"prompt\": \"a\", \"completion\": \"b\"}\n",
                            options(5));
  EXPECT_EQ(data.audit.records, 2);
  EXPECT_EQ(data.audit.documents, 2);
  EXPECT_EQ(data.audit.truncated, 1);
  EXPECT_EQ(data.audit.cut_tokens, 5);
  EXPECT_EQ(data.audit.longest, 10);
  EXPECT_EQ(ids_of(data.documents, 0), (Ids{kBos, 'a', 'b', 'c', 'd'}));
  EXPECT_EQ(data.audit.tokens, 9);
  EXPECT_EQ(data.audit.trained_tokens, 4);
}

TEST_F(DatasetFile, AnAnswerCutAwayIsAnErrorThatSaysWhatWouldDo) {
  const std::string data =
      "{\"prompt\": \"a\", \"completion\": \"b\"}\n\n{\"prompt\": \"abcd\", \"completion\": \"b\"}";
  const std::string message = error("p.jsonl", data, options(5));
  EXPECT_NE(message.find("p.jsonl:3: record 2: its answer begins at token 6"), std::string::npos)
      << message;
  EXPECT_NE(message.find("set max_length=7, which holds all of it"), std::string::npos) << message;
  const Dataset whole = load("p.jsonl", data, options(7));
  EXPECT_EQ(whole.audit.truncated, 0);
  DatasetOptions model = options(5);
  model.positions = 6;
  EXPECT_NE(error("p.jsonl", data, model)
                .find("all of it takes 7 tokens, and the model has 6 positions: set max_length=6"),
            std::string::npos);
  EXPECT_EQ(error("p.jsonl", data, options(6)), "");
  model.positions = 5;
  EXPECT_NE(error("p.jsonl", data, model)
                .find("the model has 5 positions, so that no max_length keeps any of it: shorten "
                      "the prompt; on_bad_record=skip leaves it out"),
            std::string::npos);
}

TEST_F(DatasetFile, TextIsCutIntoWindowsThatLoseNothing) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  const Dataset data = load("t.txt", text, options(6));
  EXPECT_EQ(data.audit.form, "text");
  EXPECT_EQ(data.audit.records, 1);
  EXPECT_EQ(data.audit.truncated, 0);
  std::string learned;
  for (int64_t i = 0; i < data.documents.size(); ++i) {
    EXPECT_LE(data.documents.length(i), 6);
    learned += targets_of(tokenizer_, data.documents, i);
  }
  EXPECT_EQ(learned, text + "</s>");
  EXPECT_EQ(data.audit.trained_tokens, 26);  // xy is one token
}

TEST_F(DatasetFile, TheEndTokenSeparatesTexts) {
  const Dataset data = load("t.txt", "\xEF\xBB\xBFone\n</s>\n\ntwo</s>\n</s>three\n</s>\n");
  ASSERT_EQ(data.documents.size(), 3);
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 0), false), "<s>one\n</s>");
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 1), false), "<s>two</s>");
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 2), false), "<s>three\n</s>");
  EXPECT_EQ(load("t.jsonl", "{\"text\": \"one\"}\n").audit.form, "text");
}

TEST_F(DatasetFile, TextsWithoutATokenAreLeftOutAndCounted) {
  const Dataset data =
      load("t.jsonl", "{\"text\": \"\"}\n{\"text\": \"one\"}\n{\"text\": \" \\n\"}\n");
  EXPECT_EQ(data.audit.records, 3);
  EXPECT_EQ(data.audit.empty, 2);
  ASSERT_EQ(data.documents.size(), 1);
  EXPECT_EQ(tokenizer_.decode(ids_of(data.documents, 0), false), "<s>one</s>");
  expect_error("{\"text\": \"\"}\n", "of its 1 records none has text");
  // Without BOS, the end alone predicts nothing.
  tokenizer_ = TinyTokenizer{}.make();
  expect_error("{\"text\": \"</s>\"}", "of its 1 records none has text");
  expect_error("</s>", "the data file holds no records", "data.txt");
  EXPECT_EQ(load("t.jsonl", "{\"text\": \"</s>\"}\n{\"text\": \"a\"}\n").audit.empty, 1);
}

// What is learned may vanish in the tokenizer or in the template.
TEST_F(DatasetFile, AnAnswerWithoutATokenIsNamed) {
  TinyTokenizer erasing;
  erasing.keys["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", "[a-z]"}}}, {"content", ""}};
  tokenizer_ = erasing.make();
  expect_error(
      "{\"prompt\": \"Q\", \"completion\": \"A\"}\n{\"prompt\": \"\", \"completion\": \"a\"}",
      "data.jsonl:2: record 2: the tokenizer makes no token of what is to be learned");
  expect_error("{\"prompt\": \"Q\", \"completion\": \"a\"}",
               "record 1: the tokenizer makes no token");
  EXPECT_EQ(load("t.jsonl", "{\"text\": \"a\"}\n{\"text\": \"A\"}\n").audit.empty, 1);
  DatasetOptions chosen = options(64);
  chosen.chat_template = "plain";
  chosen.train_on_prompt = true;
  EXPECT_EQ(
      error("m.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", chosen),
      "");
}

// A text of a few MiB has the tokens of the whole in whatever form it comes: as a file, as a file
// with an end of text, as a record, as records of less. All but the last are read in pieces.
TEST_F(DatasetFile, LongTextsHaveTheTokensOfTheWhole) {
  std::string text;
  for (int i = 0; text.size() < (size_t{5} << 19); ++i)
    text += fmt::format("line {} x\xC3\xA4y \"\xF0\x9F\x98\x80\\ {}</s{}\n", i, i * 7919 % 10'007,
                        i % 7);
  Ids whole = tokenizer_.encode(text);
  whole.push_back(kEos);
  const auto joined = [](const Dataset& data) {
    Ids ids = ids_of(data.documents, 0);
    for (int64_t i = 1; i < data.documents.size(); ++i) {
      const Ids next = ids_of(data.documents, i);
      EXPECT_EQ(next[0], ids.back());
      ids.insert(ids.end(), next.begin() + 1, next.end());
    }
    return ids;
  };
  const auto expect_whole = [&](const Dataset& data) {
    EXPECT_EQ(data.audit.records, 1);
    EXPECT_EQ(data.audit.longest, static_cast<int64_t>(whole.size()));
    EXPECT_EQ(data.audit.trained_tokens, static_cast<int64_t>(whole.size()) - 1);
    EXPECT_TRUE(joined(data) == whole);
  };
  expect_whole(load("t.txt", text, options(600)));
  expect_whole(load("t.txt", text + "</s>\n\n", options(600)));
  const nlohmann::json record = {{"id", text}, {"text", text}, {"more", {{"text", "no"}}}};
  ASSERT_GT(record.dump().size(), 2 * kMaxRecordBytes);
  expect_whole(load("t.jsonl", record.dump() + "\n", options(600)));
  expect_whole(load("t.json", "[" + record.dump(2, ' ', true) + "]", options(600)));
  const Dataset two =
      load("t.jsonl", "{\"text\": \"a\"}\n" + record.dump() + "\n{\"text\": \"b\"}", options(600));
  EXPECT_EQ(two.audit.records, 3);
  EXPECT_EQ(ids_of(two.documents, two.documents.size() - 1), (Ids{kBos, 'b', kEos}));
}

TEST_F(DatasetFile, LongRecordsOfOtherFormsAreRefused) {
  std::string much;
  while (much.size() < kMaxRecordBytes) much += "x y ";
  const std::string good = "{\"prompt\": \"a\", \"completion\": \"b\"}\n";
  expect_error(good + "{\"prompt\": \"" + much + "\", \"completion\": \"b\"}\n",
               "data.jsonl:2: record 2: it has 2097");
  expect_error("{\"text\": 1, \"x\": \"" + much + "\"}",
               "expected the field 'text' to be a string");
  expect_error("{\"question\": 1, \"x\": \"" + much + "\"}", "found: question, x");
  expect_error("{\"text\": \"a\", \"x\": \"" + much + "\"", "data.jsonl:1: record 1: broken JSON");
  expect_error("{\"text\": \"" + much + "\\q" + much + "\"}",
               "data.jsonl:1: record 1: broken JSON");
  expect_error("{\"text\": \"" + much + "\xFF" + much + "\"}",
               "data.jsonl:1: record 1: its text is not valid UTF-8");
  expect_error("{\"text\": \"a\", \"n\": 1" + std::string(kMaxRecordBytes, '1') + "}",
               "a number of more than");
}

TEST_F(DatasetFile, ThreadsDoNotChangeTheResult) {
  std::string lines;
  for (int i = 0; i < 1500; ++i)
    lines += "{\"prompt\": \"question " + std::to_string(i) + ":\", \"completion\": \"" +
             std::string(static_cast<size_t>(1 + i % 50), 'x') + "\"}\n";
  const Dataset one = load("p.jsonl", lines);
  DatasetOptions chosen = options(4096);
  chosen.threads = 3;
  const Dataset three = load("p.jsonl", lines, chosen);
  ASSERT_EQ(one.documents.size(), 1500);
  ASSERT_EQ(three.documents.size(), 1500);
  for (int64_t i = 0; i < 1500; ++i)
    ASSERT_EQ(ids_of(one.documents, i), ids_of(three.documents, i));
  // The first broken record is named, whichever thread meets one first.
  lines += "{\"prompt\": 1, \"completion\": \"x\"}\n{\"prompt\": \"a\", \"completion\": \"\"}\n";
  EXPECT_NE(error("p.jsonl", lines, chosen).find("p.jsonl:1501: record 1501"), std::string::npos);
}

TEST_F(DatasetFile, KnowsItsBytes) {
  const Dataset data = load("p.jsonl", "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n");
  // The ids, and a chunk of the index.
  EXPECT_EQ(data.documents.host_bytes(), 6 * 4 + 4096 * 12);
}

TEST_F(DatasetFile, NamesTheLineOfABrokenRecord) {
  const std::string good = "{\"prompt\": \"a\", \"completion\": \"b\"}\n";
  expect_error(good + "{\"prompt\": \"a\",, }\n", "data.jsonl:2: broken JSON in record 2");
  expect_error(good + "\n\n[1]\n", "data.jsonl:4: record 2: expected an object, found array");
  expect_error(good + "{\"question\": \"a\"}\n", "data.jsonl:2: record 2: expected the fields");
  expect_error(good + "{\"question\": \"a\"}\n", "found: question");
  expect_error(good + "{\"prompt\": 3, \"completion\": \"b\"}\n",
               "expected the field 'prompt' to be a string, found number");
  expect_error(good + "{\"prompt\": \"a\", \"completion\": \" \\n\"}\n",
               "data.jsonl:2: record 2: the answer ('completion') is empty");
  expect_error(good + "{\"text\": \"a\"}\n",
               "record 2 is of the form text, but the records before it are prompt_completion");
  expect_error(good + "{\"prompt\": \"\xFF\"}\n",
               "data.jsonl:2: record 2: its text is not valid UTF-8");
  expect_error("{\"instruction\": \"a\", \"input\": 1, \"output\": \"b\"}",
               "expected the field 'input' to be a string");
}

TEST_F(DatasetFile, NamesTheLineInAnArray) {
  const std::string good = "[\n  {\"instruction\": \"a [}\\\" b\",\n   \"output\": \"c\"}";
  EXPECT_EQ(error("data.json", good + "\n]\n"), "");
  expect_error(good + ",\n  {\"instruction\": \"a\",\n   \"output\": tru}\n]",
               "data.json:5: broken", "data.json");
  expect_error(good + ",\n  {\"instruction\": \"a\"}]",
               "data.json:4: record 2: expected the fields", "data.json");
  expect_error(good + "\n  {}]", "data.json:4: broken JSON: expected ',' or ']'", "data.json");
  expect_error(good + ",\n", "data.json:4: broken JSON: the array is not closed", "data.json");
  expect_error(good + ",\n {\"a\": \"", "data.json:4: broken JSON: record 2, which begins here",
               "data.json");
  expect_error(good + ",\n 7]", "data.json:4: record 2: expected an object", "data.json");
  expect_error(good + "]\nx", "data.json:4: there is text after the end", "data.json");
}

TEST_F(DatasetFile, NamesWhatIsWrongWithMessages) {
  const auto line = [](const std::string& messages) { return "{\"messages\": " + messages + "}"; };
  expect_error(line("3"), "expected the field 'messages' to be a list");
  expect_error(line("[{\"role\": \"user\"}]"), "message 1: expected the strings 'role' and");
  expect_error(line("[{\"role\": \"user\", \"text\": \"a\"}]"), "message 1: expected the strings");
  expect_error(line("[{\"role\": \"bard\", \"content\": \"a\"}]"), "the role 'bard' is not known");
  expect_error(line("[{\"role\": \"user\", \"content\": \"a\"}]"), "no message is the assistant's");
  expect_error(line("[]"), "no message is the assistant's");
  expect_error(line("[{\"role\": \"assistant\", \"content\": \"\"}]"), "text is empty");
  expect_error(line("[{\"role\": \"assistant\", \"content\": \"a\"}]"),
               "choose a template with chat_template= one of chatml, qwen-2.5");
  expect_error("{\"conversations\": [{\"from\": \"gpt\", \"content\": \"a\"}]}",
               "message 1: expected the strings 'from' and 'value'");
}

TEST_F(DatasetFile, NamesWhatIsWrongWithTheFile) {
  for (const char* name : {"data.json", "data.jsonl", "data.txt"}) {
    expect_error("", "the data file holds no records", name);
    expect_error(" \n \n", "the data file holds no records", name);
  }
  expect_error("[]", "the data file holds no records", "data.json");
  expect_error("x", "expected a data file named .json, .jsonl, .txt, .csv", "data.xlsx");
  const auto missing = message_of<UserError>(
      [&] { load_dataset((folder_ / "none.json").string(), tokenizer_, options(8)); });
  EXPECT_NE(missing.find("none.json: no such data file"), std::string::npos) << missing;
  EXPECT_NE(error("data.txt", "x", options(1)).find("max_length=1 is too small"),
            std::string::npos);
  TinyTokenizer without_end;
  without_end.config = {{"bos_token", "<s>"}};
  tokenizer_ = without_end.make();
  expect_error("{\"text\": \"a\"}", "the tokenizer has no EOS token");
}

TEST(SharedData, EveryInstructionFileLoads) {
  const std::string instruct = kSharedData + "instruct/";
  if (!std::filesystem::exists(instruct)) GTEST_SKIP() << instruct << " is absent";
  const Tokenizer tokenizer = tokenizer_with_bos();
  DatasetOptions chosen = options(16384);
  chosen.chat_template = "plain";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"alpaca_5000.json", "alpaca"},
      {"dolly_hhrlhf_train_small.jsonl", "prompt_completion"},
      {"openai_toy_chat_first4.jsonl", "messages"},
      {"litgpt/alpaca.json", "alpaca"},
      {"litgpt/dolly.json", "alpaca"},
      {"torchtune/chat_tiny.json", "sharegpt"},
      {"torchtune/instruct_tiny.json", "alpaca"},
      {"torchtune/alpaca_tiny.json", "alpaca"}};
  for (const auto& [file, form] : files) {
    SCOPED_TRACE(file);
    const auto message = message_of<UserError>([&, path = instruct + file, expected = form] {
      const Dataset data = load_dataset(path, tokenizer, chosen);
      EXPECT_EQ(data.audit.form, expected);
      EXPECT_GT(data.audit.trained_tokens, 0);
      EXPECT_EQ(data.audit.records, data.audit.documents);
    });
    // The one file with records whose answer is empty is named as such.
    EXPECT_TRUE(message.empty() || message.find("is empty") != std::string::npos) << message;
  }
}

}  // namespace
}  // namespace snug::text
