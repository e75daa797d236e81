#include "convert/source/adapter_changes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/adapter/adapter_config.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/renamed_modules.h"
#include "formats/recipe/choices.h"
#include "methods/lora_targets.h"
#include "methods/method.h"
#include "models/config/multimodal.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"
#include "plan/spec/adapter_tables.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using formats::IndexedTensor;
using formats::LoraModule;
using formats::PeftAdapter;

std::string weight_of(const std::string& module) { return module + ".weight"; }

// An adapter of another kind than LoRA adds something to a network that its weights cannot express.
const fs::path& checked_kind(const fs::path& adapter) {
  const formats::AdapterConfig config = formats::read_adapter_config(adapter);
  if (std::holds_alternative<formats::LoraConfig>(config)) return adapter;
  base::throw_user_error(
      "{}: this is a LLaMA-Adapter, whose prompts are keys and values that attention reads through "
      "gates; no weights of the model can hold them, so that it cannot be merged. Use the model "
      "with the adapter (adapter=), or train a LoRA",
      adapter.string());
}

formats::OtherParts other_parts_of(const WeightSource& base) {
  const bool has_any = std::ranges::any_of(base.tensors(), [](const SourceTensor& tensor) {
    return formats::is_of_other_part(tensor.name);
  });
  return has_any ? formats::OtherParts::kept : formats::OtherParts::left_out;
}

bool is_of_model(const PeftAdapter& adapter, const std::string& weight) {
  return formats::is_of_module(weight, adapter.config().modules_to_save);
}

}  // namespace

// Finds the base's tensor for each thing that the adapter changes.
class AdapterChanges::Finder {
 public:
  Finder(AdapterChanges& changes, const WeightSource& base, const fs::path& folder)
      : changes_(changes), adapter_(changes.adapter_), base_(base), folder_(folder) {
    for (const SourceTensor& tensor : base.tensors()) tensors_.emplace(plain_name(tensor), &tensor);
  }

  void find() {
    if (base_.model() == nullptr) {
      if (!adapter_.config().target_parameters.empty())
        fail(
            "the adapter changes the matrices of experts (target_parameters), which Snug merges "
            "only into models that it knows ({}); merge it with PEFT (merge_and_unload)",
            models::family_names());
      plan::say_left_out(folder_, changes_.others_);
      for (const std::string& name : adapter_.saved()) replace(name, base_tensor(name), name);
      add_products();
      refuse_rows();
      refuse_unknown_tie();
      return;
    }
    changes_.model_ = plan::with_adapter_tables(*base_.model(), folder_, changes_.others_);
    settle_stack();
    check_targets();
    add_own_head();
    add_tables();
    add_products();
    add_rows();
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    base::throw_user_error("{}: {}", adapter_.file().path().string(),
                           fmt::format(format, std::forward<Args>(args)...));
  }

  // By the model's names, without what wrappers add.
  std::string plain_name(const SourceTensor& tensor) const {
    return base_.model() != nullptr && !tensor.is_other ? tensor.weight_name()
                                                        : formats::plain_module(tensor.name);
  }

  const SourceTensor* find_tensor(const std::string& weight) const {
    for (const std::string& name : formats::names_of(weight))
      if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second;
    // "embed_out", where the adapter has the name of another version of transformers.
    for (const auto& [name, tensor] : tensors_)
      if (const auto names = formats::names_of(name); std::ranges::count(names, weight) > 0)
        return tensor;
    return only_tensor_ending(weight);
  }

  // Where the files of a model and of the adapter begin the same names otherwise, as "visual." and
  // "model.visual.", the one name of which the other is the end.
  const SourceTensor* only_tensor_ending(const std::string& weight) const {
    const SourceTensor* only = nullptr;
    for (const auto& [name, tensor] : tensors_) {
      if (!name.ends_with("." + weight) && !weight.ends_with("." + name)) continue;
      if (only != nullptr) return nullptr;
      only = tensor;
    }
    return only;
  }

  const SourceTensor& base_tensor(const std::string& weight) const {
    if (const SourceTensor* found = find_tensor(weight)) return *found;
    std::vector<std::string_view> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    const auto nearest = base::nearest_name(weight, names);
    fail(
        "the adapter changes '{}', and the model has no such tensor{}: it is an adapter of another "
        "model. Merging the rest of it would give a model that was never trained; give the model "
        "that it was trained on as model=",
        weight, nearest ? fmt::format(" (the nearest is '{}')", *nearest) : "");
  }

