// The plan as people read it: a table of figures, and the comparison of planned with measured.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/recipe/choices.h"
#include "plan/document/document.h"
#include "program/ir/program_name.h"
#include "program/work/graph_memory.h"

namespace snug::plan {
namespace {

std::string budget_text(const SpaceFigures& figures) {
  if (figures.capacity_bytes <= 0) return "";
  return fmt::format(" of {}", readable_bytes(figures.capacity_bytes));
}

// The roles at the peak, largest first, such as "weight 1.2 GiB, activation 300 MiB".
std::string roles_text(const SpaceReport& report) {
  std::vector<std::pair<std::string, int64_t>> roles(report.by_role.begin(), report.by_role.end());
  std::stable_sort(roles.begin(), roles.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [role, bytes] : roles)
    text += fmt::format("\n    {:<12} {:>12}  {:5.1f} %", role, readable_bytes(bytes),
                        100.0 * static_cast<double>(bytes) /
                            static_cast<double>(std::max<int64_t>(1, report.peak_bytes)));
  return text;
}

// The part of a GPU's memory outside the arenas: "1.00 GiB of the h100's 79.10 GiB (assumed: ...)".
std::string card_text(const program::DeviceFacts& card, int64_t recorded_launches) {
  std::string text =
      fmt::format("\n    on the card  {:>12} outside the arena ({}: driver, kernels, libraries",
                  readable_bytes(card.outside_bytes),
                  base::word_of(card.is_here ? Basis::measured : Basis::assumed));
  if (card.reserved_bytes > 0)
    text += fmt::format("; {} more assumed for kernels not loaded yet",
                        readable_bytes(card.reserved_bytes));
  text += fmt::format("), of {}: {}{}", readable_bytes(card.memory_bytes), card.name,
                      card.is_here ? "" : ", not here, by the hardware table");
  return text + fmt::format("\n    graphs       {:>12} of that at most (assumed: {} launches)",
                            readable_bytes(program::graph_bytes(recorded_launches)),
                            recorded_launches);
}

std::string_view basis_text(Basis basis) {
  return basis == Basis::data_sheet ? "an estimate from data sheet rates, not measured"
                                    : base::word_of(basis);
}

// Loading is as fast as the storage of the files, which may not have been measured.
std::string_view load_basis_text(Basis basis) {
  return basis == Basis::assumed ? "at assumed rates" : basis_text(basis);
}

// A step that learns from answers takes as long as they are.
std::string rollout_step_text(const RolloutFigures& figures, const PlanDocument& document) {
  return fmt::format(
      "{} at most ({}), {} where answers are half as long: {} of making answers, {} "
      "of learning; rewards come on top",
      readable_seconds(figures.step_seconds()), step_basis_text(document),
      readable_seconds(figures.half_step_seconds()),
      readable_seconds(figures.seconds / static_cast<double>(figures.sizes.updates())),
      readable_seconds(figures.update_seconds));
}

std::string step_text(const PlanDocument& document) {
  if (document.rollouts && document.step_seconds > 0)
    return rollout_step_text(*document.rollouts, document);
  if (document.step_seconds <= 0)
    return fmt::format("unknown, up to {} tokens", document.tokens_per_step);
  return fmt::format("{} ({}), up to {} tokens, {:.0f} tokens/s",
                     readable_seconds(document.step_seconds), step_basis_text(document),
                     document.tokens_per_step,
                     static_cast<double>(document.tokens_per_step) / document.step_seconds);
}

// Text such as "25.20 s (assumed): 120 runs of 210.0 ms".
std::string pass_text(const PassFigures& pass, const PlanDocument& document) {
  const std::string run = readable_seconds(pass.run_seconds);
  const std::string_view basis = basis_text(document.step_basis);
  if (!pass.runs)
    return fmt::format("unknown: {} ({}) a run, and no data say how many there are", run, basis);
  return fmt::format("{} ({}): {} run{} of {}", readable_seconds(*pass.seconds()), basis,
                     *pass.runs, *pass.runs == 1 ? "" : "s", run);
}

// What programs run over, then answers.
std::string evaluation_text(const PlanDocument& document) {
  const PassFigures& pass = *document.evaluation;
  const std::string answers = readable_seconds(pass.first_seconds);
  if (pass.runs == 0)
    return fmt::format("at most {} ({}) of generated answers, whose rewards come on top", answers,
                       basis_text(document.step_basis));
  return pass_text(pass, document) +
         (pass.first_seconds > 0 ? fmt::format(", and at most {} of generated answers", answers)
                                 : "");
}

// The times of a run besides its steps.
std::string other_times_text(const PlanDocument& document) {
  std::string text =
      fmt::format("\n  loading      {} ({})", readable_seconds(document.load_seconds),
                  load_basis_text(document.load_basis));
  if (document.reference)
    text += fmt::format("\n  reference    {}, before the first step",
                        pass_text(*document.reference, document));
  if (document.evaluation)
    text += fmt::format("\n  evaluation   {}, each time", evaluation_text(document));
  if (document.save_seconds > 0)
    text +=
        fmt::format("\n  saving       {} for a checkpoint, at the rate of files ({})",
                    readable_seconds(document.save_seconds), base::word_of(document.save_basis));
  return text;
}

// The busy time of each channel in a step, and how much of the step the device waits for the others
// (copies, the host's processor). Empty if no other channel is busy.
std::string waiting_text(const PlanDocument& document) {
  const std::string_view kCompute = program::name_of(program::Channel::compute);
  const auto compute = document.busy_seconds.find(std::string(kCompute));
  if (compute == document.busy_seconds.end() || document.busy_seconds.size() < 2) return {};
  std::string text = fmt::format("\n    busy       device {}", readable_seconds(compute->second));
  for (const auto& [channel, seconds] : document.busy_seconds)
    if (channel != kCompute) text += fmt::format(", {} {}", channel, readable_seconds(seconds));
  const double waits = document.step_seconds - compute->second;
  return text + fmt::format("; the device waits {:.1f} % of the step",
                            100.0 * std::max(0.0, waits) / document.step_seconds);
}

// Host memory in use during each activity, for one rank and for all ranks of a machine.
std::string host_activities_text(const RankFigures& ranks, const PlanDocument& document) {
  const auto row = [&](std::string_view activity, int64_t bytes) {
    return fmt::format("\n    {:<12} {:>12} {:>12}", activity, readable_bytes(bytes),
                       readable_bytes(bytes * ranks.node_ranks));
  };
  std::string text =
      fmt::format("\n    {:<12} {:>12} {:>12}", "host memory", "a rank", "a machine");
  if (document.before_job_bytes() > 0) text += row("reading", document.before_job_bytes());
  for (const PlanDocument::ActivityFigures& figures : document.activities)
    text += row(base::word_of(figures.activity), document.activity_bytes(figures));
  return text + row("at most", document.resident_bytes());
}

// Where the answers of an evaluation need more memory than a step: what would lower that.
std::string peak_stage_text(const PlanDocument& document) {
  using program::ProgramName;
  const auto peak = program::program_key(document.device.report.peak_program);
  if (!peak || !document.evaluation || document.rollouts) return "";
  if (peak->name != ProgramName::prefill && peak->name != ProgramName::decode) return "";
  return "\n    that is where evaluations generate answers, and no step of training; a smaller "
         "batch or max_new_tokens lowers it";
}

// The bytes that a rank sends in a step, and the bytes that all ranks of a machine hold.
std::string ranks_text(const RankFigures& ranks, const PlanDocument& document) {
  std::string text = fmt::format("\n  ranks        {} by {}, {} on each machine", ranks.ranks,
                                 ranks.strategy, ranks.node_ranks);
  if (ranks.shards > 1) text += fmt::format("; a rank holds 1/{} of what is sharded", ranks.shards);
  if (ranks.shards > 1 && ranks.replicas > 1)
    text += fmt::format(", in {} replicas", ranks.replicas);
  text += host_activities_text(ranks, document);
  for (const auto& [kind, figures] : ranks.collectives)
    text += fmt::format("\n    {:<14} {:>8} sent by a rank in {} a step", kind,
                        readable_bytes(figures.sent_bytes), figures.count);
  return text;
}

std::string rows_text(const PlanDocument& document) {
  const std::string of_encoder =
      document.encoder_row_tokens == 0
          ? ""
          : fmt::format(" ({} of them the encoder's)", document.encoder_row_tokens);
  const std::string text = fmt::format(
      "{} x {} tokens{}, room for {} document{} in each", document.rows, document.row_tokens,
      of_encoder, document.row_documents, document.row_documents > 1 ? "s" : "");
  if (document.has_data || document.rollouts || document.row_documents == 1) return text;
  return text + " (no data: assumed; max_segments says otherwise)";
}

// The chosen recompute modes, and the reason.
std::string recompute_text(const PlanDocument& document) {
  const std::string layers = layers_text(document);
  const bool keeps_all =
      document.recompute_layers.front().mode == base::word_of(formats::Recompute::keep_all);
  if (keeps_all && document.recompute_layers.size() == 1)
    return layers + ": there is room for everything that the backward pass reads";
  const bool has_copies =
      document.offload_params ||
      document.offload_optimizer != base::word_of(formats::OffloadOptimizer::none);
  return fmt::format("{}: {}{}; to compute nothing again takes {}", layers,
                     document.fits ? "the fastest that fits" : "what takes the least",
                     document.fits && has_copies ? " next to copies" : "",
                     readable_bytes(document.recompute_nothing_bytes));
}

// Which of the two decides how large the arena is.
std::string rollouts_text(const RolloutFigures& figures) {
  const RolloutSizes& sizes = figures.sizes;
  const bool generating = figures.generating_bytes > figures.training_bytes;
  std::string text = fmt::format(
      "\n  answers      {} at once to {} prompt{}, {} side by side{}, prompts up to {} tokens, "
      "answers up to {}",
      sizes.answers, sizes.prompts(), sizes.prompts() == 1 ? "" : "s", figures.side_by_side,
      sizes.ranks > 1 ? " on each device" : "", sizes.prompt_tokens, sizes.completion_tokens);
  if (sizes.updates() > 1) text += fmt::format("; {} updates learn from them", sizes.updates());
  if (figures.gather_seconds)
    text += fmt::format("\n    weights       gathered once for all of them, in {}",
                        readable_seconds(*figures.gather_seconds));
  if (figures.gathers_within)
    text += "\n    weights       gathered in each program, since there is no room for all of them";
  text += fmt::format(
      "\n    device memory {:>11} of training and {} of making answers, in the same "
      "bytes: {} decides",
      readable_bytes(figures.training_bytes), readable_bytes(figures.generating_bytes),
      generating ? "making answers" : "training");
  return text;
}

}  // namespace

// Parts below half a percent are not mentioned.
std::string step_basis_text(const PlanDocument& document) {
  std::string text(basis_text(document.step_basis));
  if (!has_samples(document.step_basis) || document.step_seconds <= 0) return text;
  const auto add = [&](double seconds, const char* before, const char* after) {
    const double percent = 100 * seconds / document.step_seconds;
    if (percent >= 0.5) text += fmt::format("{}{:.0f} %{}", before, percent, after);
  };
  add(document.step_unsampled_seconds, "; ", " of the time without a sample");
  add(document.step_other_algorithm_seconds, "; ", " by samples of another algorithm");
  return text;
}

std::string layers_text(const PlanDocument& document) {
  std::vector<std::string> runs;
  for (const PlanDocument::LayerModes& run : document.recompute_layers)
    runs.push_back(
        fmt::format("{} in {} layer{}", run.mode, run.layers, run.layers > 1 ? "s" : ""));
  return fmt::format("{}", fmt::join(runs, ", then "));
}

std::string summary(const PlanDocument& document) {
  const SpaceReport& device = document.device.report;
  std::string text = fmt::format("plan: {} {} on {}, base {}{}, compute {}, recompute {}",
                                 document.model, document.method, document.target, document.base,
                                 document.experts_in_4_bits ? " with its experts" : "",
                                 document.compute_dtype, document.recompute);
  if (!document.objective.empty()) text += fmt::format(", objective {}", document.objective);
  if (document.activation_offloading) text += ", activations offloaded";
  if (document.offload_params) text += ", weights offloaded";
  if (document.offload_optimizer != base::word_of(formats::OffloadOptimizer::none))
    text += fmt::format(", optimizer offloaded ({})", document.offload_optimizer);
  if (!document.recompute_layers.empty())
    text += fmt::format("\n  recompute    {}", recompute_text(document));
  text += fmt::format("\n  device       {:>12}{}", readable_bytes(device.peak_bytes),
                      budget_text(document.device));
  text += roles_text(device);
  text += fmt::format("\n    peak in {} at operation {}: {}{}",
                      device.peak_program.empty() ? "no program" : device.peak_program,
                      device.peak_index, device.peak_operation, peak_stage_text(document));
  text +=
      fmt::format("\n    lower bound  {:>12}, the arena is {:.2f} % above it",
                  readable_bytes(device.lower_bound_bytes),
                  100.0 * (static_cast<double>(device.peak_bytes) /
                               static_cast<double>(std::max<int64_t>(1, device.lower_bound_bytes)) -
                           1.0));
  if (document.card) text += card_text(*document.card, document.recorded_launches);
  text += fmt::format("\n  host         {:>12}", readable_bytes(document.host.report.peak_bytes));
  text += fmt::format("\n  outside      {:>12} ({})", readable_bytes(document.outside_bytes),
                      base::word_of(document.outside_basis));
  if (document.reading_bytes > 0)
    text += fmt::format("\n  reading      {:>12} at most, before, while the data are read",
                        readable_bytes(document.reading_bytes));
  if (document.held_bytes > 0)
    text += fmt::format("\n  held so far  {:>12} at most (measured)",
                        readable_bytes(document.held_bytes));
  text += fmt::format("\n  in all       {:>12}{}", readable_bytes(document.resident_bytes()),
                      document.card ? " on the host" : "");
  if (document.ranks) text += ranks_text(*document.ranks, document);
  if (document.rollouts) text += rollouts_text(*document.rollouts);
  text += fmt::format("\n  rows         {}", rows_text(document));
  text += fmt::format("\n  step         {}", step_text(document));
  text += waiting_text(document);
  text += other_times_text(document);
  if (!document.rotary_factors.empty())
    text += fmt::format("\n  positions    longrope's {} factors, by the longest document",
                        document.rotary_factors);
  return text;
}

}  // namespace snug::plan
