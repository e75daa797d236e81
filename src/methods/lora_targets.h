// Which modules of a forward program LoRA adapts, and which train whole next to it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/adapter/module_pattern.h"
#include "program/ir/program.h"

namespace snug::methods {

// An entry of target_modules: the last parts of names, or a regular expression over whole ones.
class LoraTarget {
 public:
  // Throws UserError for an expression that cannot be read.
  explicit LoraTarget(const std::string& written);

  bool selects_linear(const std::string& module) const;
  // Embeddings and the head are selected by name alone: all-linear has none, and expressions are
  // for linears of layers.
  bool selects_by_name(const std::string& module) const;

 private:
  std::string written_;
  std::optional<formats::ModulePattern> pattern_;
};

// Refers to the forward program.
class LoraTargets {
 public:
  // `head`: the module that makes logits; empty: none has an adapter. Throws UserError for an entry
  // that selects no linear and no embedding.
  LoraTargets(const program::Program& forward, const std::vector<std::string>& written,
              std::string head = {});

  // The module that a linear or an embedding applies ("model.layers.0.mlp.up_proj"), where it gets
  // an adapter; empty for other operations.
  std::string adapted_linear(const program::Operation& operation) const;
  std::string adapted_embedding(const program::Operation& operation) const;

 private:
  bool is_head(const program::Operation& operation) const;
  bool selects(const LoraTarget& target, const std::string& linear) const;
  std::string linear_of(const program::Operation& operation) const;
  std::string embedding_of(const program::Operation& operation) const;
  void require_match(const std::string& written, const LoraTarget& target) const;

  const program::Program& forward_;
  const std::string head_;
  std::set<program::TensorId> routing_;
  std::vector<LoraTarget> targets_;
};

// The weights of those modules become tensors of role adapter. Throws UserError where one matches
// none, or a matrix of a layer.
program::Program with_saved_modules(program::Program forward,
                                    const std::vector<std::string>& modules);
// The same of weights by their whole names, which the forward program has.
program::Program with_tables(program::Program forward, const std::vector<std::string>& weights);

}  // namespace snug::methods