  void settle_stack() {
    stack_ = models::stack_of(*base_.model());
    embedding_ = models::embedding_weight(stack_);
    head_ = models::head_weight(stack_);
    options_ = methods::method_of(formats::Method::lora)
                   .options(formats::read_adapter_config(folder_))
                   .lora;
    plan::add_adapter_tables(*changes_.model_, folder_, options_);
    for (const models::Weight& weight : models::file_weights_of(stack_))
      if (weight.transposed) transposed_.insert(weight.name);
  }

  // PEFT warns of modules that its config selects and its file lacks, and applies the rest.
  void check_targets() const {
    std::unordered_set<std::string> held;
    for (const LoraModule& module : adapter_.modules())
      for (const std::string& name : formats::names_of(weight_of(module.module))) held.insert(name);
    for (const std::string& written : options_.target_modules) {
      const methods::LoraTarget target(written);
      for (const models::Weight& weight : models::weights_of(stack_)) {
        const std::string module = weight.name.substr(0, weight.name.rfind('.'));
        const bool is_table = weight.name == embedding_ || weight.name == head_;
        const bool is_selected = is_table ? target.selects_by_name(module)
                                          : weight.is_linear() && target.selects_linear(module);
        if (is_selected && !held.contains(weight.name))
          fail(
              "the adapter has no '{}', which its adapter_config.json selects in this model. Is "
              "the file whole, and an adapter of this model? Fetch or save it anew, or take what "
              "was never trained out of its target_modules",
              module);
      }
    }
  }

  bool adapts(const std::string& weight) const {
    return std::ranges::any_of(adapter_.modules(), [&](const LoraModule& module) {
      return weight_of(module.module) == weight;
    });
  }

  // A head that was the embedding is one of its own where only one of them has an adapter, or
  // each has another.
  void add_own_head() {
    models::ModelConfig& model = *changes_.model_;
    if (!stack_.tied_head) return;
    const bool differ = (adapts(embedding_) || adapts(head_)) && !adapter_.config().ties_adapters;
    if (model.tied_embeddings && !differ) return;
    model.tied_embeddings = false;
    model.head_from_embedding = false;
    const SourceTensor& table = base_tensor(embedding_);
    OwnHead head;
    head.embedding = &table;
    head.name = head_;
    if (!table.weight.empty()) {
      head.weight = head_;
      head.name = wrapped_head(table);
    }
    changes_.own_head_ = std::move(head);
  }

  // The name of the head in the files of a multimodal model. A prefix that stands before the text
  // model's names is the head's too ("language_model.model.embed_tokens"); one within them is not
  // ("model.language_model.embed_tokens").
  std::string wrapped_head(const SourceTensor& table) const {
    if (!table.name.ends_with("." + table.weight)) return head_;
    return table.name.substr(0, table.name.size() - table.weight.size()) + head_;
  }

  WeightChange& change_of(const std::string& weight) {
    const bool is_head = std::ranges::count(formats::names_of(head_), weight) > 0;
    if (changes_.own_head_ && is_head) return changes_.own_head_->change;
    return changes_.changes_[&base_tensor(weight)];
  }

  void replace(const std::string& held, const SourceTensor& tensor, const std::string& weight) {
    const IndexedTensor* values = formats::find_table(changes_.files_, held);
    SNUG_CHECK(values != nullptr, "{} is held by the adapter", held);
    check_replacement(*values, tensor, weight);
    changes_.changes_[&tensor].whole = values;
  }

  void check_replacement(const IndexedTensor& values, const SourceTensor& tensor,
                         const std::string& weight) const {
    std::vector<int64_t> expected = tensor.shape;
    const bool is_table = weight == embedding_ || weight == head_;
    const bool is_of_head = is_table || weight == models::bias_name(stack_.head);
    if (is_of_head && !expected.empty()) expected.front() = changes_.model_->vocab_size;
    if (values.info->shape == expected && values.info->dtype && base::is_float(*values.info->dtype))
      return;
    fail("tensor '{}' is {} of {}; expected floats of {}, as the model has them", values.info->name,
         formats::shape_text(values.info->shape), values.info->stored_dtype,
         formats::shape_text(expected));
  }

