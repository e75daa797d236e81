#include "scene.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "../cli/binary_run.h"
#include "../cli/tiny_model.h"

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const std::string kPlace = "FOLDER";

// Short enough for rows of 64 tokens of one byte each.
constexpr const char* kData =
    "{\"prompt\": \"One\", \"completion\": \" two three.\"}\n"
    "{\"prompt\": \"Four\", \"completion\": \" five \\u00e9.\"}\n"
    "{\"prompt\": \"The\", \"completion\": \" last one.\"}\n";

// The learning rate is constant, so that a run of fewer steps is the beginning of a longer one.
Words training(const Words& more) {
  return cli::joined(
      {"train", "model=FOLDER/model", "data=FOLDER/data.jsonl", "output_dir=FOLDER/run",
       "max_length=64", "per_device_train_batch_size=2", "max_steps=4", "save_steps=1",
       "save_total_limit=2", "lr_scheduler_type=constant", "threads=1"},
      more);
}

Words resumed(const Words& words) { return cli::joined(words, {"resume_from_checkpoint=auto"}); }

const Words kLora{"method=lora", "lora_r=2", "lora_dropout=0.1"};
const Words kFull{"method=full", "optim=adamw_8bit", "save_total_limit=1"};

Scene fresh_lora() {
  return {.name = "lora",
          .prepare = make_model,
          .words = training(kLora),
          .again = resumed(training(kLora)),
          .results = {"run/adapter/adapter_model.safetensors", "run/adapter/adapter_config.json",
                      "run/checkpoint-4/optimizer.safetensors"},
          .kept = {},
          .has_metrics = true};
}

Scene resumed_full() {
  return {.name = "resumed_full",
          .prepare =
              [](const fs::path& folder) {
                make_model(folder);
                must_succeed(at(folder, cli::joined(training(kFull), {"max_steps=2"})));
              },
          .words = resumed(training(kFull)),
          .again = resumed(training(kFull)),
          .results = {"run/model/model.safetensors", "run/model/config.json",
                      "run/model/tokenizer.json", "run/checkpoint-4/optimizer.safetensors"},
          .kept = {},
          .has_metrics = true};
}

// An earlier run of another seed is replaced, and what is not of a run stays.
Scene overwritten() {
  const Words words = cli::joined(training(kLora), {"overwrite_output_dir=true", "max_steps=2"});
  return {.name = "overwritten",
          .prepare =
              [](const fs::path& folder) {
                make_model(folder);
                must_succeed(at(folder, cli::joined(training(kLora), {"seed=7"})));
                base::write_file_atomically(folder / "run/mine.txt", "precious");
              },
          .words = words,
          .again = words,
          .results = {"run/adapter/adapter_model.safetensors",
                      "run/checkpoint-2/optimizer.safetensors"},
          .kept = {"run/mine.txt"},
          .has_metrics = true};
}

Scene quantized() {
  const Words words{"quantize", "model=FOLDER/model", "output_dir=FOLDER/quantized"};
  return {.name = "quantized",
          .prepare = make_model,
          .words = words,
          .again = words,
          .results = {"quantized/model.safetensors", "quantized/config.json",
                      "quantized/tokenizer.json"},
          .kept = {},
          .refuses_what_is_there = true};
}

// metrics.jsonl without what a clock or the system wrote.
std::string without_times(const std::string& metrics) {
  std::string text;
  std::istringstream stream(metrics);
  for (std::string line; std::getline(stream, line);)
    text += line.substr(0, line.find(",\"tokens_per_second\"")) + "\n";
  return text;
}

}  // namespace

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all{fresh_lora(), resumed_full(), overwritten(), quantized()};
  return all;
}

void must_succeed(const Words& words) {
  const cli::BinaryRun run = cli::run_snug(words);
  if (run.exit_code != 0)
    throw std::runtime_error(fmt::format("a scene cannot be made: {}", run.err));
}

Words at(const fs::path& folder, Words words) {
  for (std::string& word : words)
    if (const size_t found = word.find(kPlace); found != std::string::npos)
      word.replace(found, kPlace.size(), folder.string());
  return words;
}

void make_model(const fs::path& folder) {
  const testing::TemporaryFolder shape;
  cli::write_tiny_shape(shape, "shape");
  shape.write("data.jsonl", kData);
  must_succeed({"train", "model=" + (shape / "shape").string(), "init=random", "method=full",
                "data=" + (shape / "data.jsonl").string(), "max_length=64", "max_steps=1",
                "output_dir=" + (shape / "run").string(), "threads=1"});
  fs::create_directories(folder);
  fs::copy(shape / "run/model", folder / "model", fs::copy_options::recursive);
  fs::copy(shape / "data.jsonl", folder / "data.jsonl");
}

Stage::Stage(const Scene& scene) : scene_(scene) {
  scene.prepare(folder());
  fs::copy(folder(), work_ / "before", fs::copy_options::recursive);
  const TracedRun whole = run({});
  if (whole.end.exit_code != 0)
    throw std::runtime_error(fmt::format("{} fails undisturbed: {}", scene.name, whole.end.err));
  calls_ = whole.calls;
  expected_ = results();
  kept_ = contents(scene.kept);
}

TracedRun Stage::run(const Disturbance& disturbance) {
  fs::remove_all(folder());
  fs::copy(work_ / "before", folder(), fs::copy_options::recursive);
  return run_traced(command(scene_.words), folder(), disturbance);
}

std::string Stage::difference() const {
  for (const auto& [now, expected] :
       {std::pair{results(), &expected_}, std::pair{contents(scene_.kept), &kept_}})
    for (const auto& [name, bytes] : *expected)
      if (now.at(name) != bytes) return name + " has other bytes than undisturbed";
  return "";
}

std::string Stage::go_on() {
  if (scene_.refuses_what_is_there && difference().empty()) return "";
  const Ended end = hostile::run(command(scene_.again));
  if (end.exit_code != 0)
    return fmt::format("what follows ends with {}: {}", end.exit_code, end.last_line());
  if (const std::string left = leftover(); !left.empty()) return left + " is left";
  return difference();
}

std::string Stage::leftover() const {
  for (const auto& entry : fs::recursive_directory_iterator(folder()))
    if (entry.path().filename().string().find(".snug-tmp-") != std::string::npos)
      return name_of(entry.path());
  return "";
}

std::string Stage::name_of(const fs::path& path) const {
  return path.lexically_relative(folder()).string();
}

std::string Stage::difference_of_message(const Ended& end) const {
  const std::string line = end.last_line();
  if (!line.starts_with("snug: error: ")) return "no message: " + line;
  return line.find(folder().string()) == std::string::npos ? "no file is named: " + line : "";
}

Command Stage::command(const Words& words) const {
  return {.words = cli::joined({SNUG_BINARY}, at(folder(), words)), .streams = streams_.path()};
}

Stage::Contents Stage::contents(const Words& names) const {
  Contents all;
  for (const std::string& name : names) all[name] = cli::contents_of(folder() / name);
  return all;
}

Stage::Contents Stage::results() const {
  Contents all = contents(scene_.results);
  if (scene_.has_metrics)
    all["metrics"] = without_times(cli::contents_of(folder() / "run/metrics.jsonl"));
  return all;
}

}  // namespace snug::hostile
