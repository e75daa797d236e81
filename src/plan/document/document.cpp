#include "plan/document/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "program/work/graph_memory.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const SpaceFigures& figures) {
  Json json;
  json["capacity_bytes"] = figures.capacity_bytes;
  json["peak_bytes"] = figures.report.peak_bytes;
  json["lower_bound_bytes"] = figures.report.lower_bound_bytes;
  json["by_role"] = Json::object();
  for (const auto& [role, bytes] : figures.report.by_role) json["by_role"][role] = bytes;
  json["by_layer"] = Json::object();
  for (const auto& [layer, bytes] : figures.report.by_layer)
    json["by_layer"][layer < 0 ? "none" : std::to_string(layer)] = bytes;
  json["peak"] = {{"program", figures.report.peak_program},
                  {"index", figures.report.peak_index},
                  {"operation", figures.report.peak_operation}};
  return json;
}

// Adds pinned and pageable host memory together: users see only one kind of host memory.
SpaceReport merged(const SpaceReport& a, const SpaceReport& b) {
  SpaceReport sum = a.peak_bytes >= b.peak_bytes ? a : b;
  const SpaceReport& other = a.peak_bytes >= b.peak_bytes ? b : a;
  sum.peak_bytes += other.peak_bytes;
  sum.lower_bound_bytes += other.lower_bound_bytes;
  for (const auto& [role, bytes] : other.by_role) sum.by_role[role] += bytes;
  for (const auto& [layer, bytes] : other.by_layer) sum.by_layer[layer] += bytes;
  return sum;
}

Json to_json(const program::DeviceFacts& card, int64_t recorded_launches) {
  return {{"name", card.name},
          {"here", card.is_here},
          {"memory_bytes", card.memory_bytes},
          {"outside_bytes", card.outside_bytes},
          {"outside_basis", base::word_of(card.is_here ? Basis::measured : Basis::assumed)},
          {"reserved_bytes", card.reserved_bytes},
          {"recorded_launches", recorded_launches},
          {"graph_bytes", program::graph_bytes(recorded_launches)},
          {"graph_basis", base::word_of(Basis::assumed)}};
}

// Bytes of host memory in use during each activity, for this number of ranks.
Json activities_json(const PlanDocument& document, int64_t ranks) {
  Json json = Json::object();
  if (document.before_job_bytes() > 0) json["reading"] = document.before_job_bytes() * ranks;
  for (const PlanDocument::ActivityFigures& figures : document.activities)
    json[std::string(base::word_of(figures.activity))] = document.activity_bytes(figures) * ranks;
  return json;
}

Json to_json(const RankFigures& ranks, const PlanDocument& document) {
  Json json = {{"strategy", ranks.strategy},   {"count", ranks.ranks},
               {"per_node", ranks.node_ranks}, {"shards", ranks.shards},
               {"replicas", ranks.replicas},   {"collectives", Json::object()}};
  for (const auto& [kind, figures] : ranks.collectives)
    json["collectives"][kind] = {{"count", figures.count}, {"sent_bytes", figures.sent_bytes}};
  json["node"] = {{"host_bytes", document.resident_bytes() * ranks.node_ranks},
                  {"activities", activities_json(document, ranks.node_ranks)}};
  return json;
}

// If the device has no memory of its own, its arena counts as host memory too.
std::vector<PlanDocument::ActivityFigures> activities_on_host(const MemoryReport& memory,
                                                              bool has_card) {
  std::vector<PlanDocument::ActivityFigures> activities;
  for (const ActivityReport& report : memory.activities) {
    int64_t bytes = 0;
    for (size_t s = 0; s < report.bytes.size(); ++s)
      if (!has_card || static_cast<program::Space>(s) != program::Space::device)
        bytes += report.bytes[s];
    activities.push_back({report.activity, bytes});
  }
  return activities;
}

// The least certain basis of any scratch memory of the job.
program::WorkspaceBasis workspace_basis(const Job& job, const program::Target& target) {
  auto basis = program::WorkspaceBasis::computed;
  for (const auto& program : job.programs)
    for (const auto& operation : program.operations)
      if (operation.workspace != program::kNone &&
          program::traits_of(operation).copying != program::Copying::ends)
        basis = std::max(basis, target.workspace({program, operation}).basis);
  return basis;
}

// null: the number of runs is unknown.
Json to_json(const PassFigures& pass) {
  const std::optional<double> seconds = pass.seconds();
  return {{"seconds", seconds ? Json(*seconds) : Json()},
          {"runs", pass.runs ? Json(*pass.runs) : Json()},
          {"run_seconds", pass.run_seconds}};
}

Json to_json(const RolloutFigures& figures) {
  const RolloutSizes& sizes = figures.sizes;
  return {{"answers", sizes.answers},
          {"num_generations", sizes.group},
          {"side_by_side", figures.side_by_side},
          {"updates", sizes.updates()},
          {"prompt_tokens", sizes.prompt_tokens},
          {"completion_tokens", sizes.completion_tokens},
          {"seconds", figures.seconds},
          {"half_seconds", figures.half_seconds},
          {"gather_seconds", figures.gather_seconds ? Json(*figures.gather_seconds) : Json()},
          {"gathers_in_each_program", figures.gathers_within},
          {"step_seconds", figures.step_seconds()},
          {"half_step_seconds", figures.half_step_seconds()},
          {"training_bytes", figures.training_bytes},
          {"generating_bytes", figures.generating_bytes}};
}

// Launches that graphs record. Joined operations are launched with the one before them, and
// collectives are not recorded.
int64_t launches_of(const Job& job) {
  int64_t launches = 0;
  for (const auto& program : job.programs)
    for (const auto& operation : program.operations)
      if (!operation.joined &&
          program::traits_of(operation).category != program::Category::collective)
        launches += operation.launches;
  return launches;
}

