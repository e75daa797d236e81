#include "backends/cuda/transfer/card_collectives.h"

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/collective_parts.h"
#include "base/error.h"
#include "program/kinds/transfer/collective.h"

namespace snug::backends::cuda {
namespace {

using program::AllGather;
using program::AllReduce;
using program::ReduceScatter;

// The size of each rank's part of a message that only opens the links: one alignment unit.
constexpr int64_t kFirstMessageBytes = 256;

// Device memory for the time while links are opened.
class FirstMessages {
 public:
  explicit FirstMessages(int64_t bytes) {
    CUDA_CHECK_MEMORY("the first messages of ranks",
                      cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<size_t>(bytes)));
  }
  FirstMessages(const FirstMessages&) = delete;
  FirstMessages& operator=(const FirstMessages&) = delete;
  ~FirstMessages() { cudaFree(data_); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

}  // namespace

CardCollectives::CardCollectives(const comm::Mesh* mesh, double timeout_seconds)
    : mesh_(mesh != nullptr ? *mesh : comm::Mesh{}), exceptions_(std::uncaught_exceptions()) {
  for (comm::Communicator* host : {mesh_.all, mesh_.shards, mesh_.replicas})
    if (host != nullptr && !groups_.contains(host)) connect(*host, timeout_seconds);
  if (groups_.empty()) return;
  stream_.emplace();
  watch_ = std::make_unique<CollectiveWatch>(
      CollectiveWatch::Options{.timeout_seconds = timeout_seconds,
                               .error =
                                   [this] {
                                     for (const auto& [host, cards] : groups_)
                                       if (std::string error = cards->error(); !error.empty())
                                         return error;
                                     return std::string();
                                   },
                               .let_go = [this](const std::string& reason) { let_go(reason); }});
  watch_->prepare();
  try_messages();
}

void CardCollectives::connect(comm::Communicator& host, double timeout_seconds) {
  groups_.emplace(&host, std::make_unique<CardGroup>(host, timeout_seconds));
}

// Sends a message over every link before anything is planned, so that the memory that links take is
// counted and links that do not work are found.
void CardCollectives::try_messages() {
  for (comm::Communicator* host : {mesh_.all, mesh_.shards, mesh_.replicas}) {
    if (host == nullptr) continue;
    CardGroup& cards = *groups_.at(host);
    const int ranks = cards.size();
    const FirstMessages memory(2 * ranks * kFirstMessageBytes);
    std::vector<comm::Outgoing> outgoing;
    std::vector<comm::Incoming> incoming;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == cards.rank()) continue;
      std::byte* const received = memory.data() + (ranks + peer) * kFirstMessageBytes;
      outgoing.push_back({peer, memory.data() + peer * kFirstMessageBytes, kFirstMessageBytes});
      incoming.push_back({peer, received, kFirstMessageBytes});
    }
    const comm::GatherPart gather{.shard = memory.data() + cards.rank() * kFirstMessageBytes,
                                  .whole = memory.data(),
                                  .bytes = kFirstMessageBytes};
    watch_->watch(describe("the first messages"), stream_->get(), [&] {
      cards.exchange(outgoing, incoming, stream_->get());
      cards.all_gather({&gather, 1}, stream_->get());
    });
    CUDA_CHECK(cudaStreamSynchronize(stream_->get()));
    watch_->check();
  }
}

CardCollectives::~CardCollectives() {
  if (watch_ != nullptr) {
    if (std::uncaught_exceptions() > exceptions_) {
      for (const auto& [host, cards] : groups_) cards->abort();
    } else {
      cudaStreamSynchronize(stream_->get());
    }
    if (!watch_->has_failed())
      for (comm::Communicator* host : {mesh_.all, mesh_.shards, mesh_.replicas})
        if (host != nullptr) groups_.at(host)->close();
  }
  watch_.reset();
}

void CardCollectives::prepare() {
  spare_.make_one();
  if (watch_ != nullptr) watch_->prepare();
  load_rank_sums();
}

