// A file of records, read as a dataset, for tests of what its fields mean.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {

// A template that marks nothing.
inline constexpr const char* kPlainTemplate =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

// The text of document 0, what is learned of it in braces.
class FieldData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents) {
    return load_dataset(folder_.write("data.jsonl", contents), tokenizer_, options_);
  }
  std::string shown(const std::string& contents, int64_t document = 0) {
    const Dataset data = load(contents);
    std::vector<int32_t> words(static_cast<size_t>(data.documents.length(document)));
    data.documents.read(document, words);
    std::string text;
    bool is_learned = false;
    for (const int32_t word : words) {
      if (DocumentStore::is_target(word) != is_learned) text += is_learned ? "}" : "{";
      is_learned = DocumentStore::is_target(word);
      text += tokenizer_.decode({{DocumentStore::id_of(word)}}, false);
    }
    return is_learned ? text + "}" : text;
  }
  std::string error(const std::string& contents) {
    return message_of<base::UserError>([&] { load(contents); });
  }
  std::string unused(const std::string& contents) { return load(contents).audit.unused.list(); }
  void use_template(const char* source) {
    options_.chat_template = folder_.write("template.jinja", source).string();
  }
  void ask_for(RecordForm form) { options_.form = form; }

  testing::TemporaryFolder folder_;
  Tokenizer tokenizer_ = TinyTokenizer{}.make();
  DatasetOptions options_{
      .max_length = 512, .chat_template = folder_.write("template.jinja", kPlainTemplate).string()};
};

}  // namespace snug::text
