#include "runtime/storage/perform.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "backends/backend.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/quantization/quant_state.h"
#include "models/config/computed_tensors.h"
#include "models/weights.h"
#include "plan/job/storage_programs.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/dispatch.h"
#include "runtime/execution/trace_check.h"
#include "runtime/loading/random_weights.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/storage/host_window.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {

using backends::Buffer;
using formats::IndexedTensor;
using program::Program;
using program::Tensor;

Sources sources_of(const formats::TensorIndex& index, FileSet files, std::string reason,
                   const models::ModelConfig* model, program::ProgramName program,
                   Executor& executor) {
  return {.model = model,
          .find = [&index, files](const Tensor& tensor) -> std::vector<FilePart> {
            const auto pieces = pieces_to_read(files, tensor, [&](const std::string& name) {
              return index.find(name) != nullptr;
            });
            if (pieces.size() == 1)
              return {{&index.at(pieces.front().name), std::nullopt, pieces.front().shape}};
            std::vector<FilePart> parts;
            parts.reserve(pieces.size());
            for (const models::FilePiece& piece : pieces)
              parts.push_back({&index.at(piece.name), piece.first, piece.shape});
            return parts;
          },
          .check = [&index, reason = std::move(reason)](
                       const TensorRead& tensor_read) { check_read(index, tensor_read, reason); },
          .read =
              [&index, &executor, program](std::span<const TensorRead> tensor_reads) {
                return read_tensors(index, tensor_reads, executor, program);
              },
          .index = model != nullptr ? &index : nullptr};
}

Performance::Performance(program::ProgramName program, const Sources& sources, Executor& executor)
    : name_(program),
      program_(*executor.job().find(program)),
      sources_(sources),
      executor_(executor),
      collectives_(&executor.mesh()) {
  if (sources.model != nullptr)
    for (models::Weight& weight : models::weights_of(*sources.model)) {
      std::string weight_name = weight.name;
      weights_.emplace(std::move(weight_name), std::move(weight));
    }
  performed_.traces.resize(program_.operations.size());
  executor.begin_stage_of(program);
  executor.backend().synchronise();
}

void Performance::operation(size_t index) {
  operation_ = &program_.operations[index];
  trace_ = &performed_.traces[index];
  ++trace_->runs;
  trace_->kind = operation_->kind();
  program::dispatch<void>(operation_->attributes,
                          [&](const auto& attributes) { perform(attributes); });
}

// All reads before a collective are finished when it begins.
template <typename Struct>
void Performance::perform(const Struct& attributes) {
  constexpr program::Traits kTraits = program::traits_of<Struct>();
  if constexpr (kTraits.performer == program::Performer::runtime) {
    (*this)(attributes);
  } else if constexpr (kTraits.category == program::Category::collective) {
    flush();
    collectives_.begin(attributes, between_ranks());
  } else if constexpr (kTraits.copying == program::Copying::ends) {
    collectives_.await(between_ranks());
  } else {
    SNUG_CHECK(false, "{} is run by backends", name_of(operation_->kind()));
  }
}

backends::Invocation Performance::between_ranks() {
  between_.clear();
  for (const auto* ids : {&operation_->reads, &operation_->writes, &operation_->updates})
    for (const program::TensorId id : *ids) between_.push_back(executor_.tensor(name_, id));
  view_.emplace(program::OperationView{program_, *operation_});
  const std::span<const Buffer> all(between_);
  const size_t reads = operation_->reads.size();
  const size_t writes = operation_->writes.size();
  backends::Invocation invocation;
  invocation.attributes = &operation_->attributes;
  invocation.reads = all.first(reads);
  invocation.writes = all.subspan(reads, writes);
  invocation.updates = all.subspan(reads + writes);
  invocation.view = &*view_;
  invocation.channel = operation_->channel;
  invocation.trace = trace_;
  return invocation;
}

void Performance::queue(TensorRead tensor_read) {
  sources_.check(tensor_read);
  tensor_read.trace = trace_;
  tensor_reads_.push_back(std::move(tensor_read));
}

void Performance::operator()(const program::Read& read) {
  trace_->channel = program::Channel::storage;
  SNUG_CHECK(sources_.find, "program {} reads files, and none are given", program_.name);
  const Tensor& values = tensor(program::Read::kTensor);
  if (values.is_view()) flush();  // queued reads may write into the same memory
  const Buffer held = held_part(values, buffer(program::Read::kTensor));
  const std::vector<FilePart> parts = sources_.find(values);
  for (const FilePart& part : parts) {
    SNUG_CHECK(sources_.index == nullptr ||
                   !formats::find_quant_state(*sources_.index, part.source->info->name),
               "{} is stored in 4 bits, which the plan does not know", part.source->info->name);
    queue_part(part, values, held);
  }
  refuse_other_width(parts, read.file_width);
  zero_padding();
}

