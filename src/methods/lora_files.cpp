// The table rows of LoRA and QLoRA: how their adapters appear in files, recipes and errors.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "base/error.h"
#include "formats/adapter/adapter_modules.h"
#include "formats/adapter/module_pattern.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/adapter/renamed_modules.h"
#include "formats/folder/tensor_index.h"
#include "formats/recipe/recipe.h"
#include "methods/method.h"
#include "program/kinds/transfer/storage.h"

namespace snug::methods {
namespace {

namespace fs = std::filesystem;
using formats::AdapterConfig;
using formats::LoraConfig;
using formats::LoraModule;
using formats::PeftAdapter;
using formats::Recipe;
using program::Tensor;

// The modules of `wanted` that `present` lacks: the first one, a list of the first few, and their
// number.
struct Lacking {
  std::string first;
  std::string list;  // "'a', 'b', 'c' and others"
  int64_t count = 0;
};

constexpr int64_t kListed = 3;

Lacking lacking(const std::vector<LoraModule>& wanted, const std::vector<LoraModule>& present) {
  std::unordered_set<std::string_view> names;
  for (const LoraModule& module : present) names.insert(module.module);
  Lacking result;
  for (const LoraModule& module : wanted) {
    if (names.contains(module.module)) continue;
    if (++result.count > kListed) continue;
    if (result.count == 1) result.first = module.module;
    result.list += fmt::format("{}'{}'", result.count == 1 ? "" : ", ", module.module);
  }
  if (result.count > kListed) result.list += " and others";
  return result;
}

// Whether the job adapts the modules that the adapter's own config selects. That is so unless a
// recipe selects others, and in every job that only applies the adapter (only such a job sets
// `head`). An error about modules then blames no key of a recipe.
bool has_own_targets(const PeftAdapter& adapter, const LoraOptions& options) {
  return !options.head.empty() ||
         std::ranges::is_permutation(options.target_modules, adapter.config().target_modules);
}

// Advice for a module of the adapter that the job does not adapt.
std::string_view advice_on_surplus(const std::string& module, bool has_own) {
  if (module.find(".experts") != std::string::npos)
    return "adapters of all experts of a layer are built, which target_parameters names "
           "(docs/experts.md); merge one of single experts into its model with PEFT";
  if (!has_own) return "is it an adapter of this model? Set target_modules to those of the adapter";
  return "is it an adapter of this model? Snug applies LoRA to the linear layers of a model's "
         "layers, its embedding and its head; an adapter of other modules is merged into its model "
         "with PEFT (merge_and_unload), and that model given without an adapter";
}

void check_modules(const PeftAdapter& adapter, const std::vector<LoraModule>& planned,
                   const LoraOptions& options) {
  const std::string file = adapter.file().path().string();
  const bool has_own = has_own_targets(adapter, options);
  const Lacking surplus = lacking(adapter.modules(), planned);
  const Lacking missing = lacking(planned, adapter.modules());
  const bool have_none = missing.count == std::ssize(planned);
  if (have_none && missing.count > 0)
    base::throw_user_error(
        "{}: the adapter calls its modules otherwise than this model does: '{}', where the model "
        "has '{}'; it was trained on another model, or on one that something was wrapped around. "
        "{}",
        file, surplus.first, missing.first, advice_on_surplus(surplus.first, has_own));
  if (missing.count > 0)
    base::throw_user_error(
        "{}: the adapter has no {} ({} modules are missing), which {}", file, missing.list,
        missing.count,
        has_own
            ? "its adapter_config.json selects in this model, so that a part of it alone would be "
              "applied. Is the file whole, and an adapter of this model? Fetch or save it anew, or "
              "take what was never trained out of the adapter's own target_modules"
            : "this job adapts; set target_modules to those of the adapter");
  if (surplus.count > 0 && options.head.empty() && adapter.config().ties_adapters)
    base::throw_user_error(
        "{}: the adapter is on '{}' too, since ensure_weight_tying in its adapter_config.json ties "
        "the adapters of embedding and head: the two are applied (generate, evaluate and score), "
        "and not trained on; merge it into its model with snug merge, and begin a new adapter",
        file, surplus.first);
  if (surplus.count > 0)
    base::throw_user_error("{}: the adapter changes '{}' ({} modules in all), which {}; {}", file,
                           surplus.first, surplus.count,
                           has_own ? "its adapter_config.json does not select in this model"
                                   : "this job does not adapt",
                           advice_on_surplus(surplus.first, has_own));
}

void check_shape(const PeftAdapter& adapter, const formats::TensorInfo& tensor,
                 const std::vector<int64_t>& expected, int64_t r) {
  if (tensor.shape == expected) return;
  base::throw_user_error(
      "{}: tensor '{}' has shape {}; expected {}, as lora_r = {} and the base model say",
      adapter.file().path().string(), tensor.name, formats::shape_text(tensor.shape),
      formats::shape_text(expected), r);
}

void check_shapes(const PeftAdapter& adapter, const std::vector<LoraModule>& planned) {
  for (const LoraModule& module : planned) {
    const int64_t r = module.r;
    const int64_t all = r * module.experts;
    check_shape(adapter, adapter.lora_a(module), {all, module.in_features}, r);
    check_shape(adapter, adapter.lora_b(module), {module.out_features, all}, r);
  }
}

// The tensors of the file that hold a tensor whole, under any of the given names.
std::vector<const formats::IndexedTensor*> held_whole(const formats::TensorIndex& index,
                                                      const std::vector<std::string>& names) {
  std::vector<const formats::IndexedTensor*> held;
  for (const std::string& name : names)
    if (const auto* stored = formats::find_table(index, name)) held.push_back(stored);
  return held;
}

void check_whole(const formats::TensorIndex& index, const formats::IndexedTensor& stored,
                 const Tensor& tensor) {
  const program::Shape shape = program::whole_shape(tensor);
  std::vector<int64_t> expected;
  expected.reserve(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) expected.push_back(shape[axis]);
  if (stored.info->shape != expected)
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected {}, as the base model says. If the vocabulary was "
        "resized, resize the model and save it with transformers (resize_token_embeddings)",
        index.path_of(stored).string(), stored.info->name, formats::shape_text(stored.info->shape),
        formats::shape_text(expected));
}

// Refuses a tensor that the file holds whole and the job does not train. Where the adapter brings
// tables of its own, each table in the file is already accounted for: it is used, it equals the
// base model's, or a tied head does not need it.
void check_surplus_saved(const PeftAdapter& adapter, const std::string& name,
                         const LoraOptions& options) {
  if (!options.tables.empty()) return;  // checked by plan/spec/adapter_tables.h
  const formats::TensorInfo& stored = adapter.saved_tensor(name);
  if (stored.name != formats::adapter_key(name)) return;
  const bool is_named = formats::is_of_module(name, adapter.config().modules_to_save);
  base::throw_user_error(
      "{}: the adapter holds '{}' whole, which this job does not train; {}",
      adapter.file().path().string(), name,
      is_named
          ? "set modules_to_save to those of the adapter"
          : "PEFT saved it without a word in adapter_config.json (save_embedding_layers). Name "
            "it in modules_to_save to train it on, or merge the adapter into its model with "
            "snug merge");
}

// Checks the tensors that train whole: the file must hold the same tensors, with the same shapes. A
// tensor that it holds under two names must have the same values under both.
void check_saved(const PeftAdapter& adapter, std::span<const Tensor> tensors,
                 const LoraOptions& options) {
  const std::string file = adapter.file().path().string();
  const formats::TensorIndex index = formats::open_adapter_index(adapter.folder());
  std::unordered_set<std::string> planned;
  for (const Tensor& tensor : tensors) {
    if (is_lora_tensor(tensor.name)) continue;
    const std::vector<std::string> names = formats::names_of(tensor.name);
    planned.insert(names.begin(), names.end());
    auto held = held_whole(index, names);
    // Where the head is the embedding, the file may hold the table under the head's name only.
    if (held.empty() && std::ranges::count(options.tables, tensor.name) > 0)
      held = held_whole(index, {options.head + ".weight"});
    if (held.empty())
      base::throw_user_error("{}: the adapter has no '{}', which modules_to_save says it holds",
                             file, formats::adapter_key(tensor.name));
    for (const auto* stored : held) {
      check_whole(index, *stored, tensor);
      if (!index.are_same(*held.front(), *stored))
        base::throw_user_error(
            "{}: '{}' and '{}' are two names of one tensor of this model, and their values differ; "
            "remove the one that is not the adapter's",
            file, held.front()->info->name, stored->info->name);
    }
  }
  for (const std::string& name : adapter.saved())
    if (!planned.contains(name)) check_surplus_saved(adapter, name, options);
}

void check_scale(const PeftAdapter& adapter, const LoraOptions& options) {
  const double saved = adapter.config().scale();
  const double planned = lora_scale(options);
  if (std::abs(saved - planned) <= 1e-6 * std::abs(saved)) return;
  base::throw_user_error(
      "{}: the adapter was trained with scale {} (r {}, lora_alpha {}, use_rslora {}), and this "
      "job has scale {} (lora_r {}, lora_alpha {}, use_rslora {}); give the adapter's values",
      (adapter.folder() / "adapter_config.json").string(), saved, adapter.config().r,
      adapter.config().alpha, adapter.config().use_rslora, planned, options.r, options.alpha,
      options.rslora);
}

void check_form(const PeftAdapter& adapter, const LoraOptions& options) {
  if (adapter.config().use_dora == options.dora) return;
  base::throw_user_error(
      "{}: the adapter was trained with use_dora {}, and this job has use_dora {}; give the "
      "adapter's value",
      (adapter.folder() / "adapter_config.json").string(), adapter.config().use_dora, options.dora);
}

void check(const fs::path& folder, const MethodOptions& options, std::span<const Tensor> tensors) {
  const PeftAdapter adapter(folder);
  const std::vector<LoraModule> planned = adapted_modules(tensors);
  check_form(adapter, options.lora);
  check_modules(adapter, planned, options.lora);
  check_shapes(adapter, planned);
  check_saved(adapter, tensors, options.lora);
  check_scale(adapter, options.lora);
}

program::Program rewrite(const program::Program& forward, const MethodOptions& options,
                         bool is_training) {
  LoraOptions used = options.lora;
  if (!is_training) used.dropout = 0.0;
  return lora(forward, used);
}

void refuse_tied(const std::string& name) {
  base::throw_user_error(
      "modules_to_save: \"{}\" is the model's embedding and its head, which are one tensor; PEFT "
      "would train a copy of one of them. Leave it out, or use method=full with trainable_modules",
      name);
}

void refuse(const MethodOptions& options, const BaseModel& base) {
  const LoraOptions& lora = options.lora;
  for (const std::string& name : lora.modules_to_save) {
    const bool is_head = formats::is_of_module(base.head, {name});
    const bool is_applied = std::ranges::count(lora.tables, base.embedding) > 0;
    if (base.tied_head && !is_applied && (is_head || formats::is_of_module(base.embedding, {name})))
      refuse_tied(name);
    if (base.head_in_4_bits && is_head)
      base::throw_user_error(
          "modules_to_save: \"{}\" is stored in 4 bits, which do not train; set "
          "load_head_in_4bit=false, or leave it out",
          name);
  }
  const bool changes_head =
      std::ranges::count(lora.tables, base.head) > 0 || lora.token_rows.contains(base.head);
  if (base.head_in_4_bits && changes_head)
    base::throw_user_error(
        "adapter: its files hold the head, '{}', or rows of it, and the model's head is in 4 bits; "
        "set load_head_in_4bit=false, or give the model in 16 bits",
        base.head);
}

// The initial values are PEFT's: A is Kaiming-uniform with a = sqrt(5), which is
// uniform(-1/sqrt(in), 1/sqrt(in)), or with init_lora_weights=gaussian normal(0, 1/r), and B is
// zero. On an embedding A is zero and B is normal, whatever the key says. Magnitudes are computed
// from the model (initial_magnitudes).
std::optional<program::Fill> initial_values(const Tensor& tensor, const AdapterStart& start) {
  using program::Fill;
  using program::FillForm;
  if (!is_lora_tensor(tensor.name)) return std::nullopt;
  const auto [module, part, of_embedding] = lora_tensor(tensor.name);
  if (part == LoraPart::magnitude) return std::nullopt;
  if (part == (of_embedding ? LoraPart::a : LoraPart::b)) return Fill{FillForm::constant};
  if (of_embedding) return Fill{FillForm::normal, 1.0F, start.seed};
  const program::Shape shape = program::whole_shape(tensor);
  const int last = shape.rank() - 1;
  if (start.lora == formats::LoraInit::gaussian)
    return Fill{FillForm::normal, 1.0F / static_cast<float>(shape[last - 1]), start.seed};
  const float bound = 1.0F / std::sqrt(static_cast<float>(shape[last]));
  return Fill{FillForm::uniform, bound, start.seed};
}

bool reads(const AdapterConfig& config) { return std::holds_alternative<LoraConfig>(config); }

// Refuses adapters that can be applied but not trained further.
void refuse_to_train_on(const Recipe& recipe, const LoraConfig& adapter) {
  const auto fail = [&](std::string_view key, std::string_view what) {
    recipe.fail(
        "adapter",
        fmt::format("is {}, whose adapter_config.json has {}: {} not trained on. generate, "
                    "evaluate and score apply it; to train on, merge it into its model with "
                    "snug merge and begin a new adapter",
                    recipe.adapter, key, what));
  };
  if (!adapter.sizes.empty())
    fail("rank_pattern or alpha_pattern", "modules of several ranks or scales are");
  if (!adapter.token_rows.empty()) fail("trainable_token_indices", "rows of single tokens are");
}

void settle(Recipe& recipe, const AdapterConfig& config) {
  const auto& adapter = std::get<LoraConfig>(config);
  refuse_to_train_on(recipe, adapter);
  if (!recipe.is_given("lora_r")) recipe.lora_r = adapter.r;
  if (!recipe.is_given("lora_alpha")) recipe.lora_alpha = adapter.alpha;
  if (!recipe.is_given("use_rslora")) recipe.use_rslora = adapter.use_rslora;
  if (!recipe.is_given("use_dora")) recipe.use_dora = adapter.use_dora;
  if (!recipe.is_given("lora_dropout")) recipe.lora_dropout = adapter.dropout;
  if (!recipe.is_given("target_modules")) recipe.target_modules = adapter.target_modules;
  if (!recipe.is_given("target_parameters")) recipe.target_parameters = adapter.target_parameters;
  if (!recipe.is_given("modules_to_save")) recipe.modules_to_save = adapter.modules_to_save;
}

MethodOptions options(const AdapterConfig& config) {
  const auto& adapter = std::get<LoraConfig>(config);
  MethodOptions options;
  options.lora.r = adapter.r;
  options.lora.alpha = adapter.alpha;
  options.lora.rslora = adapter.use_rslora;
  options.lora.dora = adapter.use_dora;
  options.lora.target_modules = adapter.target_modules;
  options.lora.target_parameters = adapter.target_parameters;
  options.lora.modules_to_save = adapter.modules_to_save;
  options.lora.sizes = adapter.sizes;
  return options;
}

// Expressions are written out as the names that they select: PEFT reads a list of names or one
// expression, and would match that expression with modules that are not linears, too. Where a model
// has experts, all-linear is written out as well, since for PEFT it includes the experts.
std::vector<std::string> written_targets(const SavedAdapter& saved) {
  const std::vector<std::string>& targets = saved.recipe.target_modules;
  const bool has_pattern = std::ranges::any_of(targets, formats::is_module_pattern);
  const bool is_limited = !saved.recipe.layers_to_transform.empty();
  const bool is_all = targets == std::vector<std::string>{std::string(formats::kAllLinear)};
  if (!has_pattern && !is_limited && !(is_all && saved.has_experts)) return targets;
  std::vector<std::string> names;
  for (LoraModule& module : adapted_modules(saved.tensors))
    if (module.experts == 1) names.push_back(std::move(module.module));
  return names;
}

// For a module that transformers has renamed both names are written, and the file holds the tensor
// under both: PEFT knows one of them and ignores the other.
std::vector<std::string> written_saved_modules(const SavedAdapter& saved) {
  std::vector<std::string> modules = saved.recipe.modules_to_save;
  for (const Tensor& tensor : saved.tensors) {
    const std::vector<std::string> names = formats::names_of(tensor.name);
    if (names.size() == 1) continue;
    for (const std::string& name : names) {
      std::string module = name.substr(0, name.rfind('.'));
      if (std::ranges::find(modules, module) == modules.end()) modules.push_back(std::move(module));
    }
  }
  return modules;
}

// The modules whose size is not that of the others.
formats::LoraSizes written_sizes(const SavedAdapter& saved) {
  const LoraOptions options = lora_options(saved.recipe, 1);
  formats::LoraSizes sizes;
  if (options.ranks.empty() && options.alphas.empty()) return sizes;
  for (const LoraModule& module : adapted_modules(saved.tensors)) {
    const std::string name =
        formats::wrapped_parameter(module.module, saved.recipe.target_parameters);
    if (const formats::LoraSize size = lora_size(options, name);
        size != formats::LoraSize{options.r, options.alpha})
      sizes.emplace(name, size);
  }
  return sizes;
}

AdapterConfig config(const SavedAdapter& saved) {
  return LoraConfig{.r = saved.recipe.lora_r,
                    .alpha = saved.recipe.lora_alpha,
                    .dropout = saved.recipe.lora_dropout,
                    .use_rslora = saved.recipe.use_rslora,
                    .use_dora = saved.recipe.use_dora,
                    .fan_in_fan_out = saved.transposed_linears,
                    .has_encoder = saved.has_encoder,
                    .target_modules = written_targets(saved),
                    .base_model = saved.recipe.model,
                    .target_parameters = saved.recipe.target_parameters,
                    .modules_to_save = written_saved_modules(saved),
                    .sizes = written_sizes(saved)};
}

std::string basis(const MethodOptions& options) {
  return fmt::format("as lora_r = {} and the base model say", options.lora.r);
}

constexpr std::array kLeanerThanLora{MethodKind::qlora};

// LoRA and QLoRA share this row: how the base model is stored is not part of the adapter.
constexpr Method row_of(MethodKind kind, std::span<const MethodKind> leaner) {
  return {.kind = kind,
          .leaner = leaner,
          .rewrite = rewrite,
          .refuse = refuse,
          .initial_values = initial_values,
          .initialise = initial_magnitudes,
          .reads = reads,
          .settle = settle,
          .options = options,
          .config = config,
          .check = check,
          .basis = basis};
}

}  // namespace

