#include "generate/evaluation/task_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>

#include "base/console.h"
#include "base/json_parser.h"
#include "formats/data/data_files.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/record/record_reader.h"

namespace snug::generate {
namespace {

using text::jinja::Value;
using Splits = std::map<std::string, std::vector<std::string>>;  // a split's files

// The builders of the `datasets` library that read files as they are.
constexpr auto kFileBuilders = std::to_array<std::string_view>({"json", "csv", "parquet"});

// Where a path leads: from the current folder, or else from that of the tasks file.
std::string path_from(const TaskNode& node, const std::string& path) {
  std::error_code error;
  const std::filesystem::path beside =
      std::filesystem::path(node.file).parent_path() / std::filesystem::path(path);
  if (formats::is_data_there(path) || !formats::is_data_there(beside.string())) return path;
  return beside.string();
}

std::vector<std::string> files_of(const TaskNode& node, const formats::DataEntry& entry) {
  try {
    const formats::DataFiles found = formats::data_files(entry, formats::DataUse::evaluation);
    for (const std::string& note : found.notes) base::say("{}: {}", found.description, note);
    if (found.limit > 0)
      node.fail("takes a part of a split, which a task does not; name the whole split");
    return found.files;
  } catch (const base::UserError& error) {
    node.fail(std::string("cannot be read: ") + error.what());
  }
}

std::vector<std::string> files_named(const TaskNode& node) {
  std::vector<std::string> files;
  for (const std::string& path : node.texts())
    std::ranges::move(files_of(node, {.path = path_from(node, path)}), std::back_inserter(files));
  return files;
}

// Files without a split are those of train, as in the `datasets` library.
Splits splits_of(const TaskNode& files) {
  if (!files.is_map()) return {{"train", files_named(files)}};
  Splits splits;
  for (const auto& entry : files.node)
    splits[entry.first.Scalar()] =
        files_named({entry.second, files.file, "data_files." + entry.first.Scalar()});
  return splits;
}

class TaskData {
 public:
  explicit TaskData(TaskMap& map)
      : path_(map.require("dataset_path",
                          "it says what the data are: json, csv or parquet, with "
                          "dataset_kwargs: {data_files: ...}, or a folder, or "
                          "org/name in the cache of the hub")) {
    if (const auto name = map.take("dataset_name")) config_ = name->text();
    const auto given = map.take("dataset_kwargs");
    is_of_files_ = std::ranges::find(kFileBuilders, path_.text()) != kFileBuilders.end();
    if (given) take_kwargs(*given);
    if (is_of_files_ && splits_.empty())
      path_.fail(
          fmt::format("is {}, so the files are needed: dataset_kwargs: {{data_files: "
                      "{{test: FILE.jsonl}}}}",
                      path_.text()));
  }

  std::vector<std::string> files(const TaskNode& split) const {
    if (!splits_.empty()) {
      const auto found = splits_.find(split.text());
      if (found != splits_.end()) return found->second;
      std::vector<std::string> names;
      for (const auto& [name, paths] : splits_) names.push_back(name);
      split.fail(
          fmt::format("is {}, and data_files has: {}", split.text(), fmt::join(names, ", ")));
    }
    return files_of(
        split, {.path = path_from(path_, path_.text()), .config = config_, .split = split.text()});
  }

 private:
  void take_kwargs(const TaskNode& node) {
    TaskMap kwargs(node);
    if (const auto files = kwargs.take("data_files")) {
      if (!is_of_files_)
        files->fail("goes with dataset_path json, csv or parquet, which reads these files");
      splits_ = splits_of(*files);
    }
    kwargs.pass_over({"trust_remote_code"});
    kwargs.finish();
  }

