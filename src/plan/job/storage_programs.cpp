#include "plan/job/storage_programs.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/adapter/peft_adapter.h"
#include "models/config/computed_tensors.h"
#include "models/weights.h"
#include "passes/lowering/quantize.h"
#include "plan/job/storage_program.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/storage.h"
#include "program/work/batch_bounds.h"

namespace snug::plan {
namespace {

using namespace program;  // NOLINT: plans of programs speak their words throughout

// Which of longrope's two sets of frequencies the programs read was decided when they were made.
void put_computed(const models::ModelConfig& model, const RunTensors& tensors,
                  StorageProgram& program) {
  bool found = false;
  const auto tables = models::computed_tensors(model);
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!tensors.has(tables[i].name)) continue;
    program.emit(Put{.table = static_cast<int64_t>(i)}, tensors.at(tables[i].name));
    found = true;
  }
  SNUG_CHECK(found || tables.empty(), "no program reads what is computed from config.json");
}

// Writes each bounds tensor that no batch changes, with the number of rows that its reader has.
void put_bounds(const Job& job, StorageProgram& storage) {
  std::map<std::string_view, int64_t> rows_by_name;
  for (const Program& program : job.programs)
    for (const Operation& operation : program.operations) {
      for (const auto& [name, rows_of] : traits_of(operation).extents) {
        if (rows_of.empty()) continue;
        const Tensor& bounds = program.tensor(find_operand(operation, name));
        if (!hold_all_rows(bounds)) continue;
        const Tensor& bounded = program.tensor(find_operand(operation, rows_of));
        const int64_t rows = bounded.shape[0];
        const auto [known, is_new] = rows_by_name.emplace(bounds.name, rows);
        SNUG_CHECK_EQ(known->second, rows);
        if (is_new) storage.emit(PutBounds{.rows = rows}, bounds);
      }
    }
}

class LoadPlanner {
 public:
  LoadPlanner(const Job& job, const Origin& origin, const RunTensors& tensors, const Target& target)
      : job_(job), origin_(origin), tensors_(tensors), load_(ProgramName::load, tensors, target) {}

  Program run() {
    const std::vector<models::Weight> weights = models::weights_of(origin_.model);
    find_largest(weights);
    for (const models::Weight& weight : weights) {
      if (is_of_adapter(weight)) continue;
      if (is_stored(weight))
        add_stored(weight);
      else if (origin_.init_seed)
        load_.emit(initial_values(weight), tensors_.original_of(weight.name));
      else
        load_.read(tensors_.original_of(weight.name), origin_.model.width_in_files(weight.name));
    }
    gather_scales();
    put_computed(origin_.model, tensors_, load_);
    put_bounds(job_, load_);
    if (origin_.loss_scale) put_loss_scale(*origin_.loss_scale);
    return load_.take();
  }

 private:
  void put_loss_scale(const methods::LossScaleOptions& options) {
    load_.emit(Fill{FillForm::constant, static_cast<float>(options.first)},
               tensors_.at(kLossScaleName));
    load_.emit(Fill{FillForm::constant}, tensors_.at(kLossScaleCountsName));
  }

