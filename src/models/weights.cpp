#include "models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/last_part.h"
#include "formats/adapter/adapter_names.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"

namespace snug::models {
namespace {

// The initial values of matrices and tables.
constexpr std::optional<float> kDrawn;

// Collects the weights of one part of a stack, where all module names begin with `prefix`.
class WeightList {
 public:
  void enter(std::string prefix, int64_t layer) {
    prefix_ = std::move(prefix);
    layer_ = static_cast<int32_t>(layer);
  }

  void table(const std::string& module, int64_t rows, int64_t columns) {
    add(weight_name(module), {rows, columns}, kDrawn);
  }

  void bias(const std::string& module, int64_t width) { add(bias_name(module), {width}, 0.0F); }

  void operator()(const std::optional<Norm>& norm) {
    if (!norm || norm->form == NormForm::rms_without_weight) return;
    SNUG_CHECK(norm->heads == 0 || (norm->form == NormForm::layer && !norm->bias),
               "{}: norms of single heads are layer norms without a bias", norm->module);
    const size_t first = weights_.size();
    const float one = norm->form == NormForm::rms_one_plus_w ? 0.0F : 1.0F;
    if (norm->heads > 0)
      add(weight_of_heads(norm->module, norm->heads), {norm->heads * norm->width}, one);
    else
      add(weight_name(norm->module), {norm->width}, one);
    if (norm->bias) bias(norm->module, norm->width);
    for (size_t i = first; i < weights_.size(); ++i) of_norms_.push_back(weights_[i].name);
  }

  void operator()(const Linear& linear) {
    const program::Shape shape{linear.out, linear.in};
    const program::Shape transpose{linear.in, linear.out};
    add(weight_name(linear.module), linear.transposed ? transpose : shape, kDrawn);
    weights_.back().transposed = linear.transposed;
    weights_.back().in_16_bits = linear.in_16_bits;
    if (linear.bias) bias(linear.module, linear.out);
  }

  void operator()(const Projections& projections) {
    if (projections.queries_apart) (*this)(projections.parts.front());
    if (projections.is_fused()) return (*this)(projections.whole());
    for (const Linear& part : projections.parts) (*this)(part);
  }

  void operator()(const AttentionBlock& attention) {
    if (attention.encoder_projection) {
      const std::string prefix = std::exchange(prefix_, {});
      (*this)(*attention.encoder_projection);
      prefix_ = prefix;
    }
    (*this)(attention.query_key_value);
    (*this)(attention.query_norm);
    (*this)(attention.key_norm);
    (*this)(attention.value_norm);
    (*this)(attention.output);
    if (!attention.sinks.empty()) add(attention.sinks, {attention.heads}, kDrawn);
  }

  void operator()(const GatedMlp& mlp) {
    (*this)(mlp.gate_up);
    (*this)(mlp.down);
  }

  void operator()(const Mlp& mlp) {
    (*this)(mlp.up);
    (*this)(mlp.down);
    if (mlp.activation != Activation::xielu) return;
    // As transformers begins: alphas whose softplus is 0.8, and 0.8 less beta.
    add(mlp.learned + ".alpha_p", {1}, std::log(std::expm1(0.8F)));
    add(mlp.learned + ".alpha_n", {1}, std::log(std::expm1(0.3F)));
    constant(mlp.learned + ".beta", {}, 0.5F);
    constant(mlp.learned + ".eps", {}, -1e-6F);
  }

  void operator()(const ExpertsBlock& experts) {
    if (experts.router_input) add(experts.router_input->weight, {experts.router.in}, 1.0F);
    const size_t router = weights_.size();
    (*this)(experts.router);
    weights_[router].is_router = true;
    if (!experts.expert_scales.empty()) add(experts.expert_scales, {experts.experts}, 1.0F);
    (*this)(experts.norm_before);
    if (!experts.correction.empty()) constant(experts.correction, {experts.experts}, 0.0F);
    of_experts(gate_up_name(experts), gate_up_shape(experts), kDrawn);
    if (experts.bias) of_experts(gate_up_bias_name(experts), gate_up_bias_shape(experts), 0.0F);
    of_experts(down_name(experts), down_shape(experts), kDrawn);
    if (experts.bias) of_experts(down_bias_name(experts), down_bias_shape(experts), 0.0F);
    (*this)(experts.norm_after);
    if (!experts.shared) return;
    (*this)(experts.shared->norm_before);
    (*this)(experts.shared->mlp);
    if (experts.shared->gate) (*this)(*experts.shared->gate);
    (*this)(experts.shared->norm_after);
  }

  void operator()(const LayerInputBlock& block) {
    (*this)(block.gate);
    (*this)(block.down);
  }

  void operator()(const LayerInputs& inputs, int64_t layers) {
    table(inputs.table, inputs.vocab_size, layers * inputs.width);
    (*this)(inputs.projection);
    weights_.back().is_before_layers = true;
    (*this)(std::optional(inputs.norm));
  }

  void operator()(const GatedDeltaBlock& block) {
    add(block.decay_bias, {block.value_heads}, 1.0F);
    add(block.decay_rate, {block.value_heads}, 0.0F);
    (*this)(block.query_key_value);
    if (!block.is_grouped) (*this)(block.gate);
    (*this)(block.beta);
    if (!block.is_grouped) (*this)(block.decay);
    add(weight_name(block.convolution), {block.convolved_columns(), 1, block.convolution_width},
        kDrawn);
    (*this)(block.norm);
    (*this)(block.output);
  }

  void operator()(const ShortConvolutionBlock& block) {
    (*this)(block.input);
    add(weight_name(block.convolution), {block.output.in, 1, block.convolution_width}, kDrawn);
    (*this)(block.output);
  }

