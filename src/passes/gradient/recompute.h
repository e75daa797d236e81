// recompute: drops saved activations and emits their producers again before the first backward
// operation that reads them. Elementwise outputs (norms, gated activation, dropout) are saved by
// layers of mode keep_all alone.
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

// The modes that a layer may have, falling by what it keeps.
inline constexpr std::array kRecomputeModes{
    RecomputeMode::keep_all,          RecomputeMode::none,
    RecomputeMode::gate_up,           RecomputeMode::attention,
    RecomputeMode::all_but_attention, RecomputeMode::layer};

// Whether layers of this mode keep checkpoints alone: their input, or that and what attention
// writes. These may wait on the host (activation_offloading).
constexpr bool keeps_checkpoints(RecomputeMode mode) {
  return mode == RecomputeMode::all_but_attention || mode == RecomputeMode::layer;
}

// What each layer computes again. The modes have no `automatic`: by now it is chosen.
class RecomputeModes {
 public:
  // One mode for all layers. NOLINTNEXTLINE: nearly every caller has one.
  RecomputeModes(RecomputeMode all) : all_(all) {}
  // One for each layer, from the first to the last; at least one.
  explicit RecomputeModes(std::vector<RecomputeMode> layers)
      : all_(layers.back()), layers_(std::move(layers)) {}

  // Operations outside all layers (-1) are treated as those of the last one.
  RecomputeMode of_layer(int32_t layer) const {
    return layer < 0 || layers_.empty() ? all_ : layers_[static_cast<size_t>(layer)];
  }
  // Empty: all layers have the same.
  const std::vector<RecomputeMode>& layers() const { return layers_; }

 private:
  RecomputeMode all_;
  std::vector<RecomputeMode> layers_;
};

program::Program recompute(const program::Program& program, const RecomputeModes& modes);

}  // namespace snug::passes
