#include "convert/source/expanded_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>

#include "base/error.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

using models::ModelConfig;
using models::Stack;
using nlohmann::json;

// A tensor of the base in the layers of the result: of the original, and of the copy if there is
// one.
struct LayerPlaces {
  int64_t original = 0;
  std::optional<int64_t> copy{};
};

// Where a tensor of the result comes from.
struct ExpandedTensor {
  const SourceTensor* base = nullptr;
  bool is_zero = false;
};

const ModelConfig& expandable(const WeightSource& base, int64_t new_layers) {
  const ModelConfig* model = base.model();
  const std::string folder = base.companions().string();
  const bool is_inside = model != nullptr && std::ranges::any_of(base.tensors(), [](const auto& t) {
                           return t.weight_name() != t.name;
                         });
  if (model == nullptr || is_inside)
    base::throw_user_error(
        "{}: layers are added to text models that stand alone; this folder has one inside a larger "
        "model, or none that is known",
        folder);
  if (model->has_encoder())
    base::throw_user_error(
        "{}: the model has an encoder and a decoder; layers are added to decoders alone", folder);
  const Stack stack = models::stack_of(*model);
  const bool has_factors = std::ranges::any_of(
      stack.layers, [](const models::Layer& layer) { return !layer.factor.empty(); });
  if (has_factors || stack.layer_inputs)
    base::throw_user_error(
        "{}: layers of this model have a factor for all that passes them, or an input of their own "
        "(Gemma 4), so that no copy of one leaves the stream as it is; layers are added to models "
        "without them",
        folder);
  const int64_t layers = model->num_layers;
  if (new_layers >= 1 && layers % new_layers == 0) return *model;
  std::vector<int64_t> divisors;
  divisors.reserve(static_cast<size_t>(layers));
  for (int64_t number = 1; number <= layers; ++number)
    if (layers % number == 0) divisors.push_back(number);
  base::throw_user_error(
      "num_new_layers: is {}, and the model has {} layers, of which every (layers / "
      "num_new_layers)-th is copied; give one of {}",
      new_layers, layers, fmt::join(divisors, ", "));
}

// The names in a layer of what makes a block's output: the last linear, and the bias of a norm that
// comes after the block.
std::set<std::string> output_names(const models::Layer& layer) {
  std::set<std::string> names;
  const auto add = [&](const std::string& module) {
    names.insert(models::weight_name(module));
    names.insert(models::bias_name(module));
  };
  for (const models::Branch& branch : layer.branches) {
    std::visit(
        [&]<typename Block>(const Block& block) {
          if constexpr (requires { block.output; }) {
            add(block.output.module);
          } else if constexpr (std::is_same_v<Block, models::ExpertsBlock>) {
            names.insert(models::down_name(block));
            if (block.bias) names.insert(models::down_bias_name(block));
            if (block.shared) add(block.shared->mlp.down.module);
          } else {
            add(block.down.module);
          }
        },
        branch.block);
    if (branch.norm_after && branch.norm_after->bias)
      names.insert(models::bias_name(branch.norm_after->module));
  }
  return names;
}

// What a layer does besides its weights.
bool do_the_same(const models::Layer& one, const models::Layer& other) {
  if (one.parallel != other.parallel || one.branches.size() != other.branches.size()) return false;
  for (size_t i = 0; i < one.branches.size(); ++i) {
    const models::Block& a = one.branches[i].block;
    const models::Block& b = other.branches[i].block;
    if (a.index() != b.index()) return false;
    const auto* of_one = std::get_if<models::AttentionBlock>(&a);
    if (of_one == nullptr) continue;
    const auto& of_other = std::get<models::AttentionBlock>(b);
    if (of_one->head_dim != of_other.head_dim || of_one->keys_of_layer || of_other.keys_of_layer ||
        of_one->window != of_other.window || of_one->scale != of_other.scale ||
        of_one->rotated != of_other.rotated || of_one->local_rotary != of_other.local_rotary)
      return false;
  }
  return true;
}

}  // namespace

