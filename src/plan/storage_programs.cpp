#include "plan/storage_programs.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "models/rope.h"
#include "models/weights.h"
#include "passes/quantize.h"
#include "program/tensor_names.h"

namespace snug::plan {
namespace {

using namespace program;  // NOLINT: plans of programs speak their words throughout

// What lasts through a run, by name, as the programs of a job have it.
class RunTensors {
 public:
  explicit RunTensors(const Job& job) {
    for (const Program& program : job.programs)
      for (const Tensor& tensor : program.tensors)
        if (tensor.lifetime == Lifetime::run && !tensor.is_view())
          tensors_.try_emplace(tensor.name, &tensor);
  }

  bool has(std::string_view name) const { return tensors_.contains(name); }
  const Tensor& at(std::string_view name) const {
    const auto found = tensors_.find(name);
    SNUG_CHECK(found != tensors_.end(), "no program has a tensor {} for the run", name);
    return *found->second;
  }
  // Where a tensor's values in files belong.
  const Tensor& original_of(const std::string& name) const {
    const auto master = tensors_.find(master_name(name));
    return master != tensors_.end() ? *master->second : at(name);
  }

 private:
  std::unordered_map<std::string_view, const Tensor*> tensors_;
};

// Which staging memory an operation passes values through.
enum class Staging : uint8_t { one_slot, all_slots, quantised, made_quantised };

class StorageProgram {
 public:
  StorageProgram(ProgramName name, const RunTensors& tensors, const Target& target)
      : tensors_(tensors), is_remote_(!target.host_reaches_device()) {
    program_.name = name_of(name);
  }

  // The blocks of the largest weight that is quantised by the program, and whether it is nested.
  void set_largest(int64_t blocks, bool nested) {
    largest_blocks_ = blocks;
    is_nested_ = nested;
  }

  // No two operations of such a program touch one tensor, staging memory apart.
  TensorId add(const Tensor& tensor) {
    program_.tensors.push_back(tensor);
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }

  std::vector<TensorId> staging(Staging form) {
    std::vector<TensorId>& ids = staging_[form];
    if (ids.empty()) ids = make_staging(form);
    return ids;
  }

  void emit(Attributes attributes, const Tensor& output, std::vector<TensorId> updates = {},
            Channel channel = Channel::compute) {
    Operation operation;
    operation.attributes = std::move(attributes);
    operation.writes = {add(output)};
    operation.updates = std::move(updates);
    operation.channel = channel;
    operation.layer = output.layer;
    program_.operations.push_back(std::move(operation));
  }

  void read(const Tensor& tensor, int64_t file_width) {
    const bool is_same = file_width == base::size_of(tensor.dtype);
    emit(Read{.file_width = is_same ? 0 : file_width}, tensor, staging(Staging::all_slots),
         Channel::storage);
  }

  // What writes a weight that is stored as NF4.
  void emit_stored(Attributes attributes, const std::string& weight, std::vector<TensorId> updates,
                   Channel channel) {
    emit(std::move(attributes), tensors_.at(weight), std::move(updates), channel);
    Operation& operation = program_.operations.back();
    operation.writes.push_back(add(tensors_.at(passes::absmax_name(weight))));
    if (!tensors_.has(passes::nested_map_name(weight))) return;
    for (const std::string& part :
         {passes::nested_absmax_name(weight), passes::nested_map_name(weight),
          passes::nested_offset_name(weight)})
      operation.writes.push_back(add(tensors_.at(part)));
  }

  void write(const Tensor& tensor, bool read_back) {
    Operation operation;
    operation.attributes = Write{read_back};
    operation.reads = {add(tensor)};
    operation.updates = staging(Staging::one_slot);
    operation.channel = Channel::storage;
    operation.layer = tensor.layer;
    program_.operations.push_back(std::move(operation));
  }

  // Jobs keep these programs as long as they last: nothing is held in reserve.
  Program take() {
    program_.tensors.shrink_to_fit();
    program_.operations.shrink_to_fit();
    return std::move(program_);
  }

 private:
  TensorId staging_tensor(std::string name, DType dtype, int64_t elements, Space space) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = {elements};
    tensor.dtype = dtype;
    tensor.role = Role::staging;
    tensor.space = space;
    // Forms of staging share what they have in common.
    for (size_t id = 0; id < program_.tensors.size(); ++id)
      if (program_.tensors[id].role == Role::staging && program_.tensors[id].name == tensor.name)
        return static_cast<TensorId>(id);
    return add(tensor);
  }