  void operator()(const Layer& layer) {
    for (size_t i = 0; i < layer.branches.size(); ++i) {
      const Branch& branch = layer.branches[i];
      if (!layer.shares_norm(i)) (*this)(branch.norm_before);
      std::visit(*this, branch.block);
      (*this)(branch.norm_after);
    }
    if (!layer.factor.empty()) constant(layer.factor, {1}, 1.0F);
  }

  // Adds the tables that blocks read but that belong to no layer, each once.
  void shared_tables(const Layer& layer) {
    for (const Branch& branch : layer.branches) {
      const auto* attention = std::get_if<AttentionBlock>(&branch.block);
      if (attention == nullptr || !attention->relative_bias) continue;
      const RelativeBias& bias = *attention->relative_bias;
      if (tables_.insert(bias.module).second) table(bias.module, bias.buckets, attention->heads);
    }
  }

  std::vector<Weight> take() { return std::move(weights_); }
  std::vector<std::string> take_norms() { return std::move(of_norms_); }

 private:
  void of_experts(const std::string& name, const program::Shape& shape,
                  std::optional<float> initial) {
    add(name, shape, initial);
    weights_.back().is_expert = true;
  }

  void constant(const std::string& name, const program::Shape& shape, float value) {
    add(name, shape, value);
    weights_.back().is_constant = true;
  }

  void add(const std::string& name, const program::Shape& shape, std::optional<float> initial) {
    weights_.push_back(
        {prefix_.empty() ? name : fmt::format("{}.{}", prefix_, name), shape, layer_, initial});
  }

  std::string prefix_;
  int32_t layer_ = -1;
  std::vector<Weight> weights_;
  std::set<std::string> tables_;
  std::vector<std::string> of_norms_;
};

WeightList list_of(const Stack& stack) {
  WeightList list;
  list.table(stack.embedding, stack.vocab_size, stack.hidden_size);
  if (!stack.positions.empty()) list.table(stack.positions, stack.position_rows, stack.hidden_size);
  list(stack.embedding_norm);
  if (stack.layer_inputs) list(*stack.layer_inputs, stack.layer_count());
  if (stack.encoder && !stack.encoder->embedding.empty())
    list.table(stack.encoder->embedding, stack.vocab_size, stack.encoder->hidden_size);
  for (int64_t index = 0; index < stack.layer_count(); ++index) {
    list.shared_tables(stack.layer(index));
    list.enter(stack.layer_name(index), index);
    list(stack.layer(index));
    list.enter("", -1);
    if (index + 1 == stack.encoder_layers()) list(stack.encoder->final_norm);
  }
  list(stack.final_norm);
  if (!stack.tied_head) list.table(stack.head, stack.vocab_size, stack.hidden_size);
  if (stack.head_bias) list.bias(stack.head, stack.vocab_size);
  return list;
}

}  // namespace

std::vector<Weight> weights_of(const Stack& stack) { return list_of(stack).take(); }

std::vector<std::string> norm_weights(const Stack& stack) { return list_of(stack).take_norms(); }

std::vector<Weight> weights_of(const ModelConfig& config) { return weights_of(stack_of(config)); }

std::vector<Weight> file_weights_of(const Stack& stack) {
  std::vector<Weight> in_files;
  for (const Weight& weight : weights_of(stack))
    for (FilePiece& piece : file_pieces(weight.name, weight.shape)) {
      Weight& held = in_files.emplace_back(weight);
      held.name = std::move(piece.name);
      held.shape = piece.shape;
    }
  return in_files;
}

std::vector<std::string> matrices_in_16_bits(const Stack& stack) {
  std::vector<std::string> names;
  for (const Weight& weight : weights_of(stack))
    if ((weight.layer >= 0 && weight.shape.rank() == 2 && !weight.is_quantised()) ||
        weight.in_16_bits)
      names.push_back(weight.name);
  return names;
}

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for (const Weight& weight : weights_of(config)) count += weight.shape.elements();
  return count;
}

std::string embedding_weight(const Stack& stack) { return weight_name(stack.embedding); }

std::string head_weight(const Stack& stack) { return weight_name(stack.head); }

namespace {

// Whether this is "model.layers.46.mlp.gate.weight" in a model of 46 layers.
bool is_of_further_layer(std::string_view name, const Stack& stack) {
  const std::string prefix = stack.prefix + ".";
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc{} && end != name.data() + name.size() && *end == '.' &&
         layer >= std::ssize(stack.layers);
}

}  // namespace

bool is_ignorable(const std::string& name, const Stack& stack) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  if (!stack.text_module.empty() && formats::is_of_other_part(name)) return true;
  if (std::ranges::count(stack.embedding_copies, name) > 0) return true;
  const auto is_of_layer = [&](const std::string& module) {
    const bool is_of_encoder = stack.encoder && name.starts_with(stack.encoder->prefix + ".");
    return (is_of_encoder || name.starts_with(stack.prefix + ".")) && name.ends_with("." + module);
  };
  if (std::ranges::any_of(stack.ignored, is_of_layer)) return true;
  if (stack.further_layers && is_of_further_layer(name, stack)) return true;
  if (!stack.further_module.empty() && name.starts_with(stack.further_module + ".")) return true;
  return stack.tied_head && name == head_weight(stack);
}

std::string query_value_modules(const Stack& stack) {
  for (const Layer& layer : stack.layers)
    for (const Branch& branch : layer.branches)
      if (const auto* attention = std::get_if<AttentionBlock>(&branch.block)) {
        const Projections& projections = attention->query_key_value;
        if (projections.is_fused()) return base::last_part(projections.fused);
        return fmt::format("{},{}", base::last_part(projections.parts.front().module),
                           base::last_part(projections.parts.back().module));
      }
  return "all-linear";
}

}  // namespace snug::models
