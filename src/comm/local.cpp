#include "comm/local.h"

#include <numeric>
#include <span>
#include <string_view>

#include "base/error.h"
#include "comm/host_communicator.h"
#include "comm/local_hub.h"

namespace snug::comm {
namespace {

class LocalTransport : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalHub> hub, LocalHub::Group group)
      : hub_(std::move(hub)), group_(std::move(group)) {
    hub_->use_context(world_rank(), group_.context);
  }
  ~LocalTransport() override { hub_->leave(group_); }

  int rank() const override { return group_.rank; }
  int size() const override { return static_cast<int>(group_.members.size()); }
  std::string_view name() const override { return "local"; }

  std::optional<Failure> exchange(std::span<const Outgoing> outgoing,
                                  std::span<const Incoming> incoming) override {
    return hub_->exchange(group_, outgoing, incoming);
  }
  void interrupt(std::string_view reason) override { hub_->stop(world_rank(), reason); }
  void announce(std::string_view reason) override { hub_->stop(world_rank(), reason); }
  void pass_on() override { hub_->pass_on(world_rank()); }
  std::vector<std::string> earlier_reasons(std::chrono::milliseconds time) override {
    return hub_->earlier_reasons(world_rank(), time);
  }

  std::unique_ptr<Transport> subgroup(std::span<const int> members, int context) override {
    LocalHub::Group group{{}, 0, context};
    for (const int member : members) {
      if (member == rank()) group.rank = static_cast<int>(group.members.size());
      group.members.push_back(group_.members[member]);
    }
    return std::make_unique<LocalTransport>(hub_, std::move(group));
  }
  int latest_context() const override { return hub_->latest_context(world_rank()); }

 private:
  int world_rank() const { return group_.members[group_.rank]; }

  std::shared_ptr<LocalHub> hub_;
  LocalHub::Group group_;
};

}  // namespace

LocalGroup::LocalGroup(int ranks, const LocalOptions& options)
    : hub_(std::make_shared<LocalHub>(ranks, options)) {
  SNUG_CHECK(ranks >= 1, "{} ranks", ranks);
}

std::unique_ptr<Communicator> LocalGroup::communicator(int rank) {
  SNUG_CHECK(rank >= 0 && rank < hub_->size(), "rank {} of {}", rank, hub_->size());
  LocalHub::Group world{std::vector<int>(hub_->size()), rank, 0};
  std::iota(world.members.begin(), world.members.end(), 0);
  return std::make_unique<HostCommunicator>(std::make_unique<LocalTransport>(hub_, world));
}

}  // namespace snug::comm
