#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/attention/attention_sinks.h"

namespace snug::backends::reference {
namespace {

using program::AttentionSinkGrad;

// With p the sink's share of a query's softmax, the output is (1 - p) times the output without a
// sink, so the derivative by the sink is -p do o. A query that sees no key has an lse of 0, which
// may be below its sink.
template <typename T>
void run(const AttentionSinkGrad&, const Invocation& invocation) {
  const Floats<T> d_o(invocation[AttentionSinkGrad::kDO]);
  const Floats<T> o(invocation[AttentionSinkGrad::kO]);
  const Floats<T> lse(invocation[AttentionSinkGrad::kLse]);
  const Floats<T> sinks(invocation[AttentionSinkGrad::kSinks]);
  const Floats<T> dsinks(invocation[AttentionSinkGrad::kDSinks]);
  const int64_t width = o.columns() / sinks.count();
  for (int64_t head = 0; head < sinks.count(); ++head) {
    T sum = 0;
    for (int64_t i = 0; i < o.rows(); ++i) {
      T product = 0;
      for (int64_t d = head * width; d < (head + 1) * width; ++d)
        product += d_o.at(i, d) * o.at(i, d);
      sum -= std::exp(std::min(T{0}, sinks[head] - lse.at(head, i))) * product;
    }
    dsinks.set(head, sum);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(AttentionSinkGrad);

}  // namespace snug::backends::reference
