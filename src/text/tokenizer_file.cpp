#include "text/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"

namespace snug::text {
namespace {

using nlohmann::json;

// nlohmann's complaint less its prefixes: from "[json.exception.parse_error.101] parse error at
// line 1, column 2: syntax error ..." only what follows the place.
std::string complaint(const json::parse_error& error) {
  const std::string what = error.what();
  const size_t column = what.find("column ");
  const size_t colon = what.find(": ", column == std::string::npos ? 0 : column);
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

[[noreturn]] void throw_parse_error(std::string_view text, const std::string& name,
                                    const json::parse_error& error) {
  const std::string_view before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw base::UserError(
      "not valid JSON: " + complaint(error),
      {name, static_cast<int>(line), static_cast<int>(before.size() - line_begin + 1)});
}

// Takes vocabulary and merges out of the parser's hands, so that they are never a document.
class Collector {
 public:
  Collector(const std::string& name, TokenizerFile& file) : name_(name), file_(file) {}

  // nlohmann's parser callback: false drops the value.
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::key) {
      if (static_cast<size_t>(depth) >= path_.size()) path_.resize(static_cast<size_t>(depth) + 1);
      path_[static_cast<size_t>(depth)] = parsed.get<std::string>();
      return true;
    }
    if (depth < 3 || path_.size() < 3 || path_[1] != "model") return true;
    if (path_[2] == "vocab") return take_token(depth, event, parsed);
    if (path_[2] == "merges") return take_merge(depth, event, parsed);
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw base::UserError(message, {name_, 0, 0});
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
};

void check_is_bpe(const json& document, const std::string& name) {
  const auto fail = [&](const std::string& message) {
    throw base::UserError(message, {name, 0, 0});
  };
  if (!document.is_object() || !document.contains("model") || !document["model"].is_object())
    fail("expected a tokenizer.json with a \"model\"");
  const json& model = document["model"];
  std::string type = "BPE";
  if (model.contains("type") && model["type"].is_string()) {
    type = model["type"].get<std::string>();
  } else if (!model.contains("merges")) {
    // Files written before "type" existed are told apart by what they hold.
    type = model.contains("vocab") && model["vocab"].is_array() ? "Unigram" : "WordPiece";
  }
  if (type != "BPE")
    fail("model: the tokenizer model '" + type +
         "' is not supported; Snug reads byte-pair encodings (BPE)");
  if (!model.contains("vocab") || !model["vocab"].is_object())
    fail("model.vocab: expected an object from token to id");
  if (!model.contains("merges") || !model["merges"].is_array())
    fail("model.merges: expected an array");
}

}  // namespace

json parse_tokenizer_file(std::string_view text, const std::string& name, TokenizerFile& file) {
  Collector collector(name, file);
  const json::parser_callback_t callback = [&](int depth, json::parse_event_t event, json& parsed) {
    return collector(depth, event, parsed);
  };
  try {
    json document = json::parse(text, callback);
    check_is_bpe(document, name);
    file.vocabulary.shrink();
    return document;
  } catch (const json::parse_error& error) {
    throw_parse_error(text, name, error);
  } catch (const json::out_of_range& error) {
    throw base::UserError(std::string("not valid JSON: ") + error.what(), {name, 0, 0});
  }
}

json parse_json(std::string_view text, const std::string& name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw_parse_error(text, name, error);
  } catch (const json::out_of_range& error) {
    throw base::UserError(std::string("not valid JSON: ") + error.what(), {name, 0, 0});
  }
}

bool read_text_file(const std::string& path, std::string& text) {
  if (!std::filesystem::exists(path)) return false;
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  if (!stream || !(contents << stream.rdbuf())) {
    // An empty file sets failbit on the output side; only a stream that failed is an error.
    if (!stream.is_open() || stream.bad() || std::filesystem::is_directory(path))
      throw base::UserError("cannot be read; check that it is a file and readable", {path, 0, 0});
  }
  text = std::move(contents).str();
  return true;
}

}  // namespace snug::text
