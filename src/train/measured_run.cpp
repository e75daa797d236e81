#include "train/measured_run.h"

#include "backends/arena.h"
#include "runtime/process/process_memory.h"

namespace snug::train {

std::vector<plan::MeasuredSource> measured_sources(const RunData& data) {
  std::vector<plan::MeasuredSource> all;
  const auto add = [&](const text::Dataset& dataset, bool evaluates) {
    all.reserve(all.size() + dataset.sources.size());
    for (const text::LoadedSource& source : dataset.sources)
      all.push_back({.name = source.name,
                     .evaluates = evaluates,
                     .records = source.audit.records,
                     .documents = source.audit.documents,
                     .tokens = source.audit.tokens,
                     .trained_tokens = source.audit.trained_tokens});
  };
  add(data.training->dataset, false);
  for (const EvaluationSet& set : data.evaluation) add(set.source->dataset, true);
  return all;
}

void add_memory(plan::Measured& measured, int64_t peak_before_job,
                const std::optional<program::DeviceFacts>& card) {
  measured.device_bytes = backends::allocated_arena_bytes(program::Space::device);
  measured.host_bytes = backends::allocated_host_bytes();
  measured.card = card;
  const runtime::ProcessMemory memory = runtime::process_memory();
  measured.resident_bytes = memory.resident_peak_bytes;
  // If the peak came before the job, what lay outside the arenas during the job is not known, but
  // what does now is.
  const bool has_job_peak = memory.resident_peak_bytes > peak_before_job;
  const std::optional<int64_t> on_device = card ? 0 : measured.device_bytes;
  const std::optional<int64_t> on_host = backends::resident_host_bytes();
  if (on_host && on_device)
    measured.outside_bytes =
        (has_job_peak ? memory.resident_peak_bytes : memory.resident_bytes) - *on_host - *on_device;
}

}  // namespace snug::train
