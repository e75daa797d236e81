// Stages: YAML and overrides become a list of written keys (recipe_text.h); keys of other tools
// become keys of a recipe, notes or mistakes (foreign_keys.h); keys given more than once are
// resolved; values are parsed into the recipe, overrides last; then defaults are computed. Mistakes
// are collected, so that all are reported at once.
#include "formats/recipe/recipe.h"

#include "base/file.h"
#include "base/lower_case.h"
#include "base/nearest.h"
#include "formats/foreign/data_words.h"
#include "formats/foreign/foreign_keys.h"
#include "formats/foreign/torchtune_builders.h"
#include "formats/recipe/data_entries.h"
#include "formats/recipe/evaluation_keys.h"
#include "formats/recipe/guard_keys.h"
#include "formats/recipe/method_keys.h"
#include "formats/recipe/optimizer_keys.h"
#include "formats/recipe/recipe_intervals.h"
#include "formats/recipe/recipe_keys.h"
#include "formats/recipe/recipe_text.h"
#include "formats/recipe/report_keys.h"
#include "formats/recipe/schedule_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

namespace snug::formats {
namespace {

using base::Location;
using base::UserError;

constexpr int64_t kMaxRecipeBytes = int64_t{1} << 20;

std::string unknown_key(const Written& written) {
  const size_t dot = written.name.find('.');
  if (dot != std::string::npos)
    return fmt::format("'{}' holds a nested value; a recipe is a flat list of keys",
                       written.name.substr(0, dot));
  if (is_entry_key(written.name))
    return fmt::format(
        "'{0}' belongs to a source of data: data: [{{path: FILE, {0}: ...}}], or "
        "data.{0}=... on the command line",
        written.name);
  std::vector<std::string_view> names;
  for (const RecipeKey& key : recipe_keys()) {
    names.push_back(key.name);
    names.insert(names.end(), key.aliases.begin(), key.aliases.end());
  }
  const auto nearest = base::nearest_slip(written.name, names);
  return fmt::format(
      "unknown key '{}'; {}", written.name,
      nearest ? fmt::format("did you mean '{}'?", *nearest) : "snug VERB --help lists the keys");
}

// Whether this is a folder alone, as ms-swift's `adapters` has it, and not NAME=FOLDER or
// NAME:FOLDER. No name has a slash, and a colon after one belongs to the folder.
bool is_one_adapter(const Written& written) {
  if (written.name != "adapters" || written.items.size() != 1) return false;
  const std::string& item = written.items.front();
  const size_t mark = item.find_first_of(":/");
  const bool is_named = mark != std::string::npos && item[mark] == ':';
  return !is_named && item.find_first_of("=,") == std::string::npos;
}

// Three keys of a recipe mean something else in other tools: `adapter` says the method in
// axolotl's, which list their data sets, `device` the backend in torchtune's, which name builders,
// and `adapters` in ms-swift's has the one that is applied.
std::vector<Written> with_own_names(std::vector<Written> all) {
  const bool is_axolotl = std::ranges::any_of(all, [](const Written& written) {
    return written.name == "datasets" || written.name == "pretraining_dataset";
  });
  const bool is_torchtune = std::ranges::any_of(
      all, [](const Written& written) { return written.name.ends_with("._component_"); });
  const auto rename = [](Written& written, std::string_view from, const char* to,
                         std::array<std::string_view, 2> values) {
    if (written.name == from && written.items.size() == 1 &&
        std::ranges::find(values, written.items.front()) != values.end())
      written.said_as = std::exchange(written.name, to);
  };
  if (is_torchtune) all = without_builders(std::move(all));
  for (Written& written : all) {
    if (is_axolotl) rename(written, "adapter", "method", {"lora", "qlora"});
    if (is_torchtune) rename(written, "device", "backend", {"cpu", "cuda"});
    if (is_one_adapter(written)) written.said_as = std::exchange(written.name, "adapter");
  }
  return all;
}

// In axolotl's recipes lora_target_linear: true adds all linear layers to those that are named,
// which are then among them.
void drop_named_linears(std::vector<Written>& all, std::vector<std::string>& notes) {
  const bool are_all = std::ranges::any_of(all, [](const Written& written) {
    return written.name == "lora_target_linear" && written.items.size() == 1 &&
           parse_boolean(written.items.front()) == true;
  });
  if (!are_all) return;
  for (Written& written : all) {
    if (written.name != "lora_target_modules" || written.items.empty()) continue;
    notes.push_back(fmt::format(
        "{}'{}' is not used: lora_target_linear: true has an adapter for every linear layer",
        base::to_string(written.where), written.name));
  }
  std::erase_if(all, [](const Written& written) {
    return written.name == "lora_target_modules" && !written.items.empty();
  });
}

// Replaces the keys of other tools, so that only keys of a recipe remain.
std::vector<Written> without_foreign(std::vector<Written> all, const std::vector<Written>& others,
                                     const std::string& file, RecipeReading& reading) {
  std::vector<std::string>& notes = reading.recipe.notes;
  all = with_own_names(std::move(all));
  drop_named_linears(all, notes);
  ToolConfig data = take_data_words(all, others, file);
  reading.mistakes.gather([&] { data.mistakes.throw_if_any(); });
  notes.insert(notes.end(), data.notes.begin(), data.notes.end());
  all.insert(all.end(), data.settings.begin(), data.settings.end());
  std::vector<Written> known;
  std::vector<Written> foreign;
  for (Written& written : all) {
    if (find_recipe_key(written.name) != nullptr)
      known.push_back(std::move(written));
    else if (find_tool_key(foreign_keys(), written.name) != nullptr)
      foreign.push_back(std::move(written));
    else
      reading.mistakes.add(unknown_key(written), written.where);
  }
  ToolConfig config = translate(foreign, foreign_keys(), file);
  reading.mistakes.gather([&] { config.mistakes.throw_if_any(); });
  notes.insert(notes.end(), config.notes.begin(), config.notes.end());
  known.insert(known.end(), config.settings.begin(), config.settings.end());
  return known;
}

std::string first_place(const Written& earlier) {
  return earlier.where.line > 0 ? fmt::format(" (first on line {})", earlier.where.line) : "";
}

// Whether the key is left open ("auto" or no value), so that another of its names may set it.
bool is_open(const Written& written) {
  return written.items.empty() ? !written.is_list
                               : written.items == std::vector<std::string>{"auto"};
}

void settle_twice(const RecipeKey& key, Written& earlier, const Written& later) {
  if (is_open(later)) return;
  if (is_open(earlier)) {
    earlier = later;
    return;
  }
  const Value value = parse_value(key, later);
  if (is_same_value(parse_value(key, earlier), value)) return;
  if (earlier.shown() == later.shown())
    throw UserError(fmt::format("'{}' is given twice{}, as {} and as {}; keep one", later.shown(),
                                first_place(earlier), value_text(key, parse_value(key, earlier)),
                                value_text(key, value)),
                    later.where);
  throw UserError(
      fmt::format("'{}' and '{}' are names of the same key{}, but one says {} and the other {}; "
                  "keep one",
                  earlier.shown(), later.shown(), first_place(earlier),
                  value_text(key, parse_value(key, earlier)), value_text(key, value)),
      later.where);
}

// One entry for each key, which may be given under several of its names if they agree.
WrittenByKey by_key(std::vector<Written> all, RecipeReading& reading) {
  WrittenByKey result;
  for (Written& written : without_side_words(std::move(all), reading.mistakes)) {
    const RecipeKey& key = *find_recipe_key(written.name);
    if (written.is_blank)
      reading.recipe.notes.push_back(fmt::format("{}'{}' has no value, so it has its default",
                                                 base::to_string(written.where), written.name));
    const auto known = result.emplace(key.name, written);
    if (!known.second)
      reading.mistakes.gather([&] { settle_twice(key, known.first->second, written); });
  }
  return result;
}

void set_from_text(Recipe& recipe, const RecipeKey& key, std::string_view text) {
  key.field.set(recipe, parse_value(key, {std::string(key.name), {std::string(text)}, false, {}}));
}

void fill_in(RecipeReading& reading, const WrittenByKey& given) {
  Recipe& recipe = reading.recipe;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.field.set != nullptr && !key.default_text.empty())
      set_from_text(recipe, key, key.default_text);
    const auto found = given.find(key.name);
    if (found == given.end() || found->second.items.empty()) {
      // A missing key and an explicit null mean the default. An empty list has no items either, but
      // is refused.
      if (found == given.end() || !found->second.is_list) continue;
    }
    reading.mistakes.gather([&] {
      const Value value = parse_value(key, found->second);
      if (key.field.set != nullptr) key.field.set(recipe, value);
      recipe.given.emplace(key.name, found->second.where);
      // Recorded also under the name that was written, for messages.
      recipe.given.emplace(found->second.name, found->second.where);
    });
  }
}

