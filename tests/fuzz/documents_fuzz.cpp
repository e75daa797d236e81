// Files of records on their whole way to documents, through a chat template where they are
// conversations: a byte of choices, a length, and the file.
#include "../text/tiny_tokenizer.h"
#include "fuzz_input.h"
#include "text/row/dataset.h"

namespace snug::fuzz {
namespace {

const text::Tokenizer& tokenizer() {
  static const text::Tokenizer made = [] {
    text::TinyTokenizer tiny{.merges = {{"a", "b"}},
                             .added = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"}};
    tiny.config["chat_template"] =
        "{% if tools %}{{ tools | tojson }}{% endif %}"
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
        "{% for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    return tiny.make();
  }();
  return made;
}

void require_bounded(const text::Dataset& data, int32_t most) {
  std::vector<int32_t> words(static_cast<size_t>(most));
  for (int64_t i = 0; i < data.documents.size(); ++i) {
    const int32_t length = data.documents.length(i);
    require(length >= 2 && length <= most, "a document is as long as max_length allows");
    data.documents.read(i, std::span(words).first(static_cast<size_t>(length)));
    for (const int32_t word : std::span(words).first(static_cast<size_t>(length)))
      require(text::DocumentStore::id_of(word) < fuzz::tokenizer().vocabulary_size(),
              "ids are of the vocabulary");
    require(data.documents.targets(i) > 0, "something of a document is learned");
  }
}

}  // namespace
}  // namespace snug::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  fuzz::FuzzInput input(data, size);
  const uint8_t choice = input.byte();
  text::DatasetOptions options;
  options.max_length = 2 + input.byte() % 200;
  options.truncation = static_cast<base::Truncation>(choice % 3);
  options.train_on_prompt = choice % 8 >= 6;
  if (choice % 32 >= 24) options.form = text::RecordForm::preference;
  if (choice % 32 < 8) options.form = text::RecordForm::unpaired;
  options.mismatch_batch = 2;
  options.chat_template = choice % 64 < 16 ? "plain" : "";
  options.vocabulary = fuzz::tokenizer().vocabulary_size();
  options.skips = {.refuses_any = false, .mapping_share = 1};
  const std::string path =
      fuzz::fuzzed_file(choice >= 128 ? "data.json" : "data.jsonl", input.rest());
  fuzz::read_or_refuse(path, [&] {
    fuzz::require_bounded(text::load_dataset(path, fuzz::tokenizer(), options), options.max_length);
  });
  return 0;
}
