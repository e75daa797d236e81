#include "plan/spec/adapter_tables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "formats/adapter/adapter_config.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_modules.h"
#include "formats/adapter/peft_adapter.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::plan {
namespace {

namespace fs = std::filesystem;
using formats::LoraModule;
using formats::PeftAdapter;
using formats::TensorInfo;
using Rows = std::map<std::string, std::vector<int64_t>, std::less<>>;

bool is_lora(const fs::path& folder) {
  return std::holds_alternative<formats::LoraConfig>(formats::read_adapter_config(folder));
}

std::string_view module_of(std::string_view weight) { return weight.substr(0, weight.rfind('.')); }

bool hold_same(const formats::SafetensorsFile& file, const TensorInfo& a, const TensorInfo& b) {
  if (a.shape != b.shape || a.stored_dtype != b.stored_dtype) return false;
  constexpr int64_t kPiece = int64_t{4} << 20;
  std::vector<char> of_a(static_cast<size_t>(std::min(a.bytes(), kPiece)));
  std::vector<char> of_b(of_a.size());
  for (int64_t first = 0; first < a.bytes(); first += kPiece) {
    const int64_t bytes = std::min(kPiece, a.bytes() - first);
    file.read_range(a, first, bytes, of_a.data());
    file.read_range(b, first, bytes, of_b.data());
    if (!std::equal(of_a.begin(), of_a.begin() + bytes, of_b.begin())) return false;
  }
  return true;
}

class AdapterTables {
 public:
  AdapterTables(const models::ModelConfig& model, const fs::path& folder)
      : adapter_(folder),
        stack_(models::stack_of(model)),
        embedding_(models::embedding_weight(stack_)),
        head_(models::head_weight(stack_)) {}

  models::ModelConfig applied_to(models::ModelConfig model) const {
    check_known();
    if (parts_tie()) {
      model.tied_embeddings = false;
      model.head_from_embedding = true;
      const auto width = model.other_widths.find(embedding_);
      if (width != model.other_widths.end()) model.other_widths.emplace(head_, width->second);
    }
    if (holds(embedding_)) model.from_adapter.push_back(embedding_);
    if (holds(head_)) add_head(model);
    if (model.stored && std::ranges::count(model.from_adapter, model.stored->head) > 0)
      model.stored->head.clear();
    settle_vocabulary(model);
    return model;
  }

  // The replaced rows, by weight. Rows of the head count as the embedding's if the two remain tied.
  Rows rows() const {
    Rows rows;
    for (const formats::TokenRows& given : adapter_.config().token_rows)
      rows.emplace(table_of(given.module), given.tokens);
    const auto of_head = rows.find(head_);
    const auto of_embedding = rows.find(embedding_);
    const bool are_alike = of_head != rows.end() && of_embedding != rows.end() &&
                           of_head->second == of_embedding->second;
    if (stack_.tied_head && are_alike) rows.erase(of_head);
    return rows;
  }

  // Whether an entry of target_modules names a module of the file or of the model. An adapter of a
  // larger model may also name modules that this model lacks; those that it has must be in the
  // file.
  bool has_target(const std::string& target) const {
    const auto is_named = [&](std::string_view module) {
      return module == target || module.ends_with("." + target);
    };
    const auto is_named_weight = [&](const models::Weight& weight) {
      return weight.is_linear() && is_named(module_of(weight.name));
    };
    return target == formats::kAllLinear || is_named(module_of(embedding_)) ||
           is_named(stack_.head) ||
           std::ranges::any_of(adapter_.modules(), is_named, &formats::LoraModule::module) ||
           std::ranges::any_of(models::weights_of(stack_), is_named_weight);
  }

  std::vector<std::string> missing_modules() const {
    std::vector<std::string> linears;
    for (const models::Weight& weight : models::weights_of(stack_))
      if (weight.is_linear()) linears.emplace_back(module_of(weight.name));
    return formats::missing_modules(adapter_.folder(), linears);
  }

  // Whether this entry of modules_to_save selects only the head, and the head is the embedding.
  bool is_tied_head(const std::string& module) const {
    return stack_.tied_head && formats::is_of_module(head_, {module}) &&
           !formats::is_of_module(embedding_, {module});
  }