std::string with_commas(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

PlanDocument describe(const Job& job, const program::Target& target) {
  PlanDocument document;
  document.device.capacity_bytes = target.capacity_bytes(program::Space::device);
  document.host.capacity_bytes = target.capacity_bytes(program::Space::host);
  const MemoryReport memory = read_memory(job);
  document.device.report = memory.spaces[0];
  document.host.report = merged(memory.spaces[1], memory.spaces[2]);
  document.activities = activities_on_host(memory, target.device().has_value());
  document.parameters = job.parameters;
  document.trainable_parameters = job.trainable_parameters;
  document.workspaces = base::word_of(workspace_basis(job, target));
  document.card = target.device();
  if (document.card) document.recorded_launches = launches_of(job);
  document.target = target.name();
  document.libraries = target.library_versions();
  return document;
}

void set_outside(PlanDocument& document, int64_t process_bytes) {
  const int64_t assumed = document.card ? document.card->host_outside_bytes : 0;
  document.outside_bytes = process_bytes + assumed;
  document.process_bytes = process_bytes;
  document.outside_basis = assumed > 0 ? Basis::assumed : Basis::measured;
}

std::string to_json(const PlanDocument& document) {
  Json json;
  json["fits"] = document.fits;
  json["change"] = document.change;
  json["model"] = document.model;
  json["method"] = document.method;
  if (!document.objective.empty()) json["objective"] = document.objective;
  json["base"] = document.base;
  if (document.experts_in_4_bits) json["experts_in_4_bits"] = true;
  json["compute_dtype"] = document.compute_dtype;
  json["recompute"] = document.recompute;
  for (const PlanDocument::LayerModes& run : document.recompute_layers)
    json["recompute_layers"].push_back({{"mode", run.mode}, {"layers", run.layers}});
  if (document.recompute_nothing_bytes > 0)
    json["recompute_nothing_bytes"] = document.recompute_nothing_bytes;
  json["activation_offloading"] = document.activation_offloading;
  json["offload_params"] = document.offload_params;
  json["offload_optimizer"] = document.offload_optimizer;
  json["offload_window_bytes"] = document.offload_window_bytes;
  json["micro_batch"] = {{"rows", document.rows},
                         {"row_tokens", document.row_tokens},
                         {"row_documents", document.row_documents},
                         {"of_data", document.has_data}};
  if (document.encoder_row_tokens > 0)
    json["micro_batch"]["encoder_row_tokens"] = document.encoder_row_tokens;
  if (!document.rotary_factors.empty()) json["rotary_factors"] = document.rotary_factors;
  if (document.card) json["card"] = to_json(*document.card, document.recorded_launches);
  json["device"] = to_json(document.device);
  json["host"] = to_json(document.host);
  json["outside"] = {{"bytes", document.outside_bytes},
                     {"process_bytes", document.process_bytes},
                     {"basis", base::word_of(document.outside_basis)}};
  json["reading"] = {{"peak_bytes", document.reading_bytes}, {"held_bytes", document.held_bytes}};
  json["resident"] = {{"peak_bytes", document.resident_bytes()}};
  if (!document.activities.empty()) json["resident"]["activities"] = activities_json(document, 1);
  json["parameters"] = {{"total", document.parameters},
                        {"trainable", document.trainable_parameters}};
  json["tokens_per_step"] = document.tokens_per_step;
  json["step_seconds"] = document.step_seconds;
  json["step_basis"] = base::word_of(document.step_basis);
  json["step_other_algorithm_seconds"] = document.step_other_algorithm_seconds;
  json["step_unsampled_seconds"] = document.step_unsampled_seconds;
  json["busy_seconds"] = document.busy_seconds;
  json["load_seconds"] = document.load_seconds;
  json["load_basis"] = base::word_of(document.load_basis);
  if (document.reference) json["reference"] = to_json(*document.reference);
  if (document.rollouts) json["rollouts"] = to_json(*document.rollouts);
  if (document.evaluation) {
    json["evaluation"] = to_json(*document.evaluation);
    if (document.evaluation->first_seconds > 0)
      json["evaluation"]["answers_seconds"] = document.evaluation->first_seconds;
  }
  json["save_seconds"] = document.save_seconds;
  json["save_basis"] = base::word_of(document.save_basis);
  json["tokens_per_second"] =
      document.step_seconds > 0
          ? static_cast<double>(document.tokens_per_step) / document.step_seconds
          : 0.0;
  json["workspaces"] = document.workspaces;
  json["target"] = document.target;
  json["libraries"] = document.libraries;
  json["threads"] = document.threads;
  if (document.ranks) json["ranks"] = to_json(*document.ranks, document);
  return json.dump(2) + "\n";
}

std::string parameter_line(const PlanDocument& document) {
  const double percent = 100.0 * static_cast<double>(document.trainable_parameters) /
                         static_cast<double>(std::max<int64_t>(1, document.parameters));
  return fmt::format("trainable params: {} || all params: {} || trainable%: {:.4f}",
                     with_commas(document.trainable_parameters), with_commas(document.parameters),
                     percent);
}

std::string readable_bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1LL << 30) return fmt::format("{:.2f} GiB", value / (1LL << 30));
  if (bytes >= 1LL << 20) return fmt::format("{:.1f} MiB", value / (1LL << 20));
  if (bytes >= 1LL << 10) return fmt::format("{:.1f} KiB", value / (1LL << 10));
  return fmt::format("{} B", bytes);
}

std::string readable_seconds(double seconds) {
  if (seconds <= 0) return "unknown";
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

}  // namespace snug::plan