// The plan was made for the element widths that the files had then.
void Performance::refuse_other_width(std::span<const FilePart> parts, int64_t planned) const {
  int64_t widest = 0;
  for (const FilePart& part : parts)
    if (const auto& dtype = part.source->info->dtype)
      widest = std::max(widest, base::size_of(*dtype));
  if (widest == planned || widest == 0) return;
  base::throw_user_error(
      "tensor '{}' has elements of {} bytes in its file, and the plan was made for {}: the file "
      "was changed meanwhile; run it again",
      parts.front().source->info->name, widest, planned);
}

// Queues a read of the part that this rank holds.
void Performance::queue_part(const FilePart& part, const Tensor& tensor, const Buffer& held) {
  TensorRead tensor_read{part.source, held};
  tensor_read.is_counted = counts(tensor.rank_step > 0);
  if (part.from) {
    tensor_read.whole = part.shape;
    tensor_read.first = *part.from;
    return queue(std::move(tensor_read));
  }
  const int64_t part_elements = part.source->info->elements();
  const program::Shape in_file =
      part.shape.value_or(part.first ? program::Shape{part_elements} : whole_shape(tensor));
  if (in_file != held.shape) tensor_read.whole = in_file;
  if (part.first || tensor.is_sharded()) {
    const int64_t part_first = part.first.value_or(0);
    tensor_read.whole = in_file;
    const int64_t begin = std::max(held.first, part_first);
    const int64_t end = std::min(held.first + held.elements(), part_first + part_elements);
    tensor_read.destination = slice(held, begin - held.first, std::max<int64_t>(0, end - begin));
    tensor_read.first = begin - part_first;
    if (end <= begin) tensor_read.first = 0;
  }
  queue(std::move(tensor_read));
}

// Sets the padding of the tensors that the operation writes to zero.
void Performance::zero_padding() {
  for (const program::TensorId id : operation_->writes)
    trace_->bytes +=
        set_zero(executor_.job(), program_.tensor(id),
                 padding(program_.tensor(id), executor_.tensor(name_, id)), executor_.backend());
}

// The operation's buffers as a stored weight.
template <typename Struct>
StoredWeight Performance::stored() const {
  const Tensor& codes = tensor(Struct::kCodes);
  StoredWeight stored = stored_weight(executor_, codes.name);
  stored.is_part = codes.is_sharded();
  if (tensor(Struct::kAbsmax).role != program::Role::staging) return stored;
  stored.gathered = buffer(Struct::kAbsmax).template as<float>();
  stored.absmax = stored.nested_absmax = stored.nested_map = stored.nested_offset = {};
  return stored;
}

// Sets codes and absmax values beyond the weight's last element to zero.
template <typename Struct>
void Performance::zero_codes(const StoredWeight& weight, int64_t elements) {
  const auto zero_tail = [&](const program::Operand<Struct>& operand, const Buffer& held) {
    trace_->bytes += set_zero(executor_.job(), tensor(operand), padding(tensor(operand), held),
                              executor_.backend());
  };
  zero_tail(Struct::kCodes, weight.codes);
  if (weight.gathered != nullptr) {
    const int64_t held = program::nf4_blocks(held_elements(weight, elements));
    const int64_t rest = buffer(Struct::kAbsmax).elements() - held;
    std::fill_n(weight.gathered + held, rest, 0.0F);
    trace_->bytes += rest * int64_t{sizeof(float)};
  } else if (!weight.nested()) {
    zero_tail(Struct::kAbsmax, weight.absmax);
  }
}

void Performance::operator()(const program::ReadNf4& read) {
  trace_->channel = program::Channel::storage;
  SNUG_CHECK(sources_.index, "program {} reads a model's files, and none are given", program_.name);
  const Tensor& codes = tensor(program::ReadNf4::kCodes);
  const models::Weight& given = weights_.at(codes.name);
  const auto in_file =
      formats::find_nf4(*sources_.index, codes.name, dims_of(given.shape_in_4_bits()));
  SNUG_CHECK_EQ(in_file.has_value(), read.stored);
  SNUG_CHECK_EQ(read.file_width == 0, read.stored);
  const StoredWeight weight = stored<program::ReadNf4>();
  if (in_file) {
    queue_parts(*in_file, weight);
    return zero_padding();
  }
  Tensor values = codes;
  values.shape = given.shape;
  values.whole = {};
  const std::vector<FilePart> parts = sources_.find(values);
  await_room(weight);
  queue_quantised(parts, given, weight);
  refuse_other_width(parts, read.file_width);
  zero_codes<program::ReadNf4>(weight, given.shape.elements());
}

