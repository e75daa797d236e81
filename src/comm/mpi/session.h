// The MPI state of a process, from MPI_Init to MPI_Finalize, shared by the transports of all
// groups.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi/guard_process.h"
#include "comm/mpi/peer_processes.h"
#include "comm/transport.h"

namespace snug::comm {

class MpiSession {
 public:
  // Null, with the reason in `error`, where MPI cannot be initialised.
  static std::shared_ptr<MpiSession> begin(double timeout_seconds, std::string* error);
  // After a failure MPI is not finalised, since that would wait for all ranks: the launcher ends
  // them when this process ends.
  ~MpiSession();

  MPI_Comm world() const { return world_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  double timeout_seconds() const { return timeout_seconds_; }

  // Tells all ranks that this one stops. Only the first call in a process has an effect.
  void announce(std::string_view reason);
  // As in Transport.
  void pass_on();
  std::vector<std::string> earlier_reasons(std::chrono::milliseconds time);
  // Makes the exchanges of this process fail.
  void stop(const Failure& failure);
  // Why exchanges fail now, if they do. Checks for announcements of other ranks, and whether the
  // ranks of this machine still run.
  std::optional<Failure> stopped();

  int latest_context = 0;

 private:
  struct Announcement {
    int origin = 0;  // the rank that gave the reason first
    std::string reason;
    Failure failure() const;
  };

  MpiSession() = default;
  void send(const Announcement& announcement);
  void receive_announcement();
  void look_after_peers();

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  double timeout_seconds_ = 0;
  std::unique_ptr<GuardProcess> guard_;
  std::optional<PeerProcesses> peers_;
  std::mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> peer_ended_;  // when a peer's end was seen
  std::atomic<bool> announced_ = false;
  std::atomic<bool> stopped_ = false;
  std::optional<Failure> failure_;
  std::vector<std::optional<Announcement>> heard_;  // what each rank announced
  std::optional<Announcement> first_heard_;
};

}  // namespace snug::comm
