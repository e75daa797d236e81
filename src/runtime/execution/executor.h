// The executor: allocates a job's arenas once, resolves every operation to addresses, has the
// backend load and record what it will run, and runs the programs' lists. Nothing is allocated
// afterwards, on the host or on a device. One thread drives it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
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
  // Allocates the arenas, prepares every operation of every program, has the backend tune it and
  // load its code, and records what it repeats: the tensors hold nothing yet. Throws UserError when
  // the machine has not the memory; fails a CHECK when a library asks for more scratch than was
  // planned. The job and the backend must outlive the executor.
  // `mesh`: the ranks of the job, which the backend was given too and whose communicators outlive
  // both; null: one rank alone.
  Executor(const plan::Job& job, backends::Backend& backend, const comm::Mesh* mesh = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Begins the stage of the program, if another one goes on: waits for all that was queued, since
  // the tensors that the other stage has of lifetime step lie in the same bytes and are lost. What
  // runs or performs a program, or writes its inputs, begins its stage first.
  void begin_stage_of(const program::ProgramKey& program) const { begin_stage(loaded(program)); }
  // How often another stage began: what was in tensors of lifetime step is there while this stays.
  int64_t stages_begun() const { return stages_begun_; }

  // Runs one program's operations in order, unless the runtime performs them; the copies of its
  // inputs (host.NAME) and results among them; returns when they are queued (done, on cpu). As
  // recordings, where the backend makes them and nobody observes (runtime/execution/partitions.h).
  void run(const program::ProgramKey& program);
  // The same without recordings: what the backend did with each operation.
  std::vector<backends::Trace> run_traced(const program::ProgramKey& program);
  // The host sides of the tensors that the program's kinds call their extents: what they hold now.
  const program::BatchBounds& bounds(const program::ProgramKey& program) const;

  // A tensor of lifetime run or step, or a program tensor of the named program, by name. CHECKs
  // that it exists.
  const backends::Buffer& tensor(const program::ProgramKey& program, std::string_view name) const;
  // A shared tensor (run or step) by name, whichever program has it.
  const backends::Buffer& tensor(std::string_view name) const;
  bool has(std::string_view name) const;
  bool has(const program::ProgramKey& program, std::string_view name) const;
  // A tensor of the named program.
  const backends::Buffer& tensor(const program::ProgramKey& program, program::TensorId id) const;

  // Returns when the host side of the program's inputs may be written again: when every run so far,
  // of this program or of one that shares an input with it, has copied them.
  void await_inputs(const program::ProgramKey& program) const;
  // Writes the host side of an input that is `value` alone, for the runs that follow; waits for
  // what earlier runs copy of it.
  template <typename T>
  void set_input(std::string_view name, T value) {
    write_input(name, &value, sizeof(T));
  }
  // Whether result() would return at once.
  bool has_results() const { return points_->is_reached(results_copied()); }
  // Returns when the host sides of the results are what the last runs left in them.
  void await_results() const { points_->wait(results_copied()); }
  // What the last run of a program with this result left in it; fails a CHECK where another stage
  // began since.
  template <typename T>
  T result(std::string_view name) {
    T value{};
    read_result(name, &value, sizeof(T));
    return value;
  }

  backends::Backend& backend() { return backend_; }
  const plan::Job& job() const { return job_; }
  const comm::Mesh& mesh() const { return mesh_; }

  // Points of copies through the staging memory of this slot (runtime/storage/host_window.h); null
  // where the host reaches the device.
  backends::DeviceEvents* window_points(int slot) const {
    return window_points_.empty() ? nullptr : window_points_[static_cast<size_t>(slot)].get();
  }

  // Called around every operation when set (profiling), which then run one by one; null otherwise.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Operations that are joined run in their one launch, and it is called around the first of them
    // alone.
    virtual bool sees_launches() const { return false; }
    virtual void before(const program::Program& program, size_t operation) = 0;
    virtual void after(const program::Program& program, size_t operation) = 0;
  };
  void set_observer(Observer* observer) { observer_ = observer; }

 private:
  struct Loaded;  // a program with its resolved operations
  // Points of points_: when a program's last run had copied its inputs, by the program's index;
  // and when the last results were copied.
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
  std::vector<std::unique_ptr<backends::Arena>> arenas_;  // one for each space; null where empty
  std::vector<std::unique_ptr<Loaded>> programs_;
  std::unique_ptr<backends::DeviceEvents> points_;
  std::vector<std::unique_ptr<backends::DeviceEvents>> window_points_;  // by slot
  mutable std::optional<program::Stage> stage_;                         // that goes on
  mutable int64_t stages_begun_ = 0;
  Observer* observer_ = nullptr;
};

}  // namespace snug::runtime
