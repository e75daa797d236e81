#include "runtime/perform.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/quant_state.h"
#include "models/rope.h"
#include "models/weights.h"
#include "program/dispatch.h"
#include "program/tensor_names.h"
#include "runtime/file_shape.h"
#include "runtime/random_weights.h"
#include "runtime/stored_weight.h"
#include "runtime/trace_check.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using formats::IndexedTensor;
using program::Program;
using program::Tensor;

backends::RandomForm form_of(program::FillForm form) {
  switch (form) {
    case program::FillForm::constant:
      return backends::RandomForm::constant;
    case program::FillForm::normal:
      return backends::RandomForm::normal;
    case program::FillForm::uniform:
      return backends::RandomForm::uniform;
  }
  SNUG_CHECK(false, "no form of values");
  return {};
}

// A part of a stored weight, byte for byte: whatever type the file views it as.
Transfer part(const IndexedTensor* source, Buffer destination) {
  destination.dtype = *source->info->dtype;
  destination.shape = {};
  for (const int64_t dim : source->info->shape) destination.shape.append(dim);
  destination.strides = program::dense_strides(destination.shape);
  return {source, destination};
}

}  // namespace

Sources sources_of(const formats::TensorIndex& index, FileSet files, std::string reason,
                   const models::ModelConfig* model, program::ProgramName program,
                   Executor& executor) {
  return {.model = model,
          .find = [&index, files](const Tensor& tensor) -> const IndexedTensor& {
            return index.at(name_in(files, tensor.name));
          },
          .check = [&index, reason = std::move(reason)](
                       const Transfer& transfer) { check_transfer(index, transfer, reason); },
          .read =
              [&index, &executor, program](std::span<const Transfer> transfers) {
                return read_tensors(index, transfers, executor, program);
              },
          .index = model != nullptr ? &index : nullptr};
}

Performance::Performance(program::ProgramName program, const Sources& sources, Executor& executor)
    : name_(program),
      program_(*executor.job().find(program)),
      sources_(sources),
      executor_(executor) {
  if (sources.model != nullptr)
    for (const models::Weight& weight : models::weights_of(*sources.model))
      shapes_.emplace(weight.name, weight.shape);
  performed_.traces.resize(program_.operations.size());
  executor.backend().synchronise();
}

void Performance::operation(size_t index) {
  operation_ = &program_.operations[index];
  trace_ = &performed_.traces[index];
  ++trace_->runs;
  trace_->kind = operation_->kind();
  program::dispatch<void>(operation_->attributes, [&]<typename Struct>(const Struct& attributes) {
    if constexpr (program::traits_of<Struct>().by_runtime)
      (*this)(attributes);
    else
      SNUG_CHECK(false, "{} is run by backends", name_of(operation_->kind()));
  });
}

void Performance::queue(Transfer transfer) {
  sources_.check(transfer);
  transfer.trace = trace_;
  transfers_.push_back(std::move(transfer));
}

void Performance::operator()(const program::Read&) {
  trace_->channel = program::Channel::storage;
  SNUG_CHECK(sources_.find, "program {} reads files, and none are given", program_.name);
  const IndexedTensor& source = sources_.find(tensor(program::Read::kTensor));
  SNUG_CHECK(
      sources_.index == nullptr || !formats::find_quant_state(*sources_.index, source.info->name),
      "{} is stored in 4 bits, which the plan does not know", source.info->name);
  queue({&source, buffer(program::Read::kTensor)});
}

void Performance::operator()(const program::ReadNf4& read) {
  trace_->channel = program::Channel::storage;
  SNUG_CHECK(sources_.index, "program {} reads a model's files, and none are given", program_.name);
  const Tensor& codes = tensor(program::ReadNf4::kCodes);
  const std::string& name = codes.name;
  const program::Shape& shape = shapes_.at(name);
  const auto in_file = formats::find_nf4(*sources_.index, name, dims_of(shape));
  SNUG_CHECK_EQ(in_file.has_value(), read.stored);
  const StoredWeight stored = stored_weight(executor_, name);
  if (in_file) return queue_parts(*in_file, stored);
  Buffer values;
  values.shape = shape;
  values.strides = program::dense_strides(shape);
  queue({&sources_.find(codes), values, stored});
}

