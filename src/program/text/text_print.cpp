// Inputs are printed first: tensors that no operation writes before others touch them. Every other
// tensor is declared on the line of the operation that writes it, or whose workspace it is.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "program/text/text.h"
#include "program/text/text_attributes.h"
#include "program/text/text_cursor.h"
#include "program/text/text_fold.h"

namespace snug::program {
namespace {

std::string layer_text(int32_t layer) {
  return layer == -1 ? " layer none" : fmt::format(" layer {}", layer);
}

class Printer {
 public:
  Printer(const Program& program, bool ids) : program_(program), ids_(ids) {}

  std::vector<TextLine> lines() {
    find_results();
    std::vector<TextLine> lines;
    for (TensorId id = 0; id < static_cast<TensorId>(program_.tensors.size()); ++id) {
      if (is_result_[static_cast<size_t>(id)]) continue;
      // Where inputs do not have the first ids, the first input of each layer prints its id, so
      // that layers can be folded.
      const int32_t layer = program_.tensor(id).layer;
      if (!inputs_first_ && !lines.empty() && lines.back().layer != layer) next_id_ = kNone;
      lines.push_back({"tensor " + declaration(id, -1), layer});
    }
    declared_.assign(program_.tensors.size(), false);
    for (const Operation& operation : program_.operations)
      lines.push_back({line_of(operation), operation.layer});
    return lines;
  }

 private:
  // Finds the tensors that are declared as results: those first touched by the operation that
  // writes them, or used as its plain workspace.
  void find_results() {
    is_result_.assign(program_.tensors.size(), false);
    std::vector<bool> touched(program_.tensors.size(), false);
    const auto touch = [&](TensorId id) {
      SNUG_CHECK(id >= 0 && static_cast<size_t>(id) < touched.size(),
                 "tensor {} of {} in program {}", id, touched.size(), program_.name);
      const bool first = !touched[static_cast<size_t>(id)];
      touched[static_cast<size_t>(id)] = true;
      return first;
    };
    for (const Operation& operation : program_.operations) {
      for (const TensorId id : operation.reads) touch(id);
      for (const TensorId id : operation.updates) touch(id);
      if (operation.workspace != kNone && touch(operation.workspace))
        is_result_[static_cast<size_t>(operation.workspace)] = is_plain_workspace(operation);
      for (const TensorId id : operation.writes)
        if (touch(id)) is_result_[static_cast<size_t>(id)] = true;
    }
    inputs_first_ = std::is_partitioned(is_result_.begin(), is_result_.end(),
                                        [](bool is_result) { return !is_result; });
  }

  // Whether the workspace is fully described by its name, shape and element type.
  bool is_plain_workspace(const Operation& operation) const {
    const Tensor& tensor = program_.tensor(operation.workspace);
    return tensor.role == Role::workspace && tensor.space == Space::device &&
           tensor.lifetime == Lifetime::program && tensor.layer == operation.layer &&
           !tensor.is_view() && !tensor.whole && tensor.stream == Tensor().stream &&
           !tensor.constant;
  }

  std::string name(TensorId id) const { return quoted_if_needed(program_.tensor(id).name); }

  // "x=hidden, table=rotary.table"; without the kind's names where their number does not match.
  std::string operands(const Operation& operation, Access access) const {
    const std::vector<TensorId>& ids = list_of(operation, access);
    const std::vector<std::string_view> names = operand_names(operation, access);
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) text += ", ";
      if (names.size() == ids.size()) text += fmt::format("{}=", names[i]);
      text += name(ids[i]);
    }
    return text;
  }

  // A declaration without a role, such as "%17 name (2, 3) bf16".
  std::string short_declaration(TensorId id) {
    const Tensor& tensor = program_.tensor(id);
    std::string text;
    if (ids_ && id != next_id_) text = fmt::format("%{} ", id);
    next_id_ = id + 1;
    return text + fmt::format("{} {} {}", name(id), to_string(tensor.shape), name_of(tensor.dtype));
  }

