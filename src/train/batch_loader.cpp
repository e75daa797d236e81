#include "train/batch_loader.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "program/ir/tensor_names.h"

namespace snug::train {
namespace {

template <typename T>
std::span<T> row_of(const backends::Buffer& buffer, int64_t row, int64_t rows) {
  const int64_t size = buffer.bytes() / static_cast<int64_t>(sizeof(T)) / rows;
  return {buffer.as<T>() + row * size, static_cast<size_t>(size)};
}

// A row that holds one document always is one segment, which then must not be empty
// (Attention::no_empty_segments): its first token, without a target.
void clear_row(const text::RowBuffers& buffers) {
  for (const text::StreamBuffers& stream : buffers.streams) {
    std::ranges::fill(stream.ids, 0);
    std::ranges::fill(stream.positions, 0);
    std::ranges::fill(stream.segments, text::Segment{});
    if (stream.segments.size() == 1) stream.segments[0].end = 1;
  }
  std::ranges::fill(buffers.targets, -1);
  std::ranges::fill(buffers.documents, -1);
}

}  // namespace

BatchLoader::BatchLoader(text::RowSource& source, int64_t rows,
                         const base::PerStream<int64_t>& row_tokens, runtime::Executor& executor,
                         std::span<const float> reference)
    : source_(&source),
      rows_(rows),
      row_tokens_(row_tokens),
      executor_(executor),
      reference_(reference),
      documents_(static_cast<size_t>(rows * source.options().max_segments), -1) {}

void BatchLoader::read_from(text::RowSource& source, std::span<const float> reference) {
  SNUG_CHECK_EQ(source.options().max_segments, source_->options().max_segments);
  source_ = &source;
  reference_ = reference;
}

methods::RowCounts BatchLoader::count(int64_t first_row, int64_t rows) {
  methods::RowCounts counts;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const text::RowCounts of_row = source_->counts(row);
    counts.tokens += of_row.tokens.sum();
    counts.trained_tokens += of_row.targets;
    counts.leading_tokens += of_row.leading;
    counts.desirable += of_row.desirable;
    counts.groups += of_row.segments / source_->options().group;
  }
  return counts;
}

BatchLoader::StreamTensors BatchLoader::tensors_of(program::ProgramName program,
                                                   base::TokenStream stream) const {
  const auto host = [&](std::string_view name) {
    return program::host_name(program::stream_name(stream, name));
  };
  // Not all networks read positions.
  const std::string positions = host(program::kPositionsName);
  return {&executor_.tensor(program, host(program::kTokensName)),
          executor_.has(program, positions) ? &executor_.tensor(program, positions) : nullptr,
          &executor_.tensor(program, host(program::kQueryBoundsName))};
}

text::RowBuffers BatchLoader::buffers_of(const base::PerStream<StreamTensors>& streams,
                                         const backends::Buffer& targets, int64_t row) {
  const auto of_row = [&](const StreamTensors& tensors) -> text::StreamBuffers {
    return {row_of<int32_t>(*tensors.ids, row, rows_),
            tensors.positions == nullptr ? std::span<int32_t>()
                                         : row_of<int32_t>(*tensors.positions, row, rows_),
            row_of<text::Segment>(*tensors.bounds, row, rows_)};
  };
  const size_t segments = documents_.size() / static_cast<size_t>(rows_);
  return {streams.map(of_row), row_of<int32_t>(targets, row, rows_),
          std::span(documents_).subspan(static_cast<size_t>(row) * segments, segments)};
}

void BatchLoader::move_bounds(const text::RowBuffers& buffers, int64_t row) const {
  for (const base::TokenStream stream : row_tokens_.streams()) {
    const auto offset = static_cast<int32_t>(row * row_tokens_[stream]);
    for (text::Segment& segment : buffers.streams[stream].segments) {
      segment.begin += offset;
      segment.end += offset;
    }
  }
}

void BatchLoader::load(program::ProgramName program, int64_t first_row, int64_t end_row) {
  const auto streams = row_tokens_.each(
      [&](base::TokenStream stream, int64_t) { return tensors_of(program, stream); });
  const backends::Buffer& targets =
      executor_.tensor(program, program::host_name(program::kTargetsName));
  executor_.await_inputs(program);
  for (int64_t row = 0; row < rows_; ++row) {
    const text::RowBuffers buffers = buffers_of(streams, targets, row);
    if (first_row + row < end_row)
      source_->fill(first_row + row, buffers);
    else
      clear_row(buffers);
    move_bounds(buffers, row);
  }
  load_reference(program);
  load_answer_bounds(program);
  load_labels(program);
}

void BatchLoader::load_reference(program::ProgramName program) const {
  const std::string name = program::host_name(program::kReferenceName);
  if (!executor_.has(program, name)) return;
  SNUG_CHECK(!reference_.empty(), "{} is not given", name);
  const backends::Buffer& values = executor_.tensor(program, name);
  SNUG_CHECK_EQ(values.elements(), static_cast<int64_t>(documents_.size()));
  for (size_t i = 0; i < documents_.size(); ++i)
    values.as<float>()[i] =
        documents_[i] < 0 ? 0.0F : reference_[static_cast<size_t>(documents_[i])];
}

// An answer begins alike in all documents of a group, of which the last one's prompt is no target.
void BatchLoader::load_answer_bounds(program::ProgramName program) const {
  const std::string name = program::host_name(program::kAnswerBoundsName);
  if (!executor_.has(program, name)) return;
  const auto* bounds = executor_.tensor(program, program::host_name(program::kQueryBoundsName))
                           .as<const text::Segment>();
  const auto* targets =
      executor_.tensor(program, program::host_name(program::kTargetsName)).as<const int32_t>();
  auto* answers = executor_.tensor(program, name).as<text::Segment>();
  const auto group = static_cast<size_t>(source_->options().group);
  for (size_t first = 0; first < documents_.size(); first += group) {
    const text::Segment& last = bounds[first + group - 1];
    int32_t prompt = 0;
    while (last.begin + prompt < last.end && targets[last.begin + prompt] < 0) ++prompt;
    for (size_t i = first; i < first + group; ++i)
      answers[i] = {std::min(bounds[i].begin + prompt, bounds[i].end), bounds[i].end};
  }
}

void BatchLoader::load_labels(program::ProgramName program) const {
  const std::string name = program::host_name(program::kLabelsName);
  if (!executor_.has(program, name)) return;
  const backends::Buffer& labels = executor_.tensor(program, name);
  const auto group = static_cast<size_t>(source_->options().group);
  SNUG_CHECK_EQ(labels.elements(), static_cast<int64_t>(documents_.size() / group));
  for (size_t first = 0; first < documents_.size(); first += group)
    labels.as<int32_t>()[first / group] =
        documents_[first] < 0 ? 0 : source_->documents().label(documents_[first]);
}

int64_t BatchLoader::rows_per_epoch() { return source_->rows_until(1); }

bool BatchLoader::ends_epoch(int64_t first_row, int64_t rows) {
  return source_->epoch_of(first_row + rows) > source_->epoch_of(first_row);
}

}  // namespace snug::train