// The name that the user wrote, which may be an alias.
std::string_view name_as_written(const Recipe& recipe, std::string_view name) {
  const RecipeKey* key = find_recipe_key(name);
  if (key == nullptr) return name;
  const auto alias = std::ranges::find_if(
      key->aliases, [&](std::string_view each) { return recipe.is_given(each); });
  return alias == key->aliases.end() ? name : *alias;
}

std::string last_part(const std::string& path) {
  std::filesystem::path full = std::filesystem::absolute(path).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  return full.filename().string();
}

void compute_defaults(Recipe& recipe) {
  const MethodKeys& method = method_keys_of(recipe.method);
  const bool is_of_tokens = recipe.objective == Objective::next_token;
  if (!recipe.is_given("learning_rate"))
    recipe.learning_rate = is_of_tokens ? method.learning_rate : method.pair_learning_rate;
  if (!recipe.is_given("lora_alpha")) recipe.lora_alpha = 2.0 * static_cast<double>(recipe.lora_r);
  for (const auto& [name, text] : optimizer_keys_of(recipe.optim).keys) {
    if (recipe.is_given(name)) continue;
    const RecipeKey& key = *find_recipe_key(name);
    key.field.set(recipe, parse_value(key, {std::string(name), {std::string(text)}, false, {}}));
  }
  if (recipe.output_dir.empty() && !recipe.model.empty())
    recipe.output_dir =
        fmt::format("runs/{}-{}{}", last_part(recipe.model), base::word_of(recipe.method),
                    is_of_tokens ? "" : fmt::format("-{}", base::word_of(recipe.objective)));
}