  // The tables and other weights that the adapter holds whole. Those that it holds and that are not
  // used equal others that are (plan/spec/adapter_tables.cpp).
  void add_tables() {
    const auto& from_adapter = changes_.model_->from_adapter;
    for (const std::string& name : from_adapter) {
      const IndexedTensor* values = find_held(name);
      if (values == nullptr && name == embedding_) values = find_held(head_);
      SNUG_CHECK(values != nullptr, "{} is held by the adapter", name);
      const bool is_own_head = changes_.own_head_ && name == head_;
      const SourceTensor& tensor = is_own_head ? *changes_.own_head_->embedding : base_tensor(name);
      check_replacement(*values, tensor, name);
      change_of(name).whole = values;
    }
    for (const std::string& name : adapter_.saved()) {
      // "lm_head", where the model has the name of an earlier version of transformers.
      const bool is_renamed =
          name != head_ && std::ranges::count(formats::names_of(head_), name) > 0;
      if (is_renamed && !stack_.tied_head) {
        replace(name, base_tensor(name), head_);
        continue;
      }
      const bool is_table =
          name == embedding_ || std::ranges::count(formats::names_of(head_), name);
      if (is_table || std::ranges::count(from_adapter, name) > 0) continue;
      if (is_of_model(adapter_, name) || formats::is_of_other_part(name))
        replace(name, base_tensor(name), name);
    }
  }

  const IndexedTensor* find_held(const std::string& weight) const {
    for (const std::string& name : formats::names_of(weight))
      if (const IndexedTensor* held = formats::find_table(changes_.files_, name)) return held;
    return nullptr;
  }

  bool is_transposed(const LoraModule& module, const SourceTensor& tensor) const {
    if (module.is_embedding) return true;
    if (base_.model() != nullptr) return transposed_.contains(tensor.weight_name());
    const std::string path = (folder_ / formats::kAdapterConfigName).string();
    const nlohmann::json document = base::read_json_file(path);
    return base::JsonObject(document, path).boolean_or("fan_in_fan_out", false);
  }

  void add_products() {
    for (const LoraModule& module : adapter_.modules()) {
      const std::string parameter =
          formats::wrapped_parameter(module.module, adapter_.config().target_parameters);
      if (parameter != module.module) {
        add_expert_products(module, parameter);
        continue;
      }
      const std::string weight = weight_of(module.module);
      if (skips_tied_head(weight)) continue;
      WeightChange& change = change_of(weight);
      const SourceTensor& tensor =
          is_own_head(change) ? *changes_.own_head_->embedding : base_tensor(weight);
      add_product(module, tensor, change);
    }
  }

  // Where adapters of embedding and head are one, the embedding's is added to their one table.
  bool skips_tied_head(const std::string& weight) const {
    return base_.model() != nullptr && stack_.tied_head && !changes_.own_head_ && weight == head_;
  }

  bool is_own_head(const WeightChange& change) const {
    return changes_.own_head_ && &change == &changes_.own_head_->change;
  }

  void add_product(const LoraModule& module, const SourceTensor& tensor, WeightChange& change) {
    const formats::TensorIndex& files = changes_.files_;
    LoraChange lora{.a = &files.at(formats::lora_a_key(module)),
                    .b = &files.at(formats::lora_b_key(module)),
                    .is_transposed = is_transposed(module, tensor),
                    .is_embedding = module.is_embedding,
                    .r = module.r};
    lora.scale = static_cast<float>(formats::lora_scale(adapter_.config().size_of(module.module),
                                                        adapter_.config().use_rslora));
    if (adapter_.config().use_dora && !module.is_embedding)
      lora.magnitude = &files.at(formats::lora_magnitude_key(module.module));
    std::vector<int64_t> expected{module.out_features, module.in_features};
    if (lora.is_transposed) std::swap(expected[0], expected[1]);
    const std::vector<int64_t>& shape =
        change.whole == nullptr ? tensor.shape : change.whole->info->shape;
    if (shape != expected)
      fail(
          "the adapter of '{}' is of a weight of {}; the model's is {}, so that it is an adapter "
          "of another model",
          module.module, formats::shape_text(expected), formats::shape_text(shape));
    change.lora = lora;
  }

  // Adds the product to each tensor of the files that holds matrices of these experts.
  void add_expert_products(const LoraModule& module, const std::string& parameter) {
    for (const models::Weight& weight : models::weights_of(stack_)) {
      if (!weight.is_of_matrices() || formats::expert_parameter(weight.name) != parameter) continue;
      const auto pieces = models::file_pieces(weight.name, weight.shape);
      for (const models::FilePiece& piece : pieces) add_expert_product(module, weight, piece);
      return;
    }
    fail(
        "the adapter changes '{}', and the model has no such experts: it is an adapter of another "
        "model; give the model that it was trained on as model=",
        parameter);
  }