// Queues reads of the tensors that make up a weight, as far as they lie in the part that this rank
// holds. One of each weight is queued in any case, so that it is checked.
void Performance::queue_quantised(std::span<const FilePart> parts, const models::Weight& given,
                                  const StoredWeight& stored) {
  const int64_t held_first = stored.codes.first * 2;
  const int64_t held_end = held_first + held_elements(stored, given.shape.elements());
  bool continues = false;
  for (const FilePart& part : parts) {
    const program::Shape shape = part.shape.value_or(given.shape);
    const int64_t part_first = part.first.value_or(0);
    const int64_t begin = std::max(held_first, part_first);
    const int64_t end = std::min(held_end, part_first + shape.elements());
    const int64_t elements = std::max<int64_t>(0, end - begin);
    if (elements == 0 && &part != &parts.front()) continue;
    TensorRead tensor_read{part.source, {}, stored};
    tensor_read.is_counted = counts(stored.is_part);
    tensor_read.whole = shape;
    tensor_read.transposed = given.transposed;
    tensor_read.first = elements > 0 ? begin - part_first : 0;
    tensor_read.stored_first = elements > 0 ? begin - held_first : 0;
    tensor_read.continues = std::exchange(continues, true);
    tensor_read.destination.shape = {elements};
    tensor_read.destination.strides = program::dense_strides(tensor_read.destination.shape);
    queue(std::move(tensor_read));
  }
}

// Whole weights share the absmax memory one after another; the absmax values of a part must stay
// there until they are gathered.
void Performance::await_room(const StoredWeight& stored) {
  const bool is_whole = stored.gathered == nullptr;
  if (has_whole_scales_ && !is_whole) flush();
  has_whole_scales_ = is_whole;
}

void Performance::queue_parts(const formats::Nf4Parts& in_file, const StoredWeight& stored) {
  SNUG_CHECK_EQ(in_file.state.nested(), stored.nested());
  // The file may declare any element type for the codes.
  queue_bytes(*in_file.codes, stored.codes, stored.is_part, false);
  queue_bytes(*in_file.absmax, stored.absmax, stored.is_part, true);
  if (!stored.nested()) return;
  check_map(in_file);
  queue_bytes(*in_file.nested_absmax, stored.nested_absmax, stored.is_part, true);
  const auto copy = [&](const Buffer& to, const float* from) {
    executor_.backend().copy(to.data, from, to.bytes());
    trace_->bytes += to.bytes();
  };
  copy(stored.nested_map, in_file.nested_map.data());
  copy(stored.nested_offset, &*in_file.state.nested_offset);
  executor_.backend().synchronise();
}

// Queues a byte-for-byte read of a stored weight or of a part of it, whatever element type the file
// declares.
void Performance::queue_bytes(const IndexedTensor& source, const Buffer& destination, bool is_part,
                              bool holds_values) {
  TensorRead tensor_read{&source, destination};
  tensor_read.holds_values = holds_values;
  tensor_read.keeps_bytes = true;
  tensor_read.is_counted = counts(is_part);
  tensor_read.destination.dtype = *source.info->dtype;
  tensor_read.whole.emplace();
  for (const int64_t dim : source.info->shape) tensor_read.whole->append(dim);
  const int64_t width = tensor_read.width();
  tensor_read.first = destination.first * base::size_of(destination.dtype) / width;
  const int64_t held = std::clamp<int64_t>(source.info->elements() - tensor_read.first, 0,
                                           destination.bytes() / width);
  if (held == 0) tensor_read.first = 0;
  tensor_read.destination.shape = {held};
  tensor_read.destination.strides = program::dense_strides(tensor_read.destination.shape);
  queue(std::move(tensor_read));
}

