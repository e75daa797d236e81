// The interface between a program and a machine, with three implementations: reference (plain
// loops), cpu and cuda.
//
// The executor allocates each arena once, prepares and tunes every operation once, has the kernels
// of each program loaded and repeated parts recorded, and, once weights are loaded, runs operations
// in list order. One thread drives a backend; a backend may use many inside run(). After
// preparation run() allocates neither memory nor anything else that a device may run out of:
// scratch is the operation's workspace tensor, and anything that is missing is found before the
// first step. Weights are loaded before the first run, by two threads: both may use queue_copy(),
// quantize_nf4() and DeviceEvents of their own at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/arena.h"
#include "backends/device_events.h"
#include "backends/formulas/random_values.h"
#include "backends/invocation.h"
#include "comm/mesh.h"
#include "formats/recipe/choices.h"
#include "program/ir/program.h"
#include "program/work/target.h"

namespace snug::backends {

// A sequence of operations that a device repeats without the host.
class Recording {
 public:
  virtual ~Recording() = default;
  // Runs all of them again, at the same addresses; asynchronous like run().
  virtual void replay() = 0;
};

// The algorithms that a backend chose by timing.
struct Choices {
  std::string text;     // JSON, for a later run; empty where nothing was chosen
  std::string summary;  // a line for the log; empty where nothing was chosen
};

class Backend : public program::Target {
 public:
  // Touches all pages, so that missing memory is noticed now and not at step 128. Throws UserError
  // when the system does not have enough.
  virtual std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) = 0;
  // Creates what the operation needs besides its tensors; may return null. Fails a CHECK when the
  // library now asks for more scratch than was planned, and when the backend does not run such an
  // operation: everything that depends on attributes and shapes is checked here, not in run().
  virtual std::unique_ptr<Prepared> prepare(const program::OperationView& view) = 0;
  // Chooses between algorithms for a prepared operation by running them on its own tensors, which
  // hold nothing yet and are zero afterwards, except for its workspace. Identical operations are
  // timed once. Libraries load what they need for it. Throws UserError where a library fails.
  virtual void tune(const Invocation& /*invocation*/) {}
  // Loads the code for running a program's operations, after all of them were tuned; runs nothing.
  // Throws UserError where the device has too little memory for it.
  virtual void load(std::span<const Invocation> /*invocations*/) {}
  // The choices made so far. A later run that takes them computes the same bits as this one.
  virtual Choices choices() const { return {}; }
  // Takes the text of an earlier run's choices, before anything is prepared. If they are not valid
  // here, returns the reason as a sentence that names `file`; empty if they are.
  virtual std::string take_choices(std::string_view /*text*/, const std::string& /*file*/) {
    return {};
  }
  // Whether the backend needs the extent of this operation from the host. If so, the host passes it
  // (Invocation::bounds) and queues the operation in every run. Otherwise the operation may be part
  // of a recording, which knows only shapes; kernels then read the bounds themselves. Only asked of
  // kinds that have extents.
  virtual bool takes_extent(const program::OperationView& /*view*/) const { return false; }
  // Runs an operation; asynchronous where the device is.
  virtual void run(const Invocation& invocation) = 0;
  // Runs operations in this order; joined operations run in one launch with the one before them.
  virtual void run_list(std::span<const Invocation> invocations) {
    for (const Invocation& invocation : invocations) run(invocation);
  }
  // Announces recordings with this many launches in total (Operation::launches). Called once, when
  // all memory is allocated; throws UserError where there is not enough memory left for them.
  virtual void expect_recordings(int64_t /*launches*/) {}
  // Records the operations that `operations` runs instead of running them. They must have been
  // loaded before, and the function may only call run() and run_list(). Null where recording has no
  // advantage. Throws UserError where the device has too little memory for it.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*operations*/) {
    return nullptr;
  }
  // Copies between any two spaces, ordered after all earlier work. Returns when the copy is done.
  virtual void copy(void* destination, const void* source, int64_t bytes) = 0;
  // Copies from or to pinned host memory, and may return before the copy is done: the host must not
  // touch that memory until an event that is marked afterwards is reached.
  virtual void queue_copy(void* destination, const void* source, int64_t bytes) {
    copy(destination, source, bytes);
  }
  // Fills a contiguous f32 or bf16 tensor on the device with the random values of a weight, from
  // the weight's element `first` on, a multiple of kValueGroup. Asynchronous like run(), and
  // ordered with it.
  virtual void fill(const Buffer& tensor, const RandomValues& values, int64_t first) = 0;
  // Does formats::quantize_nf4, with the same bits, for contiguous f32, bf16 or f16 values on the
  // device; codes and absmax are on the device too. Asynchronous like run(), and ordered with it.
  virtual void quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) = 0;
  // This rank's number among the ranks that share a replica's tensors.
  virtual int shard_rank() const { return 0; }
  // Returns when all operations and copies so far are done.
  virtual void synchronise() = 0;
  // Creates events for `points` points, none of them marked yet.
  virtual std::unique_ptr<DeviceEvents> events(size_t points) {
    return std::make_unique<HostEvents>(points);
  }
};

// Zero threads means all cores; a budget of zero means all of the machine's memory.
struct BackendOptions {
  int threads = 0;
  int64_t device_memory_bytes = 0;
  bool chooses_by_timing = true;  // for tune(); if false, two runs use the same algorithms
  // Creates the backend for operations that are placed on the host, for a device with memory of its
  // own. Without it prepare() refuses such operations.
  std::function<std::unique_ptr<Backend>()> make_host{};
  int64_t node_ranks = 1;  // ranks of the job that share this machine's memory, with one GPU each
  // The ranks of the job, which must outlive the backend; null for a single rank.
  const comm::Mesh* mesh = nullptr;
  // A collective on a device that takes longer than this is an error.
  double timeout_seconds = 600;
};

// Throws UserError for a backend that is not built, or that cannot run on this machine.
std::unique_ptr<Backend> open_backend(formats::BackendName name, const BackendOptions& options);
// Opens a backend by its name; throws UserError for an unknown name.
std::unique_ptr<Backend> open_backend(std::string_view word, const BackendOptions& options);

}  // namespace snug::backends
