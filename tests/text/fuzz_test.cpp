// Damaged files are answered with a UserError or read; nothing else may happen.
#include <gtest/gtest.h>

#include <random>

#include "../base/processor_time.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using testing::TemporaryFolder;

// A few bytes replaced, removed, doubled, or the end cut off.
std::string damaged(std::string text, std::mt19937& random) {
  const std::string pool = "{}[]\",:0123456789.-eEtfn\\u\n \x80\xC3\xFF";
  const auto pick = [&](size_t bound) { return static_cast<size_t>(random()) % bound; };
  for (size_t edits = 1 + pick(3); edits > 0 && !text.empty(); --edits) {
    const size_t at = pick(text.size());
    switch (pick(5)) {
      case 0:
        text.erase(at, 1 + pick(8));
        break;
      case 1:
        text.insert(at, 1, pool[pick(pool.size())]);
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + pick(40)));
        break;
      case 3:
        if (pick(8) == 0) text.resize(at);
        break;
      default:
        text[at] = pool[pick(pool.size())];
    }
  }
  return text;
}

TEST(Fuzz, DamagedTokenizers) {
  TinyTokenizer tiny{{{"a", "b"}}};
  tiny.keys["post_processor"] = TinyTokenizer::bos_template(257);
  tiny.keys["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", "_"}};
  const std::string document = tiny.document().dump();
  // Most of the document is the vocabulary; damage the rest as often.
  const size_t model = document.find("\"model\"");
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text =
        i % 2 == 0 ? damaged(document, random)
                   : damaged(document.substr(0, model), random) + document.substr(model);
    try {
      const Tokenizer tokenizer = Tokenizer::from_text(text, tiny.config.dump(), "fuzz");
      tokenizer.decode(tokenizer.encode("ab <s>\xC3\xA9  x"));
      ++read;
    } catch (const base::UserError&) {
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_LT(read, 2900);
}

TEST(Fuzz, DamagedData) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = TinyTokenizer{}.make();
  const std::string lines =
      "{\"prompt\": \"a\\u00e9\", \"completion\": \"b\"}\n{\"prompt\": \"c\", \"completion\": "
      "1.5e3}\n";
  const std::string tokens =
      "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n"
      "{\"input_ids\": [4, 5], \"attention_mask\": [1, 1]}\n";
  const std::string array =
      "[{\"messages\": [{\"role\": \"user\", \"content\": \"\\\"\"},\n {\"role\": \"assistant\", "
      "\"content\": \"\xC3\xA9\"}]},\n {\"messages\": []}]";
  std::mt19937 random(2);
  DatasetOptions options;
  options.max_length = 16;
  options.chat_template = "plain";
  options.vocabulary = 256;
  for (int i = 0; i < 2250; ++i) {
    const bool is_array = i % 3 == 0;
    const std::string path =
        folder.write(is_array ? "data.json" : "data.jsonl", damaged(is_array     ? array
                                                                    : i % 3 == 1 ? lines
                                                                                 : tokens,
                                                                    random));
    try {
      load_dataset(path, tokenizer, options);
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find(folder.path().string()), std::string::npos)
          << error.what();
    }
  }
}

// A gigabyte that was reserved and never written, of which no more than the beginning is read.
TEST(Fuzz, UnwrittenData) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = TinyTokenizer{}.make();
  for (const char* name : {"data.jsonl", "data.json", "data.txt"}) {
    const std::string path = folder.write(name, "");
    base::File::open_for_update(path).truncate(int64_t{1} << 30);
    const double begin = testing::processor_seconds();
    const std::string error = message_of<base::UserError>(
        [&] { load_dataset(path, tokenizer, {.max_length = 16, .vocabulary = 256}); });
    EXPECT_NE(error.find(path + ": the file begins with 64 NUL bytes"), std::string::npos) << error;
    EXPECT_LT(testing::processor_seconds() - begin, 1) << name;
  }
}

}  // namespace
}  // namespace snug::text
