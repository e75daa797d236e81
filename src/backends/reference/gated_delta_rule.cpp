// The gated delta rule as program/kinds/recurrence/gated_delta_rule.h defines it, token by token.
// The gradient keeps the states of all tokens of a segment.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::backends::reference {
namespace {

using program::DeltaShape;
using program::GatedDeltaRule;
using program::GatedDeltaRuleGrad;

// A state (dk, dv) in scratch memory.
template <typename T>
struct DeltaState {
  std::span<T> at;
  int64_t dv;

  T& operator()(int64_t i, int64_t j) const { return at[static_cast<size_t>(i * dv + j)]; }
};

// The operands of both kinds that the forward pass reads, for one value head.
template <typename T>
class DeltaHead {
 public:
  template <typename Struct>
  DeltaHead(const Struct& rule, const Invocation& invocation, int64_t value_head)
      : shape_(program::delta_shape(rule, invocation)),
        head_(value_head),
        q_(invocation[Struct::kQ]),
        k_(invocation[Struct::kK]),
        v_(invocation[Struct::kV]),
        g_(invocation[Struct::kG]),
        beta_(invocation[Struct::kBeta]) {}

  int64_t key_column(int64_t i) const { return head_ / shape_.heads_per_key() * shape_.dk + i; }
  int64_t value_column(int64_t j) const { return head_ * shape_.dv + j; }
  T q(int64_t t, int64_t i) const { return q_.at(t, key_column(i)); }
  T k(int64_t t, int64_t i) const { return k_.at(t, key_column(i)); }
  T v(int64_t t, int64_t j) const { return v_.at(t, value_column(j)); }
  T decay(int64_t t) const { return std::exp(g_.at(t, head_)); }
  T beta(int64_t t) const { return beta_.at(t, head_); }

  // What q and k are multiplied by.
  T q_factor(int64_t t) const { return root(q_, t) / std::sqrt(static_cast<T>(shape_.dk)); }
  T k_factor(int64_t t) const { return root(k_, t); }

  // What the decayed state holds of the key, in column j.
  T read(const DeltaState<T>& decayed, int64_t t, int64_t j) const {
    T sum = 0;
    for (int64_t i = 0; i < shape_.dk; ++i) sum += decayed(i, j) * k(t, i);
    return sum * k_factor(t);
  }

  // The state after token t, from the one before it; they may be the same memory.
  void step(int64_t t, const DeltaState<T>& before, const DeltaState<T>& after) const {
    for (size_t i = 0; i < before.at.size(); ++i) after.at[i] = before.at[i] * decay(t);
    for (int64_t j = 0; j < shape_.dv; ++j) {
      const T written = beta(t) * (v(t, j) - read(after, t, j)) * k_factor(t);
      for (int64_t i = 0; i < shape_.dk; ++i) after(i, j) += k(t, i) * written;
    }
  }

 private:
  T root(const Floats<T>& x, int64_t t) const {
    T squares = 0;
    for (int64_t i = 0; i < shape_.dk; ++i) {
      const T value = x.at(t, key_column(i));
      squares += value * value;
    }
    return T{1} / std::sqrt(squares + static_cast<T>(program::kDeltaNormEpsilon));
  }

  DeltaShape shape_;
  int64_t head_;
  Floats<T> q_, k_, v_, g_, beta_;
};

// Where a segment's state is kept for later: its place's part of a value head.
template <typename T>
class KeptState {
 public:
  KeptState(const Invocation& invocation, int64_t segment, int64_t begin)
      : kept_(invocation[GatedDeltaRule::kState]), begin_(begin) {
    const Integers slots(invocation[GatedDeltaRule::kSlots]);
    place_ = slots[segment];
    is_known_ = slots[segment + 1] > 0;
  }
  void load(const DeltaState<T>& state) const {
    for (size_t i = 0; i < state.at.size() && is_known_; ++i)
      state.at[i] = kept_.at(place_, begin_ + static_cast<int64_t>(i));
  }
  void store(const DeltaState<T>& state) const {
    for (size_t i = 0; i < state.at.size(); ++i)
      kept_.set(place_, begin_ + static_cast<int64_t>(i), state.at[i]);
  }

