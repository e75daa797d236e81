// Stands in for NCCL between emulated cards. Stricter than the library: what it leaves undefined is
// an error here, and so is what Snug says it does not do. A message in a group, other counts or
// another order than the other rank's, memory that is not the device's, a collective in a
// recording, a call while another is in progress.
//
// A collective is work of its stream, done as far as the other ranks have come. As on a card it
// goes on while the host does other things: where it was queued some time ago and nobody waits for
// it, a thread of the communicator does what the stream can do.
#include "backends/cuda/library/nccl_library.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "block_fibers.h"
#include "device_memory.h"
#include "nccl_links.h"
#include "refusals.h"
#include "stream.h"

namespace snug::cuda_emulator {
namespace {

using Clock = std::chrono::steady_clock;
using backends::cuda::nccl::Communicator;
using backends::cuda::nccl::Config;
using backends::cuda::nccl::Functions;
using backends::cuda::nccl::Result;
using backends::cuda::nccl::Type;
using backends::cuda::nccl::UniqueId;

// How long the host may do other things before a collective goes on without it.
constexpr auto kPatience = std::chrono::milliseconds(20);
constexpr auto kPause = std::chrono::microseconds(100);

enum class Call : uint32_t { message, all_gather };

// Before the bytes of each message.
struct Head {
  uint64_t number;  // of the communicator's collectives so far
  uint64_t bytes;
  Call call;
  uint32_t unused;
};

// One direction between two ranks, as part of a collective.
struct Message {
  int peer;
  bool is_sent;
  std::byte* data;
  Head head;
  size_t done = 0;  // of head and bytes

  bool is_done() const { return done == sizeof head + head.bytes; }
};

}  // namespace

// Of a communicator; kept by the work that is queued for it.
struct NcclRank {
  NcclRank(const std::string& name, int ranks_, int rank_)
      : links(name, ranks_), ranks(ranks_), rank(rank_) {}

  void send(Message& message);
  void receive(Message& message);

  NcclLinks links;
  const int ranks;
  const int rank;
  std::atomic<bool> is_aborted = false;
  uint64_t calls = 0;
};

namespace {

// What was queued by one call.
struct Collective {
  std::shared_ptr<NcclRank> owner;
  std::vector<Message> messages;
  const void* shard = nullptr;  // of an all_gather: what is copied on the card itself
  void* own = nullptr;
  size_t own_bytes = 0;
  Clock::time_point queued = Clock::now();
  std::atomic<bool> is_done = false;

  // Does what can be done at once. True when nothing is left.
  bool advance() {
    if (is_done || owner->is_aborted) return true;
    const DeviceAccess access;
    if (own_bytes > 0) std::memmove(own, shard, std::exchange(own_bytes, 0));
    bool all = true;
    for (Message& message : messages) {
      if (!message.is_done()) message.is_sent ? owner->send(message) : owner->receive(message);
      all = all && message.is_done();
    }
    is_done = all;
    return all;
  }
};

void require(bool condition, const char* problem) {
  if (!condition) fail(problem);
}

}  // namespace

void NcclRank::send(Message& message) {
  if (message.done < sizeof message.head) {
    const auto* head = reinterpret_cast<const std::byte*>(&message.head);
    message.done +=
        links.push(rank, message.peer, head + message.done, sizeof message.head - message.done);
    if (message.done < sizeof message.head) return;
  }
  const size_t at = message.done - sizeof message.head;
  message.done += links.push(rank, message.peer, message.data + at, message.head.bytes - at);
}

void NcclRank::receive(Message& message) {
  if (message.done < sizeof message.head) {
    // Queues are longer than a head, and a head is pushed before anything else of its message.
    Head came{};
    auto* bytes = reinterpret_cast<std::byte*>(&came);
    const size_t count = links.pull(message.peer, rank, bytes, sizeof came);
    if (count == 0) return;
    for (size_t done = count; done < sizeof came;)
      done += links.pull(message.peer, rank, bytes + done, sizeof came - done);
    message.done = sizeof came;
    if (came.number != message.head.number || came.call != message.head.call)
      fail("ranks do not begin the same collectives in the same order");
    if (came.bytes != message.head.bytes) fail("ranks send and expect different counts");
  }
  const size_t at = message.done - sizeof message.head;
  message.done += links.pull(message.peer, rank, message.data + at, message.head.bytes - at);
}

}  // namespace snug::cuda_emulator

struct snug::backends::cuda::nccl::Communicator {
  using Collective = cuda_emulator::Collective;

