// recompute: drops saved activations and emits their producers again before the first backward
// operation that reads them. Elementwise outputs (norms, gated activation, dropout) are saved only
// by layers with mode keep_all.
//
//   before   %n = rms_norm(%x, %w)   %y = matmul(%n, %v)                    forward
//            %gradient.v = matmul(%d.y, %n) {transpose_a}                   backward
//   after    %n = rms_norm(%x, %w)   %y = matmul(%n, %v)                    forward
//            %n.again = rms_norm(%x, %w)                                    recompute
//            %gradient.v = matmul(%d.y, %n.again) {transpose_a}             backward
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "formats/recipe/choices.h"
#include "program/ir/program.h"

namespace snug::passes {

using RecomputeMode = formats::Recompute;

// The modes that a layer may have, in descending order of what the layer keeps.
inline constexpr std::array kRecomputeModes{
    RecomputeMode::keep_all,          RecomputeMode::none,
    RecomputeMode::gate_up,           RecomputeMode::attention,
    RecomputeMode::all_but_attention, RecomputeMode::layer};

// Whether layers of this mode keep only checkpoints: their input, or their input and the output of
// attention. Checkpoints may be moved to the host (activation_offloading).
constexpr bool keeps_checkpoints(RecomputeMode mode) {
  return mode == RecomputeMode::all_but_attention || mode == RecomputeMode::layer;
}

// The mode of every layer: what it computes again. No mode is `automatic` here, since that has been
// resolved.
class RecomputeModes {
 public:
  // One mode for all layers. NOLINTNEXTLINE: nearly every caller has one.
  RecomputeModes(RecomputeMode all) : all_(all) {}
  // One mode for each layer, from the first to the last; at least one.
  explicit RecomputeModes(std::vector<RecomputeMode> layers)
      : all_(layers.back()), layers_(std::move(layers)) {}

  // Operations outside all layers (-1) have the mode of the last layer.
  RecomputeMode of_layer(int32_t layer) const {
    return layer < 0 || layers_.empty() ? all_ : layers_[static_cast<size_t>(layer)];
  }
  // Empty: all layers have the same mode.
  const std::vector<RecomputeMode>& layers() const { return layers_; }

 private:
  RecomputeMode all_;
  std::vector<RecomputeMode> layers_;
};

program::Program recompute(const program::Program& program, const RecomputeModes& modes);

}  // namespace snug::passes
