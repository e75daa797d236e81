// Selects the modules of a forward program that LoRA adapts, and those that train whole next to it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/adapter/module_pattern.h"
#include "program/ir/program.h"

namespace snug::methods {

// An entry of target_modules: the last parts of a module's name, or a regular expression over whole
// names.
class LoraTarget {
 public:
  // Throws UserError for a malformed expression.
  explicit LoraTarget(const std::string& written);

  bool selects_linear(const std::string& module) const;
  // Only names select embeddings and the head: all-linear does not include them, and expressions
  // apply only to the linears of layers.
  bool selects_by_name(const std::string& module) const;

 private:
  std::string written_;
  std::optional<formats::ModulePattern> pattern_;
};

// Keeps a reference to the forward program.
class LoraTargets {
 public:
  // `head`: the module that makes logits, if it may have an adapter; else empty. Throws UserError
  // for an entry that selects no linear and no embedding.
  LoraTargets(const program::Program& forward, const std::vector<std::string>& written,
              std::string head = {});

  // The module that a linear or an embedding applies ("model.layers.0.mlp.up_proj"), if it gets an
  // adapter; empty for other operations.
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
  std::set<program::TensorId> before_layers_;
  std::vector<LoraTarget> targets_;
};

// Makes the weights of these modules tensors of role adapter. Throws UserError for a module that
// matches nothing, or that matches a matrix of a layer.
program::Program with_saved_modules(program::Program forward,
                                    const std::vector<std::string>& modules);
// Does the same for weights given by their whole names, which the forward program must have.
program::Program with_tables(program::Program forward, const std::vector<std::string>& weights);

}  // namespace snug::methods