  bool is_of_adapter(const models::Weight& weight) const {
    return std::ranges::count(origin_.model.from_adapter, weight.name) > 0;
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

  // The number of scales of a weight over all ranks, padding included.
  int64_t gathered_blocks(const models::Weight& weight) const {
    const Tensor& absmax = tensors_.at(passes::absmax_name(weight.name));
    return absmax.shape.elements() * (absmax.is_sharded() ? origin_.shards : 1);
  }

  Fill initial_values(const models::Weight& weight) const {
    if (weight.initial) return {FillForm::constant, *weight.initial};
    return {FillForm::normal, origin_.model.initializer_range, *origin_.init_seed};
  }

  void add_stored(const models::Weight& weight) {
    const bool nested = is_nested(weight);
    const bool in_file = !origin_.init_seed && origin_.model.stored.has_value();
    const Tensor& absmax = tensors_.at(passes::absmax_name(weight.name));
    if (nested && !in_file && absmax.is_sharded()) return add_part(weight, absmax);
    if (!in_file) gather_scales();
    load_.emit_stored(origin_of(weight, nested, in_file), weight.name,
                      load_.staging(staging_form(in_file)), channel());
  }

  Attributes origin_of(const models::Weight& weight, bool nested, bool in_file) const {
    if (origin_.init_seed)
      return FillNf4{nested, origin_.model.initializer_range, *origin_.init_seed};
    return ReadNf4{nested, in_file, in_file ? 0 : origin_.model.width_in_files(weight.name)};
  }
  Staging staging_form(bool in_file) const {
    if (origin_.init_seed) return Staging::made_quantised;
    return in_file ? Staging::all_slots : Staging::quantised;
  }
  Channel channel() const { return origin_.init_seed ? Channel::compute : Channel::storage; }

  // Gives this rank's absmax a slot; it is gathered together with those of the earlier slots.
  void add_part(const models::Weight& weight, const Tensor& absmax) {
    const auto slot = static_cast<int>(ungathered_.size());
    const int64_t blocks = absmax.shape.elements();
    load_.emit_codes(origin_of(weight, false, false), weight.name, load_.absmax_part(slot, blocks),
                     load_.staging_of_parts(staging_form(false)), channel());
    ungathered_.push_back({weight.name, load_.absmax_whole(slot, blocks, origin_.shards)});
    layer_ = absmax.layer;
    // Initialising values needs the memory of one slot only.
    const size_t most = origin_.init_seed ? 1 : kSlots;
    if (ungathered_.size() == most) gather_scales();
  }

  void gather_scales() {
    if (ungathered_.empty()) return;
    std::vector<TensorId> wholes;
    for (const Ungathered& each : ungathered_) wholes.push_back(each.absmax);
    load_.gather(
        {.group = RankGroup::shards, .ranks = origin_.shards, .nodes = origin_.shard_nodes}, wholes,
        layer_);
    for (const Ungathered& each : std::exchange(ungathered_, {}))
      load_.encode_scales(each.weight, each.absmax);
  }

  // A sharded weight, and the tensor that will hold the absmax of all ranks.
  struct Ungathered {
    std::string weight;
    TensorId absmax;
  };

  const Job& job_;
  const Origin& origin_;
  const RunTensors& tensors_;
  StorageProgram load_;
  std::vector<Ungathered> ungathered_;  // by slot
  int32_t layer_ = -1;                  // the layer of the last of them
};

bool is_adapted(const Job& job) { return !adapter_tensors(job).empty(); }

Program load_adapter(const Job& job, const Origin& origin, const RunTensors& tensors,
                     const Target& target) {
  StorageProgram load(ProgramName::load_adapter, tensors, target);
  const methods::Method& method = methods::method_of(job.method);
  for (const Tensor& tensor : adapter_tensors(job)) {
    const Tensor& original = tensors.original_of(tensor.name);
    if (origin.has_slots)
      load.emit(Fill{FillForm::constant}, original);
    else if (origin.adapter_in_files)
      load.read(original, origin.adapter_widths.of(tensor.name));
    else if (const auto values = method.initial_values(tensor, origin.adapter_start))
      load.emit(*values, original);
  }
  for (const auto& [table, tokens] : origin.adapter_rows) {
    const int64_t width = origin.adapter_widths.of_file(formats::token_rows_key(table));
    for (size_t first = 0, end = 0; first < tokens.size(); first = end) {
      for (end = first + 1; end < tokens.size() && tokens[end] == tokens[end - 1] + 1; ++end) {
      }
      load.read_rows(tensors.at(table), tokens[first], static_cast<int64_t>(end - first), width);
    }
  }
  return load.take();
}

// The optimizer's state tensors in the order of the update, masters first.
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
  put_computed(model, tensors, restore);
  put_bounds(job, restore);
  return restore.take();
}

}  // namespace

std::vector<Program> loading_programs(const Job& job, const Origin& origin, const Target& target) {
  const RunTensors tensors(job);
  std::vector<Program> programs{LoadPlanner(job, origin, tensors, target).run()};
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
