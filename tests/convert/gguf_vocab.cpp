// Tokenizers of folders to GGUF files without weights and back, for
// scripts/oracles/check_gguf_tokenizers:
//   gguf_vocab out FOLDER FILE [ROWS]   writes the file, prints the notes as a list
//   gguf_vocab in FILE FOLDER           writes the tokenizer's files
//   gguf_vocab ids FOLDER TEXTS         prints the ids of each text of a list; null where refused
// A refusal is printed as {"error": ...}; the exit code is then 2.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "convert/gguf/tokenizer_in.h"
#include "convert/gguf/tokenizer_out.h"
#include "formats/gguf/gguf_file.h"
#include "formats/gguf/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {
namespace {

void write_vocabulary(const std::string& folder, const std::string& file, int64_t rows) {
  formats::Metadata metadata;
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("general.name", std::string("vocabulary"));
  if (rows == 0) rows = text::Tokenizer::from_folder(folder).vocabulary_size();
  const auto notes = add_tokenizer(folder, rows, metadata);
  std::filesystem::remove(file);
  formats::GgufWriter writer(file, metadata, {});
  writer.finish();
  std::cout << nlohmann::json(notes).dump() << "\n";
}

void write_ids(const std::string& folder, const std::string& file) {
  const auto tokenizer = text::Tokenizer::from_folder(folder);
  const auto texts = nlohmann::json::parse(base::read_text_file(file));
  nlohmann::json all = nlohmann::json::array();
  for (const auto& text : texts) {
    try {
      all.push_back(tokenizer.encode(text.get<std::string>()));
    } catch (const base::UserError&) {
      all.push_back(nullptr);
    }
  }
  std::cout << all.dump() << "\n";
}

int run(std::span<char*> words) {
  const std::string usage =
      "usage: gguf_vocab out FOLDER FILE [ROWS] | in FILE FOLDER | ids FOLDER TEXTS\n";
  try {
    if (words.size() < 4) {
      std::cerr << usage;
      return 1;
    }
    if (std::string(words[1]) == "in") {
      std::filesystem::create_directories(words[3]);
      write_tokenizer(formats::GgufFile(words[2]).metadata(), words[3]);
    } else if (std::string(words[1]) == "ids") {
      write_ids(words[2], words[3]);
    } else {
      write_vocabulary(words[2], words[3], words.size() > 4 ? std::stoll(words[4]) : 0);
    }
    return 0;
  } catch (const base::UserError& error) {
    std::cout << nlohmann::json{{"error", error.what()}}.dump() << "\n";
    return 2;
  }
}

}  // namespace
}  // namespace snug::convert

int main(int count, char** words) {
  return snug::convert::run({words, static_cast<size_t>(count)});
}
