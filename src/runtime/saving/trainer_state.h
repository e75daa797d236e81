// trainer_state.json: where a run stood when its checkpoint was written, next to the tensors.
// Random numbers are counter-based, so the seed and the step are all of the random state. The file
// carries a checksum of what it says, so that a number which was changed is not believed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace snug::runtime {

// What must be the same for a resumed run to end with the same bits, by name.
struct RunIdentity {
  // Without these it would be another run: the model, the data, the method, the form of its state.
  std::map<std::string, std::string> fixed;
  // What a user may want to change on the way, such as the learning rate or the machine.
  std::map<std::string, std::string> free;

  bool operator==(const RunIdentity&) const = default;
};

struct TrainerState {
  static constexpr int64_t kSchemaVersion = 3;

  int64_t step = 0;           // optimizer steps done
  int64_t max_steps = 0;      // of the whole run
  double epoch = 0;           // passes over the data, with a fraction
  int64_t rows_consumed = 0;  // data position: the next row of the whole run
  int64_t rows_per_step = 1;  // of the process that wrote this, which began after these two
  int64_t resumed_step = 0;
  int64_t resumed_rows = 0;
  int64_t seed = 0;
  int64_t trained_tokens = 0;  // since the start
  int64_t total_tokens = 0;
  int64_t skipped_steps = 0;  // of `step`: those that changed nothing, their gradients not finite
  double train_seconds = 0;
  RunIdentity identity;
  // Every other file of the checkpoint with its bytes, and the checksum of the one that holds
  // theirs; filled by save_checkpoint.
  std::map<std::string, int64_t> files;
  std::string checksums;

  bool operator==(const TrainerState&) const = default;
};

// JSON text; numbers read back with the same bits.
std::string to_json(const TrainerState& state);
// Throws UserError naming `file` and the key for a broken or foreign file, for one of another
// schema, for numbers that cannot be those of one run, and for a file that is not as it was
// written.
TrainerState parse_trainer_state(std::string_view text, const std::string& file);

// "learning_rate was 0.0002 and is 0.0001", one a difference.
struct Differences {
  std::vector<std::string> fixed;  // for which resuming is refused
  std::vector<std::string> free;   // which are told
};
Differences differences(const RunIdentity& saved, const RunIdentity& now);

}  // namespace snug::runtime
