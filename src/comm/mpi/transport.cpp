// Messages use MPI_Isend and MPI_Irecv, so that after a time-out it is known which were not
// delivered. MPI moves data only inside its calls, so the worker polls, and sleeps in between when
// nothing moves, since the cores have other work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "comm/mpi/session.h"
#include "comm/mpi_transport.h"

namespace snug::comm {
namespace {

using Clock = std::chrono::steady_clock;

// The most bytes in one message, since MPI's counts are int.
constexpr int64_t kMaxBytes = int64_t{1} << 30;

// A call that takes longer than this has moved data, and the next one may do so too.
constexpr auto kIdleCall = std::chrono::microseconds(20);
// A message that is awaited for less than kAwakeTime is polled without sleeping.
constexpr auto kAwakeTime = std::chrono::microseconds(50);
constexpr auto kSleep = std::chrono::microseconds(50);
// When nothing has moved for longer than kLongWait, a rank is most likely still computing.
constexpr auto kLongWait = std::chrono::milliseconds(10);
constexpr auto kLongSleep = std::chrono::microseconds(200);

class MpiTransport : public Transport {
 public:
  MpiTransport(std::shared_ptr<MpiSession> session, std::vector<int> members, int rank, int context)
      : session_(std::move(session)), members_(std::move(members)), rank_(rank), context_(context) {
    session_->latest_context = std::max(session_->latest_context, context);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string_view name() const override { return "mpi"; }

  std::optional<Failure> exchange(std::span<const Outgoing> outgoing,
                                  std::span<const Incoming> incoming) override;
  void interrupt(std::string_view reason) override {
    session_->stop(
        {"rank " + std::to_string(session_->rank()) + " stopped: " + std::string(reason), false});
  }
  void announce(std::string_view reason) override { session_->announce(reason); }
  void pass_on() override { session_->pass_on(); }
  std::vector<std::string> earlier_reasons(std::chrono::milliseconds time) override {
    return session_->earlier_reasons(time);
  }
  std::unique_ptr<Transport> subgroup(std::span<const int> members, int context) override;
  int latest_context() const override { return session_->latest_context; }

 private:
  bool post(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  std::optional<Failure> complete();
  std::vector<int> waited_for() const;
  Failure missing() const;
  void cancel();

  std::shared_ptr<MpiSession> session_;
  std::vector<int> members_;  // world ranks of the group's members
  const int rank_;
  const int context_;
  // These belong to the exchange in progress; they are members so that their memory is reused.
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;    // world rank of each request's peer
  std::vector<int> indices_;  // indices of the requests that are done
};

std::optional<Failure> MpiTransport::exchange(std::span<const Outgoing> outgoing,
                                              std::span<const Incoming> incoming) {
  requests_.clear();
  peers_.clear();
  std::optional<Failure> failure = session_->stopped();
  if (failure) return failure;
  if (post(outgoing, incoming)) {
    failure = complete();
  } else {
    failure = Failure{"MPI takes no message", false};
  }
  if (failure) cancel();
  return failure;
}

bool MpiTransport::post(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  bool taken = true;
  for (const Incoming& message : incoming)
    for (int64_t first = 0; first < message.bytes; first += kMaxBytes) {
      const int count = static_cast<int>(std::min(kMaxBytes, message.bytes - first));
      peers_.push_back(members_[message.peer]);
      taken &= MPI_Irecv(static_cast<std::byte*>(message.data) + first, count, MPI_BYTE,
                         peers_.back(), context_, session_->world(),
                         &requests_.emplace_back(MPI_REQUEST_NULL)) == MPI_SUCCESS;
    }
  for (const Outgoing& message : outgoing)
    for (int64_t first = 0; first < message.bytes; first += kMaxBytes) {
      const int count = static_cast<int>(std::min(kMaxBytes, message.bytes - first));
      peers_.push_back(members_[message.peer]);
      taken &= MPI_Isend(static_cast<const std::byte*>(message.data) + first, count, MPI_BYTE,
                         peers_.back(), context_, session_->world(),
                         &requests_.emplace_back(MPI_REQUEST_NULL)) == MPI_SUCCESS;
    }
  return taken;
}

std::optional<Failure> MpiTransport::complete() {
  const auto limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(session_->timeout_seconds()));
  indices_.resize(requests_.size());
  auto remaining = requests_.size();
  auto moved = Clock::now();
  while (remaining > 0) {
    const auto before = Clock::now();
    int done = 0;
    if (MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done, indices_.data(),
                     MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      return Failure{"MPI reports an error in a message of " + rank_list(waited_for()), false};
    const auto now = Clock::now();
    remaining -= std::max(done, 0);
    if (done > 0 || now - before > kIdleCall) moved = now;
    if (now - moved < kAwakeTime) continue;
    if (auto failure = session_->stopped()) return failure;
    if (now >= limit) return missing();
    std::this_thread::sleep_for(now - moved < kLongWait ? kSleep : kLongSleep);
  }
  return std::nullopt;
}

// The ranks whose requests are not done; MPI sets those that are done to null.
std::vector<int> MpiTransport::waited_for() const {
  std::set<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i)
    if (requests_[i] != MPI_REQUEST_NULL) ranks.insert(peers_[i]);
  return {ranks.begin(), ranks.end()};
}

Failure MpiTransport::missing() const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", session_->timeout_seconds());
  return {rank_list(waited_for()) + " did not come within " + seconds + " s", false};
}

// Cancels all requests, so that nothing arrives in memory that was given back.
void MpiTransport::cancel() {
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
}

std::unique_ptr<Transport> MpiTransport::subgroup(std::span<const int> members, int context) {
  std::vector<int> world_ranks;
  int own = 0;
  for (const int member : members) {
    if (member == rank_) own = static_cast<int>(world_ranks.size());
    world_ranks.push_back(members_[member]);
  }
  return std::make_unique<MpiTransport>(session_, std::move(world_ranks), own, context);
}

}  // namespace
}  // namespace snug::comm

extern "C" __attribute__((visibility("default"))) void snug_open_mpi_1(
    double timeout_seconds, std::unique_ptr<snug::comm::Transport>* transport, std::string* error) {
  using namespace snug::comm;
  auto session = MpiSession::begin(timeout_seconds, error);
  if (session == nullptr) return;
  std::vector<int> members(session->size());
  std::iota(members.begin(), members.end(), 0);
  const int rank = session->rank();
  *transport = std::make_unique<MpiTransport>(std::move(session), std::move(members), rank, 1);
}
