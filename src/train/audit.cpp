#include "train/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "text/audit/audit_findings.h"
#include "text/chat/folder_stop_ids.h"

namespace snug::train {
namespace {

text::AuditedSet set_of(DataSource& source, std::string name) {
  const text::RowOptions& rows = source.rows.options();
  const std::vector<text::LoadedSource>& sources = source.dataset.sources;
  text::AuditedSet set{
      .name = std::move(name), .path = {}, .loaded = source.dataset.audit, .group = rows.group};
  int64_t begin = 0;
  for (const text::LoadedSource& each : sources) {
    set.path += (set.path.empty() ? "" : ", ") + each.name;
    if (sources.size() > 1)
      set.sources.push_back(
          {.name = each.name, .range = {begin, each.end}, .taken = each.end - begin});
    begin = each.end;
  }
  for (size_t i = 0; i < std::min(rows.parts.size(), set.sources.size()); ++i)
    set.sources[i].taken = rows.parts[i].taken * rows.group;
  set.rows.filled = source.rows.first_epoch_tokens();
  set.rows.is_packed = rows.packing;
  set.rows.tokens = rows.max_length.map([](int32_t tokens) { return int64_t{tokens}; });
  return set;
}

// Where generation will stop, as the tokenizer or else the model's folder says.
std::vector<int32_t> stops_of(const RunToAudit& run) {
  if (run.data.tokenizer) {
    const std::span<const int32_t> ids = run.data.tokenizer->stop_ids();
    return {ids.begin(), ids.end()};
  }
  if (run.model.folder.empty()) return {};
  return text::folder_stop_ids(run.model.folder, run.asked.adapter);
}

// Looks over one set, and adds it to the report.
void add_set(const RunToAudit& run, DataSource& source, const text::AuditDepth& depth,
             text::AuditedSet set, text::AuditReport& report) {
  if (run.settled.max_length > 0) set.rows.rows = source.rows.rows_until(1);
  set.is_training = report.sets.empty();
  set.ends = stops_of(run);
  const text::Tokenizer* tokenizer = run.data.tokenizer ? &*run.data.tokenizer : nullptr;
  const text::DocumentStore& documents = source.dataset.documents;
  text::audit_set({.documents = documents,
                   .tokenizer = tokenizer,
                   .seed = static_cast<uint64_t>(run.settled.seed),
                   .trains_on_prompt = run.settled.train_on_prompt,
                   .depth = depth},
                  set, report.sets.empty() ? nullptr : &report.sets.front());
  set.findings = text::find_faults(report, set, documents, tokenizer);
  report.sets.push_back(std::move(set));
}

}  // namespace

text::AuditReport audit(const RunToAudit& run, const text::AuditDepth& depth) {
  text::AuditReport report{.model = run.asked.model,
                           .max_length = run.settled.max_length,
                           .positions = run.model.config.max_position,
                           .chooses_length = run.asked.max_length == 0,
                           .trains_on_prompt = run.asked.train_on_prompt,
                           .sets = {}};
  const RunData& data = run.data;
  add_set(run, *data.training, depth, set_of(*data.training, "training"), report);
  for (const EvaluationSet& set : data.evaluation)
    add_set(run, *set.source, depth, set_of(*set.source, set.name), report);
  return report;
}

std::string short_text(const text::AuditReport& report) {
  std::string text;
  for (const text::AuditedSet& set : report.sets) {
    const std::string rows = text::rows_text(set);
    const text::LengthCounts& lengths = set.loaded.lengths;
    text += fmt::format(
        "{}audit of {}: {} of the tokens trained; {}{}half of the records have "
        "at most {} tokens, 99 % at most {}; {}",
        text.empty() ? "" : "\n", set.path, text::percent(set.trained_share()), rows,
        rows.empty() ? "" : "; ", lengths.holding(0.5), lengths.holding(0.99),
        text::repeated_text(set));
  }
  for (const text::AuditedSet& set : report.sets)
    for (const text::Finding& finding : set.findings)
      if (finding.is_warning)
        text += fmt::format("\nWARNING: {}: {}. {}", set.path, finding.what, finding.remedy);
  return text;
}

}  // namespace snug::train
