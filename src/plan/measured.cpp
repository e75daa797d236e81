#include "plan/measured.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace snug::plan {
namespace {

double ratio_of(double planned, double measured) { return planned > 0 ? measured / planned : 0; }

std::string line(const char* name, const std::string& planned, const std::string& measured,
                 double ratio) {
  return fmt::format("\n{:<16}{:>14}{:>14}{:>10}", name, planned, measured,
                     ratio > 0 ? fmt::format("{:.3f}", ratio) : "-");
}

std::string bytes_line(const char* name, int64_t planned, int64_t measured) {
  return line(name, readable_bytes(planned), readable_bytes(measured),
              ratio_of(static_cast<double>(planned), static_cast<double>(measured)));
}

std::string seconds_line(const char* name, double planned, double measured) {
  return line(name, readable_seconds(planned), readable_seconds(measured),
              ratio_of(planned, measured));
}

}  // namespace

std::string to_json(const Measured& measured) {
  nlohmann::ordered_json json;
  if (measured.card)
    json["card"] = {{"name", measured.card->name},
                    {"memory_bytes", measured.card->memory_bytes},
                    {"outside_bytes", measured.card->outside_bytes}};
  json["device"]["peak_bytes"] = measured.device_bytes;
  json["host"]["peak_bytes"] = measured.host_bytes;
  json["outside"]["bytes"] = measured.outside_bytes;
  json["reading"]["peak_bytes"] = measured.reading_bytes;
  json["resident"]["peak_bytes"] = measured.resident_bytes;
  if (measured.step_seconds > 0) {
    json["tokens_per_step"] = std::llround(measured.step_tokens);
    json["step_seconds"] = measured.step_seconds;
    json["tokens_per_second"] = measured.step_tokens / measured.step_seconds;
  }
  json["load_seconds"] = measured.load_seconds;
  return json.dump(2) + "\n";
}

std::string comparison(const PlanDocument& planned, const Measured& measured) {
  std::string text = fmt::format("{:<16}{:>14}{:>14}{:>10}", "", "planned", "measured", "ratio");
  text += bytes_line("device", planned.device.report.peak_bytes, measured.device_bytes);
  text += bytes_line("host", planned.host.report.peak_bytes, measured.host_bytes);
  text += bytes_line("outside", planned.outside_bytes, measured.outside_bytes);
  if (planned.reading_bytes > 0)
    text += bytes_line("reading", planned.reading_bytes, measured.reading_bytes);
  text += bytes_line("resident peak", planned.resident_bytes(), measured.resident_bytes);
  text += seconds_line("step", planned.step_seconds, measured.step_seconds);
  text += seconds_line("loading", planned.load_seconds, measured.load_seconds);
  return text;
}

}  // namespace snug::plan