// The map and offset for decoding scales are not read through read_tensors, so they are checked
// here.
void Performance::check_map(const formats::Nf4Parts& in_file) {
  const formats::TensorInfo& absmax = *in_file.absmax->info;
  if (const auto found = base::first_not_finite(base::DType::f32, in_file.nested_map.data(),
                                                std::ssize(in_file.nested_map)))
    base::throw_user_error(
        "{}: the map that '{}' is read with holds an infinity or NaN at [{}]. Is the file whole? "
        "Download or copy it again",
        sources_.index->path_of(*in_file.absmax).string(), absmax.name, *found);
  if (!counts(false)) return;
  const float offset = *in_file.state.nested_offset;
  performed_.digest += digest_of(absmax.name, -1, base::checksum(&offset, sizeof offset));
  performed_.digest += digest_of(
      absmax.name, -2, base::checksum(in_file.nested_map.data(), sizeof in_file.nested_map));
}

void Performance::operator()(const program::Fill& fill) {
  flush();
  const Tensor& filled = tensor(program::Fill::kTensor);
  const std::string name = program::original_name(filled.name);
  const Buffer values = held_part(filled, buffer(program::Fill::kTensor));
  executor_.backend().fill(values, {fill.form, tensor_key(name, fill.seed), fill.scale},
                           values.first);
  trace_->bytes += values.bytes();
  zero_padding();
}

void Performance::operator()(const program::FillNf4& fill) {
  flush();
  const std::string& name = tensor(program::FillNf4::kCodes).name;
  const StoredWeight weight = stored<program::FillNf4>();
  const int64_t elements = weights_.at(name).shape.elements();
  trace_->bytes += fill_stored({program::FillForm::normal, tensor_key(name, fill.seed), fill.scale},
                               weight, elements, name_, executor_);
  zero_codes<program::FillNf4>(weight, elements);
}

void Performance::operator()(const program::EncodeScales& encode) {
  flush();
  SNUG_CHECK_EQ(encode.staged, !executor_.backend().host_reaches_device());
  const Buffer& gathered = buffer(program::EncodeScales::kGathered);
  const StoredWeight scales{.codes = {},
                            .absmax = buffer(program::EncodeScales::kAbsmax),
                            .nested_absmax = buffer(program::EncodeScales::kNestedAbsmax),
                            .nested_map = buffer(program::EncodeScales::kNestedMap),
                            .nested_offset = buffer(program::EncodeScales::kNestedOffset)};
  HostWindow window(executor_, encode.staged ? buffer(program::EncodeScales::kStage).data : nullptr,
                    0);
  const int64_t blocks = whole_shape(tensor(program::EncodeScales::kAbsmax)).elements();
  trace_->bytes += gathered.bytes() + store_scales(gathered.as<float>(), blocks, scales, window);
}

// Which of longrope's two sets of frequencies the job's programs use was decided when they were
// built.
void Performance::operator()(const program::Put& put) {
  flush();
  const auto tables = models::computed_tensors(*sources_.model);
  const models::ComputedTensor& given = tables.at(static_cast<size_t>(put.table));
  const Buffer& values = buffer(program::Put::kTensor);
  SNUG_CHECK_EQ(values.elements(), static_cast<int64_t>(given.values.size()));
  executor_.backend().copy(values.data, given.values.data(), values.bytes());
  executor_.backend().synchronise();
  trace_->bytes += values.bytes();
}

void Performance::operator()(const program::PutBounds& put) {
  flush();
  const std::array<int32_t, 2> bounds{0, static_cast<int32_t>(put.rows)};
  const Buffer& values = buffer(program::PutBounds::kTensor);
  SNUG_CHECK_EQ(values.bytes(), static_cast<int64_t>(sizeof bounds));
  executor_.backend().copy(values.data, bounds.data(), values.bytes());
  executor_.backend().synchronise();
  trace_->bytes += values.bytes();
}

void Performance::operator()(const program::Write&) {
  SNUG_CHECK(false, "program {} saves: save_tensors walks it", program_.name);
}

void Performance::flush() {
  if (!tensor_reads_.empty()) {
    const ReadReport report = sources_.read(tensor_reads_);
    performed_.bytes_read += report.bytes + report.bytes_around;
    performed_.bytes_around += report.bytes_around;
    performed_.digest += report.digest;
    tensor_reads_.clear();
  }
  has_whole_scales_ = false;
}

Performed Performance::finish() {
  flush();
  return std::move(performed_);
}

Performed perform(program::ProgramName program, const Sources& sources, Executor& executor) {
  Performance performance(program, sources, executor);
  const Program& operations = *executor.job().find(program);
  for (size_t i = 0; i < operations.operations.size(); ++i) performance.operation(i);
  Performed performed = performance.finish();
  check_performed(operations, performed.traces);
  return performed;
}

}  // namespace snug::runtime