  // Whether files hold matrices of experts as (in, out).
  bool holds_experts_transposed() const {
    for (const models::Layer& layer : stack_.layers)
      for (const models::Branch& branch : layer.branches)
        if (const auto* block = std::get_if<models::ExpertsBlock>(&branch.block))
          return block->files == models::ExpertFiles::together;
    return false;
  }

  void add_expert_product(const LoraModule& module, const models::Weight& weight,
                          const models::FilePiece& piece) {
    const formats::TensorIndex& files = changes_.files_;
    const bool is_transposed = holds_experts_transposed();
    std::vector<int64_t> expected{module.experts, module.out_features, module.in_features};
    if (is_transposed) std::swap(expected[1], expected[2]);
    const std::vector<int64_t> held{weight.shape[0], weight.shape[1], weight.shape[2]};
    if (held != expected)
      fail(
          "the adapter of '{}' is of experts' matrices of {}; the model's are {}, so that it is an "
          "adapter of another model",
          module.module, formats::shape_text(expected), formats::shape_text(held));
    LoraChange lora{.a = &files.at(formats::lora_a_key(module)),
                    .b = &files.at(formats::lora_b_key(module)),
                    .is_transposed = is_transposed,
                    .r = module.r};
    lora.scale = static_cast<float>(formats::lora_scale(adapter_.config().size_of(module.module),
                                                        adapter_.config().use_rslora));
    lora.experts = module.experts;
    if (piece.shape.rank() == 2) {
      const int64_t matrix = weight.shape[1] * weight.shape[2];
      lora.expert = piece.first / matrix;
      lora.first_out = piece.first % matrix / weight.shape[2];
    }
    changes_.changes_[&base_tensor(piece.name)].lora = lora;
  }

  void add_rows() {
    for (const auto& [weight, tokens] : options_.token_rows) {
      WeightChange& change = change_of(weight);
      change.rows = &changes_.files_.at(formats::token_rows_key(weight));
      change.tokens = tokens;
    }
  }

  void refuse_rows() const {
    if (!adapter_.config().token_rows.empty())
      fail(
          "trainable_token_indices replaces rows of a table, which Snug merges only into models "
          "that it knows ({}); merge it with PEFT (merge_and_unload)",
          models::family_names());
  }

  // In a model that Snug does not know, the head may be the embedding, which then changes with it.
  void refuse_unknown_tie() const {
    const nlohmann::json* part = models::text_part(base_.config());
    const nlohmann::json& text = part == nullptr ? base_.config() : *part;
    const bool is_tied = base_.config().value("tie_word_embeddings", false) ||
                         text.value("tie_word_embeddings", false) || !has_head();
    for (const auto& [tensor, change] : changes_.changes_) {
      const bool is_table =
          change.lora ? change.lora->is_embedding : tensor->name.find("embed") != std::string::npos;
      if (is_tied && (is_table || is_head_name(tensor->name)))
        fail(
            "the adapter changes '{}', and in this model, of which Snug has no family, the head "
            "may be the embedding; merge it with PEFT (merge_and_unload)",
            tensor->name);
    }
  }

  static bool is_head_name(const std::string& name) {
    return name.ends_with("lm_head.weight") || name.ends_with("embed_out.weight");
  }
  bool has_head() const {
    return std::ranges::any_of(
        base_.tensors(), [](const SourceTensor& tensor) { return is_head_name(tensor.name); });
  }

  AdapterChanges& changes_;
  const PeftAdapter& adapter_;
  const WeightSource& base_;
  const fs::path& folder_;
  std::unordered_map<std::string, const SourceTensor*> tensors_;
  models::Stack stack_;
  std::string embedding_;
  std::string head_;
  methods::LoraOptions options_;
  std::unordered_set<std::string> transposed_;
};

AdapterChanges::AdapterChanges(const WeightSource& base, const fs::path& adapter)
    : others_(other_parts_of(base)),
      adapter_(checked_kind(adapter), others_),
      files_(formats::open_adapter_index(adapter)) {
  Finder(*this, base, adapter).find();
}

const WeightChange* AdapterChanges::of(const SourceTensor& tensor) const {
  const auto found = changes_.find(&tensor);
  return found == changes_.end() || found->second.is_empty() ? nullptr : &found->second;
}

}  // namespace snug::convert