  // Of a head that is the embedding PEFT has both adapters from one (ensure_weight_tying). Those of
  // its files are one; a file with others, or with one alone, is not what it says.
  void tie_adapters(std::vector<std::string>& targets) const {
    if (!stack_.tied_head || !adapter_.config().ties_adapters) return;
    const std::string embedding(module_of(embedding_));
    const LoraModule* of_embedding = module_named(embedding);
    const LoraModule* of_head = module_named(stack_.head);
    if (of_embedding == nullptr || of_head == nullptr || !of_embedding->is_embedding ||
        of_head->is_embedding)
      fail(
          "ensure_weight_tying in adapter_config.json ties the adapters of '{}' and '{}', which "
          "are one tensor, and the file does not hold both, as PEFT writes them; save the adapter "
          "with PEFT anew, or say ensure_weight_tying: false there",
          embedding, stack_.head);
    if (!are_transposed(adapter_.lora_a(*of_embedding), adapter_.lora_b(*of_head)) ||
        !are_transposed(adapter_.lora_a(*of_head), adapter_.lora_b(*of_embedding)))
      fail(
          "ensure_weight_tying in adapter_config.json ties the adapters of '{}' and '{}', which "
          "are one tensor, but the file holds others for each; PEFT would take one for both. Say "
          "ensure_weight_tying: false there to have each",
          embedding, stack_.head);
    targets.push_back(embedding);
    targets.push_back(stack_.head);
  }

  void check_rows(const Rows& rows) const {
    for (const auto& [weight, tokens] : rows) {
      const std::string key = formats::token_rows_key(weight);
      const TensorInfo& stored = adapter_.file().at(key);
      const std::vector<int64_t> expected{std::ssize(tokens), stack_.hidden_size};
      if (stored.shape != expected)
        fail("tensor '{}' has shape {}; expected {}, as trainable_token_indices and the model say",
             key, formats::shape_text(stored.shape), formats::shape_text(expected));
      const int64_t last = *std::ranges::max_element(tokens);
      if (last >= stack_.vocab_size)
        fail(
            "the adapter replaces the row of token {}, and the model has {} tokens: its vocabulary "
            "was resized before the adapter was trained. Resize the model and save it with "
            "transformers (resize_token_embeddings), or save the adapter with "
            "save_embedding_layers=True",
            last, stack_.vocab_size);
    }
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    base::throw_user_error("{}: {}", adapter_.file().path().string(),
                           fmt::format(format, std::forward<Args>(args)...));
  }

  bool holds(const std::string& weight) const {
    return std::ranges::count(adapter_.saved(), weight) > 0;
  }
  const LoraModule* module_named(std::string_view module) const {
    const auto found = std::ranges::find(adapter_.modules(), module, &LoraModule::module);
    return found == adapter_.modules().end() ? nullptr : &*found;
  }

  // Row by row of the first; the other is read in pieces of as many rows as a piece holds.
  bool are_transposed(const TensorInfo& wide, const TensorInfo& tall) const {
    const int64_t rows = wide.shape[0];
    const int64_t columns = wide.shape[1];
    if (tall.shape != std::vector<int64_t>{columns, rows}) return false;
    if (wide.stored_dtype != tall.stored_dtype) return false;
    const int64_t bytes = wide.bytes() / (rows * columns);
    constexpr int64_t kColumns = 4096;
    std::vector<char> row(static_cast<size_t>(std::min(kColumns, columns) * bytes));
    std::vector<char> piece(row.size() * static_cast<size_t>(rows));
    for (int64_t first = 0; first < columns; first += kColumns) {
      const int64_t count = std::min(kColumns, columns - first);
      adapter_.file().read_range(tall, first * rows * bytes, count * rows * bytes, piece.data());
      for (int64_t i = 0; i < rows; ++i) {
        adapter_.file().read_range(wide, (i * columns + first) * bytes, count * bytes, row.data());
        for (int64_t j = 0; j < count; ++j)
          if (std::memcmp(&row[j * bytes], &piece[(j * rows + i) * bytes], bytes) != 0)
            return false;
      }
    }
    return true;
  }

  bool trains(const std::string& weight) const {
    return formats::is_of_module(weight, adapter_.config().modules_to_save);
  }

  // Whether the tie ends: one of the two tables is trained as a copy, or has other rows.
  bool parts_tie() const {
    if (!stack_.tied_head) return false;
    const bool trains_copy = trains(embedding_) || trains(head_);
    return (trains_copy && !adapter_.config().ties_tables) || rows().contains(head_);
  }

  std::string table_of(const std::string& module) const {
    if (module.empty()) return embedding_;
    for (const std::string& weight : {embedding_, head_})
      if (formats::is_of_module(weight, {module})) return weight;
    fail(
        "trainable_token_indices in adapter_config.json names \"{}\", which is neither the "
        "embedding nor the head of this model ({}, {})",
        module, embedding_, head_);
  }

  void check_known() const {
    for (const std::string& name : adapter_.saved()) {
      const bool is_classifier = formats::is_of_module(name, {"score", "classifier"});
      const bool is_bias = stack_.head_bias && name == models::bias_name(stack_.head);
      const bool is_known = name == embedding_ || name == head_ || is_bias || trains(name);
      if (is_known && !is_classifier) continue;
      fail("the adapter holds '{}', {}", name,
           is_classifier
               ? "the head of a classifier (task_type SEQ_CLS); Snug's models have the head that "
                 "predicts tokens"
               : "which is neither of the adapter nor a table of the model that PEFT saves next to "
                 "one (embedding, head); merge the adapter into its model with PEFT");
    }
  }

