#include "generate/evaluation/task_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"

namespace snug::generate {

void TaskNode::fail(const std::string& problem) const {
  throw base::UserError(key.empty() ? "this " + problem : fmt::format("'{}' {}", key, problem),
                        where());
}

std::string TaskNode::text() const {
  if (!node.IsScalar()) fail("is no text");
  return node.Scalar();
}

std::vector<std::string> TaskNode::texts() const {
  if (!is_list()) return {text()};
  std::vector<std::string> all;
  for (const TaskNode& item : items()) all.push_back(item.text());
  return all;
}

int64_t TaskNode::whole_number() const {
  int64_t value = 0;
  if (!node.IsScalar() || !YAML::convert<int64_t>::decode(node, value)) fail("is no whole number");
  return value;
}

double TaskNode::number() const {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value)) fail("is no number");
  return value;
}

bool TaskNode::truth() const {
  bool value = false;
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, value))
    fail("is neither true nor false");
  return value;
}

std::vector<TaskNode> TaskNode::items() const {
  if (!node.IsSequence()) fail("is no list");
  std::vector<TaskNode> all;
  for (const YAML::Node& item : node) all.push_back({item, file, key});
  return all;
}

TaskMap::TaskMap(const TaskNode& map) : map_(map) {
  if (!map.is_map()) map.fail("is no map of keys");
  for (const auto& entry : map.node) {
    const std::string key = entry.first.Scalar();
    const TaskNode value{entry.second, map.file, key};
    if (value.node.Tag() == "!function")
      value.fail(
          "is a Python function, which is not run here; say it with fields and templates, or write "
          "its results into the data");
    if (!entries_.emplace(key, Entry{value}).second) value.fail("is given twice");
  }
}

std::optional<TaskNode> TaskMap::take(std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return std::nullopt;
  at->second.is_taken = true;
  if (at->second.value.node.IsNull()) return std::nullopt;
  return at->second.value;
}

TaskNode TaskMap::require(std::string_view key, const std::string& advice) {
  if (std::optional<TaskNode> value = take(key)) return *value;
  throw base::UserError(fmt::format("there is no '{}': {}", key, advice), map_.where());
}

std::string TaskMap::text_or(std::string_view key, std::string_view fallback) {
  const std::optional<TaskNode> value = take(key);
  return value ? value->text() : std::string(fallback);
}

void TaskMap::pass_over(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) (void)take(key);
}

void TaskMap::add_defaults(const TaskMap& other) {
  for (const auto& [key, entry] : other.entries_) entries_.emplace(key, entry);
}

void TaskMap::finish(const std::map<std::string_view, std::string_view>& known) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.is_taken || entry.value.node.IsNull()) continue;
    const auto said = known.find(key);
    entry.value.fail(said == known.end() ? "is not understood; leave it out if it does not matter"
                                         : std::string(said->second));
  }
}

TaskNode read_task_yaml(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  const std::string text = base::read_text_file(path, kMostBytes);
  try {
    return {YAML::Load(text), path, ""};
  } catch (const YAML::Exception& error) {
    throw base::UserError("this is no valid YAML: " + error.msg,
                          {path, error.mark.line + 1, error.mark.column + 1});
  }
}

}  // namespace snug::generate
