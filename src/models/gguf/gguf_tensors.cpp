#include "models/gguf/gguf_tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "models/config/rope.h"

namespace snug::models {
namespace {

// Rows of a matrix in another order, in units of rows: as GgufPart, without the source.
struct RowOrderView {
  int64_t first = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> steps;
};

std::vector<RowOrderView> unchanged(int64_t rows) { return {{0, {rows}, {1}}}; }

// Element i of a head's first half and element i of its second half follow one another.
std::vector<RowOrderView> halves_in_turns(int64_t heads, int64_t head_dim) {
  return {{0, {heads, head_dim / 2, 2}, {head_dim, 1, head_dim / 2}}};
}

// All queries, then all keys, then all values, from rows that are grouped by key head.
std::vector<RowOrderView> parts_of_groups(const AttentionBlock& block) {
  const int64_t head = block.head_dim;
  const int64_t queries = block.heads / block.kv_heads * head;
  const int64_t group = queries + 2 * head;
  return {{0, {block.kv_heads, queries}, {group, 1}},
          {queries, {block.kv_heads, head}, {group, 1}},
          {queries + head, {block.kv_heads, head}, {group, 1}}};
}

// Whether the tensor is written as floats of 32 bits whatever the file's type, as llama.cpp and its
// tools expect.
bool stays_fp32(const std::string& name, size_t axes) {
  const auto contains = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return axes < 2 || !name.ends_with(".weight") || contains("_norm.weight") ||
         contains("ffn_gate_inp.") || contains("conv1d.") || contains("attn_rel_b.") ||
         name == "position_embd.weight";
}

class GgufTensorList {
 public:
  GgufTensorList(const GgufFamily& family, const ModelConfig& config, const Stack& stack)
      : family_(family), config_(config), stack_(stack) {}

  std::vector<GgufTensor> list() {
    rotary_factors();
    table("token_embd", stack_.embedding, stack_.vocab_size);
    if (!stack_.positions.empty()) table("position_embd", stack_.positions, stack_.position_rows);
    norm("token_embd_norm", stack_.embedding_norm);
    layers();
    if (stack_.encoder) norm("enc.output_norm", stack_.encoder->final_norm);
    norm(stack_.encoder ? "dec.output_norm" : "output_norm", stack_.final_norm);
    // llama.cpp does not scale the head's input.
    if (stack_.head_scale != 1.0 && !family_.logit_scale)
      tensors_.back().factor = static_cast<float>(stack_.head_scale);
    head();
    return std::move(tensors_);
  }

 private:
  GgufTensor& add(std::string name, std::vector<int64_t> shape) {
    GgufTensor& tensor = tensors_.emplace_back();
    tensor.keeps_fp32 = stays_fp32(name, shape.size());
    tensor.name = std::move(name);
    tensor.shape = std::move(shape);
    return tensor;
  }

  void table(const std::string& name, const std::string& module, int64_t rows) {
    const int64_t columns = stack_.hidden_size;
    add(weight_name(name), {rows, columns}).parts = {
        {weight_name(module), 0, {rows, columns}, {columns, 1}}};
  }

  void vector(const std::string& name, const std::string& source, int64_t width) {
    add(name, {width}).parts = {{source, 0, {width}, {1}}};
  }

  void norm(const std::string& name, const std::optional<Norm>& norm) {
    if (!norm) return;
    vector(gguf_prefix_ + weight_name(name), hf_prefix_ + weight_name(norm->module), norm->width);
    if (norm->form == NormForm::rms_one_plus_w) tensors_.back().added = 1.0F;
    if (norm->bias)
      vector(gguf_prefix_ + bias_name(name), hf_prefix_ + bias_name(norm->module), norm->width);
  }

  void linear(const std::string& name, const Linear& linear,
              const std::vector<RowOrderView>& rows) {
    const int64_t row_step = linear.transposed ? 1 : linear.in;
    const int64_t column_step = linear.transposed ? linear.out : 1;
    GgufTensor& weight = add(gguf_prefix_ + weight_name(name), {linear.out, linear.in});
    for (const RowOrderView& view : rows) {
      GgufPart& part = weight.parts.emplace_back();
      part = {hf_prefix_ + weight_name(linear.module), view.first * row_step, view.sizes, {}};
      for (const int64_t step : view.steps) part.steps.push_back(step * row_step);
      part.sizes.push_back(linear.in);
      part.steps.push_back(column_step);
    }
    if (!linear.bias && !family_.needs_biases) return;
    GgufTensor& bias = add(gguf_prefix_ + bias_name(name), {linear.out});
    if (!linear.bias) bias.values.assign(static_cast<size_t>(linear.out), 0.0F);
    if (!linear.bias) return;
    for (const RowOrderView& view : rows)
      bias.parts.push_back(
          {hf_prefix_ + bias_name(linear.module), view.first, view.sizes, view.steps});
  }
  void linear(const std::string& name, const Linear& plain) {
    linear(name, plain, unchanged(plain.out));
  }

