// The interface between a program and a machine. Three implement it: reference (plain loops), cpu,
// cuda.
//
// The executor allocates each arena once, prepares every operation once, lets each be tuned, has
// the kernels of each program loaded and what repeats recorded, and runs operations in list order
// once weights are loaded. One thread drives a backend; a backend may use many inside run(). After
// that run() takes no memory, nor anything else of a device that it may not have: scratch is the
// operation's workspace tensor, and what is not to be had is found before the first step.
// Weights are loaded before the first run, by two threads: both may use queue_copy(),
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

// Operations that a device repeats without the host.
class Recording {
 public:
  virtual ~Recording() = default;
  // Runs them all again, at the addresses they had; asynchronous like run().
  virtual void replay() = 0;
};

// What a backend chose by timing.
struct Choices {
  std::string text;     // for a later run, JSON; empty where it chose nothing
  std::string summary;  // a line for the log; likewise
};

class Backend : public program::Target {
 public:
  // Pages are touched, so that memory that is not there is missed now and not at step 128.
  // Throws UserError when the system has not that much.
  virtual std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) = 0;
  // Creates what the operation needs beyond its tensors; may return null. Fails a CHECK when the
  // library now asks for more scratch than was planned, and where the operation is one that the
  // backend does not run: what depends on attributes and shapes is asked here, and not by run().
  virtual std::unique_ptr<Prepared> prepare(const program::OperationView& view) = 0;
  // Chooses between ways to do a prepared operation by running them on its own tensors, which hold
  // nothing yet and are zero afterwards, except for its workspace. Operations alike are timed once.
  // Libraries load what they need for it. Throws UserError where one refuses.
  virtual void tune(const Invocation& /*invocation*/) {}
  // Loads the code that running a program's list takes, after all of it was tuned; runs nothing.
  // Throws UserError where the device has no memory for it.
  virtual void load(std::span<const Invocation> /*invocations*/) {}
  // What was chosen so far. A later run that takes it computes the same bits as this one.
  virtual Choices choices() const { return {}; }
  // Takes the text of an earlier run's choices, before anything is prepared. Returns why they do
  // not hold here, a sentence that names `file`; empty where they do.
  virtual std::string take_choices(std::string_view /*text*/, const std::string& /*file*/) {
    return {};
  }
  // Whether what it does with this operation, whose kind names extents, depends on what the host
  // knows of them: the host then gives it that (Invocation::bounds) and calls it anew in every run.
  // What it keeps in a recording does not; it has only shapes, and the bounds where its own code
  // reads them.
  virtual bool takes_extent(const program::OperationView& /*view*/) const { return false; }
  // Runs it; asynchronous where the device is.
  virtual void run(const Invocation& invocation) = 0;
  // Runs them in this order; those that are joined together with the one before them.
  virtual void run_list(std::span<const Invocation> invocations) {
    for (const Invocation& invocation : invocations) run(invocation);
  }
  // That recordings of so many launches (Operation::launches) will be made. Called once, when all
  // memory is allocated; throws UserError where there is none left for them.
  virtual void expect_recordings(int64_t /*launches*/) {}
  // Keeps what `operations` runs instead of running it; all of it was loaded before, and it calls
  // nothing but run() and run_list(). Null where there is nothing to gain. Throws UserError where
  // the device has no memory for it.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*operations*/) {
    return nullptr;
  }
  // Between any two spaces, ordered after what was run before. Returns when it is done.
  virtual void copy(void* destination, const void* source, int64_t bytes) = 0;
  // Copies from or to pinned memory of the host, and may return before it is done: the host leaves
  // that memory alone until a point that is marked afterwards is reached.
  virtual void queue_copy(void* destination, const void* source, int64_t bytes) {
    copy(destination, source, bytes);
  }
  // Fills a contiguous f32 or bf16 tensor of the device with the values of a weight from its
  // element `first` on, a multiple of kValueGroup. Asynchronous like run(), ordered with it.
  virtual void fill(const Buffer& tensor, const RandomValues& values, int64_t first) = 0;
  // formats::quantize_nf4 of values that lie on the device side by side, f32, bf16 or f16, with the
  // same bits; codes and absmax lie there too. Asynchronous like run(), ordered with it.
  virtual void quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) = 0;
  // Which of the ranks that share the tensors of a replica this is.
  virtual int shard_rank() const { return 0; }
  // Returns when all that was run and copied is done.
  virtual void synchronise() = 0;
  // With so many points to mark, none of them marked yet.
  virtual std::unique_ptr<DeviceEvents> events(size_t points) {
    return std::make_unique<HostEvents>(points);
  }
};

// Threads 0: all cores. Budget 0: what the machine has.
struct BackendOptions {
  int threads = 0;
  int64_t device_memory_bytes = 0;
  bool chooses_by_timing = true;  // tune() does; if not, two runs take the same algorithms
  // Makes what runs the operations that are placed on the host, for a device with memory of its
  // own. Without it such operations are refused in prepare().
  std::function<std::unique_ptr<Backend>()> make_host{};
  int64_t node_ranks = 1;  // of the job that share this machine's memory, with a card each
  // The ranks of the job, which must outlive the backend; null: one alone.
  const comm::Mesh* mesh = nullptr;
  // After so long a collective that does not end on a device is an error.
  double timeout_seconds = 600;
};

// Throws UserError for a backend that is not built, or cannot run on this machine.
std::unique_ptr<Backend> open_backend(formats::BackendName name, const BackendOptions& options);
// Opens a backend by its word; throws UserError for another one.
std::unique_ptr<Backend> open_backend(std::string_view word, const BackendOptions& options);

}  // namespace snug::backends
