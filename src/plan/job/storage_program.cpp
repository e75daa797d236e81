#include "plan/job/storage_program.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "passes/lowering/quantize.h"
#include "plan/job/storage_programs.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/product/nf4.h"
#include "program/kinds/transfer/collective.h"
#include "program/kinds/transfer/storage.h"
#include "program/kinds/transfer/transfer.h"
#include "program/work/target.h"

namespace snug::plan {

using namespace program;  // NOLINT: plans of programs speak their words throughout

RunTensors::RunTensors(const Job& job) {
  for (const Program& program : job.programs)
    for (const Tensor& tensor : program.tensors)
      if (tensor.lifetime == Lifetime::run && !tensor.is_view())
        tensors_.try_emplace(tensor.name, &tensor);
}

const Tensor& RunTensors::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  SNUG_CHECK(found != tensors_.end(), "no program has a tensor {} for the run", name);
  return *found->second;
}

const Tensor& RunTensors::original_of(const std::string& name) const {
  const auto master = tensors_.find(master_name(name));
  return master != tensors_.end() ? *master->second : at(name);
}

StorageProgram::StorageProgram(ProgramName name, const RunTensors& tensors, const Target& target)
    : tensors_(tensors), is_remote_(!target.host_reaches_device()) {
  program_.name = name_of(name);
}

void StorageProgram::set_largest(int64_t blocks, bool nested) {
  largest_blocks_ = blocks;
  is_nested_ = nested;
}

// In a storage program, no two operations touch the same tensor, except for staging memory.
TensorId StorageProgram::add(const Tensor& tensor) {
  program_.tensors.push_back(tensor);
  program_.tensors.back().constant = false;  // holds only in the original program
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

std::vector<TensorId> StorageProgram::staging(Staging form) {
  std::vector<TensorId>& ids = staging_[form];
  if (ids.empty()) ids = make_staging(form);
  return ids;
}

std::vector<TensorId> StorageProgram::staging_of_parts(Staging form) {
  std::vector<TensorId> ids = staging(form);
  std::erase_if(ids, [&](TensorId id) {
    for (int slot = 0; slot < kSlots; ++slot)
      if (program_.tensor(id).name == staging_absmax_name(slot)) return true;
    return false;
  });
  return ids;
}

TensorId StorageProgram::absmax_part(int slot, int64_t blocks) {
  return absmax_view(slot, "part", blocks, blocks);
}

TensorId StorageProgram::absmax_whole(int slot, int64_t blocks, int32_t ranks) {
  return absmax_view(slot, "whole", blocks * ranks, 0);
}

TensorId StorageProgram::absmax_view(int slot, std::string_view what, int64_t elements,
                                     int64_t rank_step) {
  Tensor view;
  view.view.base =
      staging_tensor(staging_absmax_name(slot), DType::f32, largest_blocks_, Space::pinned_host);
  view.name = fmt::format("{}.{}.{}", staging_absmax_name(slot), what, elements);
  if (const TensorId known = program_.find(view.name); known != kNone) return known;
  view.shape = {elements};
  view.role = Role::staging;
  view.space = Space::pinned_host;
  view.view.strides = dense_strides(view.shape);
  view.view.rank_step = rank_step;
  return add(view);
}

void StorageProgram::emit(Attributes attributes, const Tensor& output,
                          std::vector<TensorId> updates, Channel channel) {
  Operation operation;
  operation.attributes = attributes;
  operation.writes = {add(output)};
  operation.updates = std::move(updates);
  operation.channel = channel;
  operation.layer = output.layer;
  program_.operations.push_back(std::move(operation));
}

void StorageProgram::read(const Tensor& tensor, int64_t file_width) {
  emit(Read{.file_width = file_width}, tensor, staging(Staging::all_slots), Channel::storage);
}

void StorageProgram::read_rows(const Tensor& matrix, int64_t first, int64_t count,
                               int64_t file_width) {
  const TensorId known = program_.find(matrix.name);
  Tensor rows = matrix;
  rows.name = fmt::format("{}.rows.{}.{}", matrix.name, first, count);
  rows.shape = {count, matrix.shape.columns()};
  rows.view.base = known == kNone ? add(matrix) : known;
  rows.view.offset = first * matrix.shape.columns();
  rows.view.strides = dense_strides(rows.shape);
  read(rows, file_width);
}

void StorageProgram::emit_stored(Attributes attributes, const std::string& weight,
                                 std::vector<TensorId> updates, Channel channel) {
  emit(attributes, tensors_.at(weight), std::move(updates), channel);
  Operation& operation = program_.operations.back();
  operation.writes.push_back(add(tensors_.at(passes::absmax_name(weight))));
  if (!tensors_.has(passes::nested_map_name(weight))) return;
  for (const std::string& part :
       {passes::nested_absmax_name(weight), passes::nested_map_name(weight),
        passes::nested_offset_name(weight)})
    operation.writes.push_back(add(tensors_.at(part)));
}

void StorageProgram::emit_codes(Attributes attributes, const std::string& weight, TensorId absmax,
                                std::vector<TensorId> updates, Channel channel) {
  emit(attributes, tensors_.at(weight), std::move(updates), channel);
  program_.operations.back().writes.push_back(absmax);
}

void StorageProgram::encode_scales(const std::string& weight, TensorId gathered) {
  std::vector<TensorId> updates;
  if (is_remote_) updates = {stage(0)};
  emit(EncodeScales{.staged = is_remote_}, tensors_.at(passes::absmax_name(weight)),
       std::move(updates));
  Operation& operation = program_.operations.back();
  operation.reads = {gathered};
  for (const std::string& part :
       {passes::nested_absmax_name(weight), passes::nested_map_name(weight),
        passes::nested_offset_name(weight)})
    operation.writes.push_back(add(tensors_.at(part)));
}

void StorageProgram::write(const Tensor& tensor, bool read_back) {
  Operation operation;
  operation.attributes = Write{read_back};
  operation.reads = {add(tensor)};
  operation.updates = staging(Staging::one_slot);
  operation.channel = Channel::storage;
  operation.layer = tensor.layer;
  program_.operations.push_back(std::move(operation));
}

void StorageProgram::gather(AllGather gather, const std::vector<TensorId>& wholes, int32_t layer) {
  gather.in_place = true;
  Operation begin;
  begin.attributes = gather;
  begin.updates = wholes;
  begin.channel = Channel::interconnect;
  begin.layer = layer;
  Operation await;
  await.attributes = Await{.in_place = true};
  await.updates = wholes;
  await.layer = layer;
  program_.operations.push_back(std::move(begin));
  program_.operations.push_back(std::move(await));
}

// Jobs keep these programs for their whole life, so spare capacity is released.
Program StorageProgram::take() {
  program_.tensors.shrink_to_fit();
  program_.operations.shrink_to_fit();
  return std::move(program_);
}

TensorId StorageProgram::staging_tensor(std::string name, DType dtype, int64_t elements,
                                        Space space) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = {elements};
  tensor.dtype = dtype;
  tensor.role = Role::staging;
  tensor.space = space;
  // Forms of staging memory share the tensors that they have in common.
  for (size_t id = 0; id < program_.tensors.size(); ++id)
    if (program_.tensors[id].role == Role::staging && program_.tensors[id].name == tensor.name)
      return static_cast<TensorId>(id);
  return add(tensor);
}

