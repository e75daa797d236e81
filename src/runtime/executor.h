// The executor: allocates a job's arenas once, resolves every operation to addresses, and runs the
// programs' lists. It allocates nothing afterwards, but for a backend's recordings. One thread
// drives it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "plan/job.h"

namespace snug::runtime {

class Executor {
 public:
  // Allocates the arenas, prepares every operation of every program, and has the backend tune it:
  // nothing is loaded yet. Throws UserError when the machine has not the memory; fails a CHECK when
  // a library asks for more scratch than was planned. The job and the backend must outlive the
  // executor.
  Executor(const plan::Job& job, backends::Backend& backend);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs one program's operations in order; returns when they are queued (done, on cpu). From the
  // second time on as recordings, where the backend makes them and nobody observes: one of all
  // operations up to the loss and one of those behind it. How much of the loss is computed depends
  // on the batch, so it is queued anew each time.
  void run(std::string_view program);

  // A tensor of lifetime run or step, or a program tensor of the named program, by name. CHECKs
  // that it exists.
  const backends::Buffer& tensor(std::string_view program, std::string_view name) const;
  // A shared tensor (run or step) by name, whichever program has it.
  const backends::Buffer& tensor(std::string_view name) const;
  bool has(std::string_view name) const;

  // Copies the host side (host.NAME) of every batch tensor of a program to the device, after what
  // was run before; may return before it is done. Where the host side of an operation's extent is
  // one of them, the next run does what that says.
  void upload_batch(std::string_view program);
  // Returns when the host side of batches may be written again.
  void await_upload() { uploads_->wait(0); }
  template <typename T>
  void set_scalar(std::string_view name, T value) {
    write_scalar(name, &value, sizeof(T));
  }
  template <typename T>
  T scalar(std::string_view name) {
    T value{};
    read_scalar(name, &value, sizeof(T));
    return value;
  }

  int64_t arena_bytes(program::Space space) const;
  // Which of the job's programs have run so far, by their index. One without operations (load) is
  // there for its tensors and counts from the start.
  std::vector<bool> ran() const;
  backends::Backend& backend() { return backend_; }
  const plan::Job& job() const { return job_; }

  // Called around every operation when set (profiling), which then run one by one; null otherwise.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void before(const program::Program& program, size_t operation) = 0;
    virtual void after(const program::Program& program, size_t operation) = 0;
  };
  void set_observer(Observer* observer) { observer_ = observer; }

 private:
  struct Loaded;  // a program with its resolved operations
  void record(Loaded& list);
  void run_operations(const Loaded& list, size_t begin, size_t end);
  Loaded& loaded(std::string_view program) const;
  void write_scalar(std::string_view name, const void* value, int64_t bytes);
  void read_scalar(std::string_view name, void* value, int64_t bytes);

  const plan::Job& job_;
  backends::Backend& backend_;
  std::vector<std::unique_ptr<backends::Arena>> arenas_;  // one a space; null where empty
  std::vector<std::unique_ptr<Loaded>> programs_;
  std::unique_ptr<backends::Timeline> uploads_;  // one point: after the last
  Observer* observer_ = nullptr;
};

}  // namespace snug::runtime
