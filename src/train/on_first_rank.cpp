#include "train/on_first_rank.h"

#include <chrono>
#include <future>
#include <string>

namespace snug::train {

int on_first_rank(const std::function<int()>& work, const runtime::Ranks& ranks) {
  if (ranks.size() == 1) return work();
  std::future<int> working;
  if (ranks.is_first()) working = std::async(std::launch::async, work);
  while (true) {
    std::string result;
    if (working.valid() && working.wait_for(std::chrono::seconds(1)) == std::future_status::ready)
      result = std::to_string(working.get());
    result = ranks.of_first(result);
    if (!result.empty()) return std::stoi(result);
  }
}

}  // namespace snug::train
