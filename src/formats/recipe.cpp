// Stages: YAML and overrides become a list of written keys; unknown keys, duplicates and aliases
// are settled on that list; values are parsed into the recipe, overrides last; then defaults are
// computed.
#include "formats/recipe.h"

#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/method_keys.h"
#include "formats/optimizer_keys.h"
#include "formats/recipe_keys.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace snug::formats {
namespace {

using base::Location;
using base::UserError;

constexpr int64_t kMaxRecipeBytes = int64_t{1} << 20;

Location location_of(const YAML::Mark& mark, const std::string& file) {
  return {file, mark.line + 1, mark.column + 1};
}

// yaml-cpp reads both `key: null` and `key:` as null; the first resets a key, the second is a slip.
bool is_written_null(std::string_view yaml, const YAML::Mark& mark) {
  if (mark.pos < 0 || static_cast<size_t>(mark.pos) >= yaml.size()) return false;
  const std::string_view rest = yaml.substr(static_cast<size_t>(mark.pos));
  for (const std::string_view word : {"~", "null", "Null", "NULL"})
    if (rest.starts_with(word)) return true;
  return false;
}

std::string scalar_in(const YAML::Node& node, const std::string& name, const Location& where) {
  if (node.IsScalar()) return node.Scalar();
  throw UserError(fmt::format("'{}' holds a nested value; a recipe is a flat list of keys", name),
                  where);
}

Written read_value(const std::string& name, const YAML::Node& node, const Location& where) {
  Written written{name, {}, node.IsSequence(), where};
  if (node.IsSequence()) {
    for (const YAML::Node& item : node) written.items.push_back(scalar_in(item, name, where));
  } else {
    written.items.push_back(scalar_in(node, name, where));
  }
  return written;
}

std::vector<Written> read_map(const YAML::Node& root, std::string_view yaml,
                              const std::string& file) {
  std::vector<Written> all;
  if (root.IsNull()) return all;
  if (!root.IsMap())
    throw UserError("a recipe is a list of 'key: value' lines", location_of(root.Mark(), file));
  for (const auto& entry : root) {
    const Location where = location_of(entry.first.Mark(), file);
    if (!entry.first.IsScalar()) throw UserError("a key must be a word", where);
    const std::string name = entry.first.Scalar();
    if (!entry.second.IsNull()) {
      all.push_back(read_value(name, entry.second, where));
    } else if (is_written_null(yaml, entry.second.Mark())) {
      all.push_back({name, {}, false, where});
    } else {
      throw UserError(
          fmt::format("'{}' has no value; give it one, or write null for the default", name),
          where);
    }
  }
  return all;
}

// Goes through a recipe before it is made into a document: remembers where it starts, and refuses
// what could make much of a small file.
class RecipeScan : public YAML::EventHandler {
 public:
  explicit RecipeScan(const std::string& file) : file_(file) {}
  YAML::Mark start;

  void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw UserError("a recipe has no aliases (*name); write the value out",
                    location_of(mark, file_));
  }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  // A list in a map is deep enough; what nests a little deeper is told of by its key.
  void enter(const YAML::Mark& mark) {
    constexpr int kMaxDepth = 16;
    if (++depth_ > kMaxDepth)
      throw UserError("values nest too deeply; a recipe is a flat list of keys",
                      location_of(mark, file_));
  }

  const std::string& file_;
  int depth_ = 0;
};

// YAML::Load stops in silence after the first document, also where the text goes on with something
// that it cannot read, and YAML::LoadAll never returns from such a text (yaml-cpp 0.7).
void require_one_document(std::string_view yaml, const std::string& file) {
  std::istringstream stream{std::string(yaml)};
  YAML::Parser parser(stream);
  RecipeScan document(file);
  if (parser.HandleNextDocument(document) && parser.HandleNextDocument(document))
    throw UserError(
        "the recipe ends before here: it must be one YAML document of 'key: value' lines",
        location_of(document.start, file));
}

std::vector<Written> read_yaml(std::string_view yaml, const std::string& file) {
  try {
    require_one_document(yaml, file);
    return read_map(YAML::Load(std::string(yaml)), yaml, file);
  } catch (const YAML::Exception& error) {
    throw UserError("not valid YAML: " + error.msg, location_of(error.mark, file));
  }
}