bool is_on_command_line(const Recipe& recipe, std::string_view key) {
  const auto found = recipe.given.find(key);
  return found != recipe.given.end() && found->second.file == kCommandLine;
}

// fp16 is another name for compute_dtype=fp16. If a file gives one and the command line the other,
// the command line takes precedence. The Trainer's files may have bf16: false next to fp16: true.
void settle_fp16(Recipe& recipe, const WrittenByKey& given) {
  if (!recipe.is_given("fp16")) return;
  const bool is_fp16 = recipe.compute_dtype == ComputeDtype::fp16;
  const bool is_not_bf16 = recipe.compute_dtype == ComputeDtype::fp32 &&
                           recipe.is_given("compute_dtype") &&
                           given.at("compute_dtype").name == "bf16";
  const bool agrees = !recipe.is_given("compute_dtype") || is_not_bf16 || recipe.fp16 == is_fp16;
  const bool flag_is_last =
      is_on_command_line(recipe, "fp16") && !is_on_command_line(recipe, "compute_dtype");
  const bool type_is_last =
      is_on_command_line(recipe, "compute_dtype") && !is_on_command_line(recipe, "fp16");
  if (agrees || flag_is_last) {
    if (recipe.fp16) recipe.compute_dtype = ComputeDtype::fp16;
    if (!recipe.fp16 && is_fp16) recipe.compute_dtype = ComputeDtype::automatic;
  } else if (!type_is_last) {
    recipe.fail("fp16", fmt::format("is {}, but compute_dtype is {}; leave one of them out",
                                    recipe.fp16, base::word_of(recipe.compute_dtype)));
  }
  recipe.fp16 = recipe.compute_dtype == ComputeDtype::fp16;
}

