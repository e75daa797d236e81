#include "comm/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "comm/host_communicator.h"

namespace snug::comm {

std::unique_ptr<Communicator> split(Communicator& group, int color, int key) {
  auto* host = dynamic_cast<HostCommunicator*>(&group);
  SNUG_CHECK(host != nullptr, "{} is not split", group.name());
  return host->split(color, key);
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  const auto texts =
      all_gather_text(fmt::format("{} {} {}", color, key, transport_->latest_context()));
  std::vector<std::pair<int, int>> ordered;  // (key, rank)
  int context = 0;
  for (int other = 0; other < size(); ++other) {
    std::istringstream text(texts[other]);
    int its_color = 0, its_key = 0, its_context = 0;
    text >> its_color >> its_key >> its_context;
    context = std::max(context, its_context);
    if (its_color == color) ordered.emplace_back(its_key, other);
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<int> members;
  members.reserve(ordered.size());
  for (const auto& [its_key, member] : ordered) members.push_back(member);
  return std::make_unique<HostCommunicator>(transport_->subgroup(members, context + 1));
}

}  // namespace snug::comm
