#include "text/record/json_node.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {

JsonNode::JsonNode(const nlohmann::json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

bool JsonNode::is_null() const { return value_->is_null(); }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_string() const { return value_->is_string(); }

bool JsonNode::has(std::string_view key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonNode JsonNode::child(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("expected an object with the key '{}'", key));
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("the key '{}' is missing", key));
  return {*found, file_, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
}

JsonNode JsonNode::object(std::string_view key) const {
  JsonNode node = child(key);
  if (!node.value_->is_object()) node.fail("expected an object");
  return node;
}

std::vector<JsonNode> JsonNode::array(std::string_view key) const {
  const JsonNode node = child(key);
  if (!node.value_->is_array()) node.fail("expected an array");
  std::vector<JsonNode> items;
  items.reserve(node.value_->size());
  for (size_t i = 0; i < node.value_->size(); ++i)
    items.emplace_back((*node.value_)[i], file_, fmt::format("{}[{}]", node.path_, i));
  return items;
}

std::string JsonNode::as_string() const {
  if (!value_->is_string()) fail("expected a string");
  return value_->get<std::string>();
}

std::string JsonNode::string(std::string_view key) const { return child(key).as_string(); }

std::string JsonNode::character(std::string_view key) const {
  const JsonNode node = child(key);
  std::string text = node.as_string();
  if (text.empty() || sequence_length(static_cast<unsigned char>(text[0])) != text.size())
    node.fail("expected one character");
  return text;
}

int64_t JsonNode::integer(std::string_view key) const {
  const JsonNode node = child(key);
  if (!node.value_->is_number_integer()) node.fail("expected an integer");
  return node.value_->get<int64_t>();
}

bool JsonNode::boolean(std::string_view key) const {
  const JsonNode node = child(key);
  if (!node.value_->is_boolean()) node.fail("expected true or false");
  return node.value_->get<bool>();
}

std::string JsonNode::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

bool JsonNode::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

void JsonNode::only_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& item : value_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      fail(fmt::format("the key '{}' is not supported", item.key()));
  }
}

void JsonNode::fail(std::string_view message) const {
  const std::string place = path_.empty() ? "" : path_ + ": ";
  throw base::UserError(place + std::string(message), {file_, 0, 0});
}

}  // namespace snug::text