void check_together(const Recipe& recipe) {
  const std::vector<std::string>& targets = recipe.target_modules;
  if (targets.size() > 1 &&
      std::find(targets.begin(), targets.end(), "all-linear") != targets.end())
    recipe.fail("target_modules",
                "names 'all-linear' next to other modules; give one or the other");
  if (recipe.target_parameters.empty()) return;
  const auto refuse = [&](const char* key, std::string_view why) {
    recipe.fail(key, fmt::format("is set, and target_parameters names matrices of experts, {}; "
                                 "leave one of the two out",
                                 why));
  };
  if (recipe.lora_dropout > 0) refuse("lora_dropout", "whose inputs are not dropped, as in PEFT");
  if (recipe.use_dora) refuse("use_dora", "which have no magnitudes, as in PEFT");
  if (!recipe.layers_to_transform.empty())
    refuse("layers_to_transform", "which are those of all layers, as in PEFT");
}

// Known before anything is trained.
void check_merge(const Recipe& recipe) {
  if (!recipe.merge) return;
  if (const std::string_view why = method_keys_of(recipe.method).not_merged; !why.empty())
    recipe.fail("merge", fmt::format("is true, but method={} {}; leave merge out",
                                     base::word_of(recipe.method), why));
  if (recipe.init == Init::random)
    recipe.fail("merge",
                "is true, but with init=random there is no model's folder to merge the adapter "
                "into; leave merge out");
}

// FSDP's key for offload_params moves all lasting tensors to host memory, including the optimizer
// state of trainable weights, unless the user says where that is kept.
void settle_offloading(Recipe& recipe, const WrittenByKey& given) {
  constexpr std::string_view kFsdpName = "fsdp_offload_params";
  const auto found = given.find("offload_params");
  if (found == given.end() || found->second.name != kFsdpName) return;
  if (!recipe.offload_params || !method_keys_of(recipe.method).trains_weights ||
      recipe.is_given("offload_optimizer"))
    return;
  recipe.offload_optimizer = OffloadOptimizer::automatic;
  recipe.given.emplace("offload_optimizer", found->second.where);
}

// As in transformers: a constant schedule has no warm-up, and warmup_steps: 0 without a ratio means
// none.
void settle_warm_up(Recipe& recipe) {
  if (recipe.lr_scheduler_type == Schedule::constant) {
    for (const std::string_view key : {"warmup_ratio", "warmup_steps"}) {
      if (!recipe.is_given(key)) continue;
      const double said = key == "warmup_ratio" ? recipe.warmup_ratio : recipe.warmup_steps;
      if (said > 0)
        recipe.notes.push_back(fmt::format(
            "{}'{}' is {}, but lr_scheduler_type: constant has no warm-up, as in transformers; "
            "constant_with_warmup has one",
            base::to_string(recipe.given.find(key)->second), key, said));
    }
    recipe.warmup_ratio = 0;
    recipe.warmup_steps = 0;
  } else if (recipe.is_given("warmup_steps") && !recipe.is_given("warmup_ratio")) {
    recipe.warmup_ratio = 0;
  }
}

// As in transformers, whose two cosines count in other ways.
void settle_restarts(Recipe& recipe) {
  if (recipe.lr_scheduler_type == Schedule::cosine_with_restarts && !recipe.is_given("num_cycles"))
    recipe.num_cycles = 1;
}