 private:
  Floats<T> kept_;
  int64_t begin_;
  int64_t place_ = 0;
  bool is_known_ = false;
};

template <typename T>
void run(const GatedDeltaRule& rule, const Invocation& invocation) {
  const DeltaShape shape = program::delta_shape(rule, invocation);
  const Floats<T> o(invocation[GatedDeltaRule::kO]);
  const Integers bounds(invocation[GatedDeltaRule::kBounds]);
  const DeltaState<T> state{scratch<T>(invocation), shape.dv};
  for (int64_t i = 0; i < o.count(); ++i) o.set(i, T{0});
  for (int64_t h = 0; h < shape.value_heads; ++h) {
    const DeltaHead<T> head(rule, invocation, h);
    for (int64_t segment = 0; segment < bounds.count(); segment += 2) {
      if (bounds[segment] == bounds[segment + 1]) continue;
      std::ranges::fill(state.at, T{0});
      std::optional<KeptState<T>> kept;
      if (rule.cached) kept.emplace(invocation, segment, h * shape.dk * shape.dv);
      if (kept) kept->load(state);
      for (int64_t t = bounds[segment]; t < bounds[segment + 1]; ++t) {
        head.step(t, state, state);
        for (int64_t j = 0; j < shape.dv; ++j) {
          T sum = 0;
          for (int64_t i = 0; i < shape.dk; ++i) sum += state(i, j) * head.q(t, i);
          o.set(t, head.value_column(j), sum * head.q_factor(t));
        }
      }
      if (kept) kept->store(state);
    }
  }
}

// Gradients of one value head. dq and dk, which its key head's other value heads add to, are held
// in scratch until all have.
template <typename T>
class DeltaHeadGradient {
 public:
  // Scratch: the states of tokens -1, 0, ... of a segment, the gradient of a state, and dq and dk.
  DeltaHeadGradient(const GatedDeltaRuleGrad& rule, const Invocation& invocation)
      : rule_(rule), invocation_(invocation), shape_(program::delta_shape(rule, invocation)) {
    const auto size = static_cast<size_t>(shape_.dk * shape_.dv);
    const std::span<T> memory = scratch<T>(invocation);
    states_ = memory.subspan(0, static_cast<size_t>(shape_.tokens + 1) * size);
    dstate_ = {memory.subspan(states_.size(), size), shape_.dv};
    const auto keys = static_cast<size_t>(shape_.tokens * shape_.dk);
    dq_ = memory.subspan(states_.size() + size, keys);
    dk_ = memory.subspan(states_.size() + size + keys, keys);
  }

  void clear_keys() const {
    std::ranges::fill(dq_, T{0});
    std::ranges::fill(dk_, T{0});
  }

  // Adds what one value head's segment gives.
  void add(int64_t value_head, int64_t begin, int64_t end) const {
    const DeltaHead<T> head(rule_, invocation_, value_head);
    std::ranges::fill(state(-1).at, T{0});
    for (int64_t t = begin; t < end; ++t) head.step(t, state(t - begin - 1), state(t - begin));
    std::ranges::fill(dstate_.at, T{0});
    for (int64_t t = end - 1; t >= begin; --t)
      back(head, value_head, t, state(t - begin - 1), state(t - begin));
  }

  // Stores dq and dk of a key head's segment, with the derivative of the norms: of y = f x with f
  // the reciprocal root of |x|^2 + epsilon, dx = f (dy - x f^2 (x dy)).
  void store_keys(int64_t key_head, int64_t begin, int64_t end) const {
    const DeltaHead<T> head(rule_, invocation_, key_head * shape_.heads_per_key());
    const Floats<T> dq(invocation_[GatedDeltaRuleGrad::kDQ]);
    const Floats<T> dk(invocation_[GatedDeltaRuleGrad::kDK]);
    for (int64_t t = begin; t < end; ++t) {
      T along_q = 0;
      T along_k = 0;
      for (int64_t i = 0; i < shape_.dk; ++i) {
        along_q += head.q(t, i) * dq_[key(t, i)];
        along_k += head.k(t, i) * dk_[key(t, i)];
      }
      const T fq = head.q_factor(t);
      const T fk = head.k_factor(t);
      const T squared = fq * fq * static_cast<T>(shape_.dk);
      for (int64_t i = 0; i < shape_.dk; ++i) {
        dq.set(t, head.key_column(i), fq * (dq_[key(t, i)] - head.q(t, i) * squared * along_q));
        dk.set(t, head.key_column(i), fk * (dk_[key(t, i)] - head.k(t, i) * fk * fk * along_k));
      }
    }
  }

 private:
  size_t key(int64_t t, int64_t i) const { return static_cast<size_t>(t * shape_.dk + i); }

