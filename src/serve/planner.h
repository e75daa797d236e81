// Plans of training jobs for the page: which model, method and card fit together. Each is made by
// `snug plan` in a process of its own, one at a time and with a limit of memory, so that no plan
// takes anything from the answers. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/request_fields.h"

namespace snug::serve {

// The address space that a plan may have, and so the most memory. The largest known models' plans
// take a fifth of it.
inline constexpr int64_t kPlannerBytes = int64_t{384} << 20;

class Planner {
 public:
  // `program`: the binary of snug; empty: nothing is planned. `room`: bytes that host_memory leaves
  // next to what the server planned for itself; negative: there is no limit.
  Planner(std::string program, int64_t room);

  // What may be asked for: {"models", "methods", "devices"}. Throws ApiError where nothing is
  // planned, with the reason.
  nlohmann::ordered_json choices() const;
  // {"fits", "message", "plan", "picture"}: whether the job fits; why not, and what would make it
  // fit; what `snug plan --json` says, or null; an HTML page with the picture, or null. Throws
  // ApiError for what is no choice, and while another plan is made.
  nlohmann::ordered_json plan(RequestFields& fields);

 private:
  void check() const;

  const std::string program_;
  const int64_t room_;
  std::mutex mutex_{};  // held while a plan is made
};

}  // namespace snug::serve