TensorId StorageProgram::stage(int slot) {
  return staging_tensor(staging_stage_name(slot), DType::u8, kStages * kStageBytes,
                        Space::pinned_host);
}

std::vector<TensorId> StorageProgram::make_staging(Staging form) {
  constexpr int64_t kSlotBlocks = nf4_blocks(kSlotBytes / 2);  // of 16-bit values
  const bool is_made = form == Staging::made_quantised;
  const bool quantises = form == Staging::quantised || is_made;
  const int slots = form == Staging::one_slot || is_made ? 1 : kSlots;
  std::vector<TensorId> ids;
  const auto add_memory = [&](std::string name, DType dtype, int64_t elements, Space space) {
    ids.push_back(staging_tensor(std::move(name), dtype, elements, space));
  };
  for (int slot = 0; slot < slots; ++slot) {
    // Values that are initialised on the device are quantised there, without a slot in host memory.
    if (!is_made || !is_remote_)
      add_memory(staging_slot_name(slot), DType::u8, kSlotBytes, Space::pinned_host);
    if (is_remote_ && (!is_made || is_nested_)) ids.push_back(stage(slot));
    if (!quantises) continue;
    if (is_nested_ || (is_remote_ && !is_made))
      add_memory(staging_absmax_name(slot), DType::f32, largest_blocks_, Space::pinned_host);
    if (!is_remote_) continue;
    add_memory(staging_values_name(slot), DType::u8, kSlotBytes, Space::device);
    if (is_nested_) add_memory(staging_scales_name(slot), DType::f32, kSlotBlocks, Space::device);
  }
  return ids;
}

}  // namespace snug::plan