void check_schedule(const Recipe& recipe) {
  if (recipe.lr_scheduler_type == Schedule::cosine_with_min_lr ||
      recipe.lr_scheduler_type == Schedule::cosine_warmup_with_min_lr) {
    if (!recipe.is_given("min_lr") && !recipe.is_given("min_lr_rate"))
      recipe.fail("lr_scheduler_type",
                  fmt::format("is {}, which falls to min_lr, or to the share min_lr_rate of "
                              "learning_rate: give one of them, such as min_lr_rate: 0.1",
                              base::word_of(recipe.lr_scheduler_type)));
    if (recipe.min_lr > 0 && recipe.min_lr_rate > 0)
      recipe.fail("min_lr_rate", "stands next to min_lr, which says the same; keep one");
  }
  if (recipe.lr_scheduler_type == Schedule::warmup_stable_decay &&
      !recipe.is_given("num_decay_steps"))
    recipe.fail("lr_scheduler_type",
                "is warmup_stable_decay, which needs num_decay_steps: the steps in which the "
                "learning rate falls");
  if (recipe.lr_scheduler_type == Schedule::cosine_with_restarts && recipe.num_cycles == 0)
    recipe.fail("num_cycles",
                "is 0, with which cosine_with_restarts never falls; say how often it falls, or "
                "lr_scheduler_type: constant_with_warmup");
  if (recipe.lr_scheduler_type == Schedule::polynomial && recipe.lr_end >= recipe.learning_rate)
    recipe.fail("lr_scheduler_type",
                fmt::format("is polynomial, which falls to lr_end: {}, but learning_rate is {}; "
                            "give a smaller lr_end",
                            recipe.lr_end, recipe.learning_rate));
}

// A step that finds a mistake leaves the recipe unchanged.
void settle(RecipeReading& reading, const WrittenByKey& given) {
  Recipe& recipe = reading.recipe;
  base::Mistakes& mistakes = reading.mistakes;
  mistakes.gather([&] { settle_method(recipe); });
  settle_offloading(recipe, given);
  mistakes.gather([&] { settle_fp16(recipe, given); });
  compute_defaults(recipe);
  settle_warm_up(recipe);
  settle_restarts(recipe);
  settle_evaluation_keys(recipe);
  mistakes.gather([&] { check_schedule(recipe); });
  mistakes.gather([&] { check_evaluation_keys(recipe); });
  mistakes.gather([&] { guards_of(recipe); });
  mistakes.gather([&] { check_together(recipe); });
  mistakes.gather([&] { check_merge(recipe); });
  mistakes.gather([&] { settle_report_to(recipe); });
}

// Other tools accept evaluation intervals even if there is no evaluation data.
void settle_evaluation(WrittenByKey& given, std::vector<std::string>& notes) {
  for (const std::string_view data : {"eval_data", "val_set_size"}) {
    const auto said = given.find(data);
    if (said == given.end() || said->second.items.empty()) continue;
    const std::string& text = said->second.items.front();
    const bool is_zero = data == "val_set_size" && text.find_first_not_of("0.") == text.npos;
    if (!is_zero) return;
  }
  for (const std::string_view key : {"eval_strategy", "eval_steps"}) {
    const auto said = given.find(key);
    const bool is_of_other_tool =
        said != given.end() && (key == "eval_strategy" || !said->second.said_as.empty());
    if (!is_of_other_tool || said->second.items.size() != 1) continue;
    const std::string word = base::lower_case(said->second.items.front());
    if (word != "0" && word != "steps" && word != "no" && word != "none" && word != "false")
      notes.push_back(fmt::format("{}'{}' is not used: there is no eval_data to evaluate on",
                                  base::to_string(said->second.where), said->second.shown()));
    given.erase(said);
  }
}

// Without a method key, other tools train all weights, while a recipe here trains an adapter.
void note_method(const std::vector<Written>& in_file, const std::string& file,
                 const WrittenByKey& given, std::vector<std::string>& notes) {
  const bool is_of_other_tool = std::ranges::any_of(in_file, [](const Written& written) {
    return find_recipe_key(written.name) == nullptr &&
           find_tool_key(foreign_keys(), written.name) != nullptr;
  });
  if (!is_of_other_tool) return;
  for (const char* key : {"method", "load_in_4bit", "lora_r", "lora_alpha", "target_modules",
                          "adapter", "adapter_len"})
    if (given.contains(key) && !given.find(key)->second.items.empty()) return;
  notes.push_back(fmt::format(
      "{}: no key says the method, so an adapter trains (method: lora); where the other "
      "tool trains all weights then, say method: full",
      file));
}

