// The maps of a tasks file: each key is taken by the code that knows it, and a key that none has
// taken is refused with its line.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace snug::generate {

// A value, and what it is called in messages.
struct TaskNode {
  YAML::Node node;
  std::string file;
  std::string key;

  base::Location where() const { return {file, node.Mark().line + 1, node.Mark().column + 1}; }
  // Throws UserError "FILE:LINE: 'KEY' PROBLEM".
  [[noreturn]] void fail(const std::string& problem) const;

  bool is_list() const { return node.IsSequence(); }
  bool is_map() const { return node.IsMap(); }
  // Throw UserError where the value is of another type.
  std::string text() const;
  std::vector<std::string> texts() const;  // a list of texts, or a single one
  int64_t whole_number() const;
  double number() const;
  bool truth() const;
  std::vector<TaskNode> items() const;
};

class TaskMap {
 public:
  // Throws UserError where the node is no map, or a value is a Python function (!function).
  explicit TaskMap(const TaskNode& map);

  // The value of a key, where it is given and not null; from then on it counts as known.
  std::optional<TaskNode> take(std::string_view key);
  TaskNode require(std::string_view key, const std::string& advice);
  std::string text_or(std::string_view key, std::string_view fallback);
  // Known, and of no meaning here.
  void pass_over(std::initializer_list<std::string_view> keys);

  // What the map says, where it does not say so itself.
  void add_defaults(const TaskMap& other);

  // Throws UserError for a key that nobody took. `known`: what to say of some keys.
  void finish(const std::map<std::string_view, std::string_view>& known = {}) const;

  const TaskNode& node() const { return map_; }

 private:
  struct Entry {
    TaskNode value;
    bool is_taken = false;
  };
  TaskNode map_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// The file as YAML. Throws UserError.
TaskNode read_task_yaml(const std::string& path);

}  // namespace snug::generate
