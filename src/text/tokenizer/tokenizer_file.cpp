#include "text/tokenizer/tokenizer_file.h"

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_parser.h"

namespace snug::text {
namespace {

using nlohmann::json;

// Ten times the size of the largest existing tokenizer.json (Gemma's).
constexpr int64_t kMaxFileBytes = int64_t{384} << 20;

// A score as the library's JSON parser reads it: the digits as an integer, rounded to a double,
// then divided or multiplied by a power of ten. That is not always the nearest double, and the
// difference decides between divisions of a word whose sums would otherwise be equal.
double library_number(double nearest) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(nearest),
                                 std::chars_format::scientific);
  const std::string_view all(text.data(), static_cast<size_t>(end.ptr - text.data()));
  const size_t e = all.find('e');
  if (e == std::string_view::npos) return nearest;  // infinite
  std::string digits(all.substr(0, e));
  std::erase(digits, '.');
  const int exponent =
      std::stoi(std::string(all.substr(e + 1))) - static_cast<int>(digits.size()) + 1;
  const double power = std::stod("1e" + std::to_string(std::abs(exponent)));
  auto value = static_cast<double>(std::stoull(digits));
  value = exponent < 0 ? value / power : value * power;
  return nearest < 0 ? -value : value;
}

// Takes the vocabulary and the merges directly from the parser, so that they never become a JSON
// document.
class ModelCollector {
 public:
  ModelCollector(const std::string& name, TokenizerFile& file) : name_(name), file_(file) {}

  // nlohmann's parser callback: returning false drops the value.
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::key) {
      if (static_cast<size_t>(depth) >= path_.size()) path_.resize(static_cast<size_t>(depth) + 1);
      path_[static_cast<size_t>(depth)] = parsed.get<std::string>();
      // A vocabulary counts as a list until it has a key.
      if (depth <= 3) is_list_ = depth == 2;
      return true;
    }
    if (depth < 3 || path_.size() < 3 || path_[1] != "model") return true;
    if (path_[2] == "vocab")
      return is_list_ ? take_piece(depth, event, parsed) : take_token(depth, event, parsed);
    if (path_[2] == "merges") return take_merge(depth, event, parsed);
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw base::UserError(message, {name_, 0, 0});
  }

  // Handles [["piece", score], ...], the vocabulary of Unigram.
  bool take_piece(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::array_end && depth == 3) {
      if (pair_.size() != 1 || !has_score_)
        fail("model.vocab: expected pairs of a piece and its score");
      const auto id = static_cast<int32_t>(file_.scores.size()) - 1;
      if (id > Vocabulary::kMaxId || !file_.vocabulary.add(pair_[0], id))
        fail(fmt::format("model.vocab: '{}' stands there twice", pair_[0]));
      pair_.clear();
      has_score_ = false;
      return false;
    }
    if (event != Event::value) return true;
    if (depth == 4 && parsed.is_string() && pair_.empty()) {
      pair_.push_back(parsed.get<std::string>());
    } else if (depth == 4 && parsed.is_number() && pair_.size() == 1 && !has_score_) {
      file_.scores.push_back(library_number(parsed.get<double>()));
      has_score_ = true;
    } else if (depth == 4 && parsed.is_string() && pair_.size() == 1 && !has_score_) {
      // For JSON that sentencepiece_folder.h wrote, the nearest double is the exact score.
      file_.scores.push_back(nearest_number(parsed.get<std::string>()));
      has_score_ = true;
    } else {
      fail("model.vocab: expected pairs of a piece and its score");
    }
    return false;
  }

  double nearest_number(const std::string& text) const {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end)
      fail("model.vocab: expected pairs of a piece and its score");
    return value;
  }

  bool take_token(int depth, json::parse_event_t event, const json& parsed) {
    if (event != json::parse_event_t::value || depth != 3) return true;
    if (path_.size() < 4) return true;
    const std::string& token = path_[3];
    if (!parsed.is_number_integer() || parsed.get<int64_t>() < 0 ||
        parsed.get<int64_t>() > Vocabulary::kMaxId)
      fail(fmt::format("model.vocab: the id of '{}' is not an integer from 0 to {}", token,
                       Vocabulary::kMaxId));
    if (!file_.vocabulary.add(token, parsed.get<int32_t>()))
      fail(fmt::format("model.vocab: '{}' or its id {} stands there twice", token,
                       parsed.get<int32_t>()));
    return false;
  }

  bool take_merge(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::array_end && depth == 3) {
      if (pair_.size() != 2) fail("model.merges: expected pairs of tokens");
      file_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      pair_.clear();
      return false;
    }
    if (event != Event::value) return true;
    if (!parsed.is_string()) fail("model.merges: expected pairs of tokens");
    auto text = parsed.get<std::string>();
    if (depth == 4) {
      pair_.push_back(std::move(text));
      return false;
    }
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      fail(fmt::format("model.merges: '{}' is not two tokens with a space between", text));
    file_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return false;
  }

  const std::string& name_;
  TokenizerFile& file_;
  std::vector<std::string> path_;  // the key at each depth
  std::vector<std::string> pair_;
  // Whether the current value, if it belongs to the model, is a list.
  bool is_list_ = false;
  bool has_score_ = false;
};

// Files written before "type" existed are distinguished by their content.
std::string type_of(const json& model) {
  if (model.contains("type") && model["type"].is_string()) return model["type"].get<std::string>();
  if (model.contains("merges")) return "BPE";
  if (model.contains("vocab") && model["vocab"].is_array()) return "Unigram";
  return model.contains("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

ModelKind kind_of(const json& document, const std::string& name) {
  const auto fail = [&](const std::string& message) {
    throw base::UserError(message, {name, 0, 0});
  };
  if (!document.is_object() || !document.contains("model") || !document["model"].is_object())
    fail("expected a tokenizer.json with a \"model\"");
  const json& model = document["model"];
  const std::string type = type_of(model);
  if (type == "Unigram") {
    if (!model.contains("vocab") || !model["vocab"].is_array())
      fail("model.vocab: expected an array of pairs of a piece and its score");
    return ModelKind::unigram;
  }
  if (!model.contains("vocab") || !model["vocab"].is_object())
    fail("model.vocab: expected an object from token to id");
  if (type == "WordPiece") return ModelKind::word_piece;
  if (type == "WordLevel") return ModelKind::word_level;
  if (type != "BPE")
    fail("model: the tokenizer model '" + type +
         "' is not supported; Snug reads BPE, Unigram, WordPiece and WordLevel");
  if (!model.contains("merges") || !model["merges"].is_array())
    fail("model.merges: expected an array");
  return ModelKind::bpe;
}

}  // namespace

json parse_tokenizer_file(std::string_view text, const std::string& name, TokenizerFile& file) {
  ModelCollector collector(name, file);
  const auto complain = [&](const std::string& problem, size_t offset) {
    throw base::UserError(problem, base::location_in(text, offset, name));
  };
  json document = base::parse_json_value(text, complain,
                                         [&](int depth, json::parse_event_t event, json& parsed) {
                                           return collector(depth, event, parsed);
                                         });
  file.kind = kind_of(document, name);
  file.vocabulary.shrink();
  return document;
}

bool read_text_file(const std::string& path, std::string& text) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found)
    return false;
  text = base::read_text_file(path, kMaxFileBytes);
  return true;
}

}  // namespace snug::text