// The objective that is written; nothing where none is, or it is wrong, which is told elsewhere.
std::optional<Objective> written_objective(const WrittenByKey& given) {
  const auto said = given.find("objective");
  if (said == given.end() || is_open(said->second)) return std::nullopt;
  const RecipeKey& objective = *find_recipe_key("objective");
  Recipe recipe;
  objective.field.set(recipe, parse_value(objective, said->second));
  return recipe.objective;
}

// Trainers of answers that are there use this key for the length of a decoder's part.
void settle_completion_length(WrittenByKey& given) {
  const auto length = given.find("max_completion_length");
  if (length == given.end() || given.contains("max_target_length") ||
      written_objective(given) == Objective::grpo)
    return;
  Written& target = given["max_target_length"] = length->second;
  target.said_as = std::exchange(target.name, "max_target_length");
  given.erase(length);
}

// Trainers without preferences use this key for the loss of tokens, which is the loss of next_token
// here.
void settle_loss_type(WrittenByKey& given, std::vector<std::string>& notes) {
  constexpr std::array<std::string_view, 4> kLossOfTokens{"nll", "ce", "cross_entropy",
                                                          "chunked_nll"};
  const auto loss = given.find("loss_type");
  if (loss == given.end() || loss->second.items.size() != 1) return;
  const std::string word = base::lower_case(loss->second.items.front());
  if (std::ranges::find(kLossOfTokens, word) == kLossOfTokens.end()) return;
  if (written_objective(given).value_or(Objective::next_token) != Objective::next_token) return;
  notes.push_back(fmt::format("{}'{}: {}' is not used: it is the loss of objective: next_token",
                              base::to_string(loss->second.where), loss->second.shown(), word));
  given.erase(loss);
}

// What the command line changes of the recipe's one entry, as "data.split=test" does.
void change_entry(const Written& in_file, Written& change) {
  if (change.items.size() != 1 || !change.items.front().starts_with('{') ||
      in_file.items.size() != 1)
    return;
  const std::string whole = with_keys_of(in_file.items.front(), change.items.front());
  if (!whole.empty()) change.items.front() = whole;
}

// Sets what the command line says of a key. A pair of its own, such as fields.prompt=NAME, replaces
// the recipe's pair of that name alone.
void override_with(WrittenByKey& given, std::string_view key, Written written) {
  const auto in_file = given.find(key);
  if (find_recipe_key(key)->field.type == ValueType::entries && in_file != given.end())
    change_entry(in_file->second, written);
  if (find_recipe_key(key)->pairs && written.is_list && in_file != given.end()) {
    const bool has_colon = find_recipe_key(key)->whole_texts;
    const auto name_of = [&](const std::string& pair) {
      return pair.substr(0, has_colon ? pair.rfind(':') : pair.find('='));
    };
    for (const std::string& pair : in_file->second.items) {
      const bool is_replaced = std::ranges::any_of(
          written.items,
          [&, own = name_of(pair)](const std::string& each) { return name_of(each) == own; });
      if (!is_replaced) written.items.push_back(pair);
    }
  }
  given.insert_or_assign(key, std::move(written));
}