constinit const Method kLora = row_of(MethodKind::lora, kLeanerThanLora);
constinit const Method kQlora = row_of(MethodKind::qlora, {});

std::vector<LoraModule> adapted_modules(std::span<const Tensor> tensors) {
  std::vector<LoraModule> modules;
  std::unordered_map<std::string_view, size_t> known;
  for (const Tensor& tensor : tensors) {
    if (!is_lora_tensor(tensor.name)) continue;
    const auto [module, part, of_embedding] = lora_tensor(tensor.name);
    const auto [found, added] = known.emplace(module, modules.size());
    if (added) modules.push_back({std::string(module), 0, 0, of_embedding});
    LoraModule& entry = modules[found->second];
    const program::Shape& shape = whole_shape(tensor);
    if (part == LoraPart::a) {
      if (shape.rank() == 3) entry.experts = shape[0];
      entry.r = shape[shape.rank() - 2];
      entry.in_features = shape.columns();
    } else {
      entry.out_features = whole_shape(tensor)[0];
    }
  }
  return modules;
}

namespace {

// Of a key whose pairs are PATTERN=NUMBER, in their order.
std::vector<LoraPattern> patterns_of(const Recipe& recipe, std::string_view key,
                                     const std::vector<std::string>& pairs) {
  std::vector<LoraPattern> patterns;
  patterns.reserve(pairs.size());
  for (const std::string& pair : pairs) {
    const size_t end = pair.rfind('=');
    const std::string written = pair.substr(0, end);
    const std::string text = pair.substr(end + 1);
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && rest == text.data() + text.size();
    const bool is_rank = key == "rank_pattern";
    if (!is_number || !(value > 0) || (is_rank && value != std::floor(value)))
      recipe.fail(key, fmt::format("gives '{}' the value '{}'; expected {} above 0", written, text,
                                   is_rank ? "a whole number" : "a number"));
    try {
      patterns.push_back(
          {written, formats::ModulePattern(formats::last_parts_pattern(written)), value});
    } catch (const std::invalid_argument& problem) {
      recipe.fail(key, fmt::format("'{}' cannot be used: {}", written, problem.what()));
    }
  }
  return patterns;
}

}  // namespace

LoraOptions lora_options(const Recipe& recipe, int64_t row_tokens) {
  LoraOptions options;
  options.r = recipe.lora_r;
  options.alpha = recipe.lora_alpha;
  options.dropout = recipe.lora_dropout;
  options.rslora = recipe.use_rslora;
  options.dora = recipe.use_dora;
  options.init = recipe.init_lora_weights;
  options.target_modules = recipe.target_modules;
  options.target_parameters = recipe.target_parameters;
  options.modules_to_save = recipe.modules_to_save;
  options.layers = recipe.layers_to_transform;
  options.ranks = patterns_of(recipe, "rank_pattern", recipe.rank_pattern);
  options.alphas = patterns_of(recipe, "alpha_pattern", recipe.alpha_pattern);
  options.row_tokens = row_tokens;
  options.seed = recipe.seed;
  return options;
}

}  // namespace snug::methods