  void projections(const AttentionBlock& block, const std::string& cross) {
    const Projections& all = block.query_key_value;
    SNUG_CHECK(!all.queries_apart && all.order != RowOrder::by_block,
               "no architecture of llama.cpp has projections in this order");
    if (all.is_fused()) {
      const Linear whole = all.whole();
      return linear(
          "attn_qkv", whole,
          all.order == RowOrder::by_group ? parts_of_groups(block) : unchanged(whole.out));
    }
    const bool in_turns = family_.rotary_in_turns && !stack_.rotary.interleaved;
    const auto rows_of = [&](const Linear& part, int64_t heads) {
      return in_turns ? halves_in_turns(heads, block.head_dim) : unchanged(part.out);
    };
    linear(cross + "attn_q", all.parts[0], rows_of(all.parts[0], block.heads));
    linear(cross + "attn_k", all.parts[1], rows_of(all.parts[1], block.kv_heads));
    linear(cross + "attn_v", all.parts[2]);
  }

  // llama.cpp scales scores by its own rule. What is left of the model's scale goes into the
  // queries: into their norm, or into the projection that makes them.
  void scale_queries(const AttentionBlock& block, size_t first) {
    const auto theirs = static_cast<float>(gguf_score_scale(family_, config_));
    if (block.scale == theirs) return;
    const std::string wanted = block.query_norm ? "attn_q_norm." : "attn_q.";
    bool found = false;
    for (size_t i = first; i < tensors_.size(); ++i)
      if (tensors_[i].name.find(wanted) != std::string::npos) {
        tensors_[i].factor = block.scale / theirs;
        found = true;
      }
    SNUG_CHECK(found, "scores scaled by {} in {}", block.scale, family_.architecture);
  }

  void attention(const AttentionBlock& block) {
    const std::string cross = block.reads_encoder ? "cross_" : "";
    const size_t first = tensors_.size();
    projections(block, cross);
    norm("attn_q_norm", block.query_norm);
    norm("attn_k_norm", block.key_norm);
    scale_queries(block, first);
    linear(cross + (stack_.encoder ? "attn_o" : "attn_output"), block.output);
    if (!block.sinks.empty())
      vector(gguf_prefix_ + "attn_sinks.weight", hf_prefix_ + block.sinks, block.heads);
    if (block.relative_bias && tables_.insert(block.relative_bias->module).second) {
      const int64_t rows = block.relative_bias->buckets;
      add(gguf_prefix_ + "attn_rel_b.weight", {rows, block.heads}).parts = {
          {weight_name(block.relative_bias->module), 0, {rows, block.heads}, {block.heads, 1}}};
    }
  }

  void mlp(const GatedMlp& mlp) {
    if (mlp.gate_up.is_fused()) {
      linear("ffn_up", mlp.gate_up.whole());
    } else {
      linear("ffn_gate", mlp.gate_up.parts[0]);
      linear("ffn_up", mlp.gate_up.parts[1]);
    }
    linear("ffn_down", mlp.down);
  }
  void mlp(const Mlp& mlp) {
    linear("ffn_up", mlp.up);
    linear("ffn_down", mlp.down);
  }
  void mlp(const ExpertsBlock& experts) {
    linear("ffn_gate_inp", experts.router);
    if (!experts.correction.empty())
      vector(gguf_prefix_ + "exp_probs_b.bias", hf_prefix_ + experts.correction, experts.experts);
    if (experts.shared) shared(*experts.shared);
    if (experts.files == ExpertFiles::each) return each_expert(experts);
    if (experts.files == ExpertFiles::stacked) return stacked(experts);
    const int64_t hidden = experts.router.in;
    const int64_t inner = experts.inner;
    // Columns of gate and up alternate.
    columns_in_turns("ffn_gate_exps", experts, 0);
    columns_in_turns("ffn_up_exps", experts, 1);
    const std::string down = hf_prefix_ + experts.module + "." + experts.down;
    add(gguf_prefix_ + "ffn_down_exps.weight", {experts.experts, hidden, inner}).parts = {
        {down, 0, {experts.experts, hidden, inner}, {inner * hidden, 1, hidden}}};
    if (experts.bias)
      add(gguf_prefix_ + "ffn_down_exps.bias", {experts.experts, hidden}).parts = {
          {down + "_bias", 0, {experts.experts, hidden}, {hidden, 1}}};
  }