void Performance::queue_parts(const formats::StoredNf4& in_file, const StoredWeight& stored) {
  SNUG_CHECK_EQ(in_file.state.nested(), stored.nested());
  // The file may view the codes as any type.
  Transfer codes = part(in_file.codes, stored.codes);
  codes.holds_values = false;
  queue(std::move(codes));
  queue(part(in_file.absmax, stored.absmax));
  if (!stored.nested()) return;
  check_map(in_file);
  queue(part(in_file.nested_absmax, stored.nested_absmax));
  const auto copy = [&](const Buffer& to, const float* from) {
    executor_.backend().copy(to.data, from, to.bytes());
    trace_->bytes += to.bytes();
  };
  copy(stored.nested_map, in_file.nested_map.data());
  copy(stored.nested_offset, &*in_file.state.nested_offset);
  executor_.backend().synchronise();
}

// What scales are read with is in no transfer.
void Performance::check_map(const formats::StoredNf4& in_file) {
  const formats::TensorInfo& absmax = *in_file.absmax->info;
  if (const auto found = base::first_not_finite(base::DType::f32, in_file.nested_map.data(),
                                                std::ssize(in_file.nested_map)))
    base::throw_user_error(
        "{}: the map that '{}' is read with holds an infinity or NaN at [{}]. Is the file whole? "
        "Download or copy it again",
        sources_.index->path_of(*in_file.absmax).string(), absmax.name, *found);
  const float offset = *in_file.state.nested_offset;
  performed_.digest += digest_of(absmax.name, -1, base::checksum(&offset, sizeof offset));
  performed_.digest += digest_of(
      absmax.name, -2, base::checksum(in_file.nested_map.data(), sizeof in_file.nested_map));
}

void Performance::operator()(const program::Fill& fill) {
  flush();
  const std::string name = program::original_name(tensor(program::Fill::kTensor).name);
  const Buffer& values = buffer(program::Fill::kTensor);
  executor_.backend().fill(values, {form_of(fill.form), tensor_key(name, fill.seed), fill.scale},
                           0);
  trace_->bytes += values.bytes();
}

void Performance::operator()(const program::FillNf4& fill) {
  flush();
  const std::string& name = tensor(program::FillNf4::kCodes).name;
  trace_->bytes +=
      fill_stored({backends::RandomForm::normal, tensor_key(name, fill.seed), fill.scale},
                  stored_weight(executor_, name), shapes_.at(name).elements(), name_, executor_);
}

// Which of longrope's two sets a job's programs read was settled when they were made.
void Performance::operator()(const program::Put&) {
  flush();
  const models::ModelConfig& model = *sources_.model;
  const int64_t longest = model.max_position;
  const bool is_long =
      tensor(program::Put::kTensor).name == models::frequencies_name(model, longest);
  const std::vector<float> frequencies = models::inverse_frequencies(model, is_long ? longest : 0);
  const Buffer& values = buffer(program::Put::kTensor);
  SNUG_CHECK_EQ(values.elements(), static_cast<int64_t>(frequencies.size()));
  executor_.backend().copy(values.data, frequencies.data(), values.bytes());
  executor_.backend().synchronise();
  trace_->bytes += values.bytes();
}

void Performance::operator()(const program::Write&) {
  SNUG_CHECK(false, "program {} saves: save_tensors walks it", program_.name);
}

void Performance::flush() {
  if (transfers_.empty()) return;
  const ReadReport report = sources_.read(transfers_);
  performed_.bytes_read += report.bytes;
  performed_.digest += report.digest;
  transfers_.clear();
}

Performed Performance::finish() {
  flush();
  executor_.note_performed(name_);
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
