// A tokenizer's document as a model folder, through a GGUF file's metadata and back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "convert/gguf/tokenizer_in.h"
#include "convert/gguf/tokenizer_out.h"
#include "formats/gguf/metadata.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {

class TokenizerFolder {
 public:
  explicit TokenizerFolder(const std::string& document, const nlohmann::json& config = nullptr) {
    folder_.write("tokenizer.json", document);
    if (!config.is_null()) folder_.write("tokenizer_config.json", config.dump());
  }

  void write(std::string_view name, std::string_view text) const { folder_.write(name, text); }
  const std::filesystem::path& path() const { return folder_.path(); }
  text::Tokenizer tokenizer() const { return text::Tokenizer::from_folder(folder_.path()); }

  // With as many rows as there are ids, and `more`.
  formats::Metadata metadata(int64_t more = 0) {
    formats::Metadata metadata;
    notes = add_tokenizer(folder_.path(), tokenizer().vocabulary_size() + more, metadata);
    return metadata;
  }

  std::vector<std::string> notes;

 private:
  testing::TemporaryFolder folder_;
};

template <typename T>
T value_of(const formats::Metadata& metadata, std::string_view key) {
  const auto* value = metadata.find(key);
  if (value == nullptr) throw std::runtime_error("no key " + std::string(key));
  return std::get<T>(*value);
}

}  // namespace snug::convert