  void shared(const SharedExpert& shared) {
    linear("ffn_gate_shexp", shared.mlp.gate_up.parts[0]);
    linear("ffn_up_shexp", shared.mlp.gate_up.parts[1]);
    linear("ffn_down_shexp", shared.mlp.down);
    if (!shared.gate) return;
    const std::string name = gguf_prefix_ + "ffn_gate_inp_shexp.weight";
    vector(name, hf_prefix_ + weight_name(shared.gate->module), shared.gate->in);
    tensors_.back().shape.insert(tensors_.back().shape.begin(), 1);  // a matrix of one row
  }

  // The rows of a tensor of all experts: those of their gates, of their ups, or all.
  void stacked(const ExpertsBlock& experts) {
    const int64_t hidden = experts.router.in;
    const int64_t inner = experts.inner;
    const std::string module = hf_prefix_ + experts.module + ".";
    const auto rows = [&](const std::string& name, const std::string& source, int64_t first,
                          int64_t count, int64_t step, int64_t width) {
      add(gguf_prefix_ + weight_name(name), {experts.experts, count, width}).parts = {
          {module + source, first, {experts.experts, count, width}, {step, width, 1}}};
    };
    const int64_t both = 2 * inner * hidden;
    rows("ffn_gate_exps", experts.gate, 0, inner, both, hidden);
    rows("ffn_up_exps", experts.gate, inner * hidden, inner, both, hidden);
    rows("ffn_down_exps", experts.down, 0, hidden, inner * hidden, inner);
  }

  void columns_in_turns(const std::string& name, const ExpertsBlock& experts, int64_t first) {
    const int64_t hidden = experts.router.in;
    const int64_t inner = experts.inner;
    const std::string source = hf_prefix_ + experts.module + "." + experts.gate;
    add(gguf_prefix_ + weight_name(name), {experts.experts, inner, hidden}).parts = {
        {source, first, {experts.experts, inner, hidden}, {2 * inner * hidden, 2, 2 * inner}}};
    if (experts.bias)
      add(gguf_prefix_ + bias_name(name), {experts.experts, inner}).parts = {
          {source + "_bias", first, {experts.experts, inner}, {2 * inner, 2}}};
  }

  void each_expert(const ExpertsBlock& experts) {
    const int64_t hidden = experts.router.in;
    const auto stack = [&](const std::string& name, const std::string& part, int64_t out,
                           int64_t in) {
      GgufTensor& stacked = add(gguf_prefix_ + weight_name(name), {experts.experts, out, in});
      for (int64_t expert = 0; expert < experts.experts; ++expert)
        stacked.parts.push_back(
            {weight_name(fmt::format("{}{}.{}.{}", hf_prefix_, experts.module, expert, part)),
             0,
             {out, in},
             {in, 1}});
    };
    stack("ffn_gate_exps", experts.gate, experts.inner, hidden);
    stack("ffn_up_exps", experts.up, experts.inner, hidden);
    stack("ffn_down_exps", experts.down, hidden, experts.inner);
  }

  // Value heads that share a key head are neighbours in the folder. In the file the first of every
  // key head come first, then the second of each, and so on. `width`: rows of a value head.
  static RowOrderView shared_heads_apart(const GatedDeltaBlock& block, int64_t first,
                                         int64_t width) {
    const int64_t sharing = block.value_heads / block.key_heads;
    return {first, {sharing, block.key_heads, width}, {width, sharing * width, 1}};
  }

  void gated_delta(const GatedDeltaBlock& block) {
    const int64_t keys = 2 * block.key_heads * block.key_dim;  // and queries
    const std::vector<RowOrderView> of_all{{0, {keys}, {1}},
                                           shared_heads_apart(block, keys, block.value_dim)};
    const std::vector<RowOrderView> of_values{shared_heads_apart(block, 0, block.value_dim)};
    const std::vector<RowOrderView> of_heads{shared_heads_apart(block, 0, 1)};
    linear("attn_qkv", block.query_key_value, of_all);
    linear("attn_gate", block.gate, of_values);
    linear("ssm_beta", block.beta, of_heads);
    linear("ssm_alpha", block.decay, of_heads);
    linear("ssm_conv1d",
           filters(block.convolution, block.query_key_value.out, block.convolution_width), of_all);
    const auto of_each_head = [&](const std::string& name, const std::string& source) {
      const RowOrderView& view = of_heads.front();
      add(gguf_prefix_ + name, {block.value_heads}).parts = {
          {hf_prefix_ + source, view.first, view.sizes, view.steps}};
    };
    of_each_head("ssm_dt.bias", block.decay_bias);
    of_each_head("ssm_a", block.decay_rate);
    tensors_.back().is_rate = true;
    norm("ssm_norm", block.norm);
    // The columns are those of the value heads.
    const int64_t columns = block.output.in;
    const RowOrderView& view = of_values.front();
    GgufPart part{hf_prefix_ + weight_name(block.output.module), 0, {block.output.out}, {columns}};
    part.sizes.insert(part.sizes.end(), view.sizes.begin(), view.sizes.end());
    part.steps.insert(part.steps.end(), view.steps.begin(), view.steps.end());
    add(gguf_prefix_ + "ssm_out.weight", {block.output.out, columns}).parts = {std::move(part)};
  }

