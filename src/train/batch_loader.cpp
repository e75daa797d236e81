#include "train/batch_loader.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "program/tensor_names.h"

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
  std::ranges::fill(buffers.ids, 0);
  std::ranges::fill(buffers.targets, -1);
  std::ranges::fill(buffers.positions, 0);
  std::ranges::fill(buffers.segments, text::Segment{});
  std::ranges::fill(buffers.documents, -1);
  if (buffers.segments.size() == 1) buffers.segments[0].end = 1;
}

}  // namespace

BatchLoader::BatchLoader(text::RowSource& source, int64_t rows, int64_t row_tokens,
                         runtime::Executor& executor, std::span<const float> reference)
    : source_(source),
      rows_(rows),
      row_tokens_(row_tokens),
      executor_(executor),
      reference_(reference),
      documents_(static_cast<size_t>(rows * source.options().max_segments), -1) {}

BatchCounts BatchLoader::count(int64_t first_row, int64_t rows) {
  BatchCounts counts;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const text::RowCounts of_row = source_.counts(row);
    counts.tokens += of_row.tokens;
    counts.trained_tokens += of_row.targets;
    counts.leading_tokens += of_row.leading;
    counts.groups += of_row.segments / source_.options().group;
  }
  return counts;
}

void BatchLoader::load(program::ProgramName program, int64_t first_row, int64_t end_row) {
  const auto& ids = executor_.tensor(program, program::host_name(program::kTokensName));
  const auto& targets = executor_.tensor(program, program::host_name(program::kTargetsName));
  const auto& bounds = executor_.tensor(program, program::host_name(program::kQueryBoundsName));
  // Not all networks read positions.
  const std::string positions_name = program::host_name(program::kPositionsName);
  const backends::Buffer* const positions =
      executor_.has(program, positions_name) ? &executor_.tensor(program, positions_name) : nullptr;
  const size_t segments = documents_.size() / static_cast<size_t>(rows_);
  executor_.await_inputs(program);
  for (int64_t row = 0; row < rows_; ++row) {
    const text::RowBuffers buffers{
        row_of<int32_t>(ids, row, rows_), row_of<int32_t>(targets, row, rows_),
        positions == nullptr ? std::span<int32_t>() : row_of<int32_t>(*positions, row, rows_),
        row_of<text::Segment>(bounds, row, rows_),
        std::span(documents_).subspan(static_cast<size_t>(row) * segments, segments)};
    if (first_row + row < end_row)
      source_.fill(first_row + row, buffers);
    else
      clear_row(buffers);
    // Bounds count tokens of the flattened micro-batch.
    const auto offset = static_cast<int32_t>(row * row_tokens_);
    for (text::Segment& segment : buffers.segments) {
      segment.begin += offset;
      segment.end += offset;
    }
  }
  load_reference(program);
  load_answer_bounds(program);
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
  const auto group = static_cast<size_t>(source_.options().group);
  for (size_t first = 0; first < documents_.size(); first += group) {
    const text::Segment& last = bounds[first + group - 1];
    int32_t prompt = 0;
    while (last.begin + prompt < last.end && targets[last.begin + prompt] < 0) ++prompt;
    for (size_t i = first; i < first + group; ++i)
      answers[i] = {std::min(bounds[i].begin + prompt, bounds[i].end), bounds[i].end};
  }
}

int64_t BatchLoader::rows_per_epoch() { return source_.rows_until(1); }

}  // namespace snug::train
