// plan.json: the memory and the time for which a job was planned. measured.json (measured.h) has
// the measurements of a run under the same keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/job/memory.h"
#include "plan/job/rollout_sizes.h"
#include "plan/time/basis.h"
#include "program/kinds/kind.h"
#include "program/work/device_facts.h"

namespace snug::plan {

struct SpaceFigures {
  int64_t capacity_bytes = 0;
  SpaceReport report;
};

// The memory and communication of one of several ranks.
struct RankFigures {
  std::string strategy;
  int64_t ranks = 1;
  int64_t node_ranks = 1;  // ranks per machine
  int64_t shards = 1;      // ranks that share the tensors of a replica
  int64_t replicas = 1;
  // The collectives of a step, by kind: their number, and the bytes that this rank sends in them.
  struct Collectives {
    int64_t count = 0;
    int64_t sent_bytes = 0;
  };
  std::map<std::string, Collectives> collectives;
};

// A program that runs over data outside of steps.
struct PassFigures {
  std::optional<int64_t> runs{};  // nothing: unknown, since the data were not read
  double run_seconds = 0;
  // The time of what is done once besides the runs: before them, or, in an evaluation, the answers
  // that are generated after them, all as long as they may be.
  double first_seconds = 0;

  std::optional<double> seconds() const {
    if (!runs) return std::nullopt;
    return first_seconds + static_cast<double>(*runs) * run_seconds;
  }
};

// The answers from which a job learns, and what they take next to updates.
struct RolloutFigures {
  RolloutSizes sizes{};
  int64_t side_by_side = 0;  // answers that run at one time
  double seconds = 0;        // of a generation, all answers as long as they may be
  double half_seconds = 0;   // the same, all answers half as long
  double update_seconds = 0;
  double half_update_seconds = 0;
  std::optional<double> gather_seconds{};  // of weights in parts, once for a generation
  bool gathers_within = false;             // or they are gathered in each program, as part of it
  // The device's arena up to which training and generating reach. What the two do not share lies in
  // the same bytes, so that the larger one decides.
  int64_t training_bytes = 0;
  int64_t generating_bytes = 0;

