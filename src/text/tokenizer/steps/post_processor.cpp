#include "text/tokenizer/steps/post_processor.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/tokenizer/model/vocabulary.h"

namespace snug::text {
namespace {

// Real tokenizers add one or two.
constexpr size_t kMaxIds = 1024;

int32_t id_of(const JsonNode& node) {
  const bool is_integer = node.value().is_number_integer();
  if (!is_integer || node.value().get<int64_t>() < 0 ||
      node.value().get<int64_t>() > Vocabulary::kMaxId)
    node.fail("expected a token id");
  return node.value().get<int32_t>();
}

// ["[SEP]", 102]
int32_t id_of_pair(const JsonNode& node, std::string_view key) {
  const auto pair = node.array(key);
  if (pair.size() != 2) node.fail("expected '" + std::string(key) + "' to be a token and its id");
  return id_of(pair[1]);
}

void append_special_token(const JsonNode& piece, const JsonNode& tokens,
                          std::vector<int32_t>& ids) {
  const std::string name = piece.object("SpecialToken").string("id");
  for (const JsonNode& id : tokens.object(name).array("ids")) ids.push_back(id_of(id));
  if (ids.size() > kMaxIds)
    piece.fail(fmt::format("more than {} tokens are put around a text", kMaxIds));
}

PostProcessor read_template(const JsonNode& node) {
  node.only_keys({"type", "single", "pair", "special_tokens"});
  PostProcessor result;
  bool seen_text = false;
  for (const JsonNode& piece : node.array("single")) {
    piece.only_keys({"SpecialToken", "Sequence"});
    if (piece.has("SpecialToken")) {
      append_special_token(piece, node.object("special_tokens"),
                           seen_text ? result.after : result.before);
      continue;
    }
    if (seen_text || piece.object("Sequence").string("id") != "A")
      piece.fail("expected the sequence A exactly once");
    seen_text = true;
  }
  if (!seen_text) node.fail("the template 'single' does not hold the sequence A");
  result.adds = true;
  result.is_in_pieces = node.array("single").size() > 1;
  return result;
}

// Each step works on the result of the steps before it. A template leaves a text in pieces; the
// library's next step would process each piece as a text of its own, or fail.
PostProcessor read_sequence(const JsonNode& node) {
  node.only_keys({"type", "processors"});
  PostProcessor result;
  for (const JsonNode& item : node.array("processors")) {
    const PostProcessor step = read_post_processor(item);
    if (result.is_in_pieces && step.adds)
      item.fail(fmt::format("a post-processor '{}' after a TemplateProcessing is not supported",
                            item.string("type")));
    result.is_in_pieces |= step.is_in_pieces;
    result.adds |= step.adds;
    result.before.insert(result.before.begin(), step.before.begin(), step.before.end());
    result.after.insert(result.after.end(), step.after.begin(), step.after.end());
  }
  return result;
}

}  // namespace

PostProcessor read_post_processor(const JsonNode& node) {
  const std::string type = node.string("type");
  if (type == "Sequence") return read_sequence(node);
  if (type == "TemplateProcessing") return read_template(node);
  if (type == "ByteLevel") {
    node.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    node.only_keys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    return {.before = {id_of_pair(node, "cls")}, .after = {id_of_pair(node, "sep")}, .adds = true};
  }
  node.fail("the post-processor '" + type +
            "' is not supported; Snug reads Sequence, TemplateProcessing, ByteLevel, "
            "BertProcessing and RobertaProcessing");
}

}  // namespace snug::text
