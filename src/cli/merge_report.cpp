#include "cli/merge_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_size.h"

namespace snug::cli {
namespace {

using generate::Drift;

constexpr const char* kRow = "  {:<24} {:>9} {:>9} {:>9} {:>9} {:>9}";

std::string row(const MergedVariant& variant) {
  const std::string_view name = description_of(variant.base);
  if (!variant.drift) return fmt::format(kRow, name, "-", "-", "-", "-", "-");
  const Drift& drift = *variant.drift;
  const auto figure = [](double value) { return fmt::format("{:.2e}", value); };
  return fmt::format(kRow, name, figure(drift.mean_kl), figure(drift.most_kl),
                     figure(drift.mean_difference), figure(drift.most_difference),
                     fmt::format("{:.1f} %", 100 * drift.equal_greedy));
}

void add_table(std::vector<std::string>& lines, const MergeOutcome& outcome) {
  lines.push_back(fmt::format(
      "drift from what was trained, over {} tokens of {} documents ({}), computed in {}; models "
      "took {} of memory",
      outcome.costs.tokens, outcome.costs.documents, outcome.text, outcome.compute_dtype,
      base::readable_byte_size(outcome.arena_bytes)));
  lines.push_back(fmt::format(kRow, "", "KL", "KL", "logprob", "logprob", "same"));
  lines.push_back(fmt::format(kRow, "merged into", "mean", "max", "mean", "max", "likeliest"));
  for (const MergedVariant& variant : outcome.variants) lines.push_back(row(variant));
}

// Of what rounds, what a command can change: the type in which both are computed, and that of the
// written weights. In 16 bits W x + s B A x and (W + s B A) x round differently.
std::string remedy_of_rounding(const MergeJob& job, const MergeOutcome& outcome) {
  if (outcome.compute_dtype != "fp32")
    return fmt::format(
        "much of it may be how {} rounds activations, whatever is merged: what is left without "
        "that says 'snug merge model={} adapter={} drift_dtype=fp32 output_dir=FOLDER', with what "
        "else this merge was given; ",
        outcome.compute_dtype, job.inputs.model.string(), job.inputs.adapter.string());
  return job.inputs.options.dtype == base::DType::f32 ? "" : "dtype=fp32 rounds no weight; ";
}

// What makes the drift smaller, of what was not done.
std::string remedy(const MergeJob& job, const MergeOutcome& outcome) {
  const MergedInto kept = outcome.result().base;
  std::string remedies;
  if (kept == MergedInto::sixteen_bit)
    remedies += "merge_into=nf4 merges into the values on which the adapter was trained; ";
  remedies += remedy_of_rounding(job, outcome);
  return fmt::format(
      "{}the adapter itself, applied to its model, is what was trained; max_drift={:.2g} accepts "
      "this",
      remedies, 1.1 * outcome.result().drift->mean_kl);
}

nlohmann::ordered_json variant_json(const MergedVariant& variant) {
  nlohmann::ordered_json json{{"merged_into", base::word_of(variant.base)},
                              {"result_bytes", variant.report.result_bytes},
                              {"seconds", variant.report.seconds}};
  if (!variant.drift) return json;
  json["mean_kl"] = variant.drift->mean_kl;
  json["max_kl"] = variant.drift->most_kl;
  json["mean_logprob_difference"] = variant.drift->mean_difference;
  json["max_logprob_difference"] = variant.drift->most_difference;
  json["equal_greedy"] = variant.drift->equal_greedy;
  return json;
}

bool was_measured(const MergeOutcome& outcome) {
  return std::ranges::any_of(
      outcome.variants, [](const MergedVariant& variant) { return variant.drift.has_value(); });
}

}  // namespace

std::vector<std::string> drift_lines(const MergeJob& job, const MergeOutcome& outcome) {
  std::vector<std::string> lines;
  if (was_measured(outcome)) add_table(lines, outcome);
  if (!outcome.not_measured.empty())
    lines.push_back(
        fmt::format("how far the merged model is from what was trained was not "
                    "measured: {}",
                    outcome.not_measured));
  if (!outcome.kept_because.empty())
    lines.push_back(fmt::format("merged into {}: {}", description_of(outcome.result().base),
                                outcome.kept_because));
  if (!job.single_because.empty()) lines.push_back(job.single_because);
  return lines;
}

std::string drift_warning(const MergeJob& job, const MergeOutcome& outcome) {
  if (!outcome.exceeds_drift()) return "";
  return fmt::format(
      "finished, but not to be used as it is: {} does not answer as what was trained does. The "
      "mean KL is {:.2e}, above max_drift={:g}. What helps: {}",
      job.output().string(), outcome.result().drift->mean_kl, outcome.max_drift,
      remedy(job, outcome));
}

nlohmann::ordered_json drift_json(const MergeJob& job, const MergeOutcome& outcome) {
  nlohmann::ordered_json json{{"merged_into", base::word_of(outcome.result().base)},
                              {"max_drift", outcome.max_drift},
                              {"exceeds_max_drift", outcome.exceeds_drift()}};
  nlohmann::ordered_json variants = nlohmann::ordered_json::array();
  for (const MergedVariant& variant : outcome.variants) variants.push_back(variant_json(variant));
  json["variants"] = variants;
  std::string why = outcome.kept_because.empty() ? job.single_because : outcome.kept_because;
  if (!why.empty()) json["merged_into_because"] = why;
  if (!outcome.not_measured.empty()) json["drift_not_measured"] = outcome.not_measured;
  if (was_measured(outcome))
    json["drift_measured"] = {{"text", outcome.text},
                              {"tokens", outcome.costs.tokens},
                              {"documents", outcome.costs.documents},
                              {"compute_dtype", outcome.compute_dtype},
                              {"disk_bytes", outcome.costs.kept_bytes},
                              {"arena_bytes", outcome.arena_bytes}};
  return json;
}

}  // namespace snug::cli
