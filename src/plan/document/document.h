// plan.json: the memory and the time that a job was planned with. What a run measures has the same
// keys in measured.json (measured.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/job/memory.h"
#include "plan/time/basis.h"
#include "program/kinds/kind.h"
#include "program/work/device_facts.h"

namespace snug::plan {

struct SpaceFigures {
  int64_t capacity_bytes = 0;
  SpaceReport report;
};

// What one of several ranks holds and sends.
struct RankFigures {
  std::string strategy;
  int64_t ranks = 1;
  int64_t node_ranks = 1;  // of them on a machine
  int64_t shards = 1;      // that share the tensors of a replica
  int64_t replicas = 1;
  // The collectives of a step by kind: how many, and what this rank sends in them.
  struct Collectives {
    int64_t count = 0;
    int64_t sent_bytes = 0;
  };
  std::map<std::string, Collectives> collectives;
};

// A program that is run over data outside of steps.
struct PassFigures {
  std::optional<int64_t> runs{};  // nothing: unknown, since the data were not read
  double run_seconds = 0;
  double first_seconds = 0;  // of what comes once before them

  std::optional<double> seconds() const {
    if (!runs) return std::nullopt;
    return first_seconds + static_cast<double>(*runs) * run_seconds;
  }
};

struct PlanDocument {
  bool fits = true;
  std::string
      change;  // the cheapest overrides that make it fit, "recompute=layer"; empty when it fits
  std::string model;
  std::string method;
  std::string objective;      // as in recipes; empty: the next token
  std::string base;           // how linears are stored: "bf16", "fp32", "nf4", "nf4-dq"
  std::string compute_dtype;  // as in recipes: "bf16", "fp16" or "fp32"
  std::string recompute;      // as in recipes
  // What was chosen where the recipe says auto: runs of layers, from the first, with their mode.
  struct LayerModes {
    std::string mode;
    int64_t layers = 0;
  };
  std::vector<LayerModes> recompute_layers{};
  int64_t recompute_nothing_bytes = 0;  // and of the device, if no layer computed anything again
  bool activation_offloading = false;
  bool offload_params = false;
  std::string offload_optimizer = "none";  // what is done: none, stream or host
  int64_t offload_window_bytes = 0;
  // How long each channel that is not idle is busy in a step, by its name.
  std::map<std::string, double> busy_seconds;
  // The shape of a micro-batch: rows, tokens per row, and the documents that each row has room for:
  // as many as the data can put in one, or, planned without data, an estimate that is high enough.
  int64_t rows = 0;
  int64_t row_tokens = 0;
  int64_t encoder_row_tokens = 0;  // of these, an encoder's
  int64_t row_documents = 0;
  bool has_data = false;
  // The rotary factors of a longrope model: "long" where a document (without data: max_length) is
  // longer than its original positions, else "short".
  std::string rotary_factors;
  SpaceFigures device;
  SpaceFigures host;  // pinned and pageable together
  // The facts of a device with memory of its own. What is outside the arena there comes on top of
  // it.
  std::optional<program::DeviceFacts> card;
  // The most launches of one run of each program, which a GPU may keep recorded. The memory of the
  // recordings is part of what is outside the arena (program/work/graph_memory.h).
  int64_t recorded_launches = 0;
  // What a training job uses of its arenas in host memory, activity by activity.
  struct ActivityFigures {
    Activity activity = Activity::loading;
    int64_t arena_bytes = 0;
  };
  std::vector<ActivityFigures> activities{};
  // What the process holds next to the arenas: code, libraries, tokenizer, documents.
  int64_t outside_bytes = 0;
  int64_t process_bytes = 0;             // of them those of this process, measured
  Basis outside_basis = Basis::unknown;  // or assumed, or measured
  // What the process holds at most before the job begins, while data are read, as planned. 0:
  // nothing is read.
  int64_t reading_bytes = 0;
  // What it had held at most when this was planned, with what opening a tokenizer takes, which
  // nobody plans. 0: not measured.
  int64_t held_bytes = 0;
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  int64_t tokens_per_step = 0;  // the capacity: rows x row tokens x accumulation
  double step_seconds = 0;      // 0: unknown
  Basis step_basis = Basis::unknown;
  // Of step_seconds: what another algorithm's samples, or none, stand behind
  // (plan/time/estimate.h).
  double step_other_algorithm_seconds = 0;
  double step_unsampled_seconds = 0;
  double load_seconds = 0;  // of weights and adapter, before the first step; 0: unknown
  Basis load_basis = Basis::unknown;
  // What a run takes besides steps (run_times.h): before the first one, where log-probabilities are
  // kept; each evaluation, where it has evaluation data; each checkpoint.
  std::optional<PassFigures> reference{};
  std::optional<PassFigures> evaluation{};
  double save_seconds = 0;  // 0: unknown
  Basis save_basis = Basis::unknown;
  std::string workspaces;  // a word of program::WorkspaceBasis
  std::string target;
  std::string libraries;
  int threads = 0;
  std::optional<RankFigures> ranks;  // nothing: one alone

  // The peak of host memory, which includes the device's arena where the device has no memory of
  // its own: before the job or while it runs, whichever is more.
  int64_t resident_bytes() const {
    return std::max(before_job_bytes(), arena_bytes_on_host() + outside_bytes);
  }
  int64_t before_job_bytes() const { return std::max(reading_bytes, held_bytes); }
  // Host memory in use during an activity, with what lies outside the arenas.
  int64_t activity_bytes(const ActivityFigures& figures) const {
    return figures.arena_bytes + outside_bytes;
  }
  int64_t arena_bytes_on_host() const {
    return (card ? 0 : device.report.peak_bytes) + host.report.peak_bytes;
  }
};

// The memory and the parameters of any job; the rest is left to the caller.
PlanDocument describe(const Job& job, const program::Target& target);
// Sets what lies outside the arenas in host memory: what this process holds, and what a driver that
// it has not loaded is assumed to add.
void set_outside(PlanDocument& document, int64_t process_bytes);

// Pretty-printed JSON. Bytes are integers, times are seconds.
std::string to_json(const PlanDocument& document);

// "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622", which everyone
// reads.
std::string parameter_line(const PlanDocument& document);

// For people: memory by role, the operation at the peak, the lower bound, the host, what lies
// outside, the step. Several lines, no newline at the end.
std::string summary(const PlanDocument& document);

// What a step's time rests on: "calibrated; 45 % of the time without a sample".
std::string step_basis_text(const PlanDocument& document);

// "layer in 24 layers, then none in 8 layers", where it was chosen; else empty.
std::string layers_text(const PlanDocument& document);

// 1234567890 -> "1.15 GiB".
std::string readable_bytes(int64_t bytes);
// 0.0125 -> "12.5 ms"; 0 -> "unknown".
std::string readable_seconds(double seconds);

}  // namespace snug::plan