class ExpandedWeights::Impl {
 public:
  Impl(const WeightSource& base, int64_t new_layers)
      : base_(base),
        old_(expandable(base, new_layers)),
        every_(old_.num_layers / new_layers),
        config_(base.config()) {
    for (int64_t layer = every_; layer <= old_.num_layers; layer += every_)
      new_layers_.push_back(place_of(layer - 1).original + 1);
    expand_config();
    model_ = models::parse_config(config_.dump(), base.companions().string() + "/config.json");
    model_.tied_embeddings = old_.tied_embeddings;
    model_.experts_in_one = old_.experts_in_one;
    check_layers();
    list();
  }

  const WeightSource& base() const { return base_; }
  const json& config() const { return config_; }
  const ModelConfig& model() const { return model_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const std::vector<int64_t>& new_layers() const { return new_layers_; }

  int64_t stored_bytes() const {
    int64_t bytes = base_.stored_bytes();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (is_copy_[i] && !made_of_[i].is_zero)
        bytes += tensors_[i].elements() * base::size_of(tensors_[i].dtype);
    return bytes;
  }

  const ExpandedTensor& origin_of(const SourceTensor& tensor) const {
    const auto place = static_cast<size_t>(&tensor - tensors_.data());
    SNUG_CHECK(place < tensors_.size(), "{} is no tensor of this source", tensor.name);
    return made_of_[place];
  }

 private:
  // Where a layer of the base stands in the result.
  LayerPlaces place_of(int64_t layer) const {
    LayerPlaces places{.original = layer + layer / every_};
    if ((layer + 1) % every_ == 0) places.copy = places.original + 1;
    return places;
  }

  void expand_config() {
    const int64_t layers = old_.num_layers + std::ssize(new_layers_);
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers"})
      if (config_.contains(key)) config_[key] = layers;
    if (const auto types = config_.find("layer_types"); types != config_.end() && types->is_array())
      *types = repeated(*types);
    if (const auto dense = config_.find("mlp_only_layers");
        dense != config_.end() && dense->is_array())
      *dense = renumbered(*dense);
  }

  // A list with an entry for each layer.
  json repeated(const json& of_layers) const {
    json result = json::array();
    for (int64_t layer = 0; layer < std::ssize(of_layers); ++layer) {
      result.push_back(of_layers[static_cast<size_t>(layer)]);
      if (place_of(layer).copy) result.push_back(of_layers[static_cast<size_t>(layer)]);
    }
    return result;
  }

  // A list of layers.
  json renumbered(const json& layers) const {
    json result = json::array();
    for (const json& layer : layers) {
      const LayerPlaces places = place_of(layer.get<int64_t>());
      result.push_back(places.original);
      if (places.copy) result.push_back(*places.copy);
    }
    return result;
  }

  void check_layers() const {
    const Stack before = models::stack_of(old_);
    const Stack after = models::stack_of(model_);
    SNUG_CHECK_EQ(after.layer_count(), before.layer_count() + std::ssize(new_layers_));
    for (int64_t layer = 0; layer < before.layer_count(); ++layer) {
      const LayerPlaces places = place_of(layer);
      for (const int64_t place : {places.original, places.copy.value_or(places.original)})
        if (!do_the_same(before.layer(layer), after.layer(place)))
          base::throw_user_error(
              "{}: layers of this model differ by a rule that goes by their numbers (windows, "
              "scales or experts), so that layer {} would do something else as layer {}; "
              "num_new_layers is for models whose layers are alike or whose config.json has "
              "layer_types",
              base_.companions().string(), layer, place);
    }
  }

  // The base's tensors in their order, those of a copied layer each followed by its copy.
  void list() {
    const Stack stack = models::stack_of(old_);
    std::unordered_map<std::string, int64_t> layers;  // by the names of the layers' tensors
    std::set<std::string> outputs;
    for (const models::Weight& weight : models::weights_of(stack)) {
      if (weight.layer < 0) continue;
      const std::string in_layer = weight.name.substr(stack.layer_name(weight.layer).size() + 1);
      const bool is_output = output_names(stack.layer(weight.layer)).contains(in_layer);
      for (models::FilePiece& piece : models::file_pieces(weight.name, weight.shape)) {
        if (is_output) outputs.insert(piece.name);
        layers.emplace(std::move(piece.name), weight.layer);
      }
    }
    for (const SourceTensor& tensor : base_.tensors()) {
      const auto found = layers.find(tensor.name);
      if (found == layers.end()) {
        add_outside(tensor, stack);
        continue;
      }
      const std::string rest = tensor.name.substr(stack.layer_name(found->second).size());
      const auto name_in = [&](int64_t layer) {
        return fmt::format("{}.{}{}", stack.prefix, layer, rest);
      };
      const LayerPlaces places = place_of(found->second);
      add(tensor, name_in(places.original), false, false);
      if (places.copy) add(tensor, name_in(*places.copy), true, outputs.contains(tensor.name));
    }
  }

  // What models make anew when they are loaded, such as masks, is left out.
  void add_outside(const SourceTensor& tensor, const Stack& stack) {
    if (tensor.is_other && models::is_ignorable(tensor.name, stack)) return;
    if (tensor.is_other && tensor.name.starts_with(stack.prefix + "."))
      base::throw_user_error(
          "{}: tensor '{}' belongs to a layer and is not part of the model that config.json "
          "describes, so that its copy would not be known. Is config.json this model's?",
          base_.companions().string(), tensor.name);
    add(tensor, tensor.name, false, false);
  }

  void add(const SourceTensor& tensor, std::string name, bool is_copy, bool is_zero) {
    SourceTensor& added = tensors_.emplace_back(tensor);
    added.name = std::move(name);
    added.weight.clear();
    if (is_zero) added.is_stored_so = false;
    made_of_.push_back({&tensor, is_zero});
    is_copy_.push_back(is_copy);
  }

  const WeightSource& base_;
  const ModelConfig& old_;
  int64_t every_;  // layers of the base, the last of which is copied
  json config_;
  ModelConfig model_;
  std::vector<int64_t> new_layers_;
  std::vector<SourceTensor> tensors_;
  std::vector<ExpandedTensor> made_of_;  // of each tensor
  std::vector<bool> is_copy_;            // whether it belongs to a new layer
};

ExpandedWeights::ExpandedWeights(const WeightSource& base, int64_t new_layers)
    : impl_(std::make_unique<const Impl>(base, new_layers)) {}
ExpandedWeights::~ExpandedWeights() = default;

std::span<const SourceTensor> ExpandedWeights::tensors() const { return impl_->tensors(); }
const json& ExpandedWeights::config() const { return impl_->config(); }
const std::filesystem::path& ExpandedWeights::companions() const {
  return impl_->base().companions();
}
const ModelConfig* ExpandedWeights::model() const { return &impl_->model(); }
int64_t ExpandedWeights::stored_bytes() const { return impl_->stored_bytes(); }
const std::vector<int64_t>& ExpandedWeights::new_layers() const { return impl_->new_layers(); }

std::vector<std::string> ExpandedWeights::new_layer_names() const {
  const Stack stack = models::stack_of(impl_->model());
  std::vector<std::string> names;
  names.reserve(new_layers().size());
  for (const int64_t layer : new_layers()) names.push_back(stack.layer_name(layer));
  return names;
}

int64_t ExpandedWeights::read_bytes(const SourceTensor& tensor, int64_t rows) const {
  const ExpandedTensor& origin = impl_->origin_of(tensor);
  return origin.is_zero ? 0 : impl_->base().read_bytes(*origin.base, rows);
}

void ExpandedWeights::read(const SourceTensor& tensor, int64_t first, int64_t rows,
                           std::span<float> values) const {
  const ExpandedTensor& origin = impl_->origin_of(tensor);
  if (origin.is_zero)
    std::ranges::fill(values, 0.0F);
  else
    impl_->base().read(*origin.base, first, rows, values);
}

void ExpandedWeights::copy(const SourceTensor& tensor, int64_t offset,
                           std::span<std::byte> bytes) const {
  SNUG_CHECK(tensor.is_stored_so, "{} is not stored so", tensor.name);
  impl_->base().copy(*impl_->origin_of(tensor).base, offset, bytes);
}

}  // namespace snug::convert
