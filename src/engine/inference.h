// A model opened for inference: planned, allocated and loaded once, then run any number of times.
// Not thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "runtime/loading/load_weights.h"
#include "runtime/session.h"

namespace snug::engine {

// What opening a model for inference takes of this machine's memory.
struct InferenceMemory {
  int64_t arena_bytes = 0;    // arenas that are on the host
  int64_t process_bytes = 0;  // everything else that the process will hold
};
// The same, as it is planned, with what the process needs next to the arenas made already. Throws
// UserError as Inference does for what does not fit. Reads no weights.
InferenceMemory planned_memory(const formats::Recipe& recipe, const models::ModelConfig& model,
                               const plan::InferenceShape& shape);

class Inference {
 public:
  // Plans within the recipe's budget, then allocates exactly what was planned and loads the weights
  // (or draws them, with init=random) and the recipe's adapter or adapters. Throws UserError. If
  // the recipe sets no number of threads, a small model gets fewer threads than there are cores.
  Inference(const formats::Recipe& recipe, models::ModelSource model,
            const plan::InferenceShape& shape);
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  const models::ModelConfig& model() const { return model_.config; }
  const plan::InferenceShape& shape() const { return plan_.spec.shape; }
  runtime::Executor& executor() { return session_.executor(); }
  // The value of "device" in a command's JSON: the bytes of the device's arenas as the operating
  // system counts them, or null where it does not report them.
  nlohmann::json device_json() const;
  // What was planned for the arenas, on the device and on the host, which is what they take.
  int64_t arena_bytes() const {
    return plan_.document.device.report.peak_bytes + plan_.document.host.report.peak_bytes;
  }
  program::DType compute_type() const { return plan_.spec.compute; }
  // Puts the adapters of `recipe`, which names others than before and is the same otherwise, into
  // the slots that were planned. No engine has a request inside, and engines that are made later
  // know them. Throws UserError, with nothing changed, for adapters that the slots do not hold.
  void replace_adapters(const formats::Recipe& recipe);
  // The names of the adapters that requests choose from, in the order of their slots.
  const std::vector<std::string>& adapters() const { return adapters_; }

 private:
  void load(const formats::Recipe& recipe);
  void load_slots(const formats::Recipe& recipe);

  models::ModelSource model_;
  plan::PlannedInference plan_;
  runtime::Session session_;
  std::vector<std::string> adapters_;
};

}  // namespace snug::engine