  std::vector<TensorId> make_staging(Staging form) {
    constexpr int64_t kSlotBlocks = nf4_blocks(kSlotBytes / 2);  // of 16-bit values
    const bool is_made = form == Staging::made_quantised;
    const bool quantises = form == Staging::quantised || is_made;
    const int slots = form == Staging::one_slot || is_made ? 1 : kSlots;
    std::vector<TensorId> ids;
    const auto add_memory = [&](std::string name, DType dtype, int64_t elements, Space space) {
      ids.push_back(staging_tensor(std::move(name), dtype, elements, space));
    };
    for (int slot = 0; slot < slots; ++slot) {
      // Values that are made lie where they are quantised.
      if (!is_made || !is_remote_)
        add_memory(staging_slot_name(slot), DType::u8, kSlotBytes, Space::pinned_host);
      if (is_remote_ && (!is_made || is_nested_))
        add_memory(staging_stage_name(slot), DType::u8, kStages * kStageBytes, Space::pinned_host);
      if (!quantises) continue;
      if (is_nested_ || (is_remote_ && !is_made))
        add_memory(staging_absmax_name(slot), DType::f32, largest_blocks_, Space::pinned_host);
      if (!is_remote_) continue;
      add_memory(staging_values_name(slot), DType::u8, kSlotBytes, Space::device);
      if (is_nested_) add_memory(staging_scales_name(slot), DType::f32, kSlotBlocks, Space::device);
    }
    return ids;
  }

  const RunTensors& tensors_;
  const bool is_remote_;
  int64_t largest_blocks_ = 0;
  bool is_nested_ = false;
  Program program_;
  std::unordered_map<Staging, std::vector<TensorId>> staging_;
};

// Which of longrope's two sets a job's programs read was settled when they were made.
void put_frequencies(const models::ModelConfig& model, const RunTensors& tensors,
                     StorageProgram& program) {
  bool found = false;
  const auto tables = models::frequency_tensors(model);
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!tensors.has(tables[i].name)) continue;
    program.emit(Put{.table = static_cast<int64_t>(i)}, tensors.at(tables[i].name));
    found = true;
  }
  SNUG_CHECK(found || tables.empty(), "no program reads rotary frequencies");
}

class LoadPlanner {
 public:
  LoadPlanner(const Origin& origin, const RunTensors& tensors, const Target& target)
      : origin_(origin), tensors_(tensors), load_(ProgramName::load, tensors, target) {}

  Program run() {
    const std::vector<models::Weight> weights = models::weights_of(origin_.model);
    find_largest(weights);
    for (const models::Weight& weight : weights) {
      if (is_stored(weight))
        add_stored(weight);
      else if (origin_.init_seed)
        load_.emit(initial_values(weight), tensors_.original_of(weight.name));
      else
        load_.read(tensors_.original_of(weight.name), origin_.model.file_width);
    }
    put_frequencies(origin_.model, tensors_, load_);
    if (origin_.loss_scale) put_loss_scale(*origin_.loss_scale);
    return load_.take();
  }

 private:
  void put_loss_scale(const methods::LossScaleOptions& options) {
    load_.emit(Fill{FillForm::constant, static_cast<float>(options.first)},
               tensors_.at(kLossScaleName));
    load_.emit(Fill{FillForm::constant}, tensors_.at(kLossScaleCountsName));
  }

  bool is_stored(const models::Weight& weight) const {
    return tensors_.has(passes::absmax_name(weight.name));
  }
  bool is_nested(const models::Weight& weight) const {
    return tensors_.has(passes::nested_map_name(weight.name));
  }

  void find_largest(const std::vector<models::Weight>& weights) {
    int64_t blocks = 0;
    bool nested = false;
    for (const models::Weight& weight : weights) {
      if (!is_stored(weight)) continue;
      blocks = std::max(blocks, gathered_blocks(weight));
      nested = is_nested(weight);
    }
    load_.set_largest(blocks, nested);
  }

  // Scales that one rank sees of a weight: all, with the padding of those that are sharded.
  int64_t gathered_blocks(const models::Weight& weight) const {
    const Tensor& absmax = tensors_.at(passes::absmax_name(weight.name));
    return absmax.shape.elements() * (absmax.is_sharded() ? origin_.shards : 1);
  }

