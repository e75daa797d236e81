// LoRA (Hu et al. 2021) as a rewrite of the forward program, with PEFT's conventions:
//
//   before   y = matmul(x, W) {transpose_b}
//   after    y.base   = matmul(x, W) {transpose_b}
//            x.dropped = dropout(x)                         only with dropout
//            y.hidden = matmul(x.dropped, A) {transpose_b}  (tokens, r)
//            y.delta  = matmul(y.hidden, B) {transpose_b, alpha = scale}
//            y        = add(y.base, y.delta)
//
// W is (out, in), or (in, out) where the product reads it without transpose_b. A (r, in) and B
// (out, r) are tensors of role adapter named MODULE.lora_A.weight and MODULE.lora_B.weight.
//
// On an embedding, A (r, vocab) is itself a table, whose columns are looked up:
//
//   before   y = embedding(W, ids)
//   after    y.base   = embedding(W, ids)
//            y.hidden = embedding(A, ids) {transposed}      (tokens, r)
//            y.delta  = matmul(y.hidden, B) {transpose_b, alpha = scale}
//            y        = add(y.base, y.delta)
//
// Its tensors are MODULE.lora_embedding_A and MODULE.lora_embedding_B. As in PEFT, there is no
// dropout here, and a tied head is not adapted with the embedding. Likewise an adapter of the head
// does not adapt the embedding: it belongs to the product that makes logits. Only inference has
// that product; training computes losses without it.
//
// DoRA (Liu et al. 2024) also trains a magnitude m (out), which replaces the norms of the rows of
// W:
//
//   after    n        = row_norms(W, A, B) {alpha = scale}  (out), constant to gradients
//            y.sum    = add(y.base, y.delta)
//            y        = scale_columns(y.sum, m, n)          y.sum m / n
//
// m is MODULE.lora_magnitude_vector. m and n are fp32 whatever the compute type, so that they begin
// bit-equal. With dropout, PEFT scales the products of the kept inputs d, those of W included, and
// adds the product of W with the dropped inputs x - d unscaled:
//
//   after    y.sum    = W d + scale B A d                   d = dropout(x)
//            y        = W (x - d) + y.sum m / n
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/adapter/module_pattern.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/recipe/choices.h"
#include "methods/optimizer.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::methods {

// A pattern of rank_pattern or alpha_pattern, and what it gives.
struct LoraPattern {
  std::string written;
  formats::ModulePattern pattern;
  double value = 0;
};

struct LoraOptions {
  int64_t r = 16;
  double alpha = 32.0;
  double dropout = 0.0;
  bool rslora = false;  // scale alpha / sqrt(r) instead of alpha / r
  bool dora = false;    // trains a magnitude for each output
  formats::LoraInit init = formats::LoraInit::standard;
  // The last parts of module names ("q_proj"), regular expressions over whole names, or
  // {"all-linear"} for every linear. Only names select embeddings.
  std::vector<std::string> target_modules{"all-linear"};
  // Matrices of all experts of a layer, by the ends of their names in PEFT
  // ("mlp.experts.gate_up_proj"; methods/lora_experts.h).
  std::vector<std::string> target_parameters{};
  // Modules that train whole next to the adapter (PEFT's modules_to_save), by the ends of their
  // names: the embedding, the head or norms. Their weights become tensors of role adapter under
  // their own names.
  std::vector<std::string> modules_to_save{};
  // For an adapter that is applied: the modules whose rank and alpha differ from those above; the
  // weights that its file holds whole, whoever trained them; and the rows of tables (weights too)
  // that it replaces, in the order of its file.
  formats::LoraSizes sizes{};
  std::vector<std::string> tables{};
  std::map<std::string, std::vector<int64_t>, std::less<>> token_rows{};
  // For a new adapter: the layers that get one (empty: all), and the ranks and alphas of the
  // modules that patterns match, as in PEFT by the first that does.
  std::vector<int64_t> layers{};
  std::vector<LoraPattern> ranks{};
  std::vector<LoraPattern> alphas{};
  // The module that makes logits. Only a target given by name selects it; empty: no target does.
  std::string head{};
  int64_t row_tokens = 1;  // tokens per row: part of dropout's random key
  int64_t seed = 0;
};

// Throws UserError when a target module matches no linear and no embedding, naming those that
// exist; for an embedding that cannot have an adapter; and when a module to save matches nothing,
// or matches a matrix of a layer; and for a layer or a pattern of `options` that no adapted module
// has.
program::Program lora(const program::Program& forward, const LoraOptions& options);

// Names of the modules that LoRA would adapt: "model.layers.0.self_attn.q_proj", in order.
std::vector<std::string> lora_modules(const program::Program& forward,
                                      const std::vector<std::string>& target_modules);

// The names of an adapted module's tensors, and the module to which a tensor of role adapter
// belongs.
std::string lora_a_name(std::string_view module);
std::string lora_b_name(std::string_view module);
std::string lora_magnitude_name(std::string_view module);
std::string lora_embedding_a_name(std::string_view module);
std::string lora_embedding_b_name(std::string_view module);
enum class LoraPart : uint8_t { a, b, magnitude };
struct LoraTensor {
  std::string_view module;
  LoraPart part = LoraPart::a;
  bool of_embedding = false;
};
LoraTensor lora_tensor(std::string_view name);
// Whether the tensor is one of LoRA's own. If not, it is a weight of the model that trains whole.
bool is_lora_tensor(std::string_view name);

// The modules that tensors of role adapter belong to, in their order.
std::vector<formats::LoraModule> adapted_modules(std::span<const program::Tensor> tensors);

// The share of the learning rate with which LoRA+ trains a tensor, as PEFT groups them: B and all
// vectors by lora_b_rate, both parts of an embedding's adapter by lora_embedding_rate.
double loraplus_rate(const program::Tensor& trainable, const UpdateOptions& options);

// The LoRA options that a recipe sets. row_tokens: tokens per row.
LoraOptions lora_options(const formats::Recipe& recipe, int64_t row_tokens);

double lora_scale(const LoraOptions& options);
formats::LoraSize lora_size(const LoraOptions& options, std::string_view module);

// The program `initialise` of a job that makes a new adapter: DoRA's magnitudes begin as the norms
// of the weights' rows, since B is zero. It has no operations where the forward program has no
// magnitudes.
program::Program initial_magnitudes(const program::Program& forward);

}  // namespace snug::methods
