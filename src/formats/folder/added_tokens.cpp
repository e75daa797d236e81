#include "formats/folder/added_tokens.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

// The end of the text that begins with a quote at `begin`: after the quote that closes it.
size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// Where the list of the document's own key "added_tokens" ends: its closing bracket.
std::optional<size_t> end_of_added_tokens(std::string_view text) {
  constexpr std::string_view kKey = "\"added_tokens\"";
  int depth = 0;
  bool is_in_list = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const size_t end = end_of_string(text, at);
      if (depth == 1) is_in_list = text.substr(at, end - at) == kKey;
      at = end;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (is_in_list && c == ']' && depth == 1) return at;
    ++at;
  }
  return std::nullopt;
}

ordered_json flags_of(const NewToken& token) {
  return {{"content", token.content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},          {"normalized", false},  {"special", true}};
}

void add_to_tokenizer(const fs::path& path, const std::vector<NewToken>& tokens) {
  if (!fs::exists(path))
    throw base::UserError(
        "no such file, so that added_tokens can be written nowhere (transformers writes one with "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...))",
        {path.string(), 0, 0});
  std::string document = base::read_text_file(path);
  const auto end = end_of_added_tokens(document);
  if (!end) throw base::UserError("has no list added_tokens", {path.string(), 0, 0});
  const size_t last = document.find_last_not_of(" \t\r\n", *end - 1);
  std::string more;
  for (const NewToken& token : tokens) {
    ordered_json entry = {{"id", token.id}};
    entry.update(flags_of(token));
    more += (document[last] == '[' && more.empty() ? "\n    " : ",\n    ") + entry.dump();
  }
  document.insert(last + 1, more);
  base::write_file_atomically(path, document);
}

// Adds to an object of the file, where both are there.
template <typename Add>
void add_to_object(const fs::path& path, const char* key, const Add& add) {
  if (!fs::exists(path)) return;
  json document = base::read_json_file(path);
  json* object = key == nullptr ? &document : document.contains(key) ? &document[key] : nullptr;
  if (object == nullptr || !object->is_object()) return;
  add(*object);
  base::write_file_atomically(path, document.dump(2) + "\n");
}

}  // namespace

void write_added_tokens(const fs::path& folder, const std::vector<NewToken>& tokens) {
  if (tokens.empty()) return;
  add_to_tokenizer(folder / "tokenizer.json", tokens);
  add_to_object(folder / "tokenizer_config.json", "added_tokens_decoder", [&](json& list) {
    for (const NewToken& token : tokens) list[std::to_string(token.id)] = flags_of(token);
  });
  add_to_object(folder / "added_tokens.json", nullptr, [&](json& list) {
    for (const NewToken& token : tokens) list[token.content] = token.id;
  });
}

}  // namespace snug::formats
