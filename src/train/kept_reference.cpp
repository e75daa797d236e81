#include "train/kept_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/console.h"
#include "base/error.h"
#include "base/seconds_since.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"
#include "program/ir/tensor_names.h"
#include "train/batch_loader.h"

namespace snug::train {
namespace {

using program::ProgramName;

struct NamedSource {
  std::string name;
  DataSource* source;
};

std::vector<NamedSource> sources_of(const RunData& data) {
  std::vector<NamedSource> sources{{"training", data.training.get()}};
  for (const EvaluationSet& set : data.evaluation)
    sources.push_back(
        {data.evaluation.size() == 1 ? "evaluation" : "evaluation." + set.name, set.source.get()});
  return sources;
}

int64_t bytes_of(const std::vector<float>& values) {
  return static_cast<int64_t>(values.size() * sizeof(float));
}

// What says of which documents the numbers are, and that they are as they were written.
std::string description_of(const NamedSource& named) {
  const std::vector<float>& values = named.source->reference;
  return fmt::format("documents {} numbers {}", named.source->dataset.documents.fingerprint(),
                     base::checksum_text(base::checksum(values.data(), bytes_of(values))));
}

bool read_source(const formats::SafetensorsFile& file, const NamedSource& named) {
  const formats::TensorInfo* tensor = file.find(named.name);
  const auto written = file.metadata().find(named.name);
  if (tensor == nullptr || written == file.metadata().end() ||
      tensor->bytes() != bytes_of(named.source->reference))
    return false;
  file.read(*tensor, named.source->reference.data());
  return written->second == description_of(named);
}

bool read_reference(const std::filesystem::path& path, const RunData& data) {
  if (path.empty() || !std::filesystem::exists(path)) return false;
  try {
    const formats::SafetensorsFile file(path);
    const std::vector<NamedSource> sources = sources_of(data);
    if (std::ranges::all_of(sources, [&](const auto& named) { return read_source(file, named); }))
      return true;
    base::say("{} is of other data or damaged, so that its numbers are made anew", path.string());
  } catch (const base::UserError& error) {
    base::say("{}, so that its numbers are made anew", error.what());
  }
  return false;
}

// Every document is in one row. Returns how often the program ran.
int64_t compute(const plan::TrainingSpec& spec, DataSource& source, runtime::Executor& executor) {
  BatchLoader loader(source.rows_of_all(), spec.rows, spec.row_tokens, executor);
  const backends::Buffer& values = executor.tensor(program::host_name(program::kKeptReferenceName));
  const int64_t rows = loader.rows_per_epoch();
  int64_t runs = 0;
  for (int64_t row = 0; row < rows; row += spec.rows, ++runs) {
    loader.load(ProgramName::reference, row, rows);
    executor.run(ProgramName::reference);
    executor.await_results();
    for (size_t i = 0; i < loader.documents().size(); ++i)
      if (const int32_t document = loader.documents()[i]; document >= 0)
        source.reference[static_cast<size_t>(document)] = values.as<const float>()[i];
  }
  return runs;
}

}  // namespace

std::optional<double> make_reference(const RunFolder& folder, const plan::TrainingSpec& spec,
                                     RunData& data, runtime::Executor& executor) {
  const std::filesystem::path earlier =
      folder.checkpoint ? folder.checkpoint->parent_path() / RunFolder::kReference : "";
  if (executor.mesh().size() == 1 && read_reference(earlier, data)) {
    base::say("reference log-probabilities are those of {}", earlier.string());
    return std::nullopt;
  }
  const auto start = std::chrono::steady_clock::now();
  executor.set_input(program::kInverseTokensName, 1.0F);
  executor.run(ProgramName::prepare);
  int64_t documents = 0;
  int64_t runs = 0;
  for (const NamedSource& named : sources_of(data)) {
    runs += compute(spec, *named.source, executor);
    documents += named.source->dataset.documents.size();
  }
  const double seconds = base::seconds_since(start);
  base::say("computed reference log-probabilities of {} sequences in {} runs, {:.1f} s", documents,
            runs, seconds);
  return seconds;
}

void save_reference(const std::filesystem::path& path, const RunData& data) {
  std::vector<formats::TensorSpec> tensors;
  formats::SafetensorsMetadata metadata;
  for (const NamedSource& named : sources_of(data)) {
    tensors.push_back(
        {named.name, base::DType::f32, {static_cast<int64_t>(named.source->reference.size())}});
    metadata[named.name] = description_of(named);
  }
  formats::SafetensorsWriter writer(path, tensors, metadata);
  for (const NamedSource& named : sources_of(data))
    writer.write(named.name, named.source->reference.data(), bytes_of(named.source->reference));
  writer.finish();
}

}  // namespace snug::train
