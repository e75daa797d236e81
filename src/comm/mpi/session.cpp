#include "comm/mpi/session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace snug::comm {
namespace {

// Messages of groups use their context as the tag; tag 0 is free.
constexpr int kAnnouncementTag = 0;
// The time for ranks to learn that this one stops, and to announce it themselves before the
// launcher ends them.
constexpr auto kAnnouncementTime = std::chrono::milliseconds(500);
// A rank that ended may have announced the reason: the message may still be in transit.
constexpr auto kNewsTime = std::chrono::milliseconds(300);

}  // namespace

std::shared_ptr<MpiSession> MpiSession::begin(double timeout_seconds, std::string* error) {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) {
    *error = "MPI was begun already in this process";
    return nullptr;
  }
  auto guard = std::make_unique<GuardProcess>(timeout_seconds);
  // Each group has its own thread that calls MPI.
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS ||
      provided != MPI_THREAD_MULTIPLE) {
    *error = "This MPI does not let several threads call it (MPI_THREAD_MULTIPLE)";
    return nullptr;
  }
  auto session = std::shared_ptr<MpiSession>(new MpiSession);
  session->guard_ = std::move(guard);
  session->timeout_seconds_ = timeout_seconds;
  MPI_Comm_dup(MPI_COMM_WORLD, &session->world_);
  MPI_Comm_set_errhandler(session->world_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(session->world_, &session->rank_);
  MPI_Comm_size(session->world_, &session->size_);
  session->heard_.resize(static_cast<size_t>(session->size_));
  session->peers_.emplace(session->world_);
  session->guard_->mpi_has_begun();
  return session;
}

MpiSession::~MpiSession() {
  if (stopped_ || announced_) {
    std::this_thread::sleep_for(kAnnouncementTime);
    return;
  }
  guard_->mpi_ends();
  MPI_Comm_free(&world_);
  MPI_Finalize();
  guard_->done();
}

Failure MpiSession::Announcement::failure() const {
  return {"rank " + std::to_string(origin) + " stopped: " + reason, true};
}

void MpiSession::announce(std::string_view reason) {
  if (announced_.exchange(true)) return;
  const Announcement own{rank_, std::string(reason)};
  send(own);
  stop(own.failure());
}

void MpiSession::pass_on() {
  std::optional<Announcement> told;
  {
    const std::lock_guard lock(mutex_);
    told = first_heard_;
  }
  if (told && !announced_.exchange(true)) send(*told);
}

void MpiSession::send(const Announcement& announcement) {
  const auto limit = std::chrono::steady_clock::now() + kAnnouncementTime;
  const std::string text = std::to_string(announcement.origin) + " " + announcement.reason;
  std::vector<MPI_Request> requests(size_ - 1);
  for (int other = 0, i = 0; other < size_; ++other)
    if (other != rank_)
      MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, other, kAnnouncementTag,
                world_, &requests[i++]);
  int done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < limit) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> MpiSession::earlier_reasons(std::chrono::milliseconds time) {
  const auto limit = std::chrono::steady_clock::now() + time;
  const auto all_are_heard = [&] {
    const std::lock_guard lock(mutex_);
    return std::all_of(heard_.begin(), heard_.begin() + rank_,
                       [](const auto& one) { return !!one; });
  };
  while (!all_are_heard() && std::chrono::steady_clock::now() < limit) {
    receive_announcement();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::lock_guard lock(mutex_);
  std::vector<std::string> reasons(static_cast<size_t>(rank_));
  for (int rank = 0; rank < rank_; ++rank)
    if (const auto& heard = heard_[static_cast<size_t>(rank)]; heard && heard->origin == rank)
      reasons[static_cast<size_t>(rank)] = heard->reason;
  return reasons;
}

void MpiSession::stop(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
  stopped_ = true;
}

std::optional<Failure> MpiSession::stopped() {
  if (!stopped_) receive_announcement();
  if (!stopped_) look_after_peers();
  if (!stopped_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

void MpiSession::receive_announcement() {
  int there = 0;
  MPI_Message message;
  MPI_Status status;
  if (MPI_Improbe(MPI_ANY_SOURCE, kAnnouncementTag, world_, &there, &message, &status) !=
          MPI_SUCCESS ||
      there == 0)
    return;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::string text(bytes, '\0');
  MPI_Mrecv(text.data(), bytes, MPI_BYTE, &message, &status);
  const size_t space = text.find(' ');
  const Announcement announcement{std::stoi(text.substr(0, space)), text.substr(space + 1)};
  {
    const std::lock_guard lock(mutex_);
    heard_[static_cast<size_t>(status.MPI_SOURCE)] = announcement;
    if (!first_heard_) first_heard_ = announcement;
  }
  stop(announcement.failure());
}

void MpiSession::look_after_peers() {
  const std::optional<PeerProcess> peer = peers_->ended();
  if (!peer) return;
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (!peer_ended_) peer_ended_ = now;
    if (now - *peer_ended_ < kNewsTime) return;
  }
  stop({"rank " + std::to_string(peer->rank) + " is gone: its process " +
            std::to_string(peer->process) +
            " ended without saying why, as one does that is killed, by the system too when memory "
            "runs out",
        false});
}

}  // namespace snug::comm
