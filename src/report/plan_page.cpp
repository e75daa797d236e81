#include "report/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/fit.h"
#include "report/charts.h"
#include "report/step_picture.h"

namespace snug::report {
namespace {

using plan::PlanDocument;
using plan::PlannedTraining;
using plan::readable_bytes;
using plan::readable_seconds;

std::string bytes_text(double bytes) { return readable_bytes(static_cast<int64_t>(bytes)); }
std::string seconds_text(double seconds) { return seconds > 0 ? readable_seconds(seconds) : "0"; }

std::string tokens_per_second(const PlanDocument& document, double seconds) {
  if (seconds <= 0) return "unknown";
  return fmt::format("{:.0f} tokens/s", static_cast<double>(document.tokens_per_step) / seconds);
}

void add_figures(const PlanDocument& document, Page& page) {
  std::vector<Figure> figures{
      {"device memory", readable_bytes(document.device.report.peak_bytes)},
      {"host memory", readable_bytes(document.host.report.peak_bytes)},
      {"outside of both", readable_bytes(document.outside_bytes)},
      {fmt::format("a step ({})", plan::step_basis_text(document)),
       readable_seconds(document.step_seconds)},
      {"speed of full rows", tokens_per_second(document, document.step_seconds)},
      {"trained parameters",
       fmt::format("{:.4g} %", 100.0 * static_cast<double>(document.trainable_parameters) /
                                   static_cast<double>(document.parameters))}};
  page.figures(figures);
}

// The roles that hold bytes at some moment, the largest at the bottom.
std::vector<Area> areas_of(const std::vector<MemoryMoment>& moments) {
  std::vector<std::pair<int64_t, size_t>> roles;
  for (size_t role = 0; role < program::kRoleCount; ++role) {
    int64_t least = moments.front().by_role[role];
    int64_t most = 0;
    for (const MemoryMoment& moment : moments) {
      least = std::min(least, moment.by_role[role]);
      most = std::max(most, moment.by_role[role]);
    }
    // Bytes that are live throughout lie below those that come and go.
    if (most > 0) roles.emplace_back(least, role);
  }
  std::ranges::stable_sort(roles, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Area> areas;
  for (const auto& [least, role] : roles) {
    Area area{std::string(name_of(static_cast<program::Role>(role))), static_cast<int>(role), {}};
    for (const MemoryMoment& moment : moments)
      area.heights.push_back(static_cast<double>(moment.by_role[role]));
    areas.push_back(std::move(area));
  }
  return areas;
}

std::string programs_text(const StepPicture& picture) {
  std::string text = "From left to right: ";
  for (const DrawnProgram& program : picture.programs)
    text += fmt::format("{}{}{}", program.start_seconds > 0 ? ", " : "", program.name,
                        program.runs > 1 ? fmt::format(" (run {} times)", program.runs) : "");
  return text + ".";
}

// Where drawing the whole capacity would make the used memory too small to see, the capacity is
// stated in words and not drawn.
void add_memory(const StepPicture& picture, program::Space space, int64_t capacity, Page& page) {
  const std::vector<MemoryMoment>& moments = picture.memory[static_cast<size_t>(space)];
  const auto largest = std::ranges::max_element(
      moments, {}, [](const MemoryMoment& moment) { return moment.total(); });
  if (largest == moments.end() || largest->total() == 0) return;
  constexpr int64_t kMaxTimesThePeak = 3;
  AreaChart chart{.x = {},
                  .end = picture.seconds,
                  .areas = areas_of(moments),
                  .limit = 0,
                  .mark = largest->seconds,
                  .cuts = {},
                  .text_of_x = seconds_text,
                  .text_of_height = bytes_text};
  for (const MemoryMoment& moment : moments) chart.x.push_back(moment.seconds);
  for (const DrawnProgram& program : picture.programs)
    if (program.start_seconds > 0) chart.cuts.push_back(program.start_seconds);
  if (capacity > 0 && capacity <= kMaxTimesThePeak * largest->total())
    chart.limit = static_cast<double>(capacity);
  page.heading(fmt::format("Memory over a step: {}", name_of(space)));
  page.paragraph(programs_text(picture) +
                 (chart.limit > 0 ? " The level dashed line is the capacity." : ""));
  page.chart(area_chart(chart));
}

void add_peak(const PlanDocument& document, Page& page) {
  const plan::SpaceReport& report = document.device.report;
  page.paragraph(fmt::format(
      "The upright dashed line marks the most that is live in a step. Of the whole job it is {} "
      "at operation {} of {}, {}; the device's arena takes {}, {:.2f} % more.",
      readable_bytes(report.lower_bound_bytes), report.peak_index, report.peak_program,
      report.peak_operation, readable_bytes(report.peak_bytes),
      100.0 * (static_cast<double>(report.peak_bytes) /
                   static_cast<double>(std::max<int64_t>(1, report.lower_bound_bytes)) -
               1)));
}

std::string title_of(const ChannelSpan& span) {
  return fmt::format("{}{}: {} at {}", name_of(span.phase),
                     span.layer < 0 ? "" : fmt::format(" of layer {}", span.layer),
                     seconds_text(span.seconds), seconds_text(span.start_seconds));
}

void add_channels(const StepPicture& picture, Page& page) {
  using program::Phase;
  LaneChart chart{.end = picture.seconds, .lanes = {}, .legend = {}, .text_of_x = seconds_text};
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward, Phase::update})
    chart.legend.emplace_back(name_of(phase), static_cast<int>(phase) * 2);
  std::set<program::Channel> channels;
  for (const ChannelSpan& span : picture.spans) channels.insert(span.channel);
  for (const program::Channel channel : channels) {
    Lane lane{std::string(name_of(channel)), {}};
    for (const ChannelSpan& span : picture.spans)
      if (span.channel == channel)
        lane.spans.push_back(
            {span.start_seconds, span.seconds, static_cast<int>(span.phase) * 2, title_of(span)});
    chart.lanes.push_back(std::move(lane));
  }
  page.heading("What each channel does");
  page.chart(lane_chart(chart));
}

// Adjacent layers with equal bytes share a bar.
void add_layers(const PlanDocument& document, Page& page) {
  const std::map<int32_t, int64_t>& by_layer = document.device.report.by_layer;
  std::vector<Bar> bars;
  for (auto first = by_layer.begin(); first != by_layer.end();) {
    auto last = first;
    for (auto next = first;
         next != by_layer.end() && next->first >= 0 && next->second == first->second; ++next)
      last = next;
    std::string name = "no layer";
    if (first->first >= 0) name = fmt::format("layer {}", first->first);
    if (last != first) name = fmt::format("layers {} to {}, each", first->first, last->first);
    bars.push_back({name, static_cast<double>(first->second), readable_bytes(first->second)});
    first = std::next(last);
  }
  page.heading("Bytes of each layer at the peak");
  page.chart(bar_chart(bars));
}

void add_times(const PlannedTraining& planned, Page& page) {
  constexpr size_t kShown = 12;
  std::vector<std::vector<std::string>> rows{{"operation", "program", "count", "time", "share"}};
  const std::vector<plan::TimedOperations> times = planned.times();
  for (size_t i = 0; i < std::min(kShown, times.size()); ++i)
    rows.push_back({times[i].name, times[i].program, std::to_string(times[i].count),
                    seconds_text(times[i].seconds),
                    fmt::format("{:.1f} %", 100 * times[i].seconds /
                                                std::max(1e-12, planned.document.step_seconds))});
  page.heading("Where the time goes");
  page.table(rows);
}

// The plan of the job with one key changed; nothing where such a job cannot be planned.
std::optional<PlanDocument> planned_with(const PlannedTraining& planned,
                                         const formats::Recipe& recipe) {
  try {
    plan::TrainingInputs inputs{.recipe = recipe,
                                .model = planned.inputs.model,
                                .target = planned.inputs.target,
                                .data = planned.inputs.data};
    PlanDocument document = plan::assemble_training(inputs).document;
    document.outside_bytes = planned.document.outside_bytes;
    document.reading_bytes = planned.document.reading_bytes;
    document.held_bytes = planned.document.held_bytes;
    return document;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// Plans the job with every value of one key, with all other keys unchanged.
template <typename Value>
void add_alternatives(const PlannedTraining& planned, const char* key,
                      Value formats::Recipe::*member, Page& page) {
  std::vector<std::vector<std::string>> rows{{key, "device", "host", "a step", "speed", "fits"}};
  for (const base::Word<Value>& word : words_of(Value{})) {
    formats::Recipe recipe = planned.inputs.recipe;
    recipe.*member = word.value;
    const std::optional<PlanDocument> document = planned_with(planned, recipe);
    if (!document) continue;
    const bool is_own = word.value == planned.inputs.recipe.*member;
    rows.push_back({std::string(word.text) + (is_own ? " (this plan)" : ""),
                    readable_bytes(document->device.report.peak_bytes),
                    readable_bytes(document->host.report.peak_bytes),
                    seconds_text(document->step_seconds),
                    tokens_per_second(*document, document->step_seconds),
                    plan::fits(recipe, *document, planned.inputs.target) ? "yes" : "no"});
  }
  page.heading(fmt::format("Other values of {}", key));
  page.table(rows);
}

}  // namespace

std::string title_of(const PlanDocument& document) {
  return fmt::format("{}, {}", document.model, document.method);
}

void add_plan(const PlannedTraining& planned, Page& page) {
  const PlanDocument& document = planned.document;
  add_figures(document, page);
  const StepPicture picture = picture_step(planned);
  add_memory(picture, program::Space::device, document.device.capacity_bytes, page);
  add_peak(document, page);
  add_memory(picture, program::Space::pinned_host, document.host.capacity_bytes, page);
  add_memory(picture, program::Space::host, document.host.capacity_bytes, page);
  add_channels(picture, page);
  add_layers(document, page);
  add_times(planned, page);
}

std::string plan_page(const PlannedTraining& planned) {
  Page page(title_of(planned.document));
  add_plan(planned, page);
  add_alternatives(planned, "recompute", &formats::Recipe::recompute, page);
  if (planned.document.ranks)
    add_alternatives(planned, "strategy", &formats::Recipe::strategy, page);
  return page.text();
}

}  // namespace snug::report