  Communicator(const std::string& name, int ranks, int rank)
      : state(std::make_shared<cuda_emulator::NcclRank>(name, ranks, rank)),
        progress([this] { go_on(); }) {}
  ~Communicator() {
    state->is_aborted = true;
    progress.join();
  }

  void queue(std::shared_ptr<Collective> collective, cudaStream_t stream) {
    cuda_emulator::require(stream != nullptr && stream->recorder == nullptr,
                           "a collective in a recording, or on no stream");
    {
      const std::lock_guard lock(mutex);
      under_way.emplace_back(collective, stream);
    }
    cuda_emulator::submit(stream, {.run =
                                       [collective] {
                                         while (!collective->advance())
                                           std::this_thread::sleep_for(cuda_emulator::kPause);
                                       },
                                   .is_ready = [collective] { return collective->advance(); },
                                   .waits_for = nullptr});
  }

  // What a card does without its host.
  void go_on() {
    while (!state->is_aborted) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      cudaStream_t stream = nullptr;
      {
        const std::lock_guard lock(mutex);
        while (!under_way.empty() && under_way.front().first->is_done) under_way.pop_front();
        if (!under_way.empty() && cuda_emulator::Clock::now() - under_way.front().first->queued >
                                      cuda_emulator::kPatience)
          stream = under_way.front().second;
      }
      if (stream != nullptr) cuda_emulator::do_what_is_ready(stream);
    }
  }

  std::shared_ptr<cuda_emulator::NcclRank> state;
  bool is_in_progress = true;  // a call that nobody has asked about since
  bool is_joined = false;
  bool is_finalized = false;
  std::mutex mutex;
  std::deque<std::pair<std::shared_ptr<Collective>, cudaStream_t>> under_way;
  std::thread progress;
};

