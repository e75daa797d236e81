// A communicator of ranks that reach each other through host memory: local and mpi. A worker thread
// takes collectives from a queue, in order, and performs them over a transport.
//
// When a collective fails, all ranks are told, and every later call to begin or wait fails with the
// same error. Destroying the communicator during an exception counts as a failure of this rank.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/last_words.h"
#include "comm/transport.h"

namespace snug::comm {

class HostCommunicator : public Communicator {
 public:
  explicit HostCommunicator(std::unique_ptr<Transport> transport);
  ~HostCommunicator() override;
  HostCommunicator(const HostCommunicator&) = delete;
  HostCommunicator& operator=(const HostCommunicator&) = delete;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string name() const override { return std::string(transport_->name()); }

  Ticket begin_all_gather(std::span<const GatherPart> parts, std::string_view what) override;
  Ticket begin_reduce_scatter(std::span<const ReducePart> parts, const SumPieces& pieces,
                              std::string_view what) override;
  Ticket begin_all_reduce(std::span<const SumPart> parts, const SumPieces& pieces,
                          std::string_view what) override;
  void wait(Ticket ticket) override;
  std::vector<std::string> all_gather_text(std::string_view text) override;
  void barrier() override;
  void set_step(int64_t step) override { step_ = step; }
  std::optional<int64_t> step() const override { return step_; }
  int64_t bytes_sent() const override { return collectives_.bytes_sent(); }
  void abort(std::string_view reason) override;

  // See comm/last_words.h.
  bool is_to_say(const Ending& ending);
  // See comm/gather_text.h.
  std::vector<std::string> gather_text(std::string_view text);
  // See comm/split.h.
  std::unique_ptr<Communicator> split(int color, int key);

 private:
  struct Gather {
    std::vector<GatherPart> parts;
  };
  struct Reduce {
    std::vector<ReducePart> parts;
    SumPieces pieces;
  };
  struct Sum {
    std::vector<SumPart> parts;
    SumPieces pieces;
  };
  struct Text {
    std::string_view text;
    std::vector<std::string>* texts;
    bool to_first = false;  // only the first rank receives the texts
  };
  struct Task {
    std::variant<Gather, Reduce, Sum, Text> work;
    std::string what;
    std::optional<int64_t> step;
    Ticket ticket = 0;
  };

  Ticket begin(Task task);
  void run_worker();
  // Returns what went wrong, if anything did.
  std::optional<Failure> perform(const Task& task);
  void fail(std::unique_lock<std::mutex>& lock, const Failure& failure);
  std::string describe(const Task& task) const;

  std::unique_ptr<Transport> transport_;
  Collectives collectives_;
  std::optional<int64_t> step_;
  const int exceptions_;  // exceptions in flight when this was constructed

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;  // the front task is being performed
  Ticket begun_ = 0;
  Ticket done_ = 0;
  bool closing_ = false;
  std::optional<std::string> abort_reason_;
  std::optional<Failure> error_;
  std::thread worker_;
};

}  // namespace snug::comm
