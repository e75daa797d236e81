// The update of scaled_clip_factor's numbers (program/kinds/loss/loss_scale.h), shared by every
// backend that computes it on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/kinds/loss/loss_scale.h"

namespace snug::backends {

// T is float, or double in f64 programs.
template <typename T>
struct LossScaleState {
  T scale = 1;
  T finite_steps = 0;
  T skipped_steps = 0;
  T tolerated_steps = 0;
};

template <typename T>
LossScaleState<T> after_step(const program::ScaledClipFactor& clip, LossScaleState<T> state,
                             bool is_finite) {
  if (!is_finite) {
    state.finite_steps = 0;
    state.skipped_steps += 1;
    if (clip.window == 0) return state;
    if (state.tolerated_steps + 1 < static_cast<T>(clip.hysteresis)) {
      state.tolerated_steps += 1;
      return state;
    }
    const T lower = state.scale / 2;
    const T least = static_cast<T>(clip.least);
    state.scale = lower < least ? std::min(state.scale, least) : lower;
    return state;
  }
  state.skipped_steps = 0;
  if (clip.window == 0) return state;
  state.finite_steps += 1;
  if (state.finite_steps < static_cast<T>(clip.window)) return state;
  state.finite_steps = 0;
  state.tolerated_steps = 0;
  // The scale must fit in an f32, whatever type it is computed in.
  if (state.scale * 2 <= static_cast<T>(std::numeric_limits<float>::max())) state.scale *= 2;
  return state;
}

// The clip factor for gradients that were computed with this scale; `norm` is their norm without
// the scale.
template <typename T>
T scaled_clip_factor(const program::ScaledClipFactor& clip, T norm, T scale) {
  if (!std::isfinite(norm)) return std::numeric_limits<T>::quiet_NaN();
  const T max_norm = static_cast<T>(clip.max_norm);
  const T factor = max_norm == 0 ? T{1} : std::min(T{1}, max_norm / (norm + static_cast<T>(1e-6)));
  return factor / scale;
}

}  // namespace snug::backends
