// What a server counts, and how it shows it to Prometheus. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/inference_loop.h"

namespace snug::serve {

// What stands in the text next to what is counted here.
struct ShownMetrics {
  LoopState loop{};
  int64_t connections = 0;
  int64_t pages = 0;           // of keys and values, in all
  int64_t planned_bytes = 0;   // arenas, connections and the process
  int64_t resident_bytes = 0;  // as the system counts them
};

class ServerMetrics {
 public:
  // An answer to an HTTP request; `seconds` from its arrival to its end.
  void count(std::string_view path, int status, double seconds);
  // From the arrival of a request to its first token.
  void first_token(double seconds);

  // Prometheus' text form.
  std::string text(const ShownMetrics& shown) const;

 private:
  static constexpr std::array<double, 12> kBounds{0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                  1,    2.5,   5,    10,  30,   60};
  struct Histogram {
    std::array<int64_t, kBounds.size() + 1> counts{};
    double sum = 0;

    void add(double value);
    std::string text(std::string_view name, std::string_view help) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_{};
  Histogram request_seconds_{};
  Histogram first_token_seconds_{};
};

}  // namespace snug::serve