CardGroup* CardCollectives::group(program::RankGroup group, int32_t ranks) {
  const comm::Communicator* host = group_of(mesh_, group, ranks);
  return host == nullptr ? nullptr : groups_.at(host).get();
}

// For example "rank 1, step 7, all_gather".
std::string CardCollectives::describe(std::string_view name) const {
  const comm::Communicator* any = mesh_.all != nullptr      ? mesh_.all
                                  : mesh_.shards != nullptr ? mesh_.shards
                                                            : mesh_.replicas;
  const auto step = any->step();
  return fmt::format("rank {}{}, {} on the card", any->rank(),
                     step ? fmt::format(", step {}", *step) : "", name);
}

void CardCollectives::let_go(const std::string& reason) {
  for (const auto& [host, cards] : groups_) cards->abort();
  for (comm::Communicator* host : {mesh_.all, mesh_.shards, mesh_.replicas})
    if (host != nullptr) host->abort(reason);
}

template <typename Struct, typename Perform>
cudaStream_t CardCollectives::queue(const Struct& collective, const Invocation& invocation,
                                    cudaStream_t work, const Perform& perform) {
  CardGroup* const cards = group(collective.group, collective.ranks);
  const cudaStream_t own = cards == nullptr ? work : stream_->get();
  if (own != work) {
    CUDA_CHECK(cudaEventRecord(reached_.get(), work));
    CUDA_CHECK(cudaStreamWaitEvent(own, reached_.get(), 0));
  }
  const auto parts = parts_of(collective, invocation, cards == nullptr ? 0 : cards->rank());
  const auto queue_parts = [&] { perform(parts, cards, own); };
  if (cards == nullptr)
    queue_parts();
  else
    watch_->watch(describe(program::name_of(invocation.attributes->kind())), own, queue_parts);
  const std::byte* const result = results_of(collective, invocation).front().data;
  auto found = begun_.find(result);
  if (found == begun_.end()) found = begun_.emplace(result, Begun{.ended = spare_.take()}).first;
  Begun& begun = found->second;
  CUDA_CHECK(cudaEventRecord(begun.ended.get(), own));
  begun.is_under_way = true;
  return own;
}

cudaStream_t CardCollectives::begin(const AllGather& gather, const Invocation& invocation,
                                    cudaStream_t work) {
  return queue(gather, invocation, work,
               [&](const auto& parts, CardGroup* cards, cudaStream_t stream) {
                 sums_.all_gather(parts, cards, stream);
               });
}

cudaStream_t CardCollectives::begin(const ReduceScatter& reduce, const Invocation& invocation,
                                    cudaStream_t work) {
  return queue(reduce, invocation, work,
               [&](const auto& parts, CardGroup* cards, cudaStream_t stream) {
                 sums_.reduce_scatter(parts, pieces_of(reduce, invocation), cards, stream);
               });
}

cudaStream_t CardCollectives::begin(const AllReduce& reduce, const Invocation& invocation,
                                    cudaStream_t work) {
  return queue(reduce, invocation, work,
               [&](const auto& parts, CardGroup* cards, cudaStream_t stream) {
                 sums_.all_reduce(parts, pieces_of(reduce, invocation), cards, stream);
               });
}

bool CardCollectives::await(const Invocation& invocation, cudaStream_t waits, bool ends) {
  const auto begun = begun_.find(invocation.all(program::Access::update).front().data);
  if (begun == begun_.end() || !begun->second.is_under_way) return false;
  CUDA_CHECK(cudaStreamWaitEvent(waits, begun->second.ended.get(), 0));
  if (ends) begun->second.is_under_way = false;
  return true;
}

void CardCollectives::check() {
  if (watch_ != nullptr) watch_->check();
}

std::string CardCollectives::library_version() const {
  return groups_.empty() ? "" : "NCCL " + nccl_version();
}

}  // namespace snug::backends::cuda
