// trainer_state.json: where a run stood when its checkpoint was written, beside the tensors. Random
// numbers are counter-based, so the seed and the step are all of the random state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::runtime {

// What must be the same for a resumed run to end with the same bits.
struct RunIdentity {
  std::string recipe_fingerprint;  // of all that changes the numbers
  std::string data_fingerprint;
  std::string backend;  // "cpu"
  std::string library;  // "oneDNN 2.6.3, avx512_core_bf16"
  int64_t threads = 0;

  bool operator==(const RunIdentity&) const = default;
};

struct TrainerState {
  static constexpr int64_t kSchemaVersion = 1;

  int64_t step = 0;           // optimizer steps done
  int64_t max_steps = 0;      // of the whole run
  double epoch = 0;           // passes over the data, with a fraction
  int64_t rows_consumed = 0;  // data position: the next row of the whole run
  int64_t seed = 0;
  int64_t trained_tokens = 0;  // since the start
  int64_t total_tokens = 0;
  int64_t skipped_steps = 0;  // updates skipped for a gradient that was not finite
  double loss_sum = 0;        // since the last line of the log, with its count of tokens or steps
  double loss_weight = 0;
  double train_seconds = 0;
  std::optional<double> best_eval_loss;
  int64_t best_eval_step = 0;
  RunIdentity identity;
  // Every other file of the checkpoint with its bytes; filled by save_checkpoint.
  std::map<std::string, int64_t> files;

  bool operator==(const TrainerState&) const = default;
};

// JSON text; numbers read back with the same bits.
std::string to_json(const TrainerState& state);
// Throws UserError naming `file` and the key for a broken or foreign file, and for one of a newer
// schema.
TrainerState parse_trainer_state(std::string_view text, const std::string& file);

// One sentence a difference that keeps a resumed run from the same bits; empty when none.
std::vector<std::string> differences(const RunIdentity& saved, const RunIdentity& now);

}  // namespace snug::runtime
