// trainer_state.json: the state of a run when its checkpoint was written, apart from its tensors.
// Random numbers are counter-based, so seed and step are the whole random state. The file carries a
// checksum of its contents, so that a number that was changed is noticed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::runtime {

// The settings, by name, that must be the same for a resumed run to end with the same bits.
struct RunIdentity {
  // Changing one of these would make it another run: the model, the data, the method, the types of
  // its state.
  std::map<std::string, std::string> fixed;
  // Settings that a user may change when resuming, such as the learning rate or the machine.
  std::map<std::string, std::string> free;

  bool operator==(const RunIdentity&) const = default;
};

// What a run has found out about itself: for the choice of its best checkpoint and an early end
// (train/best_model.h), and for the guards that stop it (train/guards.h).
struct RunHistory {
  std::string ranked_by;                      // how evaluations are ranked; empty: they are not
  std::optional<double> best_metric{};        // of all evaluations
  int64_t worse_evaluations = 0;              // in a row that were no better, for an early end
  std::optional<double> best_saved_metric{};  // of those after which a checkpoint was written
  int64_t best_checkpoint = 0;                // the step of that one; 0: none
  int64_t sound_checkpoint = 0;               // the newest that was written while all was well
  std::optional<double> start_evaluation{};   // the loss, or reward, before the first step
  int64_t evaluations_above_start = 0;        // or below, of rewards; in a row
  std::optional<double> first_loss{};         // of a step
  std::optional<double> mean_loss{};          // of the last steps, a moving mean
  std::optional<double> best_mean_loss{};
  int64_t steps_above_best = 0;  // in a row, as all that follow
  int64_t steps_of_zero_loss = 0;
  int64_t steps_of_zero_norm = 0;
  int64_t generations_of_equal_rewards = 0;
  int64_t generations_of_cut_answers = 0;
  int64_t generations_of_low_entropy = 0;
  int64_t updates_of_high_kl = 0;

  // Steps of checkpoints that no limit removes.
  std::array<int64_t, 2> kept_checkpoints() const { return {best_checkpoint, sound_checkpoint}; }
  bool operator==(const RunHistory&) const = default;
};

struct TrainerState {
  static constexpr int64_t kSchemaVersion = 3;

  int64_t step = 0;           // optimizer steps done
  int64_t max_steps = 0;      // the number of steps of the whole run
  double epoch = 0;           // passes over the data, with a fraction
  int64_t rows_consumed = 0;  // data position: the number of the next row of the run
  int64_t rows_per_step = 1;  // of the process that wrote this, which began at the next two values
  int64_t resumed_step = 0;
  int64_t resumed_rows = 0;
  int64_t seed = 0;
  int64_t trained_tokens = 0;  // since the start of the run
  int64_t total_tokens = 0;
  int64_t skipped_steps = 0;  // how many of the `step` steps changed nothing because their
                              // gradients were not finite
  double train_seconds = 0;
  bool only_model = false;  // the checkpoint holds no optimizer state (save_only_model)
  RunHistory history;
  RunIdentity identity;
  std::string data{};  // what the next step's data need next to their position (StepData::state)
  // The sizes in bytes of all other files of the checkpoint, and the checksum of checksums.json;
  // filled in by save_checkpoint.
  std::map<std::string, int64_t> files;
  std::string checksums;

  bool operator==(const TrainerState&) const = default;
};

// The state as JSON text; numbers read back with the same bits.
std::string to_json(const TrainerState& state);
// Throws a UserError that names `file` and the key for a broken or foreign file, for one of another
// schema, for numbers that no run can have, and for a file that was changed after it was written.
TrainerState parse_trainer_state(std::string_view text, const std::string& file);

// One sentence per difference: "learning_rate was 0.0002 and is 0.0001".
struct Differences {
  std::vector<std::string> fixed;  // differences that prevent resuming
  std::vector<std::string> free;   // differences that are only reported
};
Differences differences(const RunIdentity& saved, const RunIdentity& now);

}  // namespace snug::runtime
