#include "models/stored/stored_nf4.h"

#include "base/error.h"
#include "formats/quantization/quant_state.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::models {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;

// A weight in 4 bits, and the content of its JSON.
struct Quantised {
  std::string weight;
  bool double_quant = false;
};

std::string where(const TensorIndex& index, const std::string& name) {
  return fmt::format("{}: tensor '{}'", index.path_of(index.at(name)).string(), name);
}

std::string state_name(const std::string& weight) {
  return fmt::format("{}{}", weight, formats::kStateSuffix);
}

std::string config_path(const TensorIndex& index) {
  return (index.folder() / "config.json").string();
}

const char* storage_of(bool double_quant) {
  return double_quant ? "double quantised" : "quantised once, not double";
}

[[noreturn]] void fail_no_linear(const TensorIndex& index, const std::string& weight) {
  base::throw_user_error(
      "{}: '{}' is stored in 4 bits; snug keeps all but the linears of layers and a head of its "
      "own "
      "in 16. Quantise the 16-bit folder again: snug quantize leaves the others alone",
      index.folder().string(), weight);
}

[[noreturn]] void fail_mixed(const TensorIndex& index, const Quantised& first,
                             const Quantised& other) {
  base::throw_user_error(
      "{} is {}, but '{}' is {}; snug reads folders whose linears are all stored in one way. "
      "Quantise the 16-bit folder again: snug quantize model=FOLDER output_dir=FOLDER",
      where(index, state_name(other.weight)), storage_of(other.double_quant), first.weight,
      storage_of(first.double_quant));
}

[[noreturn]] void fail_contradiction(const TensorIndex& index, const Quantised& first) {
  base::throw_user_error(
      "{} is {}, but {} says bnb_4bit_use_double_quant = {} (false where the key is absent). If "
      "the "
      "files are the ones you want, set it to {} there",
      where(index, state_name(first.weight)), storage_of(first.double_quant), config_path(index),
      !first.double_quant, first.double_quant);
}

[[noreturn]] void fail_unannounced(const TensorIndex& index, const std::string& part,
                                   const std::string& weight) {
  const auto state = formats::find_quant_state(index, weight);
  base::throw_user_error(
      "{} belongs to a weight stored in 4 bits, but {} has no quantization_config. Copy that of "
      "the "
      "folder it came from, or set \"quantization_config\": {{\"quant_method\": \"bitsandbytes\", "
      "\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": "
      "{}}}",
      where(index, part), config_path(index), state && state->nested());
}

void check_unquantised(const TensorIndex& index) {
  for (const IndexedTensor& tensor : index.tensors())
    if (const auto weight = formats::weight_of_part(tensor.info->name))
      fail_unannounced(index, tensor.info->name, std::string(*weight));
}

}  // namespace

std::optional<StoredNf4> stored_nf4(const std::filesystem::path& folder,
                                    const ModelConfig& config) {
  if (!config.stored) {
    if (TensorIndex::has_files(folder)) check_unquantised(TensorIndex(folder));
    return std::nullopt;
  }
  const Stack stack = stack_of(config);
  const TensorIndex index = open_weights(folder, stack);
  const std::string own_head = stack.tied_head ? "" : head_weight(stack);
  std::optional<Quantised> first;
  StoredNf4 stored{.kept = matrices_in_16_bits(stack)};
  for (const Weight& weight : file_weights_of(stack)) {
    const auto state = formats::find_quant_state(index, weight.name);
    if (!state) {
      if (weight.is_quantised()) stored.kept.push_back(weight.name);
      continue;
    }
    if (weight.name == own_head)
      stored.head = weight.name;
    else if (!weight.is_quantised())
      fail_no_linear(index, weight.name);
    const Quantised linear{weight.name, state->nested()};
    if (!first) first = linear;
    if (linear.double_quant != first->double_quant) fail_mixed(index, *first, linear);
  }
  if (!first && find_family(config.model_type)->elsewhere.own_linear_class) return std::nullopt;
  if (!first)
    base::throw_user_error(
        "{} has a quantization_config, but no linear of {} is stored as NF4. If its weights are in "
        "16 or 32 bits, remove the quantization_config",
        config_path(index), folder.string());
  if (first->double_quant != config.stored->double_quant) fail_contradiction(index, *first);
  stored.double_quant = first->double_quant;
  return stored;
}

}  // namespace snug::models
