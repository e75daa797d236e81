// How far a model is from what was trained: both read the same tokens, and the probabilities that
// they give to the next one are compared.
//
// One model after the other is in memory. The first pass keeps all logits of the trained model in
// a file without a name (base/spill_file.h), in fp32, as they were computed; the second reads them
// row by row. Sums are made in double. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/spill_file.h"
#include "engine/inference.h"
#include "formats/recipe/recipe.h"
#include "generate/compared_documents.h"
#include "models/config/config.h"

namespace snug::generate {

// Of natural logarithms. A figure is not finite where a model's logits are not.
struct Drift {
  int64_t tokens = 0;  // predictions that were compared
  double mean_kl = 0;  // KL(trained || other) over the whole vocabulary
  double most_kl = 0;
  double mean_difference = 0;  // |difference| of the log-probability of the token that follows
  double most_difference = 0;
  double equal_greedy = 0;  // share of predictions whose likeliest token is the same
};

// Adds predictions up, one at a time.
class DriftSums {
 public:
  // Logits (vocab) of both models, and the token that follows.
  void add(std::span<const float> trained, std::span<const float> other, int32_t next);
  // Of at least one prediction.
  Drift drift() const;

 private:
  Drift sums_;  // means are sums here, and equal_greedy counts
};

// What comparing needs; known before a weight is read.
struct DriftCosts {
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t kept_bytes = 0;  // on disk
  int64_t row_bytes = 0;   // of memory, next to a model that is open for inference
};

// The memory that the trained model of `recipe` takes; the others that are compared take no more.
// Reads no weights. Throws UserError as Inference does for what does not fit.
engine::InferenceMemory planned_drift_memory(const formats::Recipe& recipe,
                                             std::span<const ComparedDocument> documents);

class TrainedOutputs {
 public:
  // `recipe` names the trained model with its adapter and how it is stored; its keys of inference
  // hold for all models that are compared. Reserves the file on the disk. Throws UserError where
  // no disk has room for it.
  TrainedOutputs(formats::Recipe recipe, std::vector<ComparedDocument> documents);

  const DriftCosts& costs() const { return costs_; }
  // Runs the trained model. Throws UserError as Inference does.
  void compute();
  // Runs the model of this folder, in the same compute type. Comes after compute.
  Drift compare(const std::string& folder) const;
  // The bytes of the arenas of the model that ran last, as they were planned.
  int64_t arena_bytes() const { return arena_bytes_; }
  // The compute type of all passes, which is known after compute.
  base::DType compute_type() const { return compute_type_; }

 private:
  formats::Recipe recipe_;
  models::ModelSource model_;
  std::vector<ComparedDocument> documents_;
  DriftCosts costs_;
  base::SpillFile kept_;
  base::DType compute_type_ = base::DType::f32;
  mutable int64_t arena_bytes_ = 0;
};

}  // namespace snug::generate
