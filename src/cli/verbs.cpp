#include "cli/verbs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "cli/explain_options.h"
#include "cli/plan_serving.h"
#include "cli/search_options.h"
#include "comm/launch.h"
#include "formats/recipe/recipe_keys.h"
#ifdef SNUG_WITH_BENCH
#include "bench/backend_comparison.h"
#include "bench/calibrate.h"
#include "bench/links.h"
#include "bench/product_rates.h"
#include "bench/read_bandwidth.h"
#include "bench/step_profile.h"
#include "bench/step_trace.h"
#endif
#ifdef SNUG_WITH_GENERATE
#include "generate/chat/chat.h"
#include "generate/decoding_profile.h"
#include "generate/evaluation/evaluate.h"
#include "generate/generate.h"
#include "generate/score.h"
#endif
#ifdef SNUG_WITH_SERVE
#include "serve/serve.h"
#endif

namespace snug::cli {
namespace {

using formats::Verb;

std::vector<std::string_view> keys_of(Verb verb) {
  std::vector<std::string_view> names;
  for (const formats::RecipeKey& key : formats::recipe_keys())
    if (key.belongs_to(verb)) names.push_back(key.name);
  return names;
}

VerbEntry with_recipe(std::string_view name, std::string_view summary, Verb verb,
                      int (*run)(const Request&)) {
  return {name, summary, keys_of(verb), formats::recipe_help(verb), run};
}

#ifdef SNUG_WITH_GENERATE
int generate(const Request& request) { return generate::generate(request.recipe(), request.json); }
int chat(const Request& request) {
  Request of_chat = request;
  std::string history;
  of_chat.take_words([&](const std::string& key, const std::string& value) {
    if (key == "history") history = value;
    return key == "history";
  });
  return generate::chat(of_chat.recipe(), history, request.json);
}
constexpr const char* kChatHelp =
    "chat:\n"
    "  history=FILE         keep the conversation in this file, and go on from it (default: it is "
    "not kept)\n"
    "  max_length=4096      tokens that the conversation may have, answers included; 0: as many as "
    "the\n"
    "                       model has positions\n"
    "  max_new_tokens       of an answer (default: what is left of the context)\n\n";

// Those of generate, without those of a single prompt or a file of prompts.
std::vector<std::string_view> chat_keys() {
  std::vector<std::string_view> keys = keys_of(Verb::generate);
  for (const std::string_view key : {"prompt", "ids", "prompts", "output", "batch", "logprobs",
                                     "on_bad_record", "ignore_fields", "fields", "roles"})
    std::erase(keys, key);
  return keys;
}

int decoding(const Request& request) {
  return generate::profile_decoding(request.recipe(), request.json);
}
int score(const Request& request) { return generate::score(request.recipe(), request.json); }
int evaluate(const Request& request) { return generate::evaluate(request.recipe(), request.json); }
#endif
#ifdef SNUG_WITH_SERVE
int serve(const Request& request) {
  // As the user named the model: of a GGUF file the recipe has the folder that is made of it.
  const std::string model = formats::load_recipe(request.recipe_file, request.overrides).model;
  const formats::Recipe recipe = request.recipe();
  recipe.require("model");
  return serve::serve(recipe, serve::served_name(model), request.json);
}
constexpr const char* kServeHelp =
    "serve:\n"
    "  max_length=4096      tokens that a prompt and its answer may have; 0: as many as the model "
    "has\n"
    "                       positions\n"
    "  batch=8              answers that are written at one time\n"
    "  max_new_tokens       of an answer to a request that says nothing of it (default: what is "
    "left\n"
    "                       of max_length; 16 in /v1/completions)\n\n";
#endif
#ifdef SNUG_WITH_BENCH
// These verbs write the calibration file that the other verbs read.
constexpr std::array<std::string_view, 1> kWritten{"calibration"};
int calibrate(const Request& request) {
  return bench::calibrate(request.recipe(kWritten), bench::Grid::full, request.json);
}
int calibrate_quickly(const Request& request) {
  return bench::calibrate(request.recipe(kWritten), bench::Grid::quick, request.json);
}
int links(const Request& request) { return bench::links(request.recipe(), request.json); }
int step(const Request& request) { return bench::step(request.recipe(), request.json); }
int trace(const Request& request) { return bench::trace(request.recipe()); }

int compare(const Request& request) {
  Request of_job = request;
  std::string a = "cpu";
  std::string b = "reference";
  of_job.take_words([&](const std::string& key, const std::string& value) {
    if (key != "a" && key != "b") return false;
    (key == "a" ? a : b) = value;
    return true;
  });
  return bench::compare_backends(of_job.recipe(), a, b, request.json);
}
constexpr const char* kCompareHelp =
    "compare:\n"
    "  a=cpu                the backend that is looked at: cpu, cuda or reference\n"
    "  b=reference          the backend that it is compared with\n\n";
int products(const Request& request) { return bench::products(request.recipe(), request.json); }
int memory(const Request& request) { return bench::memory(request.recipe(), request.json); }
#endif

std::vector<VerbEntry> make_table() {
  std::vector<VerbEntry> table;
  table.push_back(with_recipe("audit",
                              "show what a run would learn from its data, and what is probably "
                              "wrong with them; loads no weights",
                              Verb::plan, audit));
  table.push_back({"plan",
                   "predict the memory and time of a job before anything is loaded; "
                   "exit code 3: it does not fit",
                   keys_of(Verb::plan), plan_mode_help() + formats::recipe_help(Verb::plan), plan});
  table.push_back({"search",
                   "find the fastest or cheapest plan of a job that fits, over all strategies, "
                   "offloading, recompute and micro-batches, on one machine or several",
                   keys_of(Verb::plan), search_help() + formats::recipe_help(Verb::plan), search});
  table.push_back(
      with_recipe("train", "train a model in the memory that was planned", Verb::train, train));
  table.back().runs_on_ranks = true;
  table.push_back(
      {"runs",
       "list the runs in folders, how they stand, and compare runs that are named",
       {"output"},
       "runs:\n"
       "  FOLDER ...           folders of runs, or folders that hold some (default: "
       "runs); several\n"
       "                       folders of runs are compared: recipes and curves\n"
       "  output=FILE.html     write the runs next to each other as an HTML page, too\n",
       runs});
  table.back().takes_folders = true;
#ifdef SNUG_WITH_GENERATE
  table.push_back(with_recipe("generate", "continue a prompt, or each prompt of a file",
                              Verb::generate, generate));
  table.push_back({"chat",
                   "talk with a model; from a pipe, each line is a message, and only answers are "
                   "printed",
                   chat_keys(), kChatHelp + formats::recipe_help(chat_keys()), chat});
  table.push_back(with_recipe("score", "print the log-probabilities of the tokens of a text",
                              Verb::score, score));
  table.push_back(with_recipe("evaluate",
                              "measure how often greedy answers are exactly the expected ones",
                              Verb::evaluate, evaluate));
#endif
#ifdef SNUG_WITH_SERVE
  table.push_back({"serve",
                   "answer clients of OpenAI's interface, and people in a browser, from one model "
                   "and its adapters",
                   keys_of(Verb::serve), kServeHelp + formats::recipe_help(keys_of(Verb::serve)),
                   serve});
#endif
  table.push_back(with_recipe("merge",
                              "merge an adapter into its model: a complete model folder, which "
                              "needs no adapter",
                              Verb::merge, merge));
  table.push_back(
      {"quantize",
       "convert a model folder to one with 4-bit weights (NF4), as bitsandbytes stores them",
       {"model", "output_dir", "double_quant", "load_head_in_4bit", "compute_dtype"},
       "model:\n  model=DIR            a Hugging Face model folder in 16 or 32 bits\n"
       "  output_dir=DIR       the folder to make\n"
       "  double_quant=true    store the scales of NF4 blocks in 8 bits; also: "
       "bnb_4bit_use_double_quant\n"
       "  load_head_in_4bit=false  store the head as NF4 too, if it has weights of its own\n"
       "  compute_dtype=auto   auto, bf16: weights in 32 bits are rounded to bf16 first;\n"
       "                       fp32: they are not\n",
       quantize});
  table.push_back({"dequantize",
                   "convert a model folder with experts in MXFP4 (gpt-oss) to one in bf16",
                   {"model", "output_dir"},
                   "model:\n  model=DIR            a Hugging Face model folder with MXFP4\n"
                   "  output_dir=DIR       the folder to make\n",
                   dequantize});
  table.push_back({"expand",
                   "add layers to a model that change nothing until they are trained (LLaMA-Pro)",
                   {"model", "output_dir", "max_shard_size"},
                   "model:\n  model=DIR            a Hugging Face model folder\n"
                   "  output_dir=DIR       the folder to make\n"
                   "  num_new_layers=N     after every (layers / N)-th layer a copy that adds "
                   "nothing;\n"
                   "                       also: num_expand\n"
                   "  max_shard_size=5GB   size of the largest file of weights\n",
                   expand});
  table.push_back(
      {"export gguf",
       "write a model, or an adapter alone, as GGUF files for llama.cpp, Ollama and "
       "LM Studio",
       {"model", "adapter", "base", "output_dir"},
       "model:\n  model=DIR            a Hugging Face model folder in 16, 32 or 4 bits\n"
       "  types=q8_0           kinds of files, as in types=q8_0,q4_k_m: f32, f16, bf16, "
       "q8_0,\n"
       "                       q6_k, q5_k_m, q5_k_s, q5_1, q5_0, q4_k_m, q4_k_s, q4_1, "
       "q4_0,\n"
       "                       q3_k_m; mxfp4 of models with experts\n"
       "  adapter=DIR          an adapter to merge into the model; without model=, the "
       "LoRA\n"
       "                       alone as a file (f32, f16 or bf16) for llama.cpp's --lora\n"
       "  base=DIR             of an adapter alone: the model that it was trained on, where its\n"
       "                       adapter_config.json names none that is here\n"
       "  output_dir=DIR       the folder to make\n",
       export_gguf});
  table.push_back(
      {"import gguf",
       "convert a GGUF file to a Hugging Face folder with its tokenizer and chat template",
       {"model", "output_dir", "compute_dtype", "max_shard_size"},
       "file:\n  file=FILE            a model of llama.cpp, as in file=model-q4_k_m.gguf; also: "
       "model=\n"
       "  output_dir=DIR       the folder to make\n"
       "  dtype=auto           bf16, fp16 or fp32; auto: as the file's floats, bf16 where they "
       "are\n"
       "                       quantised\n"
       "  max_shard_size=5GB   size of the largest file of weights\n",
       import_gguf});
  table.push_back({"tokenize",
                   "print the ids of the text on standard input or of prompt=, or the text of ids=",
                   {"model", "prompt", "ids"},
                   "model:\n  model=DIR        a model folder with a tokenizer.json\n"
                   "  prompt=TEXT      in place of standard input\n"
                   "  ids=\"1 5 9\"      ids to turn into text\n",
                   tokenize});
  table.push_back({"explain",
                   "print the programs of a job, what each pass did, what is live at the peak and "
                   "what takes the time",
                   keys_of(Verb::plan), explain_help() + formats::recipe_help(Verb::plan),
                   explain});
  std::erase(table.back().keys, "picture");
  table.push_back({"models", "list the built-in shapes of public models", {}, "", models});
#ifdef SNUG_WITH_BENCH
  table.push_back(with_recipe("bench calibrate", "measure this machine's rates by kind and shape",
                              Verb::train, calibrate));
  table.push_back(
      with_recipe("bench calibrate-quickly",
                  "measure fewer of them, in a few seconds, as a first run does by itself",
                  Verb::train, calibrate_quickly));
  table.push_back(with_recipe("bench links",
                              "measure how fast the ranks of a job send each other what steps send",
                              Verb::train, links));
  table.back().runs_on_ranks = true;
  table.push_back(with_recipe("bench step", "measure where the time of a job's training step goes",
                              Verb::train, step));
#ifdef SNUG_WITH_GENERATE
  table.push_back(with_recipe("bench decode",
                              "measure how fast a prompt is continued, and where the time of a "
                              "token goes",
                              Verb::generate, decoding));
#endif
  table.push_back({"bench compare",
                   "run a job's first step on two backends and name the first tensor that differs",
                   keys_of(Verb::train), kCompareHelp + formats::recipe_help(Verb::train),
                   compare});
  std::erase(table.back().keys, "backend");
  table.push_back(with_recipe("bench trace",
                              "print what each operation of a training step did, as lines of JSON",
                              Verb::train, trace));
  table.push_back(
      with_recipe("bench products",
                  "measure how fast oneDNN alone computes the matrix products of a job's "
                  "step",
                  Verb::train, products));
  table.push_back(with_recipe("bench memory", "measure how fast this machine reads memory",
                              Verb::train, memory));
#endif
  return table;
}

// What one verb takes next to a recipe's keys, and no recipe has.
struct OwnWord {
  std::string_view name;
  std::string_view verb;
};
constexpr auto kOwnWords = std::to_array<OwnWord>(
    {{"mode", "plan"}, {"job", "explain"}, {"program", "explain"}, {"after", "explain"}});

// The names of the verbs that have the key, such as "generate and score"; empty if no verb has it.
std::string verbs_with(std::string_view key) {
  std::vector<std::string_view> names;
  for (const VerbEntry& verb : verbs())
    if (std::find(verb.keys.begin(), verb.keys.end(), key) != verb.keys.end())
      names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::span<const VerbEntry> verbs() {
  static const std::vector<VerbEntry> table = make_table();
  return table;
}

void require_keys_of(const VerbEntry& verb, const Request& request) {
  base::Mistakes mistakes;
  for (const std::string& word : request.overrides) {
    const std::string name = word.substr(0, word.find('='));
    const auto own = std::ranges::find(kOwnWords, name, &OwnWord::name);
    if (own != kOwnWords.end() && verb.name != own->verb)
      mistakes.add(fmt::format("'{}' means nothing to snug {}; it is a key of: {}", word, verb.name,
                               own->verb));
    if (own != kOwnWords.end()) continue;
    const formats::RecipeKey* key = formats::find_recipe_key(name);
    // A key that no verb has belongs to another tool: the recipe's reader says what to do instead.
    if (key == nullptr || key->verbs == 0) continue;
    if (std::find(verb.keys.begin(), verb.keys.end(), key->name) != verb.keys.end()) continue;
    mistakes.add(fmt::format("'{}' means nothing to snug {}; it is a key of: {}", word, verb.name,
                             verbs_with(key->name)));
  }
  mistakes.throw_if_any();
}

void require_launch_of(const VerbEntry& verb) {
  if (verb.runs_on_ranks) return;
  const comm::Variables variables = comm::environment();
  comm::Launch launch;
  try {
    launch = comm::read_launch(variables);
  } catch (const base::UserError&) {
    return;  // a launcher's environment variables do not matter to this verb
  }
  const bool is_left_over =
      launch.launcher == comm::Launcher::torchrun && !comm::is_of_torchrun(variables);
  if (launch.size == 1 || is_left_over) return;
  base::throw_user_error(
      "snug {} runs as one process, but a launcher ({}) started {} of it; start it alone, without "
      "a launcher",
      verb.name, base::word_of(launch.launcher), launch.size);
}

}  // namespace snug::cli
