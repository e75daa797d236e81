#include "plan/document/measured.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace snug::plan {
namespace {

double ratio_of(double planned, double measured) { return planned > 0 ? measured / planned : 0; }

ComparedFigure figure(const char* name, const std::string& planned, const std::string& measured,
                      double ratio) {
  return {name, planned, measured, ratio > 0 ? fmt::format("{:.3f}", ratio) : "-"};
}

ComparedFigure bytes_figure(const char* name, int64_t planned, std::optional<int64_t> measured) {
  if (!measured) return figure(name, readable_bytes(planned), "not measured", 0);
  return figure(name, readable_bytes(planned), readable_bytes(*measured),
                ratio_of(static_cast<double>(planned), static_cast<double>(*measured)));
}

// null: not measured.
nlohmann::ordered_json json_of(std::optional<int64_t> bytes) {
  return bytes ? nlohmann::ordered_json(*bytes) : nlohmann::ordered_json();
}

nlohmann::ordered_json json_of(const MeasuredSource& source) {
  return {{"name", source.name},       {"use", source.evaluates ? "evaluation" : "training"},
          {"records", source.records}, {"documents", source.documents},
          {"tokens", source.tokens},   {"trained_tokens", source.trained_tokens}};
}

// A time of 0 means unknown.
ComparedFigure seconds_figure(const char* name, double planned, double measured) {
  return figure(name, readable_seconds(planned), readable_seconds(measured),
                ratio_of(planned, measured));
}

}  // namespace

std::string to_json(const Measured& measured) {
  nlohmann::ordered_json json;
  if (measured.card)
    json["card"] = {{"name", measured.card->name},
                    {"memory_bytes", measured.card->memory_bytes},
                    {"outside_bytes", measured.card->outside_bytes}};
  json["device"]["peak_bytes"] = json_of(measured.device_bytes);
  json["host"]["peak_bytes"] = json_of(measured.host_bytes);
  json["outside"]["bytes"] = json_of(measured.outside_bytes);
  json["reading"]["peak_bytes"] = measured.reading_bytes;
  json["resident"]["peak_bytes"] = measured.resident_bytes;
  if (measured.step_seconds > 0) {
    json["tokens_per_step"] = std::llround(measured.step_tokens);
    json["step_seconds"] = measured.step_seconds;
    json["tokens_per_second"] = measured.step_tokens / measured.step_seconds;
  }
  json["load_seconds"] = measured.load_seconds;
  if (measured.reference_seconds) json["reference"]["seconds"] = *measured.reference_seconds;
  if (measured.answers_seconds) json["evaluation"]["answers_seconds"] = *measured.answers_seconds;
  for (const MeasuredSource& source : measured.data) json["data"].push_back(json_of(source));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::vector<ComparedFigure> compared_figures(const PlanDocument& planned,
                                             const Measured& measured) {
  std::vector<ComparedFigure> figures{
      bytes_figure("device", planned.device.report.peak_bytes, measured.device_bytes)};
  if (planned.card && measured.card)
    figures.push_back(bytes_figure("outside on card",
                                   planned.card->outside_bytes + planned.card->reserved_bytes,
                                   measured.card->outside_bytes));
  figures.push_back(bytes_figure("host", planned.host.report.peak_bytes, measured.host_bytes));
  figures.push_back(bytes_figure("outside", planned.outside_bytes, measured.outside_bytes));
  if (planned.reading_bytes > 0)
    figures.push_back(bytes_figure("reading", planned.reading_bytes, measured.reading_bytes));
  figures.push_back(
      bytes_figure("resident peak", planned.resident_bytes(), measured.resident_bytes));
  figures.push_back(seconds_figure("step", planned.step_seconds, measured.step_seconds));
  figures.push_back(seconds_figure("loading", planned.load_seconds, measured.load_seconds));
  if (planned.reference)
    figures.push_back(seconds_figure("reference", planned.reference->seconds().value_or(0),
                                     measured.reference_seconds.value_or(0)));
  if (planned.evaluation && measured.answers_seconds)
    figures.push_back(seconds_figure("answers, at most", planned.evaluation->first_seconds,
                                     *measured.answers_seconds));
  return figures;
}

std::string comparison(const PlanDocument& planned, const Measured& measured) {
  constexpr const char* kLine = "\n{:<16}{:>14}{:>14}{:>10}";
  std::string text = fmt::format(kLine, "", "planned", "measured", "ratio").substr(1);
  for (const ComparedFigure& each : compared_figures(planned, measured))
    text += fmt::format(kLine, each.name, each.planned, each.measured, each.ratio);
  return text;
}

}  // namespace snug::plan