std::vector<Written> read_overrides(const std::vector<std::string>& overrides) {
  std::vector<Written> all;
  const Location where{std::string(kCommandLine), 0, 0};
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("'{}' is not of the form key=value", text), where);
    Written written{text.substr(0, equals), {text.substr(equals + 1)}, false, where};
    const RecipeKey* key = find_recipe_key(written.name);
    const bool is_text = key != nullptr && key->field.type == ValueType::text;
    const std::string& value = written.items.front();
    if (is_text ? value.empty() : (value == "null" || value == "~")) written.items.clear();
    all.push_back(std::move(written));
  }
  return all;
}

const RecipeKey& known_key(const Written& written) {
  if (const RecipeKey* key = find_recipe_key(written.name)) return *key;
  std::vector<std::string_view> names;
  for (const RecipeKey& key : recipe_keys()) {
    names.push_back(key.name);
    names.insert(names.end(), key.aliases.begin(), key.aliases.end());
  }
  const auto nearest = base::nearest_name(written.name, names);
  throw UserError(fmt::format("unknown key '{}'; {}", written.name,
                              nearest ? fmt::format("did you mean '{}'?", *nearest)
                                      : "snug VERB --help lists the keys"),
                  written.where);
}

// Recipes are written into YAML and JSON files, which hold nothing else.
void require_utf8(const Written& written) {
  try {
    for (const std::string& item : written.items) (void)nlohmann::json(item).dump();
  } catch (const nlohmann::json::type_error&) {
    throw UserError(fmt::format("'{}' is no UTF-8 text", written.name), written.where);
  }
}

// One entry a key: the same key twice, or next to its alias, is refused.
WrittenByKey by_key(std::vector<Written> all) {
  WrittenByKey result;
  for (const Written& written : without_side_words(std::move(all))) {
    const RecipeKey& key = known_key(written);
    require_utf8(written);
    const auto [first, is_new] = result.emplace(key.name, written);
    if (is_new) continue;
    const Written& earlier = first->second;
    const std::string line =
        earlier.where.line > 0 ? fmt::format(" (first on line {})", earlier.where.line) : "";
    if (earlier.name == written.name)
      throw UserError(fmt::format("'{}' is given twice{}; keep one", written.name, line),
                      written.where);
    throw UserError(fmt::format("'{}' and '{}' are names of the same key{}; keep one", earlier.name,
                                written.name, line),
                    written.where);
  }
  return result;
}

void set_from_text(Recipe& recipe, const RecipeKey& key, std::string_view text) {
  key.field.set(recipe, parse_value(key, {std::string(key.name), {std::string(text)}, false, {}}));
}

void fill_in(Recipe& recipe, const WrittenByKey& given) {
  for (const RecipeKey& key : recipe_keys()) {
    if (key.field.set != nullptr && !key.default_text.empty())
      set_from_text(recipe, key, key.default_text);
    const auto found = given.find(key.name);
    if (found == given.end() || found->second.items.empty()) {
      // What is not given, or an explicit null, means the default. An empty list has no items
      // either, and is refused.
      if (found == given.end() || !found->second.is_list) continue;
    }
    const Value value = parse_value(key, found->second);
    if (key.field.set != nullptr) key.field.set(recipe, value);
    recipe.given.emplace(key.name, found->second.where);
  }
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

// fp16 is another name of compute_dtype. Where a file gives one and the command line the other, the
// command line has the last word. Files of the Trainer say bf16: false next to fp16: true.
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
}

// Under FSDP's name of offload_params all that lasts is in the host's memory, which includes the
// optimizer state of weights that train, unless the user says where that is.
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

Recipe make_recipe(WrittenByKey given, const std::vector<std::string>& overrides) {
  for (auto& [key, written] : by_key(read_overrides(overrides)))
    given.insert_or_assign(key, written);
  Recipe recipe;
  recipe.notes = add_config_files(given);
  fill_in(recipe, given);
  settle_method(recipe);
  settle_offloading(recipe, given);
  settle_fp16(recipe, given);
  compute_defaults(recipe);
  check_together(recipe);
  return recipe;
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
  throw UserError(fmt::format("'{}' {}", key, problem),
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

Recipe parse_recipe(std::string_view yaml, const std::string& file,
                    const std::vector<std::string>& overrides) {
  // yaml-cpp skips a byte order mark and then counts positions from after it.
  if (yaml.starts_with("\xef\xbb\xbf")) yaml.remove_prefix(3);
  return make_recipe(by_key(read_yaml(yaml, file)), overrides);
}

Recipe load_recipe(const std::string& recipe_path, const std::vector<std::string>& overrides) {
  if (recipe_path.empty()) return make_recipe({}, overrides);
  return parse_recipe(base::read_text_file(recipe_path, kMaxRecipeBytes), recipe_path, overrides);
}

}  // namespace snug::formats
