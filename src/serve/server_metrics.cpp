#include "serve/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace snug::serve {
namespace {

std::string one_metric(std::string_view name, std::string_view type, std::string_view help,
                       double value) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help, value);
}

}  // namespace

void ServerMetrics::Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(kBounds, value);
  ++counts.at(static_cast<size_t>(bound - kBounds.begin()));
  sum += value;
}

std::string ServerMetrics::Histogram::text(std::string_view name, std::string_view help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  int64_t below = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    below += counts.at(i);
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds.at(i), below);
  }
  below += counts.back();
  return text + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                            below, sum);
}

void ServerMetrics::count(std::string_view path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(path), status}];
  request_seconds_.add(seconds);
}

void ServerMetrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_seconds_.add(seconds);
}

std::string ServerMetrics::text(const ShownMetrics& shown) const {
  const engine::EngineTimes& times = shown.loop.times;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  std::string text;
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    text += one_metric(name, "gauge", help, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, double value) {
    text += one_metric(name, "counter", help, value);
  };
  gauge("snug_answers_running", "Answers that have a place", number(shown.loop.running));
  gauge("snug_answers_waiting", "Answers that wait for a place", number(shown.loop.waiting));
  gauge("snug_connections", "Connections that are open", number(shown.connections));
  gauge("snug_pages_used", "Pages of keys and values in use", number(shown.loop.used_pages));
  gauge("snug_pages", "Pages of keys and values", number(shown.pages));
  gauge("snug_planned_bytes", "Memory that was planned", number(shown.planned_bytes));
  gauge("snug_resident_bytes", "Memory that the process holds", number(shown.resident_bytes));
  counter("snug_prompt_tokens_total", "Tokens of prompts that were read",
          number(times.prefill_tokens));
  counter("snug_cached_tokens_total", "Tokens of prompts that were known already",
          number(times.known_tokens));
  counter("snug_new_tokens_total", "Tokens of answers, the first of each left out",
          number(times.decode_tokens));
  counter("snug_prompt_seconds_total", "Time of reading prompts", times.prefill_seconds);
  counter("snug_new_token_seconds_total", "Time of writing answers", times.decode_seconds);
  const std::lock_guard lock(mutex_);
  text +=
      "# HELP snug_requests_total Requests by path and status\n# TYPE snug_requests_total "
      "counter\n";
  for (const auto& [key, count] : requests_)
    text += fmt::format("snug_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                        key.second, count);
  return text + first_token_seconds_.text("snug_first_token_seconds", "Time to the first token") +
         request_seconds_.text("snug_request_seconds", "Time from a request to its end");
}

}  // namespace snug::serve