  DeltaState<T> state(int64_t token) const {
    const auto size = static_cast<size_t>(shape_.dk * shape_.dv);
    return {states_.subspan(static_cast<size_t>(token + 1) * size, size), shape_.dv};
  }

  // The gradient of the state after token t, in dstate_, becomes that of the state before it.
  void back(const DeltaHead<T>& head, int64_t h, int64_t t, const DeltaState<T>& before,
            const DeltaState<T>& after) const {
    const Floats<T> d_o(invocation_[GatedDeltaRuleGrad::kDO]);
    const Floats<T> dv(invocation_[GatedDeltaRuleGrad::kDV]);
    const T fq = head.q_factor(t);
    const T fk = head.k_factor(t);
    const T decay = head.decay(t);
    const T beta = head.beta(t);
    for (int64_t i = 0; i < shape_.dk; ++i)
      for (int64_t j = 0; j < shape_.dv; ++j) {
        const T slope = d_o.at(t, head.value_column(j));
        dq_[key(t, i)] += after(i, j) * slope;
        dstate_(i, j) += head.q(t, i) * fq * slope;
      }
    T dbeta = 0;
    for (int64_t j = 0; j < shape_.dv; ++j) {
      T held = 0;
      T dwritten = 0;
      for (int64_t i = 0; i < shape_.dk; ++i) {
        held += before(i, j) * decay * head.k(t, i) * fk;
        dwritten += dstate_(i, j) * head.k(t, i) * fk;
      }
      const T missing = head.v(t, j) - held;
      dbeta += dwritten * missing;
      dv.set(t, head.value_column(j), beta * dwritten);
      for (int64_t i = 0; i < shape_.dk; ++i) {
        dk_[key(t, i)] += dstate_(i, j) * beta * missing - before(i, j) * decay * beta * dwritten;
        dstate_(i, j) -= head.k(t, i) * fk * beta * dwritten;
      }
    }
    T dg = 0;
    for (size_t i = 0; i < dstate_.at.size(); ++i) {
      dstate_.at[i] *= decay;
      dg += dstate_.at[i] * before.at[i];
    }
    Floats<T>(invocation_[GatedDeltaRuleGrad::kDG]).set(t, h, dg);
    Floats<T>(invocation_[GatedDeltaRuleGrad::kDBeta]).set(t, h, dbeta);
  }

  const GatedDeltaRuleGrad& rule_;
  const Invocation& invocation_;
  DeltaShape shape_;
  std::span<T> states_;
  DeltaState<T> dstate_;
  std::span<T> dq_, dk_;
};

template <typename T>
void run(const GatedDeltaRuleGrad& rule, const Invocation& invocation) {
  const DeltaShape shape = program::delta_shape(rule, invocation);
  const Integers bounds(invocation[GatedDeltaRuleGrad::kBounds]);
  for (const auto& operand :
       {GatedDeltaRuleGrad::kDQ, GatedDeltaRuleGrad::kDK, GatedDeltaRuleGrad::kDV,
        GatedDeltaRuleGrad::kDG, GatedDeltaRuleGrad::kDBeta}) {
    const Floats<T> cleared(invocation[operand]);
    for (int64_t i = 0; i < cleared.count(); ++i) cleared.set(i, T{0});
  }
  const DeltaHeadGradient<T> gradient(rule, invocation);
  for (int64_t key_head = 0; key_head < shape.key_heads; ++key_head) {
    gradient.clear_keys();
    for (int64_t i = 0; i < shape.heads_per_key(); ++i)
      for (int64_t segment = 0; segment < bounds.count(); segment += 2)
        gradient.add(key_head * shape.heads_per_key() + i, bounds[segment], bounds[segment + 1]);
    for (int64_t segment = 0; segment < bounds.count(); segment += 2)
      gradient.store_keys(key_head, bounds[segment], bounds[segment + 1]);
  }
}

int64_t scratch_elements(const GatedDeltaRule& rule, const program::OperationView& view) {
  const DeltaShape shape = program::delta_shape(rule, view);
  return shape.dk * shape.dv;
}

int64_t scratch_elements(const GatedDeltaRuleGrad& rule, const program::OperationView& view) {
  const DeltaShape shape = program::delta_shape(rule, view);
  return (shape.tokens + 2) * shape.dk * shape.dv + 2 * shape.tokens * shape.dk;
}

}  // namespace

SNUG_REFERENCE_KIND(GatedDeltaRule, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(GatedDeltaRuleGrad, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