  // If the head is the embedding, PEFT loads either table, or both, into the same tensor.
  void add_head(models::ModelConfig& model) const {
    const std::string& weight = model.tied_embeddings ? embedding_ : head_;
    if (!model.tied_embeddings || !holds(embedding_)) model.from_adapter.push_back(weight);
    if (stack_.head_bias && holds(models::bias_name(stack_.head)))
      model.from_adapter.push_back(models::bias_name(stack_.head));
    const bool has_both = model.tied_embeddings && holds(embedding_);
    if (has_both && !hold_same(adapter_.file(), adapter_.saved_tensor(head_),
                               adapter_.saved_tensor(embedding_)))
      fail(
          "the adapter holds an embedding '{}' and another head '{}', and this model's are one "
          "tensor; name both in modules_to_save, with which PEFT keeps them apart, or merge the "
          "adapter into its model with PEFT",
          embedding_, head_);
  }

  // The number of rows that the adapter's file has for a weight.
  int64_t rows_of(const std::string& weight) const {
    const bool is_held_as_head = weight == embedding_ && !holds(embedding_);
    return adapter_.saved_tensor(is_held_as_head ? head_ : weight).shape.front();
  }

  // Requires that all tables have the same number of rows, and that a resized head's bias is there
  // too.
  void settle_vocabulary(models::ModelConfig& model) const {
    int64_t vocabulary = model.vocab_size;
    for (const std::string& weight : model.from_adapter)
      if (rows_of(weight) != model.vocab_size) vocabulary = rows_of(weight);
    if (vocabulary == model.vocab_size) return;
    const size_t tables = (model.tied_embeddings ? 1 : 2) + (stack_.head_bias ? 1 : 0);
    const auto is_of_size = [&](const std::string& weight) {
      return rows_of(weight) == vocabulary;
    };
    const bool has_all =
        model.from_adapter.size() == tables && std::ranges::all_of(model.from_adapter, is_of_size);
    if (!has_all)
      fail(
          "'{}' has {} rows, and the model has {} tokens: it is an adapter of another model, or "
          "the vocabulary was resized before it was trained, and it does not hold the rest of that "
          "(embedding and head). If so, resize the model and save it with transformers "
          "(resize_token_embeddings)",
          model.from_adapter.front(), vocabulary, model.vocab_size);
    model.vocab_size = vocabulary;
  }

  const PeftAdapter adapter_;
  const models::Stack stack_;
  const std::string embedding_;
  const std::string head_;
};

}  // namespace

void say_left_out(const fs::path& adapter, formats::OtherParts others) {
  const bool has_lora = is_lora(adapter);
  const std::vector<std::string> files = formats::other_weights(adapter);
  if (!files.empty())
    base::say(
        "{}: not read: {}: weights next to the adapter that PEFT does not load with it, either; "
        "where the adapter was trained together with them (a projector, embeddings, a head), the "
        "model is not the one that was trained",
        adapter.string(), fmt::join(files, ", "));
  if (!has_lora || others == formats::OtherParts::kept) return;
  const std::vector<std::string> left_out = PeftAdapter(adapter).left_out();
  if (!left_out.empty())
    base::say(
        "{}: {} tensors are left out, '{}' first: they are of the part of a multimodal model that "
        "reads images or sounds, which this model does not have",
        adapter.string(), left_out.size(), left_out.front());
}

models::ModelConfig with_adapter_tables(const models::ModelConfig& model, const fs::path& adapter,
                                        formats::OtherParts others) {
  say_left_out(adapter, others);
  if (!is_lora(adapter)) return model;
  return AdapterTables(model, adapter).applied_to(model);
}

void add_adapter_tables(const models::ModelConfig& model, const fs::path& adapter,
                        methods::LoraOptions& options) {
  const AdapterTables tables(model, adapter);
  options.tables = model.from_adapter;
  options.head = models::stack_of(model).head;
  std::erase_if(options.target_modules,
                [&](const std::string& target) { return !tables.has_target(target); });
  // Includes modules that the file lacks, which are refused when file and job are compared.
  for (std::string& module : tables.missing_modules())
    options.target_modules.push_back(std::move(module));
  tables.tie_adapters(options.target_modules);
  std::erase_if(options.modules_to_save,
                [&](const std::string& module) { return tables.is_tied_head(module); });
  options.token_rows = tables.rows();
  tables.check_rows(options.token_rows);
}

}  // namespace snug::plan