  Fill initial_values(const models::Weight& weight) const {
    using models::Initializer;
    if (weight.initializer == Initializer::normal)
      return {FillForm::normal, origin_.model.initializer_range, *origin_.init_seed};
    return {FillForm::constant, weight.initializer == Initializer::ones ? 1.0F : 0.0F};
  }

  void add_stored(const models::Weight& weight) {
    const bool nested = is_nested(weight);
    if (origin_.init_seed)
      return load_.emit_stored(FillNf4{nested, origin_.model.initializer_range, *origin_.init_seed},
                               weight.name, load_.staging(Staging::made_quantised),
                               Channel::compute);
    const bool in_file = origin_.model.stored.has_value();
    load_.emit_stored(ReadNf4{nested, in_file, origin_.model.file_width}, weight.name,
                      load_.staging(in_file ? Staging::all_slots : Staging::quantised),
                      Channel::storage);
  }

  const Origin& origin_;
  const RunTensors& tensors_;
  StorageProgram load_;
};

bool is_adapted(const Job& job) { return !adapter_tensors(job).empty(); }

Program load_adapter(const Job& job, const Origin& origin, const RunTensors& tensors,
                     const Target& target) {
  // PEFT writes 32 bits.
  constexpr int64_t kAdapterWidth = 4;
  StorageProgram load(ProgramName::load_adapter, tensors, target);
  const methods::Method& method = methods::method_of(job.method);
  for (const Tensor& tensor : adapter_tensors(job)) {
    const Tensor& original = tensors.original_of(tensor.name);
    if (origin.adapter_in_files)
      load.read(original, kAdapterWidth);
    else if (const auto values = method.initial_values(tensor, origin.adapter_seed))
      load.emit(*values, original);
  }
  return load.take();
}

// What the optimizer keeps next to its tensors, in the order of the update, masters first.
std::vector<const Tensor*> optimizer_tensors(const Job& job, const RunTensors& tensors) {
  std::vector<const Tensor*> kept;
  for (const std::vector<OptimizerState>& states : job.states)
    for (const bool masters : {true, false})
      for (const OptimizerState& state : states)
        if ((state.tensor.role == Role::master) == masters)
          kept.push_back(&tensors.at(state.tensor.name));
  if (tensors.has(kLossScaleName))
    for (const std::string_view name : {kLossScaleName, kLossScaleCountsName})
      kept.push_back(&tensors.at(name));
  return kept;
}

Program save(const Job& job, const models::ModelConfig& model, const RunTensors& tensors,
             const Target& target) {
  StorageProgram save(ProgramName::save, tensors, target);
  if (is_adapted(job))
    for (const Tensor& tensor : adapter_tensors(job))
      save.write(tensors.original_of(tensor.name), true);
  else
    for (const models::Weight& weight : models::weights_of(model))
      save.write(tensors.at(weight.name), true);
  return save.take();
}

Program save_state(const Job& job, const RunTensors& tensors, const Target& target) {
  StorageProgram save(ProgramName::save_state, tensors, target);
  for (const Tensor* tensor : optimizer_tensors(job, tensors)) save.write(*tensor, false);
  return save.take();
}

Program restore(const Job& job, const models::ModelConfig& model, const RunTensors& tensors,
                const Target& target) {
  StorageProgram restore(ProgramName::restore, tensors, target);
  for (const Tensor* tensor : optimizer_tensors(job, tensors))
    restore.read(*tensor, base::size_of(tensor->dtype));
  const auto put_back = [&](const std::string& name) {
    if (tensors.has(master_name(name))) return;
    restore.read(tensors.at(name), base::size_of(tensors.at(name).dtype));
  };
  if (is_adapted(job))
    for (const Tensor& trainable : job.trainables) put_back(trainable.name);
  else
    for (const models::Weight& weight : models::weights_of(model)) put_back(weight.name);
  put_frequencies(model, tensors, restore);
  return restore.take();
}

}  // namespace

std::vector<Program> loading_programs(const Job& job, const Origin& origin, const Target& target) {
  const RunTensors tensors(job);
  std::vector<Program> programs{LoadPlanner(origin, tensors, target).run()};
  if (is_adapted(job)) programs.push_back(load_adapter(job, origin, tensors, target));
  return programs;
}

std::vector<Program> saving_programs(const Job& job, const models::ModelConfig& model,
                                     const Target& target) {
  const RunTensors tensors(job);
  return {save(job, model, tensors, target), save_state(job, tensors, target),
          restore(job, model, tensors, target)};
}

}  // namespace snug::plan