namespace snug::cuda_emulator {
namespace {

// The calls of a group, by the thread that makes them.
struct Queued {
  Communicator* communicator;
  cudaStream_t stream;
  Call call;
  std::vector<Message> messages;
  const void* shard = nullptr;
  void* own = nullptr;
  size_t own_bytes = 0;
};
thread_local int groups_open = 0;
thread_local std::vector<Queued> group;

Result get_version(int* version) {
  *version = 22809;
  return Result::success;
}

Result get_unique_id(UniqueId* id) {
  std::random_device random;
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::snprintf(id->bytes, sizeof id->bytes, "%d-%08x%08x", static_cast<int>(::getpid()), random(),
                random());
  return Result::success;
}

Result comm_init_rank_config(Communicator** communicator, int ranks, UniqueId id, int rank,
                             Config* config) {
  require(config->blocking == 0, "calls would wait without an end");
  require(rank >= 0 && rank < ranks, "a rank that is none");
  *communicator = new Communicator(id.bytes, ranks, rank);
  ++(*communicator)->state->links.joined();
  return Result::in_progress;
}

// What was in progress has ended when it is asked about, where no other rank is needed for it.
Result comm_get_async_error(Communicator* communicator, Result* error) {
  NcclRank& state = *communicator->state;
  *error = Result::success;
  if (!communicator->is_joined) {
    communicator->is_joined = state.links.joined() == state.ranks;
    if (communicator->is_joined) state.links.forget_name();
    if (!communicator->is_joined) *error = Result::in_progress;
  } else if (communicator->is_finalized && state.links.finalized() < state.ranks) {
    *error = Result::in_progress;
  }
  communicator->is_in_progress = *error == Result::in_progress;
  return Result::success;
}

Result comm_finalize(Communicator* communicator) {
  require(!communicator->is_in_progress, "a group is ended while a call is in progress");
  communicator->is_finalized = communicator->is_in_progress = true;
  ++communicator->state->links.finalized();
  return Result::in_progress;
}

Result comm_destroy(Communicator* communicator) {
  require(communicator->is_finalized && !communicator->is_in_progress,
          "a communicator is destroyed that was not ended");
  delete communicator;
  return Result::success;
}

Result comm_abort(Communicator* communicator) {
  delete communicator;
  return Result::success;
}

const char* get_error_string(Result result) {
  return result == Result::success ? "no error" : "an emulated error";
}
const char* get_last_error(Communicator*) { return refuses_messages ? "as the test wants it" : ""; }

Result group_start() {
  ++groups_open;
  return Result::success;
}

void queue_alone(const Queued& call) {
  auto collective = std::make_shared<Collective>();
  collective->owner = call.communicator->state;
  collective->messages = call.messages;
  collective->shard = call.shard;
  collective->own = call.own;
  collective->own_bytes = call.own_bytes;
  for (Message& message : collective->messages) message.head.number = collective->owner->calls;
  ++collective->owner->calls;
  call.communicator->queue(std::move(collective), call.stream);
}

// Messages of a group are one collective, all at once; each gather is one of its own.
Result group_end() {
  require(groups_open > 0, "a group ends that was not begun");
  if (--groups_open > 0) return Result::success;
  std::vector<Queued> calls = std::exchange(group, {});
  if (calls.empty()) return Result::success;
  Queued messages{calls.front().communicator, calls.front().stream, Call::message, {}};
  for (const Queued& call : calls) {
    require(call.communicator == messages.communicator && call.stream == messages.stream,
            "a group of several communicators or streams");
    if (call.call == Call::message)
      messages.messages.insert(messages.messages.end(), call.messages.begin(), call.messages.end());
    else
      queue_alone(call);
  }
  if (!messages.messages.empty()) queue_alone(messages);
  messages.communicator->is_in_progress = true;
  return Result::in_progress;
}

Result check_call(Communicator* communicator, const void* data, size_t bytes, Type type) {
  if (refuses_messages) return Result::invalid_usage;
  require(groups_open > 0, "a call outside of a group");
  require(!communicator->is_in_progress, "a call while another is in progress");
  require(type == Type::u8, "elements that are no bytes");
  require(is_device_memory(data, bytes), "a collective on memory that is not the device's");
  return Result::success;
}

Result add_message(Communicator* communicator, Message message, cudaStream_t stream) {
  const Result result = check_call(communicator, message.data, message.head.bytes, Type::u8);
  if (result != Result::success) return result;
  const NcclRank& state = *communicator->state;
  require(message.peer >= 0 && message.peer < state.ranks && message.peer != state.rank,
          "a message to no other rank");
  group.push_back({communicator, stream, Call::message, {message}});
  return Result::success;
}

Result send(const void* data, size_t count, Type, int peer, Communicator* communicator,
            cudaStream_t stream) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  return add_message(communicator, {peer, true, bytes, {0, count, Call::message, 0}}, stream);
}

Result receive(void* data, size_t count, Type, int peer, Communicator* communicator,
               cudaStream_t stream) {
  return add_message(communicator,
                     {peer, false, static_cast<std::byte*>(data), {0, count, Call::message, 0}},
                     stream);
}

Result all_gather(const void* shard, void* whole, size_t count, Type type,
                  Communicator* communicator, cudaStream_t stream) {
  const NcclRank& state = *communicator->state;
  const Result result =
      check_call(communicator, whole, count * static_cast<size_t>(state.ranks), type);
  if (result != Result::success) return result;
  require(is_device_memory(shard, count), "a collective on memory that is not the device's");
  auto* all = static_cast<std::byte*>(whole);
  auto* sent = static_cast<std::byte*>(const_cast<void*>(shard));
  Queued call{communicator, stream, Call::all_gather, {}};
  for (int peer = 0; peer < state.ranks; ++peer) {
    std::byte* place = all + static_cast<size_t>(peer) * count;
    const Head head{0, count, Call::all_gather, 0};
    if (peer == state.rank) {
      call.shard = shard;
      call.own = place;
      call.own_bytes = place == shard ? 0 : count;
      continue;
    }
    call.messages.push_back({peer, true, sent, head});
    call.messages.push_back({peer, false, place, head});
  }
  group.push_back(std::move(call));
  return Result::success;
}

}  // namespace
}  // namespace snug::cuda_emulator

namespace snug::backends::cuda::nccl {

const Functions& functions() {
  using namespace cuda_emulator;
  static const Functions functions{.get_version = get_version,
                                   .get_unique_id = get_unique_id,
                                   .comm_init_rank_config = comm_init_rank_config,
                                   .comm_finalize = comm_finalize,
                                   .comm_destroy = comm_destroy,
                                   .comm_abort = comm_abort,
                                   .comm_get_async_error = comm_get_async_error,
                                   .get_error_string = get_error_string,
                                   .get_last_error = get_last_error,
                                   .group_start = group_start,
                                   .group_end = group_end,
                                   .send = send,
                                   .receive = receive,
                                   .all_gather = all_gather};
  if (no_nccl) throw base::UserError("NCCL is not found, as the test wants it");
  return functions;
}

}  // namespace snug::backends::cuda::nccl
