// A tokenizer with more ids than the model has rows: only what needs such a row is at fault.
#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/record_form.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

TEST(MissingRows, OnlyATextWithSuchATokenIsRefused) {
  // The ids 256 ab, 257 bc, 258 abc; <s> 259, </s> 260.
  TinyTokenizer tiny{{{"a", "b"}, {"b", "c"}, {"ab", "c"}}};
  tiny.added.emplace_back("<pad>");
  tiny.config["pad_token"] = "<pad>";
  EXPECT_EQ(tiny.make().pad_id(), 261);
  const Tokenizer padless = tiny.make(261);
  EXPECT_EQ(padless.pad_id(), std::nullopt);
  EXPECT_EQ(padless.vocabulary_size(), 262);
  EXPECT_EQ(padless.encode("abc</s>"), (Ids{258, 260}));
  EXPECT_EQ(padless.stop_ids().size(), 1U);
  const std::string message = message_of<UserError>([&] { padless.encode("abc<pad>"); });
  EXPECT_NE(message.find("token '<pad>' with the id 261"), std::string::npos) << message;
  EXPECT_NE(message.find("261 ids, 0 to 260"), std::string::npos) << message;
  EXPECT_NE(message.find("resize_token_embeddings(262)"), std::string::npos) << message;
  // Nothing can end a text with an id that the model never gives.
  const Tokenizer endless = tiny.make(260);
  EXPECT_TRUE(endless.stop_ids().empty());
  EXPECT_NE(message_of<UserError>([&] { endless.encode("</s>"); }), "");
  // A token that merges make counts as one that is added.
  EXPECT_NE(message_of<UserError>([&] { tiny.make(258).encode("abc"); }), "");
}

TEST(MissingRows, AreNamedWithTheRecordThatNeedsThem) {
  const TemporaryFolder folder;
  TinyTokenizer tiny{{{"x", "y"}}};
  tiny.added.emplace_back("<x>");  // 259
  Tokenizer tokenizer = tiny.make(259);
  const auto error = [&](const std::string& name, const std::string& contents,
                         const DatasetOptions& options) {
    return message_of<UserError>(
        [&] { load_dataset(folder.write(name, contents), tokenizer, options); });
  };
  DatasetOptions chosen;
  chosen.max_length = 64;
  chosen.chat_template = "plain";
  const auto both = [&](const std::string& before, const std::string& after) {
    const std::string good = before + "a" + after + "\n";
    EXPECT_EQ(error("data.jsonl", good, chosen), "");
    const std::string message = error("data.jsonl", good + before + "<x>" + after, chosen);
    EXPECT_NE(message.find("data.jsonl:2: record 2: the text has the token '<x>' with the id 259"),
              std::string::npos)
        << message;
  };
  both("{\"text\": \"", "\"}");
  both("{\"prompt\": \"", "\", \"completion\": \"b\"}");
  both("{\"prompt\": \"b\", \"completion\": \"", "\"}");
  both("{\"messages\": [{\"role\": \"user\", \"content\": \"",
       "\"}, {\"role\": \"assistant\", "
       "\"content\": \"b\"}]}");
  EXPECT_NE(error("data.txt", "a<x>", chosen).find("the token '<x>'"), std::string::npos);
  const std::string pair = "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"<x>\"}";
  chosen.form = RecordForm::preference;
  EXPECT_NE(error("pair.jsonl", pair, chosen).find("record 1: the text has the token '<x>'"),
            std::string::npos);
  chosen.form.reset();
  chosen.encoder_length = 64;
  for (const char* record : {"{\"prompt\": \"<x>\", \"completion\": \"b\"}",
                             "{\"prompt\": \"b\", \"completion\": \"<x>\"}"})
    EXPECT_NE(error("parts.jsonl", record, chosen).find("record 1: the text has the token '<x>'"),
              std::string::npos);
  // The end that every answer has is such a token as well.
  tokenizer = tiny.make(258);
  EXPECT_NE(error("end.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}",
                  DatasetOptions{.max_length = 64})
                .find("record 1: the text has the token '</s>'"),
            std::string::npos);
}

}  // namespace
}  // namespace snug::text
