// The executor allocates a job's arenas once, resolves the operands of every operation to
// addresses, has the backend load and record what it will run, and runs the programs' operations.
// Nothing is allocated afterwards, neither on the host nor on a device. One thread drives it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/arena.h"
#include "backends/device_events.h"
#include "backends/invocation.h"
#include "backends/trace.h"
#include "comm/mesh.h"
#include "plan/job/job.h"

namespace snug::runtime {

class Executor {
 public:
  // Allocates the arenas, prepares every operation of every program, and has the backend tune it,
  // load its code and record what it repeats. The tensors hold no values yet. Throws UserError when
  // the machine does not have enough memory; fails a CHECK when a library asks for more scratch
  // than was planned. The job and the backend must outlive the executor. `mesh` has the ranks of
  // the job, which the backend was given too and whose communicators must outlive both; null for a
  // single rank.
  Executor(const plan::Job& job, backends::Backend& backend, const comm::Mesh* mesh = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Begins the program's stage if another stage is active. It first waits for everything queued,
  // since the other stage's tensors of lifetime step share these bytes and are lost. Call it before
  // running or performing a program, or writing its inputs.
  void begin_stage_of(const program::ProgramKey& program) const { begin_stage(loaded(program)); }
  // How often the stage has changed. Tensors of lifetime step keep their values while this stays
  // the same.
  int64_t stages_begun() const { return stages_begun_; }

  // Makes `user` the one who writes caches of generation from now on. Returns whether another one
  // was it before, so that what this user had in them may be lost.
  bool take_caches(const void* user) const { return std::exchange(caches_user_, user) != user; }

  // Runs the operations of one program in order, except those that the runtime performs, including
  // the copies of its inputs (host.NAME) and results. Returns when they are queued (on cpu: done).
  // Uses recordings where the backend makes them and no observer is set
  // (runtime/execution/partitions.h).
  void run(const program::ProgramKey& program);
  // Runs the program without recordings, and returns what the backend did for each operation.
  std::vector<backends::Trace> run_traced(const program::ProgramKey& program);
  // The current values, on the host, of the tensors that the program's kinds name as their extents.
  const program::BatchBounds& bounds(const program::ProgramKey& program) const;

  // A tensor of lifetime run or step, or a program tensor of the named program, by name. CHECKs
  // that it exists.
  const backends::Buffer& tensor(const program::ProgramKey& program, std::string_view name) const;
  // A shared tensor (of lifetime run or step) by name, whichever program has it.
  const backends::Buffer& tensor(std::string_view name) const;
  bool has(std::string_view name) const;
  bool has(const program::ProgramKey& program, std::string_view name) const;
  // A tensor of the named program.
  const backends::Buffer& tensor(const program::ProgramKey& program, program::TensorId id) const;

  // Returns when the host side of the program's inputs may be overwritten: once every earlier run
  // of this program, or of one that shares an input with it, has copied them.
  void await_inputs(const program::ProgramKey& program) const;
  // Sets the host side of an input that holds a single value, for later runs; waits until earlier
  // runs have copied it.
  template <typename T>
  void set_input(std::string_view name, T value) {
    write_input(name, &value, sizeof(T));
  }
  // Whether result() would return at once.
  bool has_results() const { return points_->is_reached(results_copied()); }
  // Returns when the host sides of the results hold what the last runs wrote to them.
  void await_results() const { points_->wait(results_copied()); }
  // The value of this result after the last run of a program that has it; fails a CHECK where
  // another stage has begun since.
  template <typename T>
  T result(std::string_view name) {
    T value{};
    read_result(name, &value, sizeof(T));
    return value;
  }

  backends::Backend& backend() { return backend_; }
  const plan::Job& job() const { return job_; }
  const comm::Mesh& mesh() const { return mesh_; }

  // Events of the copies through the staging memory of this slot (runtime/storage/host_window.h);
  // null where the host can access the device's memory.
  backends::DeviceEvents* window_points(int slot) const {
    return window_points_.empty() ? nullptr : window_points_[static_cast<size_t>(slot)].get();
  }

  // When set, it is called before and after every operation, and operations run one by one (for
  // profiling). Null by default.
  class Observer {
   public:
    virtual ~Observer() = default;
    // If true, joined operations run in their one launch, and the observer is called only around
    // the first of them.
    virtual bool sees_launches() const { return false; }
    virtual void before(const program::Program& program, size_t operation) = 0;
    virtual void after(const program::Program& program, size_t operation) = 0;
  };
  void set_observer(Observer* observer) { observer_ = observer; }

 private:
  struct Loaded;  // a program with its resolved operations
  // The indices of events in points_: each program's index stands for the copying of its inputs in
  // its last run; this one stands for the last copying of results.
  size_t results_copied() const { return job_.programs.size(); }

  void record(Loaded& list);
  void run_partition(const Loaded& list, size_t index);
  void mark_copies(const Loaded& list, size_t partition);
  void run_operations(const Loaded& list, size_t begin, size_t end);
  void run_launches(const Loaded& list, size_t begin, size_t end);
  Loaded& loaded(const program::ProgramKey& program) const;
  void begin_stage(const Loaded& list) const;
  void await_input(std::string_view host_name) const;
  void write_input(std::string_view name, const void* value, int64_t bytes);
  void read_result(std::string_view name, void* value, int64_t bytes);

  const plan::Job& job_;
  backends::Backend& backend_;
  const comm::Mesh mesh_;
  std::vector<std::unique_ptr<backends::Arena>> arenas_;  // one per space; null for an empty one
  std::vector<std::unique_ptr<Loaded>> programs_;
  std::unique_ptr<backends::DeviceEvents> points_;
  std::vector<std::unique_ptr<backends::DeviceEvents>> window_points_;  // one set for each slot
  mutable std::optional<program::Stage> stage_;                         // the stage that is active
  mutable int64_t stages_begun_ = 0;
  Observer* observer_ = nullptr;
  mutable const void* caches_user_ = nullptr;
};

}  // namespace snug::runtime
