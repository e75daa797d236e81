#include "backends/cuda/transfer/card_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using nccl::Result;
using Clock = std::chrono::steady_clock;

// The time that other ranks have to close a group as well, once this rank does.
constexpr double kCloseSeconds = 10;
// The time between two polls of a call in progress.
constexpr auto kPollInterval = std::chrono::microseconds(50);
// The most gathers in one call of the library, so that its tables stay small.
constexpr size_t kGathersAtOnce = 512;

// The first character of a rank's first message to the others. Ready: the rank has the library, and
// rank 0 adds the group's id. Fails: the reason follows.
constexpr char kReady = '+';
constexpr char kFails = '!';

std::string own_words(const comm::Communicator& host) {
  try {
    const nccl::Functions& functions = nccl::functions();
    if (host.rank() != 0) return fmt::format("{}", kReady);
    nccl::UniqueId id{};
    if (const Result result = functions.get_unique_id(&id); result != Result::success)
      return fmt::format("{}{}", kFails, functions.get_error_string(result));
    return fmt::format("{}{}", kReady, std::string_view(id.bytes, sizeof id.bytes));
  } catch (const base::UserError& error) {
    return fmt::format("{}{}", kFails, error.what());
  }
}

nccl::UniqueId agree_on_id(comm::Communicator& host) {
  const std::vector<std::string> words = host.all_gather_text(own_words(host));
  for (size_t rank = 0; rank < words.size(); ++rank)
    if (words[rank].front() == kFails)
      base::throw_user_error("rank {}: {}", rank, words[rank].substr(1));
  nccl::UniqueId id{};
  SNUG_CHECK_EQ(words.front().size(), 1 + sizeof id.bytes);
  std::memcpy(id.bytes, words.front().data() + 1, sizeof id.bytes);
  return id;
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  nccl::functions().get_version(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

CardGroup::CardGroup(comm::Communicator& host, double timeout_seconds)
    : rank_(host.rank()), size_(host.size()), timeout_seconds_(timeout_seconds) {
  const nccl::UniqueId id = agree_on_id(host);
  nccl_ = &nccl::functions();
  nccl::Config config;
  const std::lock_guard lock(mutex_);
  const Result result = nccl_->comm_init_rank_config(&communicator_, size_, id, rank_, &config);
  try {
    settle(result, "connecting the cards", timeout_seconds_);
  } catch (...) {
    if (communicator_ != nullptr) nccl_->comm_abort(std::exchange(communicator_, nullptr));
    throw;
  }
}

CardGroup::~CardGroup() { abort(); }

std::string CardGroup::words_of(Result result) const {
  const char* last = nccl_->get_last_error(communicator_);
  const std::string detail = last != nullptr && *last != '\0' ? fmt::format(" ({})", last) : "";
  return fmt::format("NCCL says: {}{}", nccl_->get_error_string(result), detail);
}

void CardGroup::settle(Result result, const char* what, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (result == Result::in_progress) {
    SNUG_CHECK(communicator_ != nullptr, "{} is in progress for no communicator", what);
    Result state = Result::success;
    result = nccl_->comm_get_async_error(communicator_, &state);
    if (result == Result::success) result = state;
    if (result != Result::in_progress) break;
    if (Clock::now() > end)
      base::throw_user_error("{}: another rank did not come within {:g} s", what, seconds);
    std::this_thread::sleep_for(kPollInterval);
  }
  if (result != Result::success) base::throw_user_error("{}: {}", what, words_of(result));
}

nccl::Communicator* CardGroup::open() const {
  if (communicator_ == nullptr) base::throw_user_error("the cards are no longer connected");
  return communicator_;
}

void CardGroup::all_gather(std::span<const comm::GatherPart> parts, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  while (!parts.empty()) {
    const auto now = parts.first(std::min(parts.size(), kGathersAtOnce));
    parts = parts.subspan(now.size());
    settle(nccl_->group_start(), "all_gather", timeout_seconds_);
    for (const comm::GatherPart& part : now) {
      if (part.bytes == 0) continue;
      check_queued(nccl_->all_gather(part.shard, part.whole, static_cast<size_t>(part.bytes),
                                     nccl::Type::u8, open(), stream),
                   "all_gather");
    }
    settle(nccl_->group_end(), "all_gather", timeout_seconds_);
  }
}

void CardGroup::exchange(std::span<const comm::Outgoing> outgoing,
                         std::span<const comm::Incoming> incoming, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  settle(nccl_->group_start(), "exchange", timeout_seconds_);
  for (const comm::Outgoing& message : outgoing)
    check_queued(nccl_->send(message.data, static_cast<size_t>(message.bytes), nccl::Type::u8,
                             message.peer, open(), stream),
                 "send");
  for (const comm::Incoming& message : incoming)
    check_queued(nccl_->receive(message.data, static_cast<size_t>(message.bytes), nccl::Type::u8,
                                message.peer, open(), stream),
                 "receive");
  settle(nccl_->group_end(), "exchange", timeout_seconds_);
}

// Checks a call inside an NCCL group, in which calls are only collected. The NCCL group is ended
// before the error is thrown, since the library counts open groups by thread.
void CardGroup::check_queued(Result result, const char* what) {
  if (result == Result::success || result == Result::in_progress) return;
  const std::string words = words_of(result);
  nccl_->group_end();
  base::throw_user_error("{}: {}", what, words);
}

std::string CardGroup::error() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return {};
  Result state = Result::success;
  Result result = nccl_->comm_get_async_error(communicator_, &state);
  if (result == Result::success) result = state;
  return result == Result::success || result == Result::in_progress ? "" : words_of(result);
}

void CardGroup::abort() {
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr) nccl_->comm_abort(std::exchange(communicator_, nullptr));
}

void CardGroup::close() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  try {
    settle(nccl_->comm_finalize(communicator_), "ending the group",
           std::min(kCloseSeconds, timeout_seconds_));
    nccl_->comm_destroy(std::exchange(communicator_, nullptr));
  } catch (const base::UserError&) {  // the others are gone, and nothing is in progress
    nccl_->comm_abort(std::exchange(communicator_, nullptr));
  }
}

}  // namespace snug::backends::cuda