  // The filters (columns, 1, width) of a convolution are a matrix in files.
  static Linear filters(const std::string& module, int64_t columns, int64_t width) {
    return {module, columns, width};
  }

  void mlp(const LayerInputBlock& block) {
    SNUG_CHECK(false, "{} in an architecture of llama.cpp", block.gate.module);
  }

  void layers() {
    for (int64_t index = 0; index < stack_.layer_count(); ++index) {
      const int64_t first = stack_.encoder_layers();
      const bool encodes = index < first;
      const std::string_view side = !stack_.encoder ? "" : encodes ? "enc." : "dec.";
      gguf_prefix_ = fmt::format("{}blk.{}.", side, encodes ? index : index - first);
      hf_prefix_ = stack_.layer_name(index) + ".";
      layer(stack_.layer(index));
    }
    gguf_prefix_.clear();
    hf_prefix_.clear();
  }

  void layer(const Layer& layer) {
    const bool shares = layer.branches.size() > 1 && layer.shares_norm(1);
    for (size_t i = 0; i < layer.branches.size(); ++i) {
      const Branch& branch = layer.branches[i];
      const auto* attending = std::get_if<AttentionBlock>(&branch.block);
      const bool mixes_tokens =
          attending != nullptr || std::holds_alternative<GatedDeltaBlock>(branch.block);
      std::string before(mixes_tokens ? family_.attention_norm : family_.mlp_norm);
      if (shares) before = "attn_norm";
      if (attending != nullptr && attending->reads_encoder) before = "cross_attn_norm";
      if (!layer.shares_norm(i)) norm(before, branch.norm_before);
      std::visit([&](const auto& block) { tensors_of(block); }, branch.block);
      norm(mixes_tokens ? "post_attention_norm" : "post_ffw_norm", branch.norm_after);
    }
  }
  void tensors_of(const AttentionBlock& block) { attention(block); }
  void tensors_of(const GatedDeltaBlock& block) { gated_delta(block); }
  template <typename Mlps>
  void tensors_of(const Mlps& block) {
    mlp(block);
  }

  void head() {
    const bool is_separate = !stack_.tied_head || stack_.head_from_embedding;
    if (!is_separate && family_.head != GgufHead::own) return;
    table("output", is_separate ? stack_.head : stack_.embedding, stack_.vocab_size);
    if (stack_.head_bias) vector("output.bias", bias_name(stack_.head), stack_.vocab_size);
  }

  // Divisors of the rotary frequencies.
  void rotary_factors() {
    const RopeConfig& rope = config_.rope;
    const auto numbers = [&](const std::string& name, std::vector<float> values) {
      add(name, {std::ssize(values)}).values = std::move(values);
    };
    const auto rounded = [](const std::vector<double>& factors) {
      return std::vector<float>(factors.begin(), factors.end());
    };
    if (rope.scaling == RopeScaling::longrope) {
      numbers("rope_factors_long.weight", rounded(rope.long_factors));
      numbers("rope_factors_short.weight", rounded(rope.short_factors));
    }
    if (rope.scaling != RopeScaling::llama3) return;
    const std::vector<float> scaled = inverse_frequencies(stack_.rotary);
    Rotary plain = stack_.rotary;
    plain.rope.scaling = RopeScaling::none;
    std::vector<float> factors = inverse_frequencies(plain);
    for (size_t i = 0; i < factors.size(); ++i) factors[i] /= scaled[i];
    numbers("rope_freqs.weight", std::move(factors));
  }

  const GgufFamily& family_;
  const ModelConfig& config_;
  const Stack& stack_;
  std::vector<GgufTensor> tensors_;
  std::set<std::string> tables_;
  std::string gguf_prefix_;  // "blk.0."
  std::string hf_prefix_;    // "model.layers.0."
};

}  // namespace

std::vector<GgufTensor> gguf_tensors(const GgufFamily& family, const ModelConfig& config,
                                     const Stack& stack) {
  return GgufTensorList(family, config, stack).list();
}

}  // namespace snug::models
