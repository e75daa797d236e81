// Decoupled weight decay.
#pragma once

namespace snug::backends {

// The factor for a weight before its step: 1 - learning_rate * weight_decay.
constexpr float decayed_share(float learning_rate, float weight_decay) {
  return static_cast<float>(1.0 -
                            static_cast<double>(learning_rate) * static_cast<double>(weight_decay));
}

}  // namespace snug::backends