RecipeReading read_written(const std::vector<Written>& in_file, const std::string& file,
                           const std::vector<std::string>& overrides, base::Mistakes mistakes) {
  RecipeReading reading{{}, std::move(mistakes)};
  std::vector<Written> on_line = written_in_overrides(overrides, reading.mistakes);
  constexpr double kDefaultEpochs = 3;
  const Intervals intervals{
      epochs_in(on_line).value_or(epochs_in(in_file).value_or(kDefaultEpochs)), reading.mistakes,
      reading.recipe.notes};
  const auto settled = [&](std::vector<Written> all, const std::vector<Written>& others,
                           const std::string& place) {
    return by_key(without_foreign(with_steps(std::move(all), intervals), others, place, reading),
                  reading);
  };
  WrittenByKey given = settled(in_file, {}, file);
  for (auto& [key, written] : settled(std::move(on_line), in_file, std::string(kCommandLine)))
    override_with(given, key, std::move(written));
  settle_evaluation(given, reading.recipe.notes);
  // An invalid objective is reported by fill_in.
  base::Mistakes unread;
  unread.gather([&] { settle_completion_length(given); });
  unread.gather([&] { settle_loss_type(given, reading.recipe.notes); });
  note_method(in_file, file, given, reading.recipe.notes);
  std::vector<std::string> of_files = add_config_files(given, reading.mistakes);
  std::vector<std::string>& notes = reading.recipe.notes;
  notes.insert(notes.end(), of_files.begin(), of_files.end());
  fill_in(reading, given);
  settle(reading, given);
  return reading;
}

RecipeReading read_text(std::string_view yaml, const std::string& file,
                        const std::vector<std::string>& overrides) {
  base::Mistakes mistakes;
  const std::vector<Written> in_file = written_in_yaml(yaml, file, mistakes);
  return read_written(in_file, file, overrides, std::move(mistakes));
}

Recipe whole(RecipeReading reading) {
  reading.mistakes.throw_if_any();
  return std::move(reading.recipe);
}

}  // namespace

void settle_method(Recipe& recipe) {
  const MethodKeys& method = method_keys_of(recipe.method);
  if (method.always_in_4_bits && recipe.is_given("load_in_4bit") && !recipe.load_in_4bit)
    recipe.fail("load_in_4bit",
                fmt::format("is false next to method: {}; with 16-bit weights say method: lora",
                            base::word_of(recipe.method)));
  if (!method.in_4_bits && recipe.load_in_4bit)
    recipe.fail("load_in_4bit",
                fmt::format("is true next to method: {}, but weights stored in 4 bits do not "
                            "train; use method: qlora",
                            base::word_of(recipe.method)));
  if (method.always_in_4_bits) recipe.load_in_4bit = true;
  if (recipe.load_in_4bit) recipe.method = *method.in_4_bits;
}

void Recipe::fail(std::string_view key, const std::string& problem) const {
  const auto found = given.find(key);
  throw UserError(fmt::format("'{}' {}", name_as_written(*this, key), problem),
                  found == given.end() ? Location{} : found->second);
}

void Recipe::require(std::string_view name) const {
  const RecipeKey* key = find_recipe_key(name);
  SNUG_CHECK(key != nullptr && key->field.get != nullptr, "no key {}", name);
  if (is_given(name) || !value_text(*key, key->field.get(*this)).empty()) return;
  throw UserError(
      fmt::format("'{}' is missing: {}. Set it in the recipe ({}: ...) or on the command "
                  "line ({}=...)",
                  name, key->help, name, name));
}

int64_t steps_in(double said, int64_t all_steps) {
  const double steps = said < 1 ? std::ceil(static_cast<double>(all_steps) * said) : said;
  return static_cast<int64_t>(steps);
}

Recipe parse_recipe(std::string_view yaml, const std::string& file,
                    const std::vector<std::string>& overrides) {
  return whole(read_text(yaml, file, overrides));
}

RecipeReading read_recipe(const std::string& recipe_path,
                          const std::vector<std::string>& overrides) {
  if (recipe_path.empty()) return read_written({}, "", overrides, {});
  return read_text(base::read_text_file(recipe_path, kMaxRecipeBytes), recipe_path, overrides);
}

Recipe load_recipe(const std::string& recipe_path, const std::vector<std::string>& overrides) {
  return whole(read_recipe(recipe_path, overrides));
}

}  // namespace snug::formats