  // Of a step, with its share of a generation.
  double step_seconds() const {
    return update_seconds + seconds / static_cast<double>(sizes.updates());
  }
  double half_step_seconds() const {
    return half_update_seconds + half_seconds / static_cast<double>(sizes.updates());
  }
};

struct PlanDocument {
  bool fits = true;
  std::string
      // The cheapest overrides that make it fit: "recompute=layer"; empty if it fits.
      change;
  std::string model;
  std::string method;
  std::string objective;           // as in recipes; empty: next-token prediction
  std::string base;                // how linears are stored: "bf16", "fp32", "nf4", "nf4-dq"
  bool experts_in_4_bits = false;  // matrices of experts are stored as linears are
  std::string compute_dtype;       // as in recipes: "bf16", "fp16" or "fp32"
  std::string recompute;           // as in recipes
  // The modes chosen for recompute=auto: consecutive layers with the same mode, from the first
  // layer on.
  struct LayerModes {
    std::string mode;
    int64_t layers = 0;
  };
  std::vector<LayerModes> recompute_layers{};
  int64_t recompute_nothing_bytes = 0;  // device memory if no layer recomputed anything
  bool activation_offloading = false;
  bool offload_params = false;
  std::string offload_optimizer = "none";  // resolved: none, stream or host
  int64_t offload_window_bytes = 0;
  // The busy time of each channel in a step, by the channel's name; idle channels are left out.
  std::map<std::string, double> busy_seconds;
  // The shape of a micro-batch: rows, tokens per row, and the capacity of documents per row. That
  // is the most that the data can put into a row or, without data, a sufficiently high estimate.
  int64_t rows = 0;
  int64_t row_tokens = 0;
  int64_t encoder_row_tokens = 0;  // how many of row_tokens are an encoder's
  int64_t row_documents = 0;
  bool has_data = false;
  // The rotary factors of a longrope model: "long" where a document (without data: max_length) is
  // longer than the model's original positions, else "short".
  std::string rotary_factors;
  SpaceFigures device;
  SpaceFigures host;  // pinned and pageable memory together
  // The facts of a device with memory of its own, in which memory outside the arena is needed in
  // addition to the arena.
  std::optional<program::DeviceFacts> card;
  // The launches in one run of every program, added up, which a GPU may keep recorded as graphs.
  // The recordings take memory outside the arena (program/work/graph_memory.h).
  int64_t recorded_launches = 0;
  // The bytes of a training job's arenas in host memory during one activity.
  struct ActivityFigures {
    Activity activity = Activity::loading;
    int64_t arena_bytes = 0;
  };
  std::vector<ActivityFigures> activities{};
  // The process's memory outside the arenas: code, libraries, tokenizer, documents.
  int64_t outside_bytes = 0;
  int64_t process_bytes = 0;             // of which this process, measured
  Basis outside_basis = Basis::unknown;  // unknown, assumed or measured
  // The most that the process will hold while it reads data, before the job begins, as planned. 0:
  // no data is read.
  int64_t reading_bytes = 0;
  // The most that the process had held when the plan was made. It includes opening the tokenizer,
  // which is not planned. 0: not measured.
  int64_t held_bytes = 0;
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  int64_t tokens_per_step = 0;  // capacity: rows x row tokens x accumulation
  double step_seconds = 0;      // 0: unknown
  Basis step_basis = Basis::unknown;
  // The parts of step_seconds that rest on another algorithm's samples, and on no samples
  // (plan/time/estimate.h).
  double step_other_algorithm_seconds = 0;
  double step_unsampled_seconds = 0;
  // Loading weights and adapter before the first step; 0: unknown.
  double load_seconds = 0;
  Basis load_basis = Basis::unknown;
  // The times of a run besides its steps (run_times.h): reference log-probabilities before the
  // first step, if they are kept; each evaluation, if there is evaluation data; each checkpoint.
  std::optional<PassFigures> reference{};
  std::optional<PassFigures> evaluation{};
  std::optional<RolloutFigures> rollouts{};
  double save_seconds = 0;  // 0: unknown
  Basis save_basis = Basis::unknown;
  std::string workspaces;  // a word of program::WorkspaceBasis
  std::string target;
  std::string libraries;
  int threads = 0;
  std::optional<RankFigures> ranks;  // nothing: a single rank

  // The peak of host memory before or during the job, whichever is larger. It includes the device's
  // arena if the device has no memory of its own.
  int64_t resident_bytes() const {
    return std::max(before_job_bytes(), arena_bytes_on_host() + outside_bytes);
  }
  int64_t before_job_bytes() const { return std::max(reading_bytes, held_bytes); }
  // Host memory in use during an activity, memory outside the arenas included.
  int64_t activity_bytes(const ActivityFigures& figures) const {
    return figures.arena_bytes + outside_bytes;
  }
  int64_t arena_bytes_on_host() const {
    return (card ? 0 : device.report.peak_bytes) + host.report.peak_bytes;
  }
};

// The memory and the parameters of any job; the caller fills in the rest.
PlanDocument describe(const Job& job, const program::Target& target);
// Sets the host memory outside the arenas: what this process holds, plus what a driver that is not
// loaded yet is assumed to take.
void set_outside(PlanDocument& document, int64_t process_bytes);

// Pretty-printed JSON. Bytes are integers, times are seconds.
std::string to_json(const PlanDocument& document);

// "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622", in PEFT's
// format.
std::string parameter_line(const PlanDocument& document);

// A summary for people: memory by role, the operation at the peak, the lower bound, host memory,
// memory outside the arenas, the step's time. Several lines, no newline at the end.
std::string summary(const PlanDocument& document);

// What the step's time is based on: "calibrated; 45 % of the time without a sample".
std::string step_basis_text(const PlanDocument& document);

// "layer in 24 layers, then none in 8 layers", if recompute was chosen; else empty.
std::string layers_text(const PlanDocument& document);

// 1234567890 bytes give "1.15 GiB".
std::string readable_bytes(int64_t bytes);
// 0.0125 s gives "12.5 ms"; 0 gives "unknown".
std::string readable_seconds(double seconds);

}  // namespace snug::plan