  TaskNode path_;
  std::string config_;
  bool is_of_files_ = false;
  Splits splits_;
};

text::jinja::Value fields_of(const text::RawRecord& raw, const std::string& path) {
  const base::Location where{path, raw.line, 0};
  if (!raw.problem.empty()) throw base::UserError(raw.problem, where);
  if (raw.is_long)
    throw base::UserError(fmt::format("record {} has more than the {} MiB that are read of one",
                                      raw.number, text::kMaxRecordBytes >> 20),
                          where);
  base::parse_json_value(raw.text, [&](const std::string& problem, size_t) {
    throw base::UserError(fmt::format("record {} is no valid JSON: {}", raw.number, problem),
                          where);
  });
  try {
    text::jinja::Value value = text::jinja::value_of_json(raw.text);
    if (value.is(text::jinja::Value::Kind::dict)) return value;
  } catch (const text::jinja::TemplateError& error) {
    throw base::UserError(fmt::format("record {}: {}", raw.number, error.what()), where);
  }
  throw base::UserError(fmt::format("record {} is no object with fields", raw.number), where);
}

// A value that is written in a task's file, as YAML 1.1 has it in Python.
Value value_of_yaml(const YAML::Node& node) {
  if (node.IsNull()) return Value::none();
  if (node.IsSequence()) {
    text::jinja::List items;
    for (const YAML::Node& item : node) items.push_back(value_of_yaml(item));
    return Value::list(std::move(items));
  }
  if (node.IsMap()) {
    text::jinja::Dict fields;
    for (const auto& entry : node)
      fields.set(value_of_yaml(entry.first), value_of_yaml(entry.second));
    return Value::dict(std::move(fields));
  }
  const bool is_plain = node.Tag() == "?";  // not in quotes
  bool truth = false;
  int64_t whole = 0;
  double real = 0;
  if (is_plain && YAML::convert<int64_t>::decode(node, whole)) return Value::integer(whole);
  if (is_plain && YAML::convert<double>::decode(node, real)) return Value::real(real);
  const bool is_truth = is_plain && node.Scalar().size() > 1;  // y and n are texts in Python
  if (is_truth && YAML::convert<bool>::decode(node, truth)) return Value::boolean(truth);
  return Value::text(node.Scalar());
}

void take_shot_rules(TaskMap& config, Task& task) {
  if (const auto sampler = config.take("sampler")) {
    if (sampler->text() != "default" && sampler->text() != "first_n")
      sampler->fail("is " + sampler->text() + "; expected default, which draws, or first_n");
    task.draws_shots = sampler->text() == "default";
  }
  if (const auto samples = config.take("samples"))
    for (const TaskNode& item : samples->items()) {
      if (!item.is_map()) item.fail("has an example that is no map of fields");
      task.listed.push_back({value_of_yaml(item.node), item.where()});
    }
}

}  // namespace

void take_task_data(TaskMap& map, Task& task) {
  const TaskData data(map);
  const auto test = map.take("test_split");
  const auto validation = map.take("validation_split");
  const auto training = map.take("training_split");
  auto shots = map.take("fewshot_split");
  if (const auto given = map.take("fewshot_config")) {
    TaskMap config(*given);
    if (const auto split = config.take("split")) shots = split;
    take_shot_rules(config, task);
    config.finish();
  }
  if (!test && !validation)
    throw base::UserError(
        "there is neither 'test_split' nor 'validation_split', which name the "
        "documents to ask; files that data_files gives without a split are "
        "those of train",
        map.node().where());
  const TaskNode& asked = test ? *test : *validation;
  task.files = data.files(asked);
  if (task.shots == 0) return;
  // A split counts where both are given.
  if (shots) task.listed.clear();
  const TaskNode& shown = shots ? *shots : training ? *training : validation ? *validation : *test;
  if (task.listed.empty()) task.shot_files = data.files(shown);
  // The harness compares the names, of which both may be missing.
  task.shots_are_asked_too =
      shots.has_value() == test.has_value() && (!shots || shots->text() == test->text());
}

std::vector<TaskDocument> read_documents(const std::vector<std::string>& files) {
  std::vector<TaskDocument> documents;
  for (const std::string& file : files) {
    text::RecordReader reader(file);
    if (reader.format() == text::RecordReader::Format::plain_text)
      throw base::UserError(
          "this is plain text, and a task's documents have fields; for the "
          "perplexity of a text give data=FILE stride=512 in place of tasks",
          {file, 0, 0});
    for (text::RawRecord raw; reader.next(raw);)
      documents.push_back({fields_of(raw, file), {file, raw.line, 0}});
  }
  return documents;
}

}  // namespace snug::generate
