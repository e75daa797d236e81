// Encodes what it is asked to on standard input, for scripts/oracles/check_tokenizers: each line is
// {"path": tokenizer.json or a folder, "texts": [...], "threads": n}, each answer a line with "ids"
// and "decoded" of each text or its "error", and the seconds that encoding took; or with the error
// that reading the tokenizer gave. The tokenizer of the line before is used again where the path
// is the same.
#include <atomic>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/seconds_since.h"
#include "golden_files.h"
#include "text/tokenizer/text_encoder.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {
namespace {

using nlohmann::json;

Tokenizer read(const std::string& path) {
  if (std::filesystem::is_directory(path)) return Tokenizer::from_folder(path);
  return Tokenizer::from_text(contents_of(path), "", path);
}

// In pieces of a few bytes, without special tokens: the ids must be those of the whole.
json encode_in_pieces(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  TextEncoder encoder(tokenizer, 16);
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.size(), begin + 8);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    encoder.add(std::string_view(text).substr(begin, end - begin), ids);
    begin = end;
  }
  encoder.finish(ids);
  return ids == tokenizer.encode(text, false) ? json(nullptr) : json(ids);
}

json answer_of(const Tokenizer& tokenizer, const std::string& text, bool pieces) {
  try {
    const auto ids = tokenizer.encode(text);
    json answer = {{"ids", ids}, {"decoded", tokenizer.decode(ids, false)}};
    if (!pieces) return answer;
    try {
      const json other = encode_in_pieces(tokenizer, text);
      if (!other.is_null()) answer["pieces"] = other;
    } catch (const base::UserError&) {
    }
    return answer;
  } catch (const base::UserError& error) {
    return {{"error", error.what()}};
  }
}

double seconds_of(const Tokenizer& tokenizer, const std::vector<std::string>& texts, int threads) {
  std::atomic<size_t> next = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    constexpr size_t kAtOnce = 64;
    for (size_t begin = next.fetch_add(kAtOnce); begin < texts.size();
         begin = next.fetch_add(kAtOnce))
      for (size_t i = begin; i < std::min(texts.size(), begin + kAtOnce); ++i)
        tokenizer.encode(texts[i]);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return base::seconds_since(start);
}

json answer_line(const json& request, std::string& path, std::optional<Tokenizer>& tokenizer) {
  try {
    if (!tokenizer || path != request["path"]) {
      tokenizer.reset();
      path = request["path"];
      tokenizer = read(path);
    }
  } catch (const base::UserError& error) {
    return {{"error", error.what()}};
  }
  const auto texts = request["texts"].get<std::vector<std::string>>();
  const int threads = request.value("threads", 0);
  if (threads > 0) return {{"seconds", seconds_of(*tokenizer, texts, threads)}};
  json answers = json::array();
  for (const std::string& text : texts)
    answers.push_back(answer_of(*tokenizer, text, request.value("pieces", false)));
  return {{"answers", answers}};
}

}  // namespace
}  // namespace snug::text

int main() {
  std::string path;
  std::optional<snug::text::Tokenizer> tokenizer;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << snug::text::answer_line(nlohmann::json::parse(line), path, tokenizer).dump()
              << std::endl;
}
