#include "generate/evaluation/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "generate/evaluation/task_data.h"
#include "generate/evaluation/task_map.h"
#include "generate/evaluation/task_rules.h"

namespace snug::generate {
namespace {

constexpr int kMostIncludes = 16;

// Keys of the harness that need what is not built, with what to do.
const std::map<std::string_view, std::string_view>& unbuilt_keys() {
  static const std::map<std::string_view, std::string_view> keys{
      {"process_docs", "names Python code, which is not run here; write its results into the data"},
      {"process_results", "names Python code, which is not run here; use metric_list"},
      {"custom_dataset", "names Python code, which is not run here; write the data into a file"},
      {"use_prompt", "takes a prompt of promptsource, which is not built; write doc_to_text"},
      {"doc_to_image", "asks about pictures, which is not built"},
      {"doc_to_audio", "asks about sound, which is not built"},
      {"aggregate_metric_list", "averages the tasks of a group, which is not built; leave it out"}};
  return keys;
}

// The whole text, a number, or a list of texts.
TaskText text_of(const TaskNode& node) {
  if (node.is_list()) return TaskText(node.key, node.texts());
  if (node.is_map()) {
    std::vector<std::string> texts;
    for (const auto& entry : node.node)
      texts.push_back(TaskNode{entry.second, node.file, node.key}.text());
    return TaskText(node.key, std::move(texts));
  }
  int64_t number = 0;
  const bool is_plain = node.node.Tag() == "?";  // not in quotes
  if (is_plain && YAML::convert<int64_t>::decode(node.node, number))
    return TaskText(node.key, number);
  return TaskText(node.key, node.text(), node.where());
}

std::optional<TaskText> take_text(TaskMap& map, std::string_view key) {
  const std::optional<TaskNode> given = map.take(key);
  if (!given) return std::nullopt;
  return text_of(*given);
}

OutputType take_output(TaskMap& map) {
  const std::optional<TaskNode> given = map.take("output_type");
  if (!given) return OutputType::generate_until;
  if (const auto output = base::from_word<OutputType>(given->text())) return *output;
  given->fail(
      fmt::format("is {}; expected multiple_choice, generate_until, loglikelihood or "
                  "loglikelihood_rolling",
                  given->text()));
}

void take_texts(TaskMap& map, Task& task) {
  const bool is_rolling = task.output == OutputType::loglikelihood_rolling;
  task.description = take_text(map, "description");
  if (auto text = take_text(map, "doc_to_text"))
    task.to_text = *text;
  else if (!is_rolling)
    (void)map.require("doc_to_text", "it is what is asked: a field, or a template");
  map.require("doc_to_target", "it is what is expected: a field, or a template");
  task.to_target = *take_text(map, "doc_to_target");
  task.to_choice = take_text(map, "doc_to_choice");
  if (task.output == OutputType::multiple_choice && !task.to_choice)
    (void)map.require("doc_to_choice", "it is what is chosen from: a field, a template or a list");
  task.answer_beginning = take_text(map, "gen_prefix");
  task.target_delimiter = map.text_or("target_delimiter", task.target_delimiter);
  task.shot_delimiter = map.text_or("fewshot_delimiter", task.shot_delimiter);
}

void check_repeats(TaskMap& map) {
  const std::optional<TaskNode> repeats = map.take("repeats");
  if (repeats && repeats->whole_number() != 1)
    repeats->fail("is not 1, and each document is asked once");
}

Task task_of(TaskMap map) {
  const TaskNode named = map.require("task", "it is the task's name");
  Task task{.name = named.text(), .where = named.where()};
  task.output = take_output(map);
  if (const auto shots = map.take("num_fewshot")) {
    task.shots = shots->whole_number();
    if (task.shots < 0) shots->fail("is below 0");
  }
  take_task_data(map, task);
  take_texts(map, task);
  task.answers = take_answer_rules(map, task.shot_delimiter);
  task.filters = take_filters(map, task.output);
  task.metrics = take_metrics(map, task.output);
  check_repeats(map);
  map.pass_over({"task_alias", "tag", "group", "metadata", "doc_to_decontamination_query",
                 "should_decontaminate", "unsafe_code"});
  map.finish(unbuilt_keys());
  return task;
}

// The keys of a map with those of the files that it includes, where it does not say so itself.
TaskMap with_included(const TaskNode& node, int depth) {
  TaskMap map(node);
  const std::optional<TaskNode> include = map.take("include");
  if (!include) return map;
  if (depth > kMostIncludes) include->fail("includes itself");
  const std::filesystem::path path =
      std::filesystem::path(node.file).parent_path() / include->text();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    include->fail(fmt::format("is {}, and there is no such file", path.string()));
  TaskMap other = with_included(read_task_yaml(path.string()), depth + 1);
  map.add_defaults(other);
  return map;
}

// A group's task by its word: the file of that name next to the group's.
TaskNode named_task(const TaskNode& word) {
  const std::filesystem::path path =
      std::filesystem::path(word.file).parent_path() / (word.text() + ".yaml");
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    word.fail(
        fmt::format("names the task {}, and there is no file {}; write the task itself here, "
                    "a map with task, dataset_path, doc_to_text and so on",
                    word.text(), path.string()));
  return read_task_yaml(path.string());
}

std::vector<Task> tasks_of(const TaskNode& node, int depth = 0) {
  if (depth > kMostIncludes) node.fail("has groups in one another without end");
  std::vector<Task> tasks;
  if (node.is_list()) {
    for (const TaskNode& item : node.items())
      std::ranges::move(tasks_of(item, depth + 1), std::back_inserter(tasks));
    return tasks;
  }
  TaskMap map = with_included(node, 0);
  const std::optional<TaskNode> task = map.take("task");
  if (!task || !task->is_list()) {
    tasks.push_back(task_of(std::move(map)));
    return tasks;
  }
  for (const TaskNode& item : task->items()) {
    if (!item.is_map()) {
      std::ranges::move(tasks_of(named_task(item), depth + 1), std::back_inserter(tasks));
      continue;
    }
    std::ranges::move(tasks_of(item, depth + 1), std::back_inserter(tasks));
  }
  map.pass_over({"group", "group_alias", "tag", "metadata"});
  map.finish(unbuilt_keys());
  return tasks;
}

}  // namespace

std::vector<Task> read_tasks(const std::string& path) {
  const TaskNode root = read_task_yaml(path);
  std::vector<Task> tasks = tasks_of(root);
  if (tasks.empty()) throw base::UserError("the file has no task", {path, 0, 0});
  for (size_t i = 0; i < tasks.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tasks[i].name == tasks[j].name)
        throw base::UserError(fmt::format("there are two tasks of the name {}", tasks[i].name),
                              tasks[i].where);
  return tasks;
}

}  // namespace snug::generate