  // The short declaration followed by role, lifetime and so on ("gradient step"); the layer only if
  // it is not the expected one.
  std::string declaration(TensorId id, int32_t expected_layer) {
    const Tensor& tensor = program_.tensor(id);
    std::string text = short_declaration(id);
    const Tensor defaults;
    if (tensor.role != defaults.role) text += fmt::format(" {}", name_of(tensor.role));
    if (tensor.space != defaults.space) text += fmt::format(" {}", name_of(tensor.space));
    if (tensor.lifetime != defaults.lifetime) text += fmt::format(" {}", name_of(tensor.lifetime));
    if (tensor.stream != defaults.stream) text += fmt::format(" {}", base::word_of(tensor.stream));
    if (tensor.constant) text += " constant";
    if (tensor.layer != expected_layer) text += layer_text(tensor.layer);
    if (tensor.whole)
      text += fmt::format(" part of {} by {}", to_string(*tensor.whole), tensor.rank_step);
    return text + view_text(tensor);
  }

  std::string view_text(const Tensor& tensor) const {
    if (!tensor.is_view()) return "";
    // Prints an offset of 0 too, so that the first of many layers has the same form as the others.
    std::string text = fmt::format(" view of {} at {}", name(tensor.view.base), tensor.view.offset);
    if (tensor.view.rank_step > 0) text += fmt::format(" by {}", tensor.view.rank_step);
    if (tensor.view.strides == dense_strides(tensor.shape)) return text;
    std::string strides;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis)
      strides += fmt::format("{}{}", axis == 0 ? "" : ", ",
                             tensor.view.strides[static_cast<size_t>(axis)]);
    return text + fmt::format(" strides ({})", strides);
  }

  // Whether the result is to be declared here; marks it as declared.
  bool declares(TensorId id) {
    const auto index = static_cast<size_t>(id);
    const bool here = is_result_[index] && !declared_[index];
    if (here) declared_[index] = true;
    return here;
  }

  std::string line_of(const Operation& operation) {
    SNUG_CHECK(operation.kind() != kNoKind, "an operation has no kind");
    std::string results;
    for (const TensorId id : operation.writes)
      results += fmt::format("{}{}", results.empty() ? "" : ", ",
                             declares(id) ? declaration(id, operation.layer) : name(id));
    std::string text = results.empty() ? "" : results + " = ";
    text += fmt::format("{}({})", name_of(operation.kind()), operands(operation, Access::read));
    if (!operation.updates.empty())
      text += fmt::format(" updates ({})", operands(operation, Access::update));
    const std::string attributes = attributes_text(operation.attributes);
    if (!attributes.empty()) text += fmt::format(" {{{}}}", attributes);
    if (const TensorId scratch = operation.workspace; scratch != kNone)
      text += " workspace " + (declares(scratch) ? short_declaration(scratch) : name(scratch));
    if (operation.phase != Phase::forward) text += fmt::format(" {}", name_of(operation.phase));
    if (operation.channel != Channel::compute)
      text += fmt::format(" channel {}", name_of(operation.channel));
    if (operation.joined) text += " joined";
    if (operation.launches != 0) text += fmt::format(" launches {}", operation.launches);
    if (operation.on_host) text += " on_host";
    if (operation.layer != -1) text += layer_text(operation.layer);
    return text;
  }

  const Program& program_;
  const bool ids_;
  TensorId next_id_ = 0;
  bool inputs_first_ = false;
  std::vector<bool> is_result_;
  std::vector<bool> declared_;
};

}  // namespace

std::string to_text(const Program& program, const TextOptions& options) {
  const std::vector<TextLine> lines = Printer(program, options.ids).lines();
  std::string text = fmt::format("program {}\n", quoted_if_needed(program.name));
  if (!options.fold) {
    for (const TextLine& line : lines) text += line.text + '\n';
    return text;
  }
  for (const std::string& line : fold_layers(lines)) text += line + '\n';
  return text;
}

}  // namespace snug::program
